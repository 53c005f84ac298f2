"""The Python front of gpuemu: a pytest plugin, and the package that `import gpuemu` stands for."""

from pytest_gpuemu._core import __version__

__all__ = ["__version__"]
