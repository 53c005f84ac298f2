"""What test functions, conftest files and benchmarks of kernels use: `@gpuemu.op`, `@gpuemu.cases`, `gpuemu.check`."""

# The names are listed once, in `pytest_gpuemu`.
from pytest_gpuemu import *  # noqa: F403
from pytest_gpuemu import __all__ as __all__
