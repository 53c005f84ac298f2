"""log_softmax(x)_i = x_i - log sum_j exp(x_j)"""

import numpy as np


def reference(x, axis: int = -1):
    if x.size == 0:
        return x
    shifted = x - np.max(x, axis=axis, keepdims=True)
    exponentials = np.exp(shifted)
    # The exponential of the largest element of a row is 1, which log1p adds exactly.
    largest = np.expand_dims(np.argmax(x, axis=axis), axis)
    np.put_along_axis(exponentials, largest, np.take_along_axis(exponentials, largest, axis) - 1, axis)
    return shifted - np.log1p(np.sum(exponentials, axis=axis, keepdims=True))


if __name__ == "__main__":
    from _protocol import main

    main(reference)
