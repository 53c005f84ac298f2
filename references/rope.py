"""Every pair (u, w) of x at position s becomes (u cos - w sin, w cos + u sin)

x is [..., S, D], cos and sin are [S, D/2]. Pair i is elements i and i + D/2, or 2i and 2i + 1 when interleaved.
"""

import numpy as np


def reference(x, cos, sin, interleaved: bool = False):
    half = x.shape[-1] // 2
    first: tuple
    second: tuple
    if interleaved:
        first, second = np.s_[..., 0::2], np.s_[..., 1::2]
    else:
        first, second = np.s_[..., :half], np.s_[..., half:]
    out = np.empty_like(x)
    out[first] = x[first] * cos - x[second] * sin
    out[second] = x[second] * cos + x[first] * sin
    return out


if __name__ == "__main__":
    from _protocol import main

    main(reference)
