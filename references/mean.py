"""Mean along an axis"""

import numpy as np


def reference(x, axis: int = -1, keepdims: bool = False):
    return np.mean(x, axis=axis, keepdims=keepdims)


if __name__ == "__main__":
    from _protocol import main

    main(reference)
