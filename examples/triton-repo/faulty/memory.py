"""Kernels that access what they must not."""

import torch
import triton
import triton.language as tl


@triton.jit
def unmasked_load_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place)  # fault: the last program reads past the end
    tl.store(out_ptr + place, x * 2.0, mask=place < count)


def unmasked_load(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    unmasked_load_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


@triton.jit
def unmasked_store_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place, mask=place < count)
    tl.store(out_ptr + place, x * 2.0)  # fault: and writes past it


def unmasked_store(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    unmasked_store_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


@triton.jit
def wrong_bound_kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column <= columns
    x = tl.load(
        x_ptr + row * columns + column, mask=mask, other=0.0
    )  # fault: one column too many, seen in the last row
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def wrong_bound(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(x.shape[1] + 1)
    wrong_bound_kernel[(x.shape[0],)](x, out, *x.shape, BLOCK=block)
    return out


@triton.jit
def shifted_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    before = tl.load(x_ptr + place - 1, mask=mask, other=0.0)  # fault: the first element has none before it
    tl.store(out_ptr + place, tl.load(x_ptr + place, mask=mask) - before, mask=mask)


def shifted(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    shifted_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


@triton.jit
def narrow_offset_kernel(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + column)  # fault: row * stride wraps around beyond 2^31
    tl.store(out_ptr + row * BLOCK + column, x)


def narrow_offset(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty((x.shape[0], 32), dtype=x.dtype, device=x.device)
    narrow_offset_kernel[(x.shape[0],)](x, out, x.stride(0), BLOCK=32)
    return out


@triton.jit
def unchecked_ids_kernel(table_ptr, ids_ptr, out_ptr, width, BLOCK: tl.constexpr):
    place, column = tl.program_id(0), tl.arange(0, BLOCK)
    row = tl.load(ids_ptr + place)
    values = tl.load(table_ptr + row * width + column, mask=column < width)  # fault: -1 stands for padding
    tl.store(out_ptr + place * width + column, values, mask=column < width)


def unchecked_ids(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    out = torch.empty((len(ids), table.shape[1]), dtype=table.dtype, device=table.device)
    unchecked_ids_kernel[(len(ids),)](table, ids, out, table.shape[1], BLOCK=triton.next_power_of_2(table.shape[1]))
    return out


@triton.jit
def false_promise_kernel(x_ptr, out_ptr, start, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    from_start = tl.max_contiguous(tl.multiple_of(start + place, 16), 16)
    x = tl.load(x_ptr + from_start)  # fault: `start` is no multiple of 16
    tl.store(out_ptr + place, x)


def false_promise(x: torch.Tensor, start: int) -> torch.Tensor:
    out = torch.empty(512, dtype=x.dtype, device=x.device)
    false_promise_kernel[(1,)](x, out, start, BLOCK=512)
    return out


@triton.jit
def unset_sums_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0)
    tl.atomic_add(out_ptr + row, tl.sum(x, axis=0))  # fault: adds to what nobody set to zero


def unset_sums(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    unset_sums_kernel[(x.shape[0], triton.cdiv(x.shape[1], 128))](x, out, x.shape[1], BLOCK=128)
    return out
