"""gpuemu for Python: what test functions and benchmarks use."""

from pytest_gpuemu import __version__

__all__ = ["__version__"]
