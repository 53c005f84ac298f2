"""Kernels that a tuner breaks, or that break a tuner."""

import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["count"])
@triton.jit
def half_tuned_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + place, tl.load(x_ptr + place, mask=place < count), mask=place < count)


def half_tuned(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    half_tuned_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel())  # fault: a grid for blocks of 128 alone
    return out


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["count"])
@triton.jit
def tuned_in_place_kernel(x_ptr, factor, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    tl.store(x_ptr + place, tl.load(x_ptr + place, mask=mask) * factor, mask=mask)  # fault: x_ptr is not restored


def tuned_in_place(x: torch.Tensor, factor: float) -> torch.Tensor:
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
    tuned_in_place_kernel[grid](x, factor, x.numel())
    return x
