"""x / scale + zero_point, within the range of the quantised type and not yet rounded to it

Right is any quantised value within half a step, so what is returned stays a float.
"""

import numpy as np


def reference(x, scale, zero_point: int = 0, low: float = -128.0, high: float = 127.0):
    return np.clip(x / scale + zero_point, low, high)


if __name__ == "__main__":
    from _protocol import main

    main(reference)
