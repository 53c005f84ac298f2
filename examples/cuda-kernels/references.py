"""Right answers that gpuemu has no built-in for."""

import numpy as np


def saxpy(x, y, alpha):
    """alpha * x + y"""
    return alpha * x + y


def histogram(x, counts):
    """counts, and one more for every time that a number is in x"""
    return counts + np.bincount(x.reshape(-1), minlength=counts.size).reshape(counts.shape).astype(counts.dtype)
