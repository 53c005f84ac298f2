"""Elementwise kernels: every dtype, conversions, integer arithmetic, special functions, random numbers."""

from typing import Any

import numpy as np
import triton
import triton.language as tl
from declaration import (
    TYPES,
    Kernel,
    Reference,
    Scalar,
    Tensor,
    Tolerance,
    bits,
    cdiv,
    f32,
    i32,
    i64,
    integers,
    normal,
    reads,
    some,
    uniform,
    updates,
    wide,
    writes,
)
from triton.language.extra import libdevice

SIZE = 3008
NAN, INFINITE = float("nan"), float("inf")


@triton.jit
def add(x, y, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def saxpy(x, y, size, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    tl.store(y + at, alpha * tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def cast(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    tl.store(out + at, tl.load(x + at, mask=mask).to(out.dtype.element_ty), mask=mask)


@triton.jit
def cast_toward_zero(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    tl.store(out + at, tl.load(x + at, mask=mask).to(tl.float16, fp_downcast_rounding="rtz"), mask=mask)


@triton.jit
def reinterpret(x, sign, exponent, flipped, BLOCK: tl.constexpr):
    """A float's parts, through its bits."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pattern = tl.load(x + at).to(tl.int32, bitcast=True)
    tl.store(sign + at, pattern < 0)
    tl.store(exponent + at, ((pattern >> 23) & 0xFF) - 127)
    tl.store(flipped + at, (pattern ^ -2147483648).to(tl.float32, bitcast=True))


@triton.jit
def integer_arithmetic(x, y, out, size, BLOCK: tl.constexpr):
    """Nine results an element."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    a = tl.load(x + at, mask=mask, other=1)
    b = tl.load(y + at, mask=mask, other=1)
    out += at
    tl.store(out, a // b, mask=mask)
    tl.store(out + size, a % b, mask=mask)
    tl.store(out + 2 * size, a * b - a, mask=mask)
    tl.store(out + 3 * size, a << (b & 7), mask=mask)
    tl.store(out + 4 * size, a >> (b & 7), mask=mask)
    tl.store(out + 5 * size, (a & b) | (a ^ 21), mask=mask)
    tl.store(out + 6 * size, -a + ~b, mask=mask)
    tl.store(out + 7 * size, tl.where(a < b, tl.minimum(a, b), tl.maximum(a, b) + 1), mask=mask)
    tl.store(out + 8 * size, (a == b).to(out.dtype.element_ty) + (a >= b), mask=mask)


@triton.jit
def high_product(x, y, out32, out64, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at)
    b = tl.load(y + at)
    tl.store(out32 + at, tl.umulhi(a.to(tl.uint32), b.to(tl.uint32)))
    tl.store(out64 + at, tl.umulhi(a, b))


@triton.jit
def divide_by_constants(x, out, BLOCK: tl.constexpr):
    """Division by what is known when compiling becomes multiplications and shifts."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at)
    tl.store(out + 4 * at, a // 7)
    tl.store(out + 4 * at + 1, a % 10)
    tl.store(out + 4 * at + 2, a // 16)
    tl.store(out + 4 * at + 3, a % -1000003)


@triton.jit
def special(x, out, size, BLOCK: tl.constexpr):
    """Twelve functions of numbers above zero."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    a = tl.load(x + at, mask=mask, other=1.0)
    out += at
    tl.store(out, tl.exp(a), mask=mask)
    tl.store(out + size, tl.exp2(-a), mask=mask)
    tl.store(out + 2 * size, tl.log(a), mask=mask)
    tl.store(out + 3 * size, tl.log2(a), mask=mask)
    tl.store(out + 4 * size, tl.sin(a), mask=mask)
    tl.store(out + 5 * size, tl.cos(a), mask=mask)
    tl.store(out + 6 * size, tl.rsqrt(a), mask=mask)
    tl.store(out + 7 * size, tl.sqrt(a), mask=mask)
    tl.store(out + 8 * size, tl.fdiv(1.0, a), mask=mask)
    tl.store(out + 9 * size, tl.erf(a), mask=mask)
    tl.store(out + 10 * size, tl.sigmoid(a), mask=mask)
    tl.store(out + 11 * size, tl.floor(a * 3.0) + tl.ceil(-a) + tl.abs(-a), mask=mask)


@triton.jit
def rounded(x, y, out, size, BLOCK: tl.constexpr):
    """Operations that IEEE rounds."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    a = tl.load(x + at, mask=mask, other=1.0)
    b = tl.load(y + at, mask=mask, other=1.0)
    out += at
    tl.store(out, tl.div_rn(a, b), mask=mask)
    tl.store(out + size, tl.sqrt_rn(tl.abs(a)), mask=mask)
    tl.store(out + 2 * size, tl.fma(a, b, a), mask=mask)
    tl.store(out + 3 * size, tl.clamp(a, -0.5, 0.5), mask=mask)


@triton.jit
def from_libdevice(x, y, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    a = tl.load(x + at, mask=mask, other=1.0)
    b = tl.load(y + at, mask=mask, other=1.0)
    out += at
    tl.store(out, libdevice.tanh(a), mask=mask)
    tl.store(out + size, libdevice.log1p(a), mask=mask)
    tl.store(out + 2 * size, libdevice.expm1(a), mask=mask)
    tl.store(out + 3 * size, libdevice.pow(a, b), mask=mask)
    tl.store(out + 4 * size, libdevice.atan2(a, b), mask=mask)
    tl.store(out + 5 * size, libdevice.hypot(a, b), mask=mask)
    tl.store(out + 6 * size, libdevice.fmod(a, b), mask=mask)
    tl.store(out + 7 * size, libdevice.rint(a * 10), mask=mask)
    tl.store(out + 8 * size, libdevice.cbrt(a), mask=mask)


@triton.jit
def libdevice_double(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    a = tl.load(x + at, mask=mask, other=1.0)
    out += at
    tl.store(out, libdevice.exp(a), mask=mask)
    tl.store(out + size, libdevice.log(a), mask=mask)
    tl.store(out + 2 * size, libdevice.sin(a), mask=mask)
    tl.store(out + 3 * size, libdevice.erf(a), mask=mask)
    tl.store(out + 4 * size, a / (a + 3), mask=mask)
    tl.store(out + 5 * size, tl.sqrt(a), mask=mask)


@triton.jit
def libdevice_bits(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    a = tl.load(x + at, mask=mask, other=1)
    out += at
    tl.store(out, libdevice.clz(a), mask=mask)
    tl.store(out + size, libdevice.popc(a), mask=mask)
    tl.store(out + 2 * size, libdevice.brev(a), mask=mask)
    tl.store(out + 3 * size, libdevice.ffs(a), mask=mask)
    tl.store(out + 4 * size, libdevice.mulhi(a, a + 12345), mask=mask)


@triton.jit
def libdevice_directed(x, y, out, size, BLOCK: tl.constexpr):
    """Sums, products and quotients rounded down, up and toward zero."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    a = tl.load(x + at, mask=mask, other=1.0)
    b = tl.load(y + at, mask=mask, other=1.0)
    out += at
    tl.store(out, libdevice.add_rd(a, b), mask=mask)
    tl.store(out + size, libdevice.add_ru(a, b), mask=mask)
    tl.store(out + 2 * size, libdevice.mul_rz(a, b), mask=mask)
    tl.store(out + 3 * size, libdevice.mul_ru(a, b), mask=mask)
    tl.store(out + 4 * size, libdevice.div_rd(a, b), mask=mask)


@triton.jit
def extremes_with_nan(x, y, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    a = tl.load(x + at, mask=mask, other=1.0)
    b = tl.load(y + at, mask=mask, other=1.0)
    out += at
    tl.store(out, tl.maximum(a, b), mask=mask)
    tl.store(out + size, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL), mask=mask)
    tl.store(out + 2 * size, tl.minimum(a, b), mask=mask)
    tl.store(out + 3 * size, tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL), mask=mask)
    tl.store(out + 4 * size, tl.where(a > b, a, b), mask=mask)
    tl.store(out + 5 * size, tl.where(a != a, 0.0, a), mask=mask)


@triton.jit
def dropout(x, out, size, probability, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    keep = tl.rand(seed, at) > probability
    values = tl.load(x + at, mask=mask)
    tl.store(out + at, tl.where(keep, values / (1 - probability), 0.0), mask=mask)


@triton.jit
def random_integers(out, size, seed, BLOCK: tl.constexpr):
    """Philox's four words."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    a, b, c, d = tl.randint4x(seed, at)
    tl.store(out + 4 * at, a, mask=mask)
    tl.store(out + 4 * at + 1, b, mask=mask)
    tl.store(out + 4 * at + 2, c, mask=mask)
    tl.store(out + 4 * at + 3, d, mask=mask)


@triton.jit
def random_normal(out, size, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.randn(seed, at), mask=at < size)


@triton.jit
def swiglu(gate, up, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    g = tl.load(gate + at, mask=mask).to(tl.float32)
    u = tl.load(up + at, mask=mask).to(tl.float32)
    tl.store(out + at, (g * tl.sigmoid(g) * u).to(out.dtype.element_ty), mask=mask)


@triton.jit
def gelu_tanh(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    a = tl.load(x + at, mask=mask)
    inner = 0.7978845608028654 * (a + 0.044715 * a * a * a)
    tl.store(out + at, 0.5 * a * (1 + libdevice.tanh(inner)), mask=mask)


@triton.jit
def quantize(x, scale, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    values = tl.div_rn(tl.load(x + row * columns + at, mask=mask), tl.load(scale + row))
    values = tl.clamp(libdevice.rint(values), -128.0, 127.0)
    tl.store(out + row * columns + at, values.to(tl.int8), mask=mask)


def philox(seed: int, counter: np.ndarray) -> list[np.ndarray]:
    """Ten rounds of Philox 4x32 (Salmon et al. 2011) on (counter, 0, 0, 0)."""
    low = np.uint64(0xFFFFFFFF)
    c = [counter.astype(np.uint64), *(np.zeros(counter.shape, np.uint64) for _ in range(3))]
    k = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(10):
        first = np.uint64(0xD2511F53) * c[0]
        second = np.uint64(0xCD9E8D57) * c[2]
        shift = np.uint64(32)
        c = [(second >> shift) ^ c[1] ^ k[0], second & low, (first >> shift) ^ c[3] ^ k[1], first & low]
        k = [(k[0] + np.uint64(0x9E3779B9)) & low, (k[1] + np.uint64(0xBB67AE85)) & low]
    return [word.astype(np.uint32) for word in c]


def unit(words: np.ndarray) -> np.ndarray:
    """Triton's numbers in [0, 1) of 32 bits: the sign folded away, times just under 2^-31."""
    signed = words.view(np.int32)
    return np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(4.6566127342e-10)


def dropped(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    keep = unit(philox(1234, np.arange(SIZE))[0]) > np.float32(0.25)
    return {"out": np.where(keep, t["x"] / np.float32(0.75), 0)}


def box_muller(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    first, second, _, _ = philox(77, np.arange(SIZE))
    radius = np.sqrt(-2 * np.log(np.maximum(wide(unit(first)), 1e-7)))
    return {"out": radius * np.cos(6.283185307179586 * wide(unit(second)))}


def arithmetic(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    a, b = t["x"], t["y"]
    kind = a.dtype
    with np.errstate(over="ignore"):
        quotient = np.abs(a.astype(object)) // np.abs(b.astype(object)) * np.sign(a.astype(object)) * np.sign(b)
        quotient = quotient.astype(kind)
        shift = (b & 7).astype(kind)
        rows = [
            quotient,
            (a - quotient * b).astype(kind),
            a * b - a,
            a << shift,
            a >> shift,
            (a & b) | (a ^ kind.type(21)),
            (np.zeros_like(a) - a) + ~b,
            np.where(a < b, np.minimum(a, b), np.maximum(a, b) + kind.type(1)),
            (a == b).astype(kind) + (a >= b).astype(kind),
        ]
    return {"out": np.stack(rows)}


def high_products(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    x, y = t["x"].astype(object), t["y"].astype(object)
    narrow = (x % 2**32) * (y % 2**32) // 2**32
    return {"out32": narrow.astype(np.uint32), "out64": (x * y // 2**64).astype(np.uint64)}


def constant_divisions(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Toward zero, as in C."""
    x = wide(t["x"])
    columns = [np.trunc(x / 7), np.fmod(x, 10), np.trunc(x / 16), np.fmod(x, 1000003)]
    return {"out": np.stack(columns, axis=1)}


def special_of(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    from dots import erf

    a = wide(t["x"])
    rows = [np.exp(a), np.exp2(-a), np.log(a), np.log2(a), np.sin(a), np.cos(a), a**-0.5, a**0.5, 1 / a, erf(a)]
    # Times three in single precision, or the floor may be another.
    rows += [1 / (1 + np.exp(-a)), np.floor(t["x"] * np.float32(3)) + np.ceil(-a) + a]
    return {"out": np.stack(rows)}


def rounded_of(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    a, b = t["x"], t["y"]
    # A product of two floats is exact in double precision and the sum rounds twice only in rare ties.
    return {"out": np.stack([a / b, np.sqrt(np.abs(a)), wide(a) * wide(b) + wide(a), np.clip(a, -0.5, 0.5)])}


def libdevice_of(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    a, b = wide(t["x"]), wide(t["y"])
    scaled = np.rint(t["x"] * np.float32(10))
    rows = [np.tanh(a), np.log1p(a), np.expm1(a), a**b, np.arctan2(a, b), np.hypot(a, b), np.fmod(a, b)]
    return {"out": np.stack([*rows, scaled, np.cbrt(a)])}


def doubles(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    from dots import erf

    a = t["x"]
    return {"out": np.stack([np.exp(a), np.log(a), np.sin(a), erf(a), a / (a + 3), np.sqrt(a)])}


def bit_counts(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    rows = []
    for value in t["x"].tolist():
        text = format(value & 0xFFFFFFFF, "032b")
        high = value * ((value + 12345 + 2**31) % 2**32 - 2**31) // 2**32
        rows.append(
            [
                len(text) - len(text.lstrip("0")),
                text.count("1"),
                int(text[::-1], 2),
                0 if value == 0 else len(text) - len(text.rstrip("0")) + 1,
                high,
            ]
        )
    return {"out": (np.array(rows, dtype=np.int64).T & 0xFFFFFFFF).astype(np.uint32).view(np.int32)}


def directed(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    a, b = wide(t["x"]), wide(t["y"])

    def down(exact: np.ndarray) -> np.ndarray:
        near = exact.astype(np.float32)
        return np.where(wide(near) > exact, np.nextafter(near, np.float32(-np.inf)), near)

    def up(exact: np.ndarray) -> np.ndarray:
        return -down(-exact)

    # Sums and products are exact in double precision; of quotients it has 29 bits to spare.
    product = a * b
    return {
        "out": np.stack([down(a + b), up(a + b), np.sign(product) * down(np.abs(product)), up(product), down(a / b)])
    }


def with_nan(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    a, b = t["x"], t["y"]
    with np.errstate(invalid="ignore"):
        rows = [np.fmax(a, b), np.maximum(a, b), np.fmin(a, b), np.minimum(a, b), np.where(a > b, a, b)]
        return {"out": np.stack([*rows, np.where(np.isnan(a), 0, a)])}


def swiglu_of(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    gate = wide(t["gate"])
    return {"out": gate / (1 + np.exp(-gate)) * wide(t["up"])}


def gelu_of(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    x = wide(t["x"])
    return {"out": 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))}


def truncated_half(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    near = t["x"].astype(np.float16)
    toward = np.nextafter(near, np.float16(0))
    return {"out": np.where(np.abs(wide(near)) > np.abs(wide(t["x"])), toward, near)}


GRID = (cdiv(SIZE, 1024),)
BLOCK = {"BLOCK": 1024}
E4M3: dict[str, Any] = {"first_target": 89, "why_not": "stock Triton has float8 e4m3 from sm_89"}


def sums(dtype: str, size: int = SIZE, name: str = "") -> Kernel:
    """x + y in one dtype."""
    return Kernel(
        add,
        name=name or f"add_{dtype}",
        grid=GRID,
        arguments={"x": reads(dtype, size), "y": reads(dtype, size), "out": writes(dtype, size), "size": i32(size)},
        constants=BLOCK,
        reference=lambda t: {"out": t["x"] + t["y"]},
    )


def conversion(source: str, target: str) -> Kernel:
    """From one dtype to another: to nearest even between floats, toward zero to integers."""

    def reference(t: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        x = t["x"]
        if target.startswith("float8") and x.dtype != np.float32:
            x = x.astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            return {"out": x.astype(TYPES[target][1])}

    # Within the range of both: what lies outside is the subject of other suites.
    values = uniform(-100, 100) if source.startswith(("float", "bfloat")) else None
    if source.startswith(("float", "bfloat")) and target.startswith("u"):
        values = uniform(0, 100)
    return Kernel(
        cast,
        name=f"cast_{source}_to_{target}",
        grid=GRID,
        arguments={"x": reads(source, SIZE, values=values), "out": writes(target, SIZE), "size": i32(SIZE)},
        constants=BLOCK,
        reference=reference,
        **(E4M3 if "float8_e4m3fn" in (source, target) else {}),
    )


def integer(dtype: str, low: int, high: int) -> Kernel:
    """Nine results of integers in one dtype; products wrap."""

    def divisors(stream: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        drawn = stream.integers(low, high, shape, endpoint=True)
        return np.where(drawn == 0, 3, drawn)

    return Kernel(
        integer_arithmetic,
        name=f"integers_{dtype}",
        grid=GRID,
        arguments={
            "x": reads(dtype, SIZE, values=integers(low, high)),
            "y": reads(dtype, SIZE, values=divisors),
            "out": writes(dtype, 9, SIZE),
            "size": i32(SIZE),
        },
        constants=BLOCK,
        reference=arithmetic,
    )


DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint32", "uint8")
CASTS = [
    ("float32", "float16"),
    ("float32", "bfloat16"),
    ("float32", "float8_e4m3fn"),
    ("float32", "float8_e5m2"),
    ("float16", "float8_e5m2"),
    ("bfloat16", "float8_e4m3fn"),
    ("float8_e4m3fn", "float32"),
    ("float8_e5m2", "float16"),
    ("float8_e5m2", "bfloat16"),
    ("float16", "float32"),
    ("bfloat16", "float64"),
    ("float64", "float32"),
    ("float32", "int32"),
    ("float32", "int8"),
    ("float32", "uint32"),
    ("float64", "int64"),
    ("float16", "int16"),
    ("int32", "float32"),
    ("int64", "float64"),
    ("int8", "bfloat16"),
    ("uint8", "float16"),
    ("uint32", "float32"),
    ("int64", "int8"),
    ("int16", "int64"),
]
PAIR: dict[str, Tensor | Scalar] = {"x": reads("float32", SIZE), "y": reads("float32", SIZE)}


def rows_of(
    function: Any, count: int, arguments: dict[str, Tensor | Scalar], reference: Reference, **more: Any
) -> Kernel:
    """A kernel that stores `count` results of every element."""
    dtype = arguments["x"].dtype
    return Kernel(
        function,
        grid=GRID,
        arguments={**arguments, "out": writes(dtype, count, SIZE), "size": i32(SIZE)},
        constants=BLOCK,
        reference=reference,
        **more,
    )


MAYBE_NAN = some(normal(), NAN, INFINITE, -INFINITE, 0.0)

KERNELS = [
    *(sums(dtype) for dtype in DTYPES),
    sums("float32", size=2999, name="add_ragged"),
    *(conversion(source, target) for source, target in CASTS),
    integer("int32", -(2**31), 2**31 - 1),
    integer("int64", -(2**62), 2**62),
    integer("int8", -100, 100),
    integer("uint32", 0, 2**32 - 1),
    Kernel(
        saxpy,
        grid=GRID,
        arguments={
            "x": reads("float32", SIZE),
            "y": updates("float32", SIZE, values=normal()),
            "size": i32(SIZE),
            "alpha": f32(1.5),
        },
        constants=BLOCK,
        reference=lambda t: {"y": 1.5 * wide(t["x"]) + wide(t["y"])},
    ),
    Kernel(
        cast_toward_zero,
        grid=GRID,
        arguments={"x": reads("float32", SIZE), "out": writes("float16", SIZE), "size": i32(SIZE)},
        constants=BLOCK,
        reference=truncated_half,
    ),
    Kernel(
        reinterpret,
        grid=(2,),
        arguments={
            "x": reads("float32", 2048, values=bits("float32")),
            "sign": writes("int8", 2048),
            "exponent": writes("int32", 2048),
            "flipped": writes("float32", 2048),
        },
        constants=BLOCK,
        reference=lambda t: {
            "sign": np.signbit(t["x"]),
            "exponent": (t["x"].view(np.int32) >> 23 & 0xFF) - 127,
            "flipped": (t["x"].view(np.int32) ^ np.int32(-(2**31))).view(np.float32),
        },
    ),
    Kernel(
        high_product,
        grid=(2,),
        arguments={
            "x": reads("uint64", 2048, values=bits("uint64")),
            "y": reads("uint64", 2048, values=bits("uint64")),
            "out32": writes("uint32", 2048),
            "out64": writes("uint64", 2048),
        },
        constants=BLOCK,
        reference=high_products,
    ),
    Kernel(
        divide_by_constants,
        grid=(2,),
        arguments={"x": reads("int32", 2048, values=bits("int32")), "out": writes("int32", 2048, 4)},
        constants=BLOCK,
        reference=constant_divisions,
    ),
    rows_of(
        special, 12, {"x": reads("float32", SIZE, values=uniform(0.01, 8))}, special_of, tolerance=Tolerance(2e-6, 2e-6)
    ),
    rows_of(rounded, 4, PAIR, rounded_of),
    rows_of(
        from_libdevice,
        9,
        {"x": reads("float32", SIZE, values=uniform(0.01, 4)), "y": reads("float32", SIZE, values=uniform(0.1, 3))},
        libdevice_of,
        tolerance=Tolerance(1e-6, 1e-6),
    ),
    rows_of(
        libdevice_double,
        6,
        {"x": reads("float64", SIZE, values=uniform(0.01, 3))},
        doubles,
        tolerance=Tolerance(1e-13, 1e-14),
    ),
    rows_of(libdevice_bits, 5, {"x": reads("int32", SIZE, values=bits("int32"))}, bit_counts),
    rows_of(libdevice_directed, 5, PAIR, directed),
    rows_of(
        extremes_with_nan,
        6,
        {"x": reads("float32", SIZE, values=MAYBE_NAN), "y": reads("float32", SIZE, values=MAYBE_NAN)},
        with_nan,
    ),
    Kernel(
        dropout,
        grid=GRID,
        arguments={
            "x": reads("float32", SIZE),
            "out": writes("float32", SIZE),
            "size": i32(SIZE),
            "probability": f32(0.25),
            "seed": i32(1234),
        },
        constants=BLOCK,
        reference=dropped,
        tolerance=Tolerance(0.0, 3e-7),
    ),
    Kernel(
        random_integers,
        grid=GRID,
        arguments={"out": writes("uint32", SIZE, 4), "size": i32(SIZE), "seed": i64(0x123456789ABCDEF)},
        constants=BLOCK,
        reference=lambda t: {"out": np.stack(philox(0x123456789ABCDEF, np.arange(SIZE)), axis=1)},
    ),
    Kernel(
        random_normal,
        grid=GRID,
        arguments={"out": writes("float32", SIZE), "size": i32(SIZE), "seed": i32(77)},
        constants=BLOCK,
        reference=box_muller,
        tolerance=Tolerance(2e-6, 1e-5),
    ),
    Kernel(
        swiglu,
        grid=GRID,
        arguments={
            "gate": reads("bfloat16", SIZE),
            "up": reads("bfloat16", SIZE),
            "out": writes("bfloat16", SIZE),
            "size": i32(SIZE),
        },
        constants=BLOCK,
        reference=swiglu_of,
        tolerance=Tolerance(1e-6, 5e-3),
    ),
    Kernel(
        gelu_tanh,
        grid=GRID,
        arguments={"x": reads("float32", SIZE), "out": writes("float32", SIZE), "size": i32(SIZE)},
        constants=BLOCK,
        reference=gelu_of,
        tolerance=Tolerance(1e-6, 1e-6),
    ),
    Kernel(
        quantize,
        grid=(6,),
        arguments={
            "x": reads("float32", 6, 500),
            "scale": reads("float32", 6, values=uniform(0.01, 0.05)),
            "out": writes("int8", 6, 500),
            "columns": i32(500),
        },
        constants={"BLOCK": 512},
        reference=lambda t: {"out": np.clip(np.rint(t["x"] / t["scale"][:, None]), -128, 127)},
    ),
]
