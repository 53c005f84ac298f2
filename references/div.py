"""a / b, broadcast; integers truncate toward zero, as in C"""

import numpy as np


def reference(a, b):
    if np.result_type(a, b).kind in "iu":
        quotient = a // b  # rounds down
        return quotient + ((a % b != 0) & ((a < 0) != (b < 0)))
    return a / b


if __name__ == "__main__":
    from _protocol import main

    main(reference)
