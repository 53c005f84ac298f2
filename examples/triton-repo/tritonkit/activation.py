"""Elementwise functions."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def gelu_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    x = tl.load(x_ptr + place, mask=mask).to(tl.float32)
    # 0.5 (1 + erf(x / sqrt 2)), which keeps its digits where the sum would cancel.
    tl.store(out_ptr + place, 0.5 * x * libdevice.erfc(-0.7071067811865476 * x), mask=mask)


@triton.jit
def silu_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    x = tl.load(x_ptr + place, mask=mask).to(tl.float32)
    tl.store(out_ptr + place, x * tl.sigmoid(x), mask=mask)


@triton.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    gate = tl.load(gate_ptr + place, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + place, mask=mask).to(tl.float32)
    tl.store(out_ptr + place, gate * tl.sigmoid(gate) * up, mask=mask)


def _elementwise(kernel, *inputs: torch.Tensor) -> torch.Tensor:
    inputs = tuple(tensor.contiguous() for tensor in inputs)
    out = torch.empty_like(inputs[0])
    grid = lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)
    kernel[grid](*inputs, out, out.numel(), BLOCK=256)
    return out


def gelu(x: torch.Tensor) -> torch.Tensor:
    """The exact GELU, by the error function."""
    return _elementwise(gelu_kernel, x)


def silu(x: torch.Tensor) -> torch.Tensor:
    """x sigmoid(x)."""
    return _elementwise(silu_kernel, x)


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(gate) up."""
    return _elementwise(swiglu_kernel, gate, up)
