"""The tensors of a launch as memory: where each lies, which share memory, and what nothing has written yet."""

from __future__ import annotations

import collections
import sys
import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .faults import Argument


class Array(np.ndarray):
    """A NumPy array that a Triton kernel takes: `array` makes one of any array, over the same memory."""

    def data_ptr(self) -> int:
        """Where the first element lies, as Triton asks every tensor."""
        return int(self.__array_interface__["data"][0])


def array(values: Any) -> Array:
    """A view of a NumPy array, with the same memory and strides, that a Triton kernel takes as an argument."""
    return np.asarray(values).view(Array)


@dataclass
class Placed:
    """One tensor argument."""

    name: str
    first: int
    """The address of its first element."""
    start: int
    """The lowest address of an element: below the first where a stride is negative."""
    end: int
    """One past the highest."""
    element: int
    constant: bool
    tensor: Any

    @property
    def description(self) -> str:
        dtype = str(self.tensor.dtype).removeprefix("torch.")
        return f"{dtype} of shape {tuple(self.tensor.shape)}"


def placed(name: str, tensor: Any) -> Placed:
    """Where a tensor lies. `TypeError` for what has no memory on this machine."""
    if isinstance(tensor, np.ndarray):
        first = int(tensor.__array_interface__["data"][0])
        low, high = _bounds(tensor, first)
        return Placed(name, first, low, high, tensor.itemsize, not tensor.flags.writeable, tensor)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        if not tensor.is_cpu:
            raise TypeError(
                f"{name}: a tensor on {tensor.device}: the emulator takes tensors of this machine's memory; "
                f"make it on the CPU, or launch with the GPU's own driver"
            )
        if tensor.layout is not torch.strided:
            raise TypeError(f"{name}: a tensor of layout {tensor.layout} has no memory of its own to lend")
        first, element = tensor.data_ptr(), tensor.element_size()
        if tensor.is_contiguous():
            end = first + tensor.numel() * element
        elif tensor.numel() == 0:
            end = first
        else:
            last = sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride()))
            end = first + (last + 1) * element
        return Placed(name, first, first, end, element, False, tensor)
    base = getattr(tensor, "base", None)
    if base is not None and hasattr(base, "data_ptr"):
        # triton.reinterpret: the same memory with another dtype.
        return placed(name, base)
    raise TypeError(
        f"{name}: a {type(tensor).__module__}.{type(tensor).__name__} is no tensor that the emulator can lend: "
        f"give a torch tensor, or gpuemu.triton.array(...) of a NumPy array"
    )


def _bounds(values: np.ndarray, first: int) -> tuple[int, int]:
    """The lowest address of an element and the end of the highest; strides may be negative."""
    if values.size == 0:
        return first, first
    steps = [(extent - 1) * stride for extent, stride in zip(values.shape, values.strides)]
    low = first + sum(step for step in steps if step < 0)
    return low, first + sum(step for step in steps if step > 0) + values.itemsize


@dataclass
class Memory:
    """Memory that one or more arguments lie in."""

    start: int
    end: int
    arguments: list[Placed] = field(default_factory=list)
    fixed: bool = False
    """Whether kernels see it at the address that Python does."""

    @property
    def name(self) -> str:
        if self.fixed:
            # There may be thousands of views of one memory.
            return self.arguments[0].name
        return " and ".join(dict.fromkeys(argument.name for argument in self.arguments))

    def lent(self, unwritten: list[tuple[int, int]]) -> dict[str, Any]:
        """As the emulator takes it."""
        constant = all(argument.constant for argument in self.arguments)
        element = self.arguments[0].element
        # Memory without a byte has no address to lend: the emulator makes some of its own.
        address = self.start if self.end > self.start else 0
        return {
            "name": self.name,
            "address": address,
            "bytes": self.end - self.start,
            "element": element,
            "fixed": self.fixed,
            "constant": constant,
            "unwritten": unwritten,
        }

    def described(self) -> list[Argument]:
        return [
            Argument(one.name, one.first - self.start, one.end - self.start, one.element, one.description)
            for one in self.arguments
        ]


def shared(tensors: list[Placed]) -> tuple[list[Memory], list[tuple[int, int]]]:
    """The memories that tensors lie in, those that overlap as one, and for every tensor which and where in it."""
    order = sorted(range(len(tensors)), key=lambda index: (tensors[index].start, -tensors[index].end))
    memories: list[Memory] = []
    places: list[tuple[int, int]] = [(0, 0)] * len(tensors)
    for index in order:
        tensor = tensors[index]
        last = memories[-1] if memories else None
        overlaps = last is not None and (
            tensor.start < last.end or (tensor.start == last.start and tensor.end == last.end)
        )
        if last is None or not overlaps:
            last = Memory(tensor.start, tensor.end)
            memories.append(last)
        last.end = max(last.end, tensor.end)
        last.arguments.append(tensor)
        places[index] = (len(memories) - 1, tensor.first - last.start)
    return memories, places


@dataclass(frozen=True)
class _Lent:
    """A tensor whose address Python has taken. What it is a view of keeps its memory alive, not the tensor itself."""

    owner: Any
    """A weak reference to what the memory belongs to."""
    start: int
    end: int
    element: int
    constant: bool
    dtype: Any
    shape: Any

    def placed(self) -> Placed:
        return Placed(
            f"the tensor at {self.start:#x}", self.start, self.start, self.end, self.element, self.constant, self
        )


_BY_ADDRESS: dict[tuple[int, int, int], _Lent] = {}
_GONE: collections.deque[_Lent] = collections.deque(maxlen=1000)
"""What was lent by address and has gone, the latest of it."""


def lend(tensor: Any) -> int:
    """The address of a tensor, for kernels that are given it as a number or find it in another tensor. It is lent to every
    launch for as long as its memory lives."""
    place = placed("tensor", tensor)
    owner = _owner(tensor)
    key = (id(owner), place.start, place.end)

    def gone(_: Any) -> None:
        lent = _BY_ADDRESS.pop(key, None)
        if lent is not None:
            _GONE.append(lent)

    if key not in _BY_ADDRESS:
        reference = weakref.ref(owner, gone)
        dtype, shape = place.tensor.dtype, tuple(place.tensor.shape)
        _BY_ADDRESS[key] = _Lent(reference, place.start, place.end, place.element, place.constant, dtype, shape)
    return place.first


def _owner(tensor: Any) -> Any:
    """What the memory of a tensor belongs to."""
    if isinstance(tensor, np.ndarray):
        while isinstance(tensor.base, np.ndarray):
            tensor = tensor.base
        return tensor
    if hasattr(tensor, "untyped_storage"):
        return tensor.untyped_storage()
    return tensor


def by_address() -> list[Memory]:
    """The memory of tensors that are lent by address."""
    if not _BY_ADDRESS:
        return []
    alive = [lent.placed() for lent in list(_BY_ADDRESS.values()) if lent.owner() is not None]
    memories, _ = shared([tensor for tensor in alive if tensor.end > tensor.start])
    for memory in memories:
        memory.fixed = True
    return memories


UNKNOWN = "whose address was taken: of another one, or freed?"
_NEAR = 4096
"""Bytes from an address to a tensor that it may still have been meant for."""


def elsewhere(memory: Memory, offset: int) -> str | None:
    """What an address is, from the start of the memory that is lent by address and nearest to it, if it is none of it: of a
    tensor that has gone, or far from all. `None` where it may have been meant for this memory."""
    size = memory.end - memory.start
    if not memory.fixed or 0 <= offset < size:
        return None
    address = memory.start + offset
    gone = next((lent for lent in reversed(_GONE) if lent.start <= address < lent.end), None)
    if gone is not None:
        return f"address {address:#x} is in the memory of a tensor that is gone: {gone.placed().description}"
    if max(-offset, offset - size) > max(size, _NEAR):
        return f"address {address:#x} is in the memory of no tensor {UNKNOWN}"
    return None
