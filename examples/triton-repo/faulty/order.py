"""Kernels whose threads do not wait for each other, or for ever."""

import torch
import triton
import triton.language as tl


@triton.jit
def split_store_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))  # fault: every part of a row stores where the others do


def split_store(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0], dtype=x.dtype, device=x.device)
    split_store_kernel[(x.shape[0], triton.cdiv(x.shape[1], 128))](x, out, x.shape[1], BLOCK=128)
    return out


@triton.jit
def counted_kernel(ids_ptr, counts_ptr, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    ids = tl.load(ids_ptr + place, mask=mask, other=0)
    before = tl.load(counts_ptr + ids, mask=mask)
    tl.store(counts_ptr + ids, before + 1, mask=mask)  # fault: others read and write the same count


def counted(ids: torch.Tensor, bins: int) -> torch.Tensor:
    counts = torch.zeros(bins, dtype=torch.int32, device=ids.device)
    counted_kernel[(triton.cdiv(len(ids), 128),)](ids, counts, len(ids), BLOCK=128)
    return counts


@triton.jit
def in_place_shift_kernel(x_ptr, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place + 1, mask=place + 1 < count, other=0.0)
    tl.store(x_ptr + place, x, mask=place < count)  # fault: others may still have to read these


def in_place_shift(x: torch.Tensor) -> torch.Tensor:
    in_place_shift_kernel[(triton.cdiv(x.numel(), 128),)](x, x.numel(), BLOCK=128)
    return x


@triton.jit
def unguarded_exchange_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place)
    y = tl.inline_asm_elementwise(  # fault: no `bar.sync 0;` between the store and the load
        """{
        .shared .align 4 .b32 exchange[128];
        .reg .b32 base, mine, theirs, thread;
        mov.u32 thread, %tid.x;
        mov.u32 base, exchange;
        mad.lo.u32 mine, thread, 4, base;
        st.shared.b32 [mine], $1;
        sub.u32 theirs, 127, thread;
        mad.lo.u32 theirs, theirs, 4, base;
        ld.shared.b32 $0, [theirs];
        }""",
        "=r,r",
        [x],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )
    tl.store(out_ptr + place, y)


def unguarded_exchange(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    unguarded_exchange_kernel[(1,)](x, out, BLOCK=128)
    return out


@triton.jit
def endless_kernel(x_ptr, out_ptr):
    value = tl.load(x_ptr)
    steps = 0
    while value != 1.0:  # fault: 0.1 added ten times is not 1
        value += 0.1
        steps += 1
    tl.store(out_ptr, steps)


def endless(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(1, dtype=torch.int32, device=x.device)
    endless_kernel[(1,)](x, out)
    return out


@triton.jit
def asserted_kernel(ids_ptr, out_ptr, limit, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + place)
    tl.device_assert(ids < limit, "an id beyond the table")  # fault: of whoever calls
    tl.store(out_ptr + place, ids)


def asserted(ids: torch.Tensor, limit: int) -> torch.Tensor:
    out = torch.empty_like(ids)
    asserted_kernel[(1,)](ids, out, limit, BLOCK=len(ids), debug=True)
    return out


@triton.jit
def tall_grid_kernel(x_ptr, out_ptr):
    row = tl.program_id(1)
    tl.store(out_ptr + row, tl.load(x_ptr + row))


def tall_grid(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    tall_grid_kernel[(1, len(x))](x, out)  # fault: 65,535 programs along y is the most
    return out
