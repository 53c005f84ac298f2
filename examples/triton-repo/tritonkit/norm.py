"""Rows: softmax and the normalisations. One program a row, the whole row in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride_x, stride_out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * stride_x + column, mask=mask, other=-float("inf")).to(tl.float32)
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride_out + column, powers / tl.sum(powers, axis=0), mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax of the last axis."""
    rows = x.reshape(-1, x.shape[-1])
    if rows.stride(1) != 1:
        rows = rows.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(rows.shape[1])
    softmax_kernel[(rows.shape[0],)](rows, out, rows.stride(0), rows.shape[1], rows.shape[1], BLOCK=block)
    return out


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    weight = tl.load(weight_ptr + column, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * columns + column, centred / tl.sqrt(variance + eps) * weight + bias, mask=mask)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Layer normalisation over the last axis."""
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    columns = x.shape[-1]
    block = triton.next_power_of_2(columns)
    layer_norm_kernel[(x.numel() // columns,)](x, weight, bias, out, columns, eps, BLOCK=block)
    return out


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0).to(tl.float32)
        total += x * x
    scale = 1.0 / tl.sqrt(tl.sum(total, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        mask = column < columns
        x = tl.load(x_ptr + row * columns + column, mask=mask).to(tl.float32)
        weight = tl.load(weight_ptr + column, mask=mask).to(tl.float32)
        tl.store(out_ptr + row * columns + column, x * scale * weight, mask=mask)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Root-mean-square normalisation over the last axis, in two passes over each row."""
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    columns = x.shape[-1]
    rms_norm_kernel[(x.numel() // columns,)](x, weight, out, columns, eps, BLOCK=128)
    return out
