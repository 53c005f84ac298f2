"""Atomic operations: counts, sums of every dtype, extremes, exchanges, locks, and orders across blocks."""

from typing import Any

import numpy as np
import triton
import triton.language as tl
from declaration import Kernel, Tolerance, cdiv, constant, i32, integers, reads, updates, wide, writes

SIZE = 2000


@triton.jit
def atomic_sum(x, place, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    tl.atomic_add(out + tl.load(place + at, mask=mask), tl.load(x + at, mask=mask), mask=mask, sem="relaxed")


@triton.jit
def atomic_extremes(x, highest, lowest, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    values = tl.load(x + at, mask=mask)
    tl.atomic_max(highest + at % 7, values, mask=mask)
    tl.atomic_min(lowest + at % 7, values, mask=mask)


@triton.jit
def atomic_bits(x, ones, common, odd, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    values = tl.load(x + at, mask=mask)
    tl.atomic_or(ones + at % 5, values, mask=mask)
    tl.atomic_and(common + at % 5, values, mask=mask)
    tl.atomic_xor(odd + at % 5, values, mask=mask)


@triton.jit
def atomic_tickets(counter, owner):
    """Every block draws one ticket: which one depends on the order, that each is drawn once does not."""
    ticket = tl.atomic_add(counter, 1)
    tl.store(owner + ticket, 1)


@triton.jit
def atomic_claim(slots, wins, BLOCK: tl.constexpr):
    """Blocks race for slots with compare and swap; each slot has one winner."""
    at = tl.arange(0, BLOCK)
    before = tl.atomic_cas(slots + at, tl.zeros((BLOCK,), tl.int32), tl.full((BLOCK,), 1, tl.int32))
    tl.atomic_add(wins + at, (before == 0).to(tl.int32))


@triton.jit
def atomic_exchange(chain, total, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mine = at + tl.program_id(0) * BLOCK + 1
    before = tl.atomic_xchg(chain + at, mine)
    tl.atomic_add(total + at, before)


@triton.jit
def spin_lock(lock, counter, values, BLOCK: tl.constexpr):
    """A lock around a plain read and write of many values."""
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    at = tl.arange(0, BLOCK)
    tl.debug_barrier()
    tl.store(values + at, tl.load(values + at) + at)
    tl.store(counter, tl.load(counter) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def last_block_sums(x, partial, counter, out, blocks, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    """Partial sums of all blocks, added up by the block that comes last."""
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    tl.store(partial + block, tl.sum(tl.load(x + at), axis=0))
    tl.debug_barrier()
    if tl.atomic_add(counter, 1, sem="acq_rel", scope="gpu") == blocks - 1:
        tl.debug_barrier()
        lane = tl.arange(0, WIDTH)
        tl.store(out, tl.sum(tl.load(partial + lane, mask=lane < blocks, other=0.0), axis=0))


@triton.jit
def atomic_add_rows(x, out, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Neighbours are added by one instruction where the dtype is short."""
    at = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * BLOCK + at)
    tl.atomic_add(out + at, values, sem="relaxed")


@triton.jit
def chained_scan(x, out, carried, flags, BLOCK: tl.constexpr):
    """Every block waits for the sum of all blocks before it."""
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at)
    before = 0
    if block > 0:
        tl.atomic_poll(flags + block - 1, 1)
        before = tl.load(carried + block - 1)
    tl.store(carried + block, before + tl.sum(values, axis=0))
    tl.debug_barrier()
    tl.atomic_store(flags + block, 1)
    tl.store(out + at, tl.cumsum(values, axis=0) + before)


@triton.jit
def histogram(x, out, size, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    counts = tl.histogram(tl.load(x + at, mask=mask, other=0), BINS, mask=mask)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def embedding_backward(ids, gradient, out, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, WIDTH)
    values = tl.load(gradient + row * WIDTH + lane)
    tl.atomic_add(out + tl.load(ids + row) * WIDTH + lane, values, sem="relaxed")


def scattered(t: dict[str, np.ndarray], bins: int) -> dict[str, np.ndarray]:
    total = np.zeros(bins, np.float64)
    np.add.at(total, t["place"], wide(t["x"]))
    return {"out": total}


def by_remainder(x: np.ndarray, count: int, of: np.ufunc) -> np.ndarray:
    return np.array([of.reduce(x[start::count]) for start in range(count)])


def embedded(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    total = np.zeros((10, 64), np.float64)
    np.add.at(total, t["ids"], wide(t["gradient"]))
    return {"out": total}


def summed(name: str, dtype: str, bins: int, absolute: float, **more: Any) -> Kernel:
    """Sums by index in one dtype; whole numbers, so that the order shows only where the dtype is too short for them."""
    return Kernel(
        atomic_sum,
        name=name,
        grid=(cdiv(SIZE, 256),),
        arguments={
            "x": reads(dtype, SIZE, values=integers(-4, 4)),
            "place": reads("int32", SIZE, values=integers(0, bins - 1)),
            "out": updates(dtype, bins),
            "size": i32(SIZE),
        },
        constants={"BLOCK": 256},
        reference=lambda t: scattered(t, bins),
        tolerance=Tolerance(absolute),
        **more,
    )


def extremes(name: str, dtype: str, top: float) -> Kernel:
    """Highest and lowest in one dtype."""
    return Kernel(
        atomic_extremes,
        name=name,
        grid=(cdiv(SIZE, 512),),
        arguments={
            "x": reads(dtype, SIZE),
            "highest": updates(dtype, 7, values=constant(-top)),
            "lowest": updates(dtype, 7, values=constant(top)),
            "size": i32(SIZE),
        },
        constants={"BLOCK": 512},
        reference=lambda t: {
            "highest": by_remainder(t["x"], 7, np.maximum),
            "lowest": by_remainder(t["x"], 7, np.minimum),
        },
    )


def packed(dtype: str, **more: Any) -> Kernel:
    """Twenty rows added up in a short dtype, which holds the sums exactly."""
    return Kernel(
        atomic_add_rows,
        name=f"atomic_add_rows_{dtype}",
        grid=(20,),
        arguments={"x": reads(dtype, 20, 256, values=integers(-4, 4)), "out": updates(dtype, 256)},
        constants={"ROWS": 20, "BLOCK": 256},
        reference=lambda t: {"out": wide(t["x"]).sum(axis=0)},
        **more,
    )


KERNELS = [
    summed("atomic_add_f32", "float32", 31, 0.0),
    summed("atomic_add_f64", "float64", 31, 0.0),
    summed("atomic_add_i32", "int32", 31, 0.0),
    summed("atomic_add_i64", "int64", 31, 0.0),
    # Sums stay below 2048 and 256, where halves and bfloat16 hold every whole number.
    summed("atomic_add_f16", "float16", 300, 0.0),
    summed("atomic_add_bf16", "bfloat16", 300, 0.0, first_target=90, why_not="stock Triton adds bfloat16 from sm_90"),
    extremes("atomic_extremes_f32", "float32", 1e30),
    extremes("atomic_extremes_i32", "int32", 1000),
    extremes("atomic_extremes_i64", "int64", 1000),
    Kernel(
        atomic_bits,
        grid=(cdiv(SIZE, 512),),
        arguments={
            "x": reads("int32", SIZE, values=integers(-(2**31), 2**31 - 1)),
            "ones": updates("int32", 5),
            "common": updates("int32", 5, values=constant(-1)),
            "odd": updates("int32", 5),
            "size": i32(SIZE),
        },
        constants={"BLOCK": 512},
        reference=lambda t: {
            "ones": by_remainder(t["x"], 5, np.bitwise_or),
            "common": by_remainder(t["x"], 5, np.bitwise_and),
            "odd": by_remainder(t["x"], 5, np.bitwise_xor),
        },
    ),
    Kernel(
        atomic_tickets,
        grid=(40,),
        arguments={"counter": updates("int32", 1), "owner": updates("int32", 40)},
        reference=lambda t: {"counter": np.array([40]), "owner": np.ones(40)},
    ),
    Kernel(
        atomic_claim,
        grid=(6,),
        arguments={"slots": updates("int32", 128), "wins": updates("int32", 128)},
        constants={"BLOCK": 128},
        reference=lambda t: {"slots": np.ones(128), "wins": np.ones(128)},
    ),
    Kernel(
        # The chain's last value depends on the order of blocks: one block alone has a known answer.
        atomic_exchange,
        grid=(1,),
        arguments={
            "chain": updates("int32", 64, values=constant(500)),
            "total": updates("int32", 64),
        },
        constants={"BLOCK": 64},
        reference=lambda t: {"chain": np.arange(64) + 1, "total": np.full(64, 500)},
    ),
    Kernel(
        spin_lock,
        grid=(9,),
        arguments={
            "lock": updates("int32", 1),
            "counter": updates("int32", 1),
            "values": updates("int32", 256),
        },
        constants={"BLOCK": 256},
        reference=lambda t: {"lock": np.zeros(1), "counter": np.array([9]), "values": 9 * np.arange(256)},
    ),
    Kernel(
        last_block_sums,
        grid=(20,),
        arguments={
            "x": reads("float32", 20 * 512),
            "partial": writes("float32", 20),
            "counter": updates("int32", 1),
            "out": writes("float32", 1),
            "blocks": i32(20),
        },
        constants={"BLOCK": 512, "WIDTH": 32},
        reference=lambda t: {
            "partial": wide(t["x"]).reshape(20, 512).sum(axis=1),
            "counter": np.array([20]),
            "out": np.array([wide(t["x"]).sum()]),
        },
        tolerance=Tolerance(1e-3),
    ),
    packed("float16"),
    packed("bfloat16", first_target=90, why_not="stock Triton adds bfloat16 from sm_90"),
    Kernel(
        chained_scan,
        grid=(12,),
        arguments={
            "x": reads("int32", 12, 256),
            "out": writes("int32", 12, 256),
            "carried": writes("int32", 12),
            "flags": updates("int32", 12),
        },
        constants={"BLOCK": 256},
        reference=lambda t: {
            "out": t["x"].reshape(-1).cumsum().reshape(12, 256),
            "carried": t["x"].sum(axis=1).cumsum(),
            "flags": np.ones(12),
        },
    ),
    Kernel(
        histogram,
        grid=(cdiv(SIZE, 512),),
        arguments={
            "x": reads("int32", SIZE, values=integers(0, 63)),
            "out": updates("int32", 64),
            "size": i32(SIZE),
        },
        constants={"BINS": 64, "BLOCK": 512},
        reference=lambda t: {"out": np.bincount(t["x"], minlength=64)},
    ),
    Kernel(
        embedding_backward,
        grid=(50,),
        arguments={
            "ids": reads("int64", 50, values=integers(0, 9)),
            "gradient": reads("float32", 50, 64),
            "out": updates("float32", 10, 64),
        },
        constants={"WIDTH": 64},
        reference=embedded,
        tolerance=Tolerance(1e-5),
        num_warps=2,
    ),
]
