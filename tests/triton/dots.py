"""Matrix products: every operand dtype, masks, persistence, split reductions, convolution, scaled formats."""

from typing import Any

import ml_dtypes
import numpy as np
import triton
import triton.language as tl
from declaration import Kernel, Tolerance, cdiv, constant, i32, integers, normal, reads, updates, wide, writes

M, N, K = 96, 80, 128


@triton.jit
def matmul(
    a,
    b,
    c,
    m,
    n,
    k,
    stride_a,
    stride_b,
    stride_c,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
    SUM: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), SUM)
    for start in range(0, k, BLOCK_K):
        at = start + depth
        left = tl.load(
            a + row[:, None] * stride_a + at[None, :], mask=(row[:, None] < m) & (at[None, :] < k), other=0.0
        )
        right = tl.load(
            b + at[:, None] * stride_b + column[None, :], mask=(at[:, None] < k) & (column[None, :] < n), other=0.0
        )
        total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=SUM)
    target = c + row[:, None] * stride_c + column[None, :]
    tl.store(target, total.to(c.dtype.element_ty), mask=(row[:, None] < m) & (column[None, :] < n))


@triton.jit
def matmul_aligned(a, b, c, k, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr, WIDTH: tl.constexpr):
    """Whole tiles only, so that copies are asynchronous and as wide as they can be."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    depth = tl.arange(0, BLOCK_K)
    left = a + row[:, None] * k + depth[None, :]
    right = b + depth[:, None] * WIDTH + column[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in tl.range(0, k, BLOCK_K, num_stages=4):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BLOCK_K
        right += BLOCK_K * WIDTH
    tl.store(c + row[:, None] * WIDTH + column[None, :], total.to(c.dtype.element_ty))


@triton.jit
def matmul_transposed(a, b, c, BLOCK: tl.constexpr):
    """`a` is stored transposed; the product is activated before it is stored."""
    place = tl.arange(0, BLOCK)
    left = tl.load(a + place[:, None] * BLOCK + place[None, :])
    right = tl.load(b + place[:, None] * BLOCK + place[None, :])
    total = tl.dot(tl.trans(left), right)
    total = tl.where(total >= 0, total, 0.01 * total)
    tl.store(c + place[:, None] * BLOCK + place[None, :], total.to(tl.float16))


@triton.jit
def matmul_persistent(
    a,
    b,
    c,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PROGRAMS: tl.constexpr,
):
    across = tl.cdiv(n, BLOCK_N)
    tiles = tl.cdiv(m, BLOCK_M) * across
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True):
        row = tile // across * BLOCK_M + tl.arange(0, BLOCK_M)
        column = tile % across * BLOCK_N + tl.arange(0, BLOCK_N)
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, k, BLOCK_K):
            depth = start + tl.arange(0, BLOCK_K)
            left = tl.load(a + row[:, None] * k + depth[None, :], mask=row[:, None] < m, other=0.0)
            right = tl.load(b + depth[:, None] * n + column[None, :], mask=column[None, :] < n, other=0.0)
            total = tl.dot(left, right, total)
        mask = (row[:, None] < m) & (column[None, :] < n)
        tl.store(c + row[:, None] * n + column[None, :], total, mask=mask)


@triton.jit
def matmul_split_k(a, b, c, k, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr, SPLITS: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(tl.program_id(2) * BLOCK_K, k, BLOCK_K * SPLITS):
        depth = start + tl.arange(0, BLOCK_K)
        left = tl.load(a + row[:, None] * k + depth[None, :])
        right = tl.load(b + depth[:, None] * WIDTH + column[None, :])
        total = tl.dot(left, right, total)
    tl.atomic_add(c + row[:, None] * WIDTH + column[None, :], total, sem="relaxed")


@triton.jit
def matmul_batched(a, b, c, BLOCK: tl.constexpr):
    """Small products, four at once: a dot of rank three."""
    batch = tl.arange(0, 4)
    place = tl.arange(0, BLOCK)
    at = batch[:, None, None] * BLOCK * BLOCK + place[None, :, None] * BLOCK + place[None, None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@triton.jit
def matmul_chained(a, b, d, out, BLOCK: tl.constexpr):
    """The first product is the second one's operand, straight from registers."""
    place = tl.arange(0, BLOCK)
    at = place[:, None] * BLOCK + place[None, :]
    first = tl.dot(tl.load(a + at), tl.load(b + at))
    tl.store(out + at, tl.dot(first.to(tl.bfloat16), tl.load(d + at)))


@triton.jit
def matmul_quantized(a, b, scales, c, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Half-precision rows times 8-bit columns with a scale each."""
    row = tl.arange(0, BLOCK_M)
    column = tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        left = tl.load(a + row[:, None] * k + start + depth[None, :])
        right = tl.load(b + (start + depth[:, None]) * BLOCK_N + column[None, :])
        total += tl.dot(left, right.to(tl.float16))
    total *= tl.load(scales + column)[None, :]
    tl.store(c + row[:, None] * BLOCK_N + column[None, :], total)


@triton.jit
def convolution(
    x,
    weight,
    out,
    width,
    WINDOW: tl.constexpr,
    CHANNELS: tl.constexpr,
    FILTERS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Two dimensions, channels last, no padding; an image row a block, a dot for every place of the window."""
    y = tl.program_id(0)
    across = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    channel = tl.arange(0, CHANNELS)
    feature = tl.arange(0, FILTERS)
    total = tl.zeros((BLOCK, FILTERS), tl.float32)
    for place in range(WINDOW * WINDOW):
        down = place // WINDOW
        right = place % WINDOW
        at = (y + down) * width + across + right
        mask = across[:, None] + right < width
        patch = tl.load(x + at[:, None] * CHANNELS + channel[None, :], mask=mask, other=0.0)
        filters = tl.load(weight + (place * CHANNELS + channel[:, None]) * FILTERS + feature[None, :])
        total = tl.dot(patch, filters, total)
    columns = width - WINDOW + 1
    target = out + (y * columns + across[:, None]) * FILTERS + feature[None, :]
    tl.store(target, total.to(tl.float16), mask=across[:, None] < columns)


@triton.jit
def matmul_scaled(a, scale_a, b, scale_b, c, BLOCK: tl.constexpr, K: tl.constexpr):
    """Microscaling: 8-bit floats with one power of two for 32 of them."""
    place = tl.arange(0, BLOCK)
    depth = tl.arange(0, K)
    group = tl.arange(0, K // 32)
    left = tl.load(a + place[:, None] * K + depth[None, :])
    right = tl.load(b + depth[:, None] * BLOCK + place[None, :])
    left_scale = tl.load(scale_a + place[:, None] * (K // 32) + group[None, :])
    right_scale = tl.load(scale_b + place[:, None] * (K // 32) + group[None, :])
    total = tl.dot_scaled(left, left_scale, "e4m3", right, right_scale, "e5m2")
    tl.store(c + place[:, None] * BLOCK + place[None, :], total)


@triton.jit
def linear_gelu(x, weight, bias, out, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """`weight` has an output a row, as frameworks store it; tensor descriptors, whose edges read as zero."""
    rows = tl.program_id(0) * BLOCK_M
    columns = tl.program_id(1) * BLOCK_N
    left = tl.make_tensor_descriptor(x, [m, k], [k, 1], [BLOCK_M, BLOCK_K])
    right = tl.make_tensor_descriptor(weight, [n, k], [k, 1], [BLOCK_N, BLOCK_K])
    target = tl.make_tensor_descriptor(out, [m, n], [n, 1], [BLOCK_M, BLOCK_N])
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        total = tl.dot(left.load([rows, start]), right.load([columns, start]).T, total)
    column = columns + tl.arange(0, BLOCK_N)
    total += tl.load(bias + column, mask=column < n, other=0.0)[None, :]
    total = 0.5 * total * (1 + tl.erf(total * 0.7071067811865476))
    target.store([rows, columns], total.to(tl.float16))


def product(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"c": wide(t["a"]) @ wide(t["b"])}


def truncated(array: np.ndarray) -> np.ndarray:
    """What a tensor core reads of a float32 as tf32."""
    return (array.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def product_tf32(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"c": wide(truncated(t["a"])) @ wide(truncated(t["b"]))}


def transposed_leaky(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    total = wide(t["a"]).T @ wide(t["b"])
    return {"c": np.where(total >= 0, total, 0.01 * total)}


def chained(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    first = (wide(t["a"]) @ wide(t["b"])).astype(ml_dtypes.bfloat16)
    return {"out": wide(first) @ wide(t["d"])}


def convolved(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    windows = np.lib.stride_tricks.sliding_window_view(wide(t["x"]), (3, 3), axis=(0, 1))
    return {"out": np.einsum("yxcij,ijcf->yxf", windows, wide(t["weight"]))}


def scaled(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    left = wide(t["a"]) * np.repeat(2.0 ** (wide(t["scale_a"]) - 127), 32, axis=1)
    right = wide(t["b"]) * np.repeat(2.0 ** (wide(t["scale_b"]) - 127), 32, axis=1).T
    return {"c": left @ right}


def erf(x: np.ndarray) -> np.ndarray:
    """Abramowitz and Stegun 7.1.5 and, far out, the limit: good to a few units of double precision times 1e4."""
    small = np.clip(x, -4, 4)
    term = small.copy()
    total = small.copy()
    for n in range(1, 120):
        term = -term * small * small / n
        total = total + term / (2 * n + 1)
    return np.where(np.abs(x) > 4, np.sign(x), total * 2 / np.sqrt(np.pi))


def linear_gelu_of(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    total = wide(t["x"]) @ wide(t["weight"]).T + wide(t["bias"])
    return {"out": 0.5 * total * (1 + erf(total / np.sqrt(2)))}


def general(
    name: str,
    dtype: str,
    out: str,
    absolute: float,
    relative: float,
    sum_: tl.dtype = tl.float32,
    precision: str | None = None,
    block: tuple[int, int, int] = (32, 32, 32),
    size: tuple[int, int, int] = (M, N, K),
    **more: Any,
) -> Kernel:
    """The general product for one pair of dtypes."""
    m, n, k = size
    reference = product_tf32 if precision == "tf32" else product
    return Kernel(
        matmul,
        name=name,
        grid=(cdiv(m, block[0]), cdiv(n, block[1])),
        arguments={
            "a": reads(dtype, m, k),
            "b": reads(dtype, k, n),
            "c": writes(out, m, n),
            "m": i32(m),
            "n": i32(n),
            "k": i32(k),
            "stride_a": i32(k),
            "stride_b": i32(n),
            "stride_c": i32(n),
        },
        constants={
            "BLOCK_M": block[0],
            "BLOCK_N": block[1],
            "BLOCK_K": block[2],
            "PRECISION": precision,
            "SUM": sum_,
        },
        reference=reference,
        tolerance=Tolerance(absolute, relative),
        **more,
    )


NO_E4M3 = "stock Triton has float8 e4m3 from sm_89"

KERNELS = [
    general("matmul_f16", "float16", "float16", 1e-2, 2e-3),
    general("matmul_bf16", "bfloat16", "float32", 1e-3, 0.0),
    general("matmul_f16_sum_f16", "float16", "float16", 0.125, 0.0, sum_=tl.float16),
    general("matmul_tf32", "float32", "float32", 1e-3, 0.0, precision="tf32"),
    general("matmul_tf32x3", "float32", "float32", 1e-3, 0.0, precision="tf32x3"),
    general("matmul_ieee", "float32", "float32", 1e-4, 0.0, precision="ieee"),
    general("matmul_f64", "float64", "float64", 1e-12, 0.0, sum_=tl.float64, precision="ieee"),
    general("matmul_i8", "int8", "int32", 0.0, 0.0, sum_=tl.int32),
    # Tiles of whole warp groups.
    general("matmul_i8_wide", "int8", "int32", 0.0, 0.0, sum_=tl.int32, block=(64, 64, 64), size=(128, 128, 128)),
    general(
        "matmul_tf32_wide", "float32", "float32", 1e-3, 0.0, precision="tf32", block=(64, 64, 32), size=(64, 128, 96)
    ),
    # The sum has 13 fraction bits on sm_89 and sm_90.
    general("matmul_e5m2", "float8_e5m2", "float32", 0.05, 0.0, block=(64, 32, 64)),
    general(
        "matmul_e4m3",
        "float8_e4m3fn",
        "float32",
        0.05,
        0.0,
        block=(64, 32, 64),
        first_target=89,
        why_not=NO_E4M3,
    ),
    # No dimension is a multiple of its tile, nor of anything that would make an access wide.
    general("matmul_ragged", "float16", "float32", 1e-3, 0.0, size=(77, 45, 53)),
    general("matmul_wide", "float16", "float16", 2e-2, 2e-3, block=(128, 128, 64), size=(128, 256, 192), num_warps=8),
    Kernel(
        matmul_aligned,
        grid=(2, 2),
        arguments={
            "a": reads("float16", 128, 256),
            "b": reads("float16", 256, 128),
            "c": writes("float16", 128, 128),
            "k": i32(256),
        },
        constants={"BLOCK": 64, "BLOCK_K": 32, "WIDTH": 128},
        reference=product,
        tolerance=Tolerance(2e-2, 2e-3),
    ),
    Kernel(
        matmul_transposed,
        grid=(1,),
        arguments={
            "a": reads("float16", 64, 64),
            "b": reads("float16", 64, 64),
            "c": writes("float16", 64, 64),
        },
        constants={"BLOCK": 64},
        reference=transposed_leaky,
        tolerance=Tolerance(1e-2, 2e-3),
    ),
    Kernel(
        matmul_persistent,
        grid=(3,),
        arguments={
            "a": reads("bfloat16", M, K),
            "b": reads("bfloat16", K, N),
            "c": writes("float32", M, N),
            "m": i32(M),
            "n": i32(N),
            "k": i32(K),
        },
        constants={"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 64, "PROGRAMS": 3},
        reference=product,
        tolerance=Tolerance(1e-3),
    ),
    Kernel(
        matmul_split_k,
        grid=(2, 2, 4),
        arguments={
            "a": reads("float16", 64, 512),
            "b": reads("float16", 512, 64),
            "c": updates("float32", 64, 64),
            "k": i32(512),
        },
        constants={"BLOCK": 32, "BLOCK_K": 32, "SPLITS": 4, "WIDTH": 64},
        reference=product,
        tolerance=Tolerance(1e-3),
    ),
    Kernel(
        matmul_batched,
        grid=(1,),
        arguments={
            "a": reads("float16", 4, 16, 16),
            "b": reads("float16", 4, 16, 16),
            "c": writes("float32", 4, 16, 16),
        },
        constants={"BLOCK": 16},
        reference=product,
        tolerance=Tolerance(1e-4),
    ),
    Kernel(
        matmul_chained,
        grid=(1,),
        arguments={
            "a": reads("bfloat16", 64, 64),
            "b": reads("bfloat16", 64, 64),
            "d": reads("bfloat16", 64, 64),
            "out": writes("float32", 64, 64),
        },
        constants={"BLOCK": 64},
        reference=chained,
        # The first product is rounded from a sum that may differ in its last bits: one unit of bfloat16 times a number.
        tolerance=Tolerance(0.5),
    ),
    Kernel(
        matmul_quantized,
        grid=(1,),
        arguments={
            "a": reads("float16", 32, 128),
            "b": reads("int8", 128, 64),
            "scales": reads("float32", 64, values=normal(0.01, 0.05)),
            "c": writes("float32", 32, 64),
            "k": i32(128),
        },
        constants={"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 32},
        reference=lambda t: {"c": wide(t["a"]) @ wide(t["b"]) * t["scales"]},
        tolerance=Tolerance(1e-3),
    ),
    Kernel(
        convolution,
        grid=(14, 2),
        arguments={
            "x": reads("float16", 16, 40, 16),
            "weight": reads("float16", 3, 3, 16, 32),
            "out": writes("float16", 14, 38, 32),
            "width": i32(40),
        },
        constants={"WINDOW": 3, "CHANNELS": 16, "FILTERS": 32, "BLOCK": 32},
        reference=convolved,
        tolerance=Tolerance(2e-2, 2e-3),
    ),
    Kernel(
        matmul_scaled,
        grid=(1,),
        arguments={
            "a": reads("float8_e4m3fn", 128, 128),
            "scale_a": reads("uint8", 128, 4, values=integers(125, 129)),
            "b": reads("float8_e5m2", 128, 128),
            "scale_b": reads("uint8", 128, 4, values=integers(125, 129)),
            "c": writes("float32", 128, 128),
        },
        constants={"BLOCK": 128, "K": 128},
        reference=scaled,
        tolerance=Tolerance(1e-2, 1e-5),
        first_target=89,
        why_not=NO_E4M3,
    ),
    Kernel(
        linear_gelu,
        grid=(3, 2),
        arguments={
            "x": reads("float16", 70, 96),
            "weight": reads("float16", 56, 96, values=normal(0.1)),
            "bias": reads("float16", 56, values=constant(0.25)),
            "out": writes("float16", 70, 56),
            "m": i32(70),
            "n": i32(56),
            "k": i32(96),
        },
        constants={"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32},
        reference=linear_gelu_of,
        tolerance=Tolerance(1e-3, 2e-3),
    ),
]
