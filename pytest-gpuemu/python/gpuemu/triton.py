"""Unmodified Triton kernels on a machine with no GPU: what `pytest_gpuemu.triton` offers."""

from pytest_gpuemu.triton import (
    AutotuneError,
    AutotuneWarning,
    KernelFault,
    activate,
    active,
    array,
    deactivate,
    emulated,
    last_launch,
    lend,
    lint,
    metrics,
)

__all__ = [
    "AutotuneError",
    "AutotuneWarning",
    "KernelFault",
    "activate",
    "active",
    "array",
    "deactivate",
    "emulated",
    "last_launch",
    "lend",
    "lint",
    "metrics",
]
