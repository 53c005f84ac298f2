"""The compiler's half of a Triton backend, which discovery asks for: kernels are compiled by Triton's own for CUDA."""

from __future__ import annotations

from typing import Any

from triton.backends.nvidia import compiler as nvidia


class EmulatorBackend(nvidia.CUDABackend):  # type: ignore[misc]
    """Never chosen: the target of the emulator's driver is CUDA's, and so is its compiler."""

    @staticmethod
    def supports_target(target: Any) -> bool:
        return False
