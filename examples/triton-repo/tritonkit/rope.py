"""Rotary position embedding."""

import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, positions, HALF: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    mask = lane < HALF
    angle = (row % positions) * HALF + lane
    cos = tl.load(cos_ptr + angle, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + angle, mask=mask).to(tl.float32)
    base = row.to(tl.int64) * 2 * HALF
    first = tl.load(x_ptr + base + lane, mask=mask).to(tl.float32)
    second = tl.load(x_ptr + base + HALF + lane, mask=mask).to(tl.float32)
    tl.store(out_ptr + base + lane, first * cos - second * sin, mask=mask)
    tl.store(out_ptr + base + HALF + lane, second * cos + first * sin, mask=mask)


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turns pairs (i, i + D/2) of [..., positions, D] by the angles of [positions, D/2]."""
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty_like(x)
    positions, depth = x.shape[-2:]
    block = triton.next_power_of_2(depth // 2)
    rope_kernel[(x.numel() // depth,)](x, cos, sin, out, positions, HALF=depth // 2, BLOCK=block)
    return out
