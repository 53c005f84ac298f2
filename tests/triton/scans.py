"""Scans, sorts, gathers, and the ways to rearrange a block."""

import numpy as np
import triton
import triton.language as tl
from declaration import Kernel, Tolerance, f32, i32, integers, reads, uniform, wide, writes

ROWS, COLUMNS = 24, 256


@triton.jit
def cumulative_sum(x, out, columns, BLOCK: tl.constexpr, REVERSE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=0)
    tl.store(out + row * columns + at, tl.cumsum(values, axis=0, reverse=REVERSE), mask=mask)


@triton.jit
def cumulative_product(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Along the first of two axes, all in one block."""
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tl.cumprod(tl.load(x + at), axis=0))


@triton.jit
def linear_recurrence(decay_a, value_a, decay_b, value_b):
    return decay_a * decay_b, value_a * decay_b + value_b


@triton.jit
def recurrence(decay, x, out, BLOCK: tl.constexpr):
    """h = decay * h + x, by an associative scan of pairs."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    _, hidden = tl.associative_scan((tl.load(decay + at), tl.load(x + at)), 0, linear_recurrence)
    tl.store(out + at, hidden)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def running_maximum(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tl.associative_scan(tl.load(x + at), 1, larger))


@triton.jit
def sort_rows(x, out, COLUMNS: tl.constexpr, DESCENDING: tl.constexpr):
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(out + at, tl.sort(tl.load(x + at), descending=DESCENDING))


@triton.jit
def top_values(x, out, COLUMNS: tl.constexpr, COUNT: tl.constexpr):
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    best = tl.topk(tl.load(x + at), COUNT)
    tl.store(out + tl.program_id(0) * COUNT + tl.arange(0, COUNT), best)


@triton.jit
def gather_rows(x, index, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, PICKED: tl.constexpr):
    """`tl.gather` along the last axis: through shared memory or shuffles, not through addresses."""
    row = tl.arange(0, ROWS)[:, None]
    source = tl.load(x + row * COLUMNS + tl.arange(0, COLUMNS)[None, :])
    at = row * PICKED + tl.arange(0, PICKED)[None, :]
    tl.store(out + at, tl.gather(source, tl.load(index + at), axis=1))


@triton.jit
def embedding(ids, table, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    source = tl.load(ids + row)
    for start in range(0, width, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < width
        tl.store(out + row * width + at, tl.load(table + source * width + at, mask=mask), mask=mask)


@triton.jit
def rearrange(x, y, interleaved, joined, even, odd, flipped, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    twice = tl.arange(0, 2 * BLOCK)
    a = tl.load(x + at)
    b = tl.load(y + at)
    both = tl.interleave(a, b)
    tl.store(interleaved + twice, both)
    pair = tl.join(a, b)
    tl.store(joined + at[:, None] * 2 + tl.arange(0, 2)[None, :], pair * 2)
    left, right = tl.split(tl.reshape(both + 1, (BLOCK, 2)))
    tl.store(even + at, left)
    tl.store(odd + at, right)
    tl.store(flipped + at, tl.flip(a, 0))


@triton.jit
def permute_block(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a = tl.arange(0, A)[:, None, None]
    b = tl.arange(0, B)[None, :, None]
    c = tl.arange(0, C)[None, None, :]
    values = tl.permute(tl.load(x + a * B * C + b * C + c), (2, 0, 1))
    flat = tl.reshape(values, (C * A, B))
    at = tl.arange(0, C * A)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out + at, flat + tl.sum(flat, axis=1, keep_dims=True))


@triton.jit
def rope(x, cos, sin, out, length, HALF: tl.constexpr):
    """Rotates the pairs (i, i + HALF) of every row; heads along y."""
    row = tl.program_id(1) * length + tl.program_id(0)
    lane = tl.arange(0, HALF)
    c = tl.load(cos + tl.program_id(0) * HALF + lane)
    s = tl.load(sin + tl.program_id(0) * HALF + lane)
    first = tl.load(x + row * 2 * HALF + lane).to(tl.float32)
    second = tl.load(x + row * 2 * HALF + HALF + lane).to(tl.float32)
    tl.store(out + row * 2 * HALF + lane, (first * c - second * s).to(tl.float16))
    tl.store(out + row * 2 * HALF + HALF + lane, (second * c + first * s).to(tl.float16))


@triton.jit
def running_median(x, out, size, scale, BLOCK: tl.constexpr):
    """Of three neighbours, by comparisons; the ends repeat."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    a = tl.load(x + tl.maximum(at - 1, 0), mask=mask)
    b = tl.load(x + at, mask=mask)
    c = tl.load(x + tl.minimum(at + 1, size - 1), mask=mask)
    median = tl.maximum(tl.minimum(a, b), tl.minimum(tl.maximum(a, b), c))
    tl.store(out + at, median * scale, mask=mask)


def recurrent(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    decay, x = wide(t["decay"]), wide(t["x"])
    out = np.zeros_like(x)
    hidden = np.zeros(x.shape[0])
    for place in range(x.shape[1]):
        hidden = decay[:, place] * hidden + x[:, place]
        out[:, place] = hidden
    return {"out": out}


def rearranged(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    x, y = t["x"], t["y"]
    pairs = np.stack([x, y], axis=1)
    return {
        "interleaved": pairs.reshape(-1),
        "joined": pairs * 2,
        "even": x + 1,
        "odd": y + 1,
        "flipped": x[::-1],
    }


def permuted(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    flat = t["x"].transpose(2, 0, 1).reshape(64, 16)
    return {"out": flat + flat.sum(axis=1, keepdims=True)}


def rotated(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    x, c, s = wide(t["x"]), wide(t["cos"]), wide(t["sin"])
    first, second = x[..., :32], x[..., 32:]
    return {"out": np.concatenate([first * c - second * s, second * c + first * s], axis=-1)}


def medians(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    padded = np.pad(t["x"], 1, mode="edge")
    return {"out": np.median(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0) * 0.5}


def cumulative(name: str, dtype: str, reverse: bool, absolute: float) -> Kernel:
    """Sums of rows of 200, in a block of 256."""

    def reference(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        x = wide(t["x"])
        return {"out": x[:, ::-1].cumsum(axis=1)[:, ::-1] if reverse else x.cumsum(axis=1)}

    return Kernel(
        cumulative_sum,
        name=name,
        grid=(ROWS,),
        arguments={"x": reads(dtype, ROWS, 200), "out": writes(dtype, ROWS, 200), "columns": i32(200)},
        constants={"BLOCK": 256, "REVERSE": reverse},
        reference=reference,
        tolerance=Tolerance(absolute),
    )


def sorted_rows(name: str, dtype: str, descending: bool) -> Kernel:
    """Rows in order."""
    return Kernel(
        sort_rows,
        name=name,
        grid=(8,),
        arguments={"x": reads(dtype, 8, 128), "out": writes(dtype, 8, 128)},
        constants={"COLUMNS": 128, "DESCENDING": descending},
        reference=lambda t: {"out": np.sort(t["x"], axis=1)[:, ::-1] if descending else np.sort(t["x"], axis=1)},
    )


KERNELS = [
    cumulative("cumsum", "float32", False, 1e-4),
    cumulative("cumsum_i32", "int32", False, 0.0),
    cumulative("cumsum_reverse", "float32", True, 1e-4),
    Kernel(
        cumulative_product,
        grid=(1,),
        arguments={"x": reads("float32", 32, 64, values=uniform(0.8, 1.2)), "out": writes("float32", 32, 64)},
        constants={"ROWS": 32, "COLUMNS": 64},
        reference=lambda t: {"out": wide(t["x"]).cumprod(axis=0)},
        tolerance=Tolerance(0.0, 1e-5),
    ),
    Kernel(
        recurrence,
        grid=(6,),
        arguments={
            "decay": reads("float32", 6, 512, values=uniform(0.5, 1.0)),
            "x": reads("float32", 6, 512),
            "out": writes("float32", 6, 512),
        },
        constants={"BLOCK": 512},
        reference=recurrent,
        tolerance=Tolerance(1e-5),
    ),
    Kernel(
        running_maximum,
        grid=(1,),
        arguments={"x": reads("float16", 16, 128), "out": writes("float16", 16, 128)},
        constants={"ROWS": 16, "COLUMNS": 128},
        reference=lambda t: {"out": np.maximum.accumulate(t["x"], axis=1)},
    ),
    sorted_rows("sort_f32", "float32", False),
    sorted_rows("sort_i32_descending", "int32", True),
    sorted_rows("sort_i16", "int16", False),
    Kernel(
        top_values,
        grid=(8,),
        arguments={"x": reads("float32", 8, 256), "out": writes("float32", 8, 8)},
        constants={"COLUMNS": 256, "COUNT": 8},
        reference=lambda t: {"out": np.sort(t["x"], axis=1)[:, :-9:-1]},
    ),
    Kernel(
        gather_rows,
        grid=(1,),
        arguments={
            "x": reads("float32", 16, 64),
            "index": reads("int32", 16, 128, values=integers(0, 63)),
            "out": writes("float32", 16, 128),
        },
        constants={"ROWS": 16, "COLUMNS": 64, "PICKED": 128},
        reference=lambda t: {"out": np.take_along_axis(t["x"], t["index"], axis=1)},
    ),
    Kernel(
        embedding,
        grid=(33,),
        arguments={
            "ids": reads("int64", 33, values=integers(0, 19)),
            "table": reads("float16", 20, 300),
            "out": writes("float16", 33, 300),
            "width": i32(300),
        },
        constants={"BLOCK": 256},
        reference=lambda t: {"out": t["table"][t["ids"]]},
    ),
    Kernel(
        rearrange,
        grid=(1,),
        arguments={
            "x": reads("int32", 128),
            "y": reads("int32", 128),
            "interleaved": writes("int32", 256),
            "joined": writes("int32", 128, 2),
            "even": writes("int32", 128),
            "odd": writes("int32", 128),
            "flipped": writes("int32", 128),
        },
        constants={"BLOCK": 128},
        reference=rearranged,
    ),
    Kernel(
        permute_block,
        grid=(1,),
        arguments={"x": reads("int32", 8, 16, 8), "out": writes("int32", 64, 16)},
        constants={"A": 8, "B": 16, "C": 8},
        reference=permuted,
    ),
    Kernel(
        rope,
        grid=(9, 4),
        arguments={
            "x": reads("float16", 4, 9, 64),
            "cos": reads("float32", 9, 32, values=uniform(-1, 1)),
            "sin": reads("float32", 9, 32, values=uniform(-1, 1)),
            "out": writes("float16", 4, 9, 64),
            "length": i32(9),
        },
        constants={"HALF": 32},
        reference=rotated,
        tolerance=Tolerance(1e-3, 1e-3),
        num_warps=1,
    ),
    Kernel(
        running_median,
        grid=(4,),
        arguments={
            "x": reads("float32", 1001),
            "out": writes("float32", 1001),
            "size": i32(1001),
            "scale": f32(0.5),
        },
        constants={"BLOCK": 256},
        reference=medians,
    ),
]
