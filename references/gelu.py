"""gelu(x) = x * P(X <= x) for a standard normal X, or its tanh approximation"""

import math

import numpy as np

erfc = np.vectorize(math.erfc, otypes=[float])


def reference(x, approximate: str = "none"):
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return x / (1 + np.exp(-2 * inner))  # (1 + tanh(y)) / 2 = 1 / (1 + exp(-2y))
    # (1 + erf(y)) / 2 = erfc(-y) / 2, which does not cancel for negative y
    return x * (erfc(-x / math.sqrt(2)) / 2).astype(x.dtype)


if __name__ == "__main__":
    from _protocol import main

    main(reference)
