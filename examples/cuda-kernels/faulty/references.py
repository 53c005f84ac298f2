"""Right answers that gpuemu has no built-in for."""

import numpy as np


def histogram(x, counts):
    """counts, and one more for every time that a number is in x"""
    return counts + np.bincount(x.reshape(-1), minlength=counts.size).reshape(counts.shape).astype(counts.dtype)


def signalled_sum(x, flags):
    """sums of rows, and a flag for each"""
    return np.ones_like(flags), x.sum(axis=-1)
