"""exp(x)"""

import numpy as np


def reference(x):
    return np.exp(x)


if __name__ == "__main__":
    from _protocol import main

    main(reference)
