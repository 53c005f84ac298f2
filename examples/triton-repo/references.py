"""Right answers for what gpuemu has no built-in reference for."""

import numpy as np


def matmul_int8(x, weight, scale):
    """x weight^T, every output with a scale of its own."""
    return (x @ weight.astype(x.dtype).T) * scale.astype(x.dtype)


def dropout(x, p, seed):
    """Keeps what Triton's generator gives a number of at least `p`: element i has the first word of Philox 4x32-10 with
    the counter (i, 0, 0, 0) and the seed as its key."""
    kept = uniform(philox(np.arange(x.size, dtype=np.uint64), seed)) >= np.float32(p)
    return np.where(kept.reshape(x.shape), x / (1 - p), 0)


def philox(place, seed):
    """The first of four words (Salmon et al. 2011), ten rounds."""
    mask = np.uint64(0xFFFFFFFF)
    c = [place & mask, np.zeros_like(place), np.zeros_like(place), np.zeros_like(place)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        high_a, low_a, high_b, low_b = a >> np.uint64(32), a & mask, b >> np.uint64(32), b & mask
        c = [high_b ^ c[1] ^ np.uint64(k0), low_b, high_a ^ c[3] ^ np.uint64(k1), low_a]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c[0]


def uniform(word):
    """A number of [0, 1) from a word read as a signed integer: its distance from zero, scaled."""
    signed = word.astype(np.uint32).view(np.int32)
    magnitude = np.where(signed < 0, -signed - 1, signed)
    return magnitude.astype(np.float32) * np.float32(4.6566127342e-10)
