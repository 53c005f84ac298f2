"""a * b + c, broadcast"""


def reference(a, b, c):
    return a * b + c


if __name__ == "__main__":
    from _protocol import main

    main(reference)
