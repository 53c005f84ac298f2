"""Dropout."""

import torch
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, out_ptr, count, p, seed, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    x = tl.load(x_ptr + place, mask=mask).to(tl.float32)
    kept = tl.rand(seed, place) >= p
    tl.store(out_ptr + place, tl.where(kept, x / (1.0 - p), 0.0), mask=mask)


def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """Zeroes every element with probability `p`, and scales the others so that the mean stays."""
    x = x.contiguous()
    out = torch.empty_like(x)
    grid = lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)
    dropout_kernel[grid](x, out, out.numel(), p, seed, BLOCK=256)
    return out
