"""layer_norm(x) = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, over the last axis"""

import numpy as np


def reference(x, weight=None, bias=None, eps: float = 1e-5):
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.var(x, axis=-1, keepdims=True)
    out = (x - mean) / np.sqrt(variance + eps)
    if weight is not None:
        out = out * weight
    if bias is not None:
        out = out + bias
    return out


if __name__ == "__main__":
    from _protocol import main

    main(reference)
