"""Unmodified Triton kernels on a machine with no GPU: what `pytest_gpuemu.triton` offers."""

# The names are listed once, in `pytest_gpuemu.triton`.
from pytest_gpuemu.triton import *  # noqa: F403
from pytest_gpuemu.triton import __all__ as __all__

if __name__ == "__main__":
    import sys

    from pytest_gpuemu.triton.script import main

    main(sys.argv[1:])
