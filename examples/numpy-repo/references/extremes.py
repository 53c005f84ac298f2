"""The smallest and the largest element of each row."""

import numpy as np


def min_max(x):
    return np.min(x, axis=-1), np.max(x, axis=-1)
