"""a * b, broadcast"""


def reference(a, b):
    return a * b


if __name__ == "__main__":
    from _protocol import main

    main(reference)
