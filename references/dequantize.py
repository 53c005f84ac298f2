"""(x - zero_point) * scale"""


def reference(x, scale, zero_point: int = 0):
    return (x.astype(scale.dtype) - zero_point) * scale


if __name__ == "__main__":
    from _protocol import main

    main(reference)
