"""rms_norm(x) = x / sqrt(mean(x^2) + eps) * weight, over the last axis"""

import numpy as np


def reference(x, weight=None, eps: float = 1e-6):
    out = x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + eps)
    return out if weight is None else out * weight


if __name__ == "__main__":
    from _protocol import main

    main(reference)
