"""Tensors of a case on a real GPU: with the strides and the poison that they have in this machine's memory."""

from __future__ import annotations

import sys
from typing import Any

from pytest_gpuemu.arrays import Unusable


class Absent(Unusable):
    """A GPU is asked for, and there is none."""


def missing() -> str | None:
    """Why PyTorch runs nothing on a GPU here; `None` where it does."""
    served = sys.modules.get("pytest_gpuemu.triton.torch_mode")
    if served is not None and served.is_active():
        return "the emulator stands for it"
    try:
        import torch
    except ImportError as error:
        return f"PyTorch cannot be imported: {error}"
    if torch.cuda.is_available():
        return None
    if not torch.backends.cuda.is_built():
        return f"this build of PyTorch ({torch.__version__}) knows no CUDA"
    return "PyTorch sees no GPU (torch.cuda.is_available() is false): there is none, or no driver"


class Copies:
    """What a call has on the GPU, of tensors that stay here."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, Any]] = []

    def to_gpu(self, tensor: Any) -> Any:
        """The same tensor there, its gaps and what is in them too."""
        import torch

        there = tensor.untyped_storage().cuda()
        self.made.append((tensor.untyped_storage(), there))
        made = torch.empty(0, dtype=tensor.dtype, device="cuda")
        return made.set_(there, tensor.storage_offset(), tensor.size(), tensor.stride())

    def back(self) -> None:
        """Waits for the GPU, and brings what it wrote."""
        import torch

        torch.cuda.synchronize()
        for here, there in self.made:
            here.copy_(there)


def copies(device: str, kind: str) -> Copies | None:
    """For a call with arrays of `kind` in a run on `device`: what will be on the GPU, or nothing. PyTorch alone has two
    places for a tensor: JAX chooses by itself, and CuPy has none but the GPU.

    `Absent` where the run insists on a GPU and there is none.
    """
    if kind != "torch" or device == "emulate":
        return None
    why = missing()
    if why is None:
        return Copies()
    if device == "auto":
        return None
    raise Absent(f"a GPU is asked for (GPUEMU_DEVICE=cuda), and {why}")
