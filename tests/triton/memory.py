"""Ways to move memory: strided and transposed copies, descriptors, scatters, cache hints, wide indices."""

import numpy as np
import triton
import triton.language as tl
from declaration import Kernel, Tolerance, cdiv, f32, i32, i64, integers, normal, reads, updates, wide, writes


@triton.jit
def copy_strided(
    x,
    out,
    rows,
    columns,
    x_row,
    x_column,
    out_row,
    out_column,
    BLOCK_R: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)[:, None]
    column = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)[None, :]
    mask = (row < rows) & (column < columns)
    values = tl.load(x + row.to(tl.int64) * x_row + column.to(tl.int64) * x_column, mask=mask)
    tl.store(out + row.to(tl.int64) * out_row + column.to(tl.int64) * out_column, values, mask=mask)


@triton.jit
def transpose(x, out, rows, columns, BLOCK: tl.constexpr):
    """Through `tl.trans`, so that both sides are read and written along rows."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (row[:, None] < rows) & (column[None, :] < columns)
    values = tl.load(x + row[:, None] * columns + column[None, :], mask=mask)
    tl.store(out + column[:, None] * rows + row[None, :], tl.trans(values), mask=tl.trans(mask))


@triton.jit
def copy_hinted(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    first = tl.load(x + at, mask=mask, cache_modifier=".ca")
    first += tl.load(x + at, mask=mask, eviction_policy="evict_last")
    second = tl.load(x + size + at, mask=mask, cache_modifier=".cg")
    second += tl.load(x + size + at, mask=mask, eviction_policy="evict_first")
    third = tl.load(x + 2 * size + at, mask=mask, volatile=True)
    tl.store(out + at, first + third, mask=mask, cache_modifier=".wb")
    tl.store(out + size + at, second, mask=mask, cache_modifier=".cs")
    tl.store(out + 2 * size + at, third, mask=mask, cache_modifier=".wt")
    tl.store(out + 3 * size + at, -third, mask=mask, eviction_policy="evict_first")


@triton.jit
def scatter_rows(x, place, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < width
    target = tl.load(place + row)
    tl.store(out + target * width + at, tl.load(x + row * width + at, mask=mask), mask=mask)


@triton.jit
def masked_default(x, out, size, BLOCK: tl.constexpr):
    """What a load gives where its mask is off, for several dtypes' worth of defaults."""
    at = tl.arange(0, BLOCK)
    few = tl.load(x + at, mask=at < size, other=-3.5)
    none = tl.load(x + at, mask=at < 0, other=7.25)
    tl.store(out + at, few)
    tl.store(out + BLOCK + at, none)


@triton.jit
def descriptor_copy(x, out, rows, columns, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    """Blocks past the edge read as zero and are not written."""
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BLOCK_R, BLOCK_C])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [BLOCK_R, BLOCK_C])
    row = tl.program_id(0) * BLOCK_R
    column = tl.program_id(1) * BLOCK_C
    target.store([row, column], source.load([row, column]) + 1.0)


@triton.jit
def descriptor_matmul(a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BLOCK_M, BLOCK_K])
    right = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BLOCK_N, BLOCK_K])
    target = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BLOCK_M, BLOCK_N])
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(0, k, BLOCK_K, num_stages=3):
        total = tl.dot(left.load([row, start]), right.load([column, start]).T, total)
    target.store([row, column], total.to(tl.float16))


@triton.jit
def descriptor_sum(x, out, rows, columns, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    """Every block of rows is added onto the same output, by the copy engine where there is one."""
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BLOCK_R, BLOCK_C])
    target = tl.make_tensor_descriptor(out, [BLOCK_R, columns], [columns, 1], [BLOCK_R, BLOCK_C])
    row = tl.program_id(0) * BLOCK_R
    column = tl.program_id(1) * BLOCK_C
    target.atomic_add([0, column], source.load([row, column]))


@triton.jit
def descriptor_gather(x, index, out, rows, columns, COUNT: tl.constexpr, BLOCK_C: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [1, BLOCK_C])
    at = tl.arange(0, COUNT)
    column = tl.program_id(0) * BLOCK_C
    values = source.gather(tl.load(index + at), column)
    tl.store(out + at[:, None] * columns + column + tl.arange(0, BLOCK_C)[None, :], values)


@triton.jit
def wide_index(x, out, size, offset, BLOCK: tl.constexpr):
    """A 64-bit offset that cancels out."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK) + offset
    mask = at < size + offset
    tl.store(out + (at - offset), tl.load(x + (at - offset), mask=mask), mask=mask)


@triton.jit
def pool_max(x, out, height, width, BLOCK: tl.constexpr):
    """Two by two, stride two; an output row a program."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < width // 2
    base = x + 2 * row * width + 2 * at
    top = tl.maximum(tl.load(base, mask=mask), tl.load(base + 1, mask=mask))
    bottom = tl.maximum(tl.load(base + width, mask=mask), tl.load(base + width + 1, mask=mask))
    tl.store(out + row * (width // 2) + at, tl.maximum(top, bottom), mask=mask)


@triton.jit
def optimizer_step(p, g, m, v, size, rate, beta1, beta2, eps, BLOCK: tl.constexpr):
    """Adam, in place, on single-precision states and bfloat16 gradients."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    gradient = tl.load(g + at, mask=mask, other=0.0).to(tl.float32)
    first = beta1 * tl.load(m + at, mask=mask, other=0.0) + (1 - beta1) * gradient
    second = beta2 * tl.load(v + at, mask=mask, other=0.0) + (1 - beta2) * gradient * gradient
    tl.store(m + at, first, mask=mask)
    tl.store(v + at, second, mask=mask)
    step = rate * first / (tl.sqrt(second) + eps)
    tl.store(p + at, tl.load(p + at, mask=mask) - step, mask=mask)


def scattered(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    out = np.empty_like(t["x"])
    out[t["place"]] = t["x"]
    return {"out": out}


def hinted(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    first, second, third = t["x"]
    return {"out": np.stack([first * 2 + third, second * 2, third, -third])}


def masked(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    few = t["x"].copy()
    few[100:] = -3.5
    return {"out": np.stack([few, np.full(128, 7.25)])}


def adam(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    g = wide(t["g"])
    m = 0.9 * wide(t["m"]) + 0.1 * g
    v = 0.999 * wide(t["v"]) + 0.001 * g * g
    return {"p": wide(t["p"]) - 0.01 * m / (np.sqrt(v) + 1e-8), "m": m, "v": v}


def absolute(stream: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.abs(stream.standard_normal(shape))


KERNELS = [
    Kernel(
        copy_strided,
        grid=(3, 3),
        arguments={
            # Read with the axes exchanged.
            "x": reads("float16", 70, 90),
            "out": writes("float16", 90, 70),
            "rows": i32(90),
            "columns": i32(70),
            "x_row": i64(1),
            "x_column": i64(90),
            "out_row": i64(70),
            "out_column": i64(1),
        },
        constants={"BLOCK_R": 32, "BLOCK_C": 32},
        reference=lambda t: {"out": t["x"].T},
    ),
    Kernel(
        transpose,
        grid=(2, 3),
        arguments={
            "x": reads("float32", 100, 130),
            "out": writes("float32", 130, 100),
            "rows": i32(100),
            "columns": i32(130),
        },
        constants={"BLOCK": 64},
        reference=lambda t: {"out": t["x"].T},
    ),
    Kernel(
        transpose,
        name="transpose_i8",
        grid=(2, 3),
        arguments={
            "x": reads("int8", 128, 192),
            "out": writes("int8", 192, 128),
            "rows": i32(128),
            "columns": i32(192),
        },
        constants={"BLOCK": 64},
        reference=lambda t: {"out": t["x"].T},
    ),
    Kernel(
        copy_hinted,
        grid=(3,),
        arguments={"x": reads("float32", 3, 1500), "out": writes("float32", 4, 1500), "size": i32(1500)},
        constants={"BLOCK": 512},
        reference=hinted,
    ),
    Kernel(
        scatter_rows,
        grid=(40,),
        arguments={
            "x": reads("float32", 40, 50),
            "place": reads("int64", 40, values=lambda stream, shape: stream.permutation(40)),
            "out": writes("float32", 40, 50),
            "width": i32(50),
        },
        constants={"BLOCK": 64},
        reference=scattered,
        num_warps=1,
    ),
    Kernel(
        masked_default,
        grid=(1,),
        arguments={"x": reads("float32", 128), "out": writes("float32", 2, 128), "size": i32(100)},
        constants={"BLOCK": 128},
        reference=masked,
    ),
    Kernel(
        descriptor_copy,
        grid=(3, 2),
        arguments={
            "x": reads("float32", 70, 100),
            "out": writes("float32", 70, 100),
            "rows": i32(70),
            "columns": i32(100),
        },
        constants={"BLOCK_R": 32, "BLOCK_C": 64},
        reference=lambda t: {"out": t["x"] + 1},
    ),
    Kernel(
        descriptor_matmul,
        grid=(2, 2),
        arguments={
            "a": reads("float16", 128, 192),
            "b": reads("float16", 128, 192),
            "c": writes("float16", 128, 128),
            "m": i32(128),
            "n": i32(128),
            "k": i32(192),
        },
        constants={"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64},
        reference=lambda t: {"c": wide(t["a"]) @ wide(t["b"]).T},
        tolerance=Tolerance(2e-2, 2e-3),
    ),
    Kernel(
        descriptor_sum,
        grid=(4, 2),
        arguments={
            "x": reads("float32", 64, 64, values=integers(-50, 50)),
            "out": updates("float32", 16, 64),
            "rows": i32(64),
            "columns": i32(64),
        },
        constants={"BLOCK_R": 16, "BLOCK_C": 32},
        reference=lambda t: {"out": t["x"].reshape(4, 16, 64).sum(axis=0)},
        first_target=90,
        why_not="reducing through a descriptor needs the copy engine of sm_90",
    ),
    Kernel(
        descriptor_gather,
        grid=(2,),
        arguments={
            "x": reads("float16", 40, 128),
            "index": reads("int32", 32, values=integers(0, 39)),
            "out": writes("float16", 32, 128),
            "rows": i32(40),
            "columns": i32(128),
        },
        constants={"COUNT": 32, "BLOCK_C": 64},
        reference=lambda t: {"out": t["x"][t["index"]]},
        first_target=100,
        why_not="gathering through a descriptor needs the copy engine of sm_100",
    ),
    Kernel(
        wide_index,
        grid=(4,),
        arguments={
            "x": reads("float32", 900),
            "out": writes("float32", 900),
            "size": i64(900),
            "offset": i64(2**33),
        },
        constants={"BLOCK": 256},
        reference=lambda t: {"out": t["x"]},
    ),
    Kernel(
        pool_max,
        grid=(20,),
        arguments={
            "x": reads("float32", 40, 60),
            "out": writes("float32", 20, 30),
            "height": i32(40),
            "width": i32(60),
        },
        constants={"BLOCK": 32},
        reference=lambda t: {"out": t["x"].reshape(20, 2, 30, 2).max(axis=(1, 3))},
        num_warps=1,
    ),
    Kernel(
        optimizer_step,
        grid=(cdiv(1500, 512),),
        arguments={
            "p": updates("float32", 1500, values=normal()),
            "g": reads("bfloat16", 1500),
            "m": updates("float32", 1500, values=normal(0.1)),
            "v": updates("float32", 1500, values=absolute),
            "size": i32(1500),
            "rate": f32(0.01),
            "beta1": f32(0.9),
            "beta2": f32(0.999),
            "eps": f32(1e-8),
        },
        constants={"BLOCK": 512},
        reference=adam,
        tolerance=Tolerance(1e-5, 1e-5),
    ),
]
