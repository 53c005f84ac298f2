"""Reductions of rows and what is made of them."""

import numpy as np
import triton
import triton.language as tl
from declaration import Kernel, Scalar, Tensor, Tolerance, cdiv, f32, i32, integers, normal, reads, some, wide, writes

ROWS, COLUMNS = 48, 1008


@triton.jit
def row_sum(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + column, mask=column < columns, other=0.0)
    tl.store(out + row, tl.sum(values, axis=0))


@triton.jit
def row_max(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + column, mask=column < columns, other=-float("inf"))
    tl.store(out + row, tl.max(values, axis=0))


@triton.jit
def row_argmax(x, out, lowest, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    tl.store(out + row, tl.argmax(tl.load(x + row * columns + column, mask=mask, other=-float("inf")), axis=0))
    tl.store(lowest + row, tl.argmin(tl.load(x + row * columns + column, mask=mask, other=float("inf")), axis=0))


@triton.jit
def column_sum(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row[:, None] < rows) & (column[None, :] < columns)
        block = tl.load(x + row[:, None] * columns + column[None, :], mask=mask, other=0.0)
        total += tl.sum(block.to(tl.float32), axis=0)
    tl.store(out + column, total, mask=column < columns)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    values = tl.load(x + row * columns + column, mask=mask, other=-float("inf")).to(tl.float32)
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + column, values / tl.sum(values, axis=0), mask=mask)


@triton.jit
def softmax_online(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + lanes
        values = tl.load(x + row * columns + column, mask=column < columns, other=-float("inf"))
        higher = tl.maximum(top, values)
        safe = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(top - safe) + tl.exp(values - safe)
        top = higher
    peak = tl.max(top, axis=0)
    scale = tl.sum(total * tl.exp(top - peak), axis=0)
    for start in range(0, columns, BLOCK):
        column = start + lanes
        mask = column < columns
        values = tl.load(x + row * columns + column, mask=mask, other=0.0)
        tl.store(out + row * columns + column, tl.exp(values - peak) / scale, mask=mask)


@triton.jit
def layer_norm(x, weight, bias, out, mean_out, rstd_out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * columns
    out += row * columns
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total += tl.load(x + column, mask=column < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        values = tl.load(x + column, mask=column < columns, other=0.0).to(tl.float32)
        values = tl.where(column < columns, values - mean, 0.0)
        squares += values * values
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean_out + row, mean)
    tl.store(rstd_out + row, rstd)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        mask = column < columns
        w = tl.load(weight + column, mask=mask)
        b = tl.load(bias + column, mask=mask)
        values = tl.load(x + column, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + column, (values - mean) * rstd * w + b, mask=mask)


@triton.jit
def rms_norm(x, weight, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    values = tl.load(x + row * columns + column, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / columns + eps)
    w = tl.load(weight + column, mask=mask).to(tl.float32)
    tl.store(out + row * columns + column, (values * scale * w).to(out.dtype.element_ty), mask=mask)


@triton.jit
def cross_entropy(logits, targets, loss, columns, ignore, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    target = tl.load(targets + row)
    column = tl.arange(0, BLOCK)
    values = tl.load(logits + row * columns + column, mask=column < columns, other=-float("inf")).to(tl.float32)
    top = tl.max(values, axis=0)
    total = tl.log(tl.sum(tl.exp(values - top), axis=0)) + top
    if target == ignore:
        tl.store(loss + row, 0.0)
    else:
        tl.store(loss + row, total - tl.load(logits + row * columns + target).to(tl.float32))


@triton.jit
def welford_combine(mean_a, squares_a, count_a, mean_b, squares_b, count_b):
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    delta = mean_b - mean_a
    return mean_a + delta * share, squares_a + squares_b + delta * delta * count_a * share, count


@triton.jit
def welford(x, mean_out, variance_out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    values = tl.load(x + row * columns + column, mask=mask, other=0.0)
    count = tl.where(mask, 1.0, 0.0)
    mean, squares, total = tl.reduce((values, tl.zeros_like(values), count), 0, welford_combine)
    tl.store(mean_out + row, mean)
    tl.store(variance_out + row, squares / total)


@triton.jit
def xor_min_max(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    values = tl.load(x + row * columns + column, mask=mask, other=0)
    tl.store(out + row * 4, tl.xor_sum(values, axis=0))
    tl.store(out + row * 4 + 1, tl.min(tl.where(mask, values, 2147483647), axis=0))
    tl.store(out + row * 4 + 2, tl.max(tl.where(mask, values, -2147483648), axis=0))
    tl.store(out + row * 4 + 3, tl.sum(values, axis=0))


@triton.jit
def max_propagates_nan(x, out, plain, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + column, mask=column < columns, other=-float("inf"))
    tl.store(out + row, tl.reduce(values, 0, nan_maximum))
    tl.store(plain + row, tl.max(values, axis=0))


@triton.jit
def nan_maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


def softmax_of(x: np.ndarray) -> np.ndarray:
    powers = np.exp(wide(x) - wide(x).max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def layer_norm_of(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    x = wide(t["x"])
    mean, variance = x.mean(axis=1), x.var(axis=1)
    rstd = 1 / np.sqrt(variance + 1e-5)
    out = (x - mean[:, None]) * rstd[:, None] * t["weight"] + t["bias"]
    return {"out": out, "mean_out": mean, "rstd_out": rstd}


def rms_norm_of(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    x = wide(t["x"])
    return {"out": x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * wide(t["weight"])}


def cross_entropy_of(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    logits, targets = wide(t["logits"]), t["targets"]
    total = np.log(np.exp(logits).sum(axis=1))
    picked = logits[np.arange(len(targets)), np.maximum(targets, 0)]
    return {"loss": np.where(targets == -100, 0.0, total - picked)}


def of_integers(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    x = t["x"]
    return {"out": np.stack([np.bitwise_xor.reduce(x, axis=1), x.min(axis=1), x.max(axis=1), x.sum(axis=1)], axis=1)}


BLOCK = {"BLOCK": 1024}
MATRIX: dict[str, Tensor | Scalar] = {
    "x": reads("float32", ROWS, COLUMNS),
    "out": writes("float32", ROWS, COLUMNS),
    "columns": i32(COLUMNS),
}

KERNELS = [
    Kernel(
        row_sum,
        grid=(ROWS,),
        arguments={"x": reads("float32", ROWS, COLUMNS), "out": writes("float32", ROWS), "columns": i32(COLUMNS)},
        constants=BLOCK,
        reference=lambda t: {"out": wide(t["x"]).sum(axis=1)},
        tolerance=Tolerance(1e-4),
    ),
    Kernel(
        row_sum,
        name="row_sum_f64",
        grid=(ROWS,),
        arguments={"x": reads("float64", ROWS, COLUMNS), "out": writes("float64", ROWS), "columns": i32(COLUMNS)},
        constants=BLOCK,
        reference=lambda t: {"out": t["x"].sum(axis=1)},
        tolerance=Tolerance(1e-12),
    ),
    Kernel(
        row_max,
        grid=(ROWS,),
        arguments={"x": reads("float16", ROWS, COLUMNS), "out": writes("float16", ROWS), "columns": i32(COLUMNS)},
        constants=BLOCK,
        reference=lambda t: {"out": t["x"].max(axis=1)},
        num_warps=8,
    ),
    Kernel(
        row_argmax,
        grid=(ROWS,),
        arguments={
            # Few values, so that equal ones compete: the first one wins.
            "x": reads("float32", ROWS, COLUMNS, values=integers(-20, 20)),
            "out": writes("int32", ROWS),
            "lowest": writes("int32", ROWS),
            "columns": i32(COLUMNS),
        },
        constants=BLOCK,
        reference=lambda t: {"out": t["x"].argmax(axis=1), "lowest": t["x"].argmin(axis=1)},
    ),
    Kernel(
        column_sum,
        grid=(cdiv(COLUMNS, 128),),
        arguments={
            "x": reads("bfloat16", ROWS, COLUMNS),
            "out": writes("float32", COLUMNS),
            "rows": i32(ROWS),
            "columns": i32(COLUMNS),
        },
        constants={"ROWS": 16, "COLUMNS": 128},
        reference=lambda t: {"out": wide(t["x"]).sum(axis=0)},
        tolerance=Tolerance(1e-4),
    ),
    Kernel(
        softmax,
        grid=(ROWS,),
        arguments=MATRIX,
        constants=BLOCK,
        reference=lambda t: {"out": softmax_of(t["x"])},
        tolerance=Tolerance(1e-7, 1e-5),
    ),
    Kernel(
        softmax,
        name="softmax_f16",
        grid=(ROWS,),
        arguments={
            "x": reads("float16", ROWS, COLUMNS),
            "out": writes("float16", ROWS, COLUMNS),
            "columns": i32(COLUMNS),
        },
        constants=BLOCK,
        reference=lambda t: {"out": softmax_of(t["x"])},
        tolerance=Tolerance(1e-7, 2e-3),
        num_warps=1,
    ),
    Kernel(
        # No row but the first starts at a multiple of 16 bytes: nothing can be wide.
        softmax,
        name="softmax_ragged",
        grid=(ROWS,),
        arguments={"x": reads("float32", ROWS, 1001), "out": writes("float32", ROWS, 1001), "columns": i32(1001)},
        constants=BLOCK,
        reference=lambda t: {"out": softmax_of(t["x"])},
        tolerance=Tolerance(1e-7, 1e-5),
        num_warps=8,
    ),
    Kernel(
        softmax_online,
        grid=(ROWS,),
        arguments=MATRIX,
        constants={"BLOCK": 256},
        reference=lambda t: {"out": softmax_of(t["x"])},
        tolerance=Tolerance(1e-7, 1e-5),
    ),
    Kernel(
        layer_norm,
        grid=(ROWS,),
        arguments={
            "x": reads("float32", ROWS, COLUMNS, values=normal(2.0, 1.0)),
            "weight": reads("float32", COLUMNS),
            "bias": reads("float32", COLUMNS),
            "out": writes("float32", ROWS, COLUMNS),
            "mean_out": writes("float32", ROWS),
            "rstd_out": writes("float32", ROWS),
            "columns": i32(COLUMNS),
            "eps": f32(1e-5),
        },
        constants={"BLOCK": 512},
        reference=layer_norm_of,
        tolerance=Tolerance(1e-5, 1e-5),
    ),
    Kernel(
        rms_norm,
        grid=(ROWS,),
        arguments={
            "x": reads("bfloat16", ROWS, COLUMNS),
            "weight": reads("bfloat16", COLUMNS),
            "out": writes("bfloat16", ROWS, COLUMNS),
            "columns": i32(COLUMNS),
            "eps": f32(1e-6),
        },
        constants=BLOCK,
        reference=rms_norm_of,
        tolerance=Tolerance(1e-6, 1e-2),
    ),
    Kernel(
        cross_entropy,
        grid=(ROWS,),
        arguments={
            "logits": reads("float32", ROWS, COLUMNS),
            "targets": reads("int64", ROWS, values=some(integers(0, COLUMNS - 1), -100)),
            "loss": writes("float32", ROWS),
            "columns": i32(COLUMNS),
            "ignore": i32(-100),
        },
        constants=BLOCK,
        reference=cross_entropy_of,
        tolerance=Tolerance(1e-5, 1e-6),
    ),
    Kernel(
        welford,
        grid=(ROWS,),
        arguments={
            "x": reads("float32", ROWS, COLUMNS, values=normal(1.0, 100.0)),
            "mean_out": writes("float32", ROWS),
            "variance_out": writes("float32", ROWS),
            "columns": i32(COLUMNS),
        },
        constants=BLOCK,
        reference=lambda t: {"mean_out": wide(t["x"]).mean(axis=1), "variance_out": wide(t["x"]).var(axis=1)},
        tolerance=Tolerance(0.0, 1e-4),
    ),
    Kernel(
        xor_min_max,
        grid=(ROWS,),
        arguments={
            "x": reads("int32", ROWS, COLUMNS, values=integers(-(2**20), 2**20)),
            "out": writes("int32", ROWS, 4),
            "columns": i32(COLUMNS),
        },
        constants=BLOCK,
        reference=of_integers,
    ),
    Kernel(
        max_propagates_nan,
        grid=(ROWS,),
        arguments={
            # A hundred columns: some rows have a NaN, others none.
            "x": reads(
                "float32",
                ROWS,
                100,
                values=lambda stream, shape: np.where(stream.random(shape) < 0.01, np.nan, stream.normal(size=shape)),
            ),
            "out": writes("float32", ROWS),
            "plain": writes("float32", ROWS),
            "columns": i32(100),
        },
        constants={"BLOCK": 128},
        reference=lambda t: {"out": np.max(t["x"], axis=1), "plain": np.nanmax(t["x"], axis=1)},
        num_warps=2,
    ),
]
