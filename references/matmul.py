"""out[i, j] = sum_k a[i, k] b[k, j], a stored as [K, M] with transpose_a, b as [N, K] with transpose_b"""


def reference(a, b, transpose_a: bool = False, transpose_b: bool = False):
    return (a.T if transpose_a else a) @ (b.T if transpose_b else b)


if __name__ == "__main__":
    from _protocol import main

    main(reference)
