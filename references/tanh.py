"""tanh(x)"""

import numpy as np


def reference(x):
    return np.tanh(x)


if __name__ == "__main__":
    from _protocol import main

    main(reference)
