"""How a Triton kernel of this folder is declared: its launch, its arguments with their values, and the right answer."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

Values = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
"""Makes an array of a shape; the declared dtype is applied afterwards."""

Reference = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]
"""From every tensor with values, by name, to every written tensor, by name, in any precision."""

SEED = 20261130

TYPES: dict[str, tuple[str, np.dtype]] = {
    "float64": ("fp64", np.dtype(np.float64)),
    "float32": ("fp32", np.dtype(np.float32)),
    "float16": ("fp16", np.dtype(np.float16)),
    "bfloat16": ("bf16", np.dtype(ml_dtypes.bfloat16)),
    "float8_e4m3fn": ("fp8e4nv", np.dtype(ml_dtypes.float8_e4m3fn)),
    "float8_e5m2": ("fp8e5", np.dtype(ml_dtypes.float8_e5m2)),
    "int64": ("i64", np.dtype(np.int64)),
    "int32": ("i32", np.dtype(np.int32)),
    "int16": ("i16", np.dtype(np.int16)),
    "int8": ("i8", np.dtype(np.int8)),
    "uint64": ("u64", np.dtype(np.uint64)),
    "uint32": ("u32", np.dtype(np.uint32)),
    "uint16": ("u16", np.dtype(np.uint16)),
    "uint8": ("u8", np.dtype(np.uint8)),
    "bool": ("i1", np.dtype(np.bool_)),
}
"""Triton's and NumPy's name of every dtype."""


@dataclass(frozen=True)
class Tensor:
    """A dense row-major tensor in global memory, aligned to 256 bytes."""

    dtype: str
    shape: tuple[int, ...]
    values: Values | None = None
    """What it holds before the launch; None: nothing, the kernel writes every element."""
    written: bool = False
    """Whether it is compared with the reference's answer of the same name afterwards. Others must stay untouched."""


@dataclass(frozen=True)
class Scalar:
    """A number passed by value."""

    dtype: str
    value: int | float


@dataclass(frozen=True)
class Tolerance:
    """`|got - expected| <= absolute + relative * |expected|`; both 0: equal. A NaN equals a NaN."""

    absolute: float = 0.0
    relative: float = 0.0


@dataclass(frozen=True)
class Kernel:
    """One kernel, one launch of it and the right answer."""

    function: Any
    """A `triton.jit` function. Its arguments are `arguments` in this order, then `constants`."""
    grid: tuple[int, ...]
    arguments: Mapping[str, Tensor | Scalar]
    reference: Reference
    constants: Mapping[str, Any] = field(default_factory=dict)
    tolerance: Tolerance = Tolerance()
    num_warps: int = 4
    num_stages: int = 3
    options: Mapping[str, Any] = field(default_factory=dict)
    """Other options of `triton.compile`."""
    name: str = ""
    """The function's name, where several kernels are not made of one function."""
    first_target: int = 80
    """The oldest architecture that has it, times 10."""
    last_target: int = 999
    why_not: str = ""
    """Why the other architectures do not have it."""
    prints: tuple[str, ...] = ()
    """Lines that it prints, in any order."""

    @property
    def title(self) -> str:
        """The name of its files."""
        return self.name or str(self.function.__name__)

    def inputs(self) -> dict[str, np.ndarray]:
        """The tensors with values before the launch, the same on every run."""
        arrays = {}
        for name, argument in self.arguments.items():
            if isinstance(argument, Tensor) and argument.values is not None:
                stream = np.random.default_rng([SEED, zlib.crc32(self.title.encode()), zlib.crc32(name.encode())])
                values = np.broadcast_to(argument.values(stream, argument.shape), argument.shape)
                arrays[name] = np.ascontiguousarray(values).astype(TYPES[argument.dtype][1])
        return arrays

    def expected(self) -> dict[str, np.ndarray]:
        """The written tensors after the launch."""
        answers = self.reference(self.inputs())
        arrays = {}
        for name, argument in self.arguments.items():
            if isinstance(argument, Tensor) and argument.written:
                answer = np.asarray(answers.pop(name))
                if answer.shape != argument.shape:
                    raise ValueError(f"{self.title}: the reference gives {name} the shape {answer.shape}")
                with np.errstate(over="ignore", invalid="ignore"):
                    arrays[name] = np.ascontiguousarray(answer).astype(TYPES[argument.dtype][1])
        if answers:
            raise ValueError(f"{self.title}: the reference answers {sorted(answers)}, which the kernel does not write")
        return arrays


def reads(dtype: str, *shape: int, values: Values | None = None) -> Tensor:
    """An input: standard normal values, small integers, or `values`."""
    return Tensor(dtype, shape, values or usual(dtype))


def writes(dtype: str, *shape: int) -> Tensor:
    """An output that the kernel writes whole."""
    return Tensor(dtype, shape, written=True)


def updates(dtype: str, *shape: int, values: Values | None = None) -> Tensor:
    """A tensor that the kernel changes: zeros, or `values`."""
    return Tensor(dtype, shape, values or constant(0), written=True)


def i32(value: int) -> Scalar:
    """A 32-bit integer."""
    return Scalar("int32", value)


def i64(value: int) -> Scalar:
    """A 64-bit integer."""
    return Scalar("int64", value)


def f32(value: float) -> Scalar:
    """A single-precision number."""
    return Scalar("float32", value)


def usual(dtype: str) -> Values:
    """Standard normal numbers for floats, -100..=100 for integers (from 0 where unsigned), any truth value."""
    if dtype.startswith(("float", "bfloat")):
        return normal()
    if dtype == "bool":
        return integers(0, 1)
    return integers(0 if dtype.startswith("u") else -100, 100)


def normal(scale: float = 1.0, shift: float = 0.0) -> Values:
    """Normal numbers of this deviation and mean."""
    return lambda stream, shape: stream.standard_normal(shape) * scale + shift


def uniform(low: float, high: float) -> Values:
    """Numbers between two bounds."""
    return lambda stream, shape: stream.uniform(low, high, shape)


def integers(low: int, high: int) -> Values:
    """Integers between two bounds, both included."""
    return lambda stream, shape: stream.integers(low, high, shape, endpoint=True)


def bits(dtype: str) -> Values:
    """Any bit pattern of a dtype: NaN, infinities and subnormal numbers among them."""
    numpy = TYPES[dtype][1]
    return lambda stream, shape: np.frombuffer(stream.bytes(int(np.prod(shape)) * numpy.itemsize), dtype=numpy).reshape(
        shape
    )


def constant(value: float) -> Values:
    """One value everywhere."""
    return lambda stream, shape: np.full(shape, value)


def exactly(values: Any) -> Values:
    """These values."""
    return lambda stream, shape: np.asarray(values)


def some(values: Values, *special: float) -> Values:
    """`values` with about one in eight replaced by one of `special`."""

    def make(stream: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        made = np.array(values(stream, shape))
        chosen = stream.random(shape) < 0.125
        return np.where(chosen, stream.choice(np.asarray(special), shape), made)

    return make


def cdiv(a: int, b: int) -> int:
    """Quotient, rounded up."""
    return -(-a // b)


def wide(array: np.ndarray) -> np.ndarray:
    """The same numbers in double precision."""
    return array.astype(np.float64)
