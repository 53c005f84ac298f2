"""sigmoid(x) = 1 / (1 + exp(-x))"""

import numpy as np


def reference(x):
    return 1 / (1 + np.exp(-x))


if __name__ == "__main__":
    from _protocol import main

    main(reference)
