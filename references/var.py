"""var(x) = sum((x - mean(x))^2) / max(n - correction, 0), along an axis"""

import numpy as np


def reference(x, axis: int = -1, keepdims: bool = False, correction: int = 0):
    deviations = x - np.mean(x, axis=axis, keepdims=True)
    return np.sum(np.square(deviations), axis=axis, keepdims=keepdims) / max(x.shape[axis] - correction, 0)


if __name__ == "__main__":
    from _protocol import main

    main(reference)
