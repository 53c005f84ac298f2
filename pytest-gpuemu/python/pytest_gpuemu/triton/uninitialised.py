"""Tensors that were made without values: which of their bytes nothing has written yet.

They are filled with a pattern. Writes are seen in two ways, since there are many that torch does not count: through `.data`,
DLPack, storages, the code of extensions. A byte that differs from the pattern has been written, and with it all of the tensor
counts as written, as with every write of which only that it happened is known.
"""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from typing import Any

Ranges = list[tuple[int, int]]

_FLOATS, _INTEGERS, _TRUTHS = 0xFF, 0x5A, 0x01
"""Every byte: a NaN, or a large number. Other bytes than 0 and 1 would not do for truth values."""


@dataclass
class Record:
    """What is known of one tensor's memory."""

    tensor: Any
    """A weak reference to the tensor that was made."""
    version: int | None
    """Torch counts a tensor's changes: one that it counted since has written to it. It counts none in inference mode."""
    pattern: int
    ranges: Ranges
    """The bytes that nothing wrote, from its start."""

    def update(self, ranges: Ranges) -> None:
        """After a launch, which wrote some of them."""
        self.ranges = ranges

    def stands(self, start: int) -> bool:
        """Whether what is known is still so of the memory that starts there."""
        tensor = self.tensor()
        return (
            tensor is not None
            and bool(self.ranges)
            and tensor.data_ptr() == start
            and _version(tensor) == self.version
            and all(_holds(start + low, high - low, self.pattern) for low, high in self.ranges)
        )


_RECORDS: dict[tuple[int, int], Record] = {}
_compare = ctypes.CDLL(None).memcmp
_compare.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


def _version(tensor: Any) -> int | None:
    return None if tensor.is_inference() else tensor._version


def _holds(start: int, size: int, pattern: int) -> bool:
    """Whether all of these bytes are the pattern: the first is, and each is as the one before it."""
    return ctypes.c_ubyte.from_address(start).value == pattern and _compare(start, start + 1, size - 1) == 0


def made(tensor: Any) -> None:
    """Nothing has written to this torch tensor: fills it. It is dense, and its memory its own, if it has any."""
    start = tensor.data_ptr()
    size = tensor.numel() * tensor.element_size()
    if size == 0 or start == 0:
        return
    dtype = tensor.dtype
    floats = dtype.is_floating_point or dtype.is_complex
    pattern = _FLOATS if floats else _TRUTHS if str(dtype) == "torch.bool" else _INTEGERS
    ctypes.memset(start, pattern, size)
    key = (start, start + size)
    reference = weakref.ref(tensor, lambda _: _RECORDS.pop(key, None))
    _RECORDS[key] = Record(reference, _version(tensor), pattern, [(0, size)])


def of(start: int, end: int) -> Record | None:
    """The record of this memory, if nothing else has written to it since; `None` where all of it counts as written."""
    if not _RECORDS:
        return None
    record = _RECORDS.get((start, end))
    if record is None:
        return None
    if not record.stands(start):
        _RECORDS.pop((start, end), None)
        return None
    return record


def aliased(tensor: Any) -> None:
    """This tensor has an alias whose writes torch counts apart. What it writes is told by the pattern, but for what holds
    small numbers: there they may be the pattern's own."""
    if tensor.element_size() == 1 and not tensor.dtype.is_floating_point:
        forget(tensor)


def forget(tensor: Any) -> None:
    """This tensor's memory is given to somebody who may write to it unseen."""
    if not _RECORDS:
        return
    start = tensor.data_ptr()
    for key in [key for key in _RECORDS if key[0] <= start < key[1]]:
        _RECORDS.pop(key, None)
