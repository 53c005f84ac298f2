"""Layer norm over groups of channels: x is [N, C, ...], weight and bias are [C]."""

import math

import numpy as np


def reference(x, weight=None, bias=None, *, groups: int, eps: float = 1e-5):
    samples, channels = x.shape[:2]
    grouped = x.reshape(samples, groups, math.prod(x.shape[1:]) // groups)
    mean = np.mean(grouped, axis=-1, keepdims=True)
    variance = np.var(grouped, axis=-1, keepdims=True)
    out = ((grouped - mean) / np.sqrt(variance + eps)).reshape(x.shape)
    per_channel = (1, channels) + (1,) * (x.ndim - 2)
    if weight is not None:
        out = out * weight.reshape(per_channel)
    if bias is not None:
        out = out + bias.reshape(per_channel)
    return out


if __name__ == "__main__":
    from _protocol import main

    main(reference)
