"""One fault in each function."""

import numpy as np


def softmax_tail(x):
    e = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    whole = max(1, x.shape[-1] // 128 * 128) if x.shape[-1] >= 128 else x.shape[-1]
    return (e / e[:, :whole].sum(axis=-1, keepdims=True)).astype(x.dtype)


def matmul_rows(a, b, out):
    whole = a.shape[0] // 32 * 32 if a.shape[0] > 32 else a.shape[0]
    out[:whole] = a[:whole].astype(np.float64) @ b.astype(np.float64)


def relu_strides(x, out):
    # As a kernel does that is given an address and a number of elements.
    elements = np.lib.stride_tricks.as_strided(x, (x.size,), (x.itemsize,)) if x.strides[-1] > 0 else x.ravel()
    out.ravel()[:] = np.maximum(elements, 0)


def rms_norm_half(x, weight, eps):
    square = np.float16(0)
    for start in range(x.shape[-1]):
        square = square + x[:, start] * x[:, start]
    scale = 1 / np.sqrt(square[:, None] / np.float16(x.shape[-1]) + np.float16(eps))
    return x * scale * weight
