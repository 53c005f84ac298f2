"""Losses."""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(logits_ptr, targets_ptr, out_ptr, classes, IGNORED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets_ptr + row)
    if target == IGNORED:
        tl.store(out_ptr + row, 0.0)
        return
    highest = -float("inf")
    total = 0.0
    for start in range(0, classes, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + row * classes + column, mask=column < classes, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(highest, tl.max(x, axis=0))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(x - higher), axis=0)
        highest = higher
    chosen = tl.load(logits_ptr + row * classes + target).to(tl.float32)
    tl.store(out_ptr + row, tl.log(total) + highest - chosen)


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor, ignore_index: int = -100) -> torch.Tensor:
    """The loss of every row; 0 where the target is `ignore_index`."""
    logits, targets = logits.contiguous(), targets.contiguous()
    rows, classes = logits.shape
    out = torch.empty((rows,), dtype=logits.dtype, device=logits.device)
    cross_entropy_kernel[(rows,)](logits, targets, out, classes, IGNORED=ignore_index, BLOCK=128)
    return out
