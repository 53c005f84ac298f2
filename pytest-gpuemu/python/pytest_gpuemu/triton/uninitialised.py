"""Tensors that were made without values: which of their bytes nothing has written yet."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

Ranges = list[tuple[int, int]]


@dataclass
class Record:
    """What is known of one tensor's memory."""

    tensor: Any
    """A weak reference to the tensor that was made."""
    version: int
    """Torch counts a tensor's changes: one that it counted since has written to it."""
    ranges: Ranges
    """The bytes that nothing wrote, from its start."""

    def update(self, ranges: Ranges) -> None:
        """After a launch, which wrote some of them."""
        self.ranges = ranges


_RECORDS: dict[tuple[int, int], Record] = {}


def made(tensor: Any) -> None:
    """Nothing has written to this torch tensor. It is dense, and its memory its own."""
    start = tensor.data_ptr()
    size = tensor.numel() * tensor.element_size()
    if size == 0:
        return
    key = (start, start + size)
    reference = weakref.ref(tensor, lambda _: _RECORDS.pop(key, None))
    _RECORDS[key] = Record(reference, tensor._version, [(0, size)])


def of(start: int, end: int) -> Record | None:
    """The record of this memory, if torch has not written to it since; `None` where all of it counts as written."""
    if not _RECORDS:
        return None
    record = _RECORDS.get((start, end))
    if record is None:
        return None
    tensor = record.tensor()
    if tensor is None or tensor._version != record.version or not record.ranges:
        _RECORDS.pop((start, end), None)
        return None
    return record


def forget(tensor: Any) -> None:
    """This tensor's memory is given to somebody who may write to it unseen."""
    if not _RECORDS:
        return
    start = tensor.data_ptr()
    for key in [key for key in _RECORDS if key[0] <= start < key[1]]:
        _RECORDS.pop(key, None)
