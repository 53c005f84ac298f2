"""softmax(x)_i = exp(x_i) / sum_j exp(x_j)"""

import numpy as np


def reference(x, axis: int = -1):
    exponentials = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


if __name__ == "__main__":
    from _protocol import main

    main(reference)
