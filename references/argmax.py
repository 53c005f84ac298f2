"""Place of the first largest value along an axis; of the first NaN where there is one"""

import numpy as np


def reference(x, axis: int = -1, keepdims: bool = False):
    return np.argmax(x, axis=axis, keepdims=keepdims)


if __name__ == "__main__":
    from _protocol import main

    main(reference)
