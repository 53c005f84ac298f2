"""Norms over rows."""

import numpy as np


def rms_norm(x, weight, eps):
    wide = x.astype(np.float32)
    scale = 1 / np.sqrt((wide * wide).mean(axis=-1, keepdims=True) + np.float32(eps))
    return (wide * scale * weight).astype(x.dtype)
