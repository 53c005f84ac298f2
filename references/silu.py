"""silu(x) = x * sigmoid(x)"""

import numpy as np


def reference(x):
    return x / (1 + np.exp(-x))


if __name__ == "__main__":
    from _protocol import main

    main(reference)
