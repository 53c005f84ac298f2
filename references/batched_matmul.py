"""out[..., i, j] = sum_k a[..., i, k] b[..., k, j], the leading axes broadcast"""

import numpy as np


def reference(a, b, transpose_a: bool = False, transpose_b: bool = False):
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    b = np.swapaxes(b, -1, -2) if transpose_b else b
    return a @ b


if __name__ == "__main__":
    from _protocol import main

    main(reference)
