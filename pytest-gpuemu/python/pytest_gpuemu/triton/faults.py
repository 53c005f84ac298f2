"""What goes wrong in a Triton kernel on the emulator, in the words of the Python that was written."""

from __future__ import annotations

import linecache
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class KernelFault(RuntimeError):
    """A kernel that did not end well, or that no driver would have launched.

    A real driver raises `RuntimeError` for the few of them that it sees, so that code which expects one finds it.
    """

    kind: str
    """`out-of-bounds`, `global-race`, `uninitialised-read`, `assert`, `invalid-launch`, ..."""
    kernel: str
    """The kernel's name."""
    tensor: str | None
    """The argument that was accessed, or the nearest one."""
    offset: int | None
    """The element accessed, counted from the argument's first; negative before it."""
    program: tuple[int, int, int] | None
    """`tl.program_id` of the three axes."""
    thread: tuple[int, int, int] | None
    """The thread within the program."""
    file: str | None
    """The Python file."""
    line: int | None
    """The line of it, from 1."""
    other_line: int | None
    """Of a race, the line of the access before."""
    detail: str
    """More about it: what an assertion says, which lanes are missing."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        for name in ("kind", "kernel", "tensor", "offset", "program", "thread", "file", "line", "other_line", "detail"):
            setattr(self, name, facts.get(name))


@dataclass(frozen=True)
class Argument:
    """A tensor that a kernel was given, as a message names it."""

    name: str
    start: int
    """Bytes from the start of the memory it shares with others to its first element."""
    end: int
    """The same for the end of its last one."""
    element: int
    """Bytes of an element."""
    description: str
    """`float32 of shape (4, 8)`."""


def _triton_folder() -> str:
    import triton

    return os.path.join(os.path.dirname(os.path.abspath(str(triton.__file__))), "")


def _written(source: Sequence[tuple[str, int, int]]) -> list[tuple[str, int]]:
    """The places that the user wrote, innermost first; Triton's own library is left out where it can be."""
    library = _triton_folder()
    places = [(path, line) for path, line, _ in source if line]
    own = [place for place in places if not place[0].startswith(library)]
    return own or places


def _quoted(path: str, line: int) -> str:
    text = linecache.getline(path, line).strip()
    return f"{os.path.basename(path)}:{line}" + (f": {text}" if text else "")


def _where(argument: Argument, offset: int, size: int) -> str:
    """How far a place, in bytes from the argument's first element, is from where it may be."""
    element = argument.element or 1
    name, index = argument.name, offset // element
    extent = argument.end - argument.start
    if offset < 0:
        distance = f"{-index} before its start"
    elif offset + size > extent:
        past = (max(offset, extent) - extent) // element + 1
        distance = f"{past} past its end"
    else:
        distance = ""
    unit = "element" if argument.element else "byte"
    text = f"{unit} {index} of {name}, {argument.description}"
    return f"{text}: {distance}" if distance else text


def _tuple(values: Sequence[int] | None) -> tuple[int, int, int] | None:
    return (values[0], values[1], values[2]) if values is not None else None


_ACTS = {"read": "reads", "write": "writes", "atomic": "atomically updates", "asynchronous write": "writes"}
_TITLES = {
    "out-of-bounds": "{action} out of bounds",
    "illegal-address": "{action} at an illegal address",
    "null-pointer": "{action} through a null pointer",
    "misaligned": "misaligned {action}",
    "address-space": "{action} to memory that is read-only",
    "uninitialised-read": "read of memory that nothing wrote",
    "shared-race": "race in shared memory",
    "global-race": "race in global memory",
    "stale-read": "read that may be stale",
    "divergent-barrier": "barrier that not all threads reach",
    "deadlock": "deadlock",
    "runaway": "kernel that does not end",
    "assert": "device_assert failed",
    "trap": "trap",
    "invalid-launch": "launch refused",
}


# What a kernel that works in place cannot see in its own text.
_SEVERAL_WARPS = [
    "  Where a program has more threads than elements, Triton gives an element to several warps: one may store what",
    "  another has still to load. tl.debug_barrier() between the load and the store orders them; fewer warps avoid them",
]


def _between_warps_of_a_program(fault: Any) -> bool:
    """Whether a load and a store of one program raced, in different warps."""
    one, other = fault, fault.other
    if fault.kind != "global-race" or None in (one.thread, other.thread) or list(one.block) != list(other.block):
        return False
    # A program's threads lie in one row.
    return one.thread[0] // 32 != other.thread[0] // 32 and {one.action, other.action} == {"read", "write"}


def raised(
    fault: Any,
    kernel: str,
    memory: Sequence[Sequence[Argument]],
    names: Sequence[str],
    elsewhere: str | None = None,
) -> KernelFault:
    """The exception for a fault that the emulator found.

    `memory` has, for every memory that was lent, the arguments within it; `names` what the emulator calls them; `elsewhere`
    what the place is, where the memory that the emulator names is only the nearest to it.
    """
    title = _TITLES.get(fault.kind, fault.kind.replace("-", " ")).format(action=fault.action or "access")
    lines = [f"{title} in {kernel}"]
    places = _written(fault.source)
    lines += [f"  {_quoted(*place)}" for place in places]
    tensor, index = None, None
    if elsewhere is not None:
        lines.append(f"  {elsewhere}")
    elif fault.region in names:
        within = memory[names.index(fault.region)]
        # Several arguments in one memory: the one it lies in, else the nearest.
        argument = min(within, key=lambda one: max(one.start - fault.offset, fault.offset - one.end + 1, 0))
        offset = fault.offset - argument.start
        tensor, index = argument.name, offset // (argument.element or 1)
        lines.append("  " + _where(argument, offset, fault.bytes))
    elif fault.region is not None:
        lines.append(f"  byte {fault.offset} of {fault.region}, {fault.extent} bytes long")
    if fault.block is not None:
        thread = f"thread {tuple(fault.thread)} of " if fault.thread is not None else ""
        act = f" {_ACTS[fault.action]} {fault.bytes} byte{'s' * (fault.bytes != 1)}" if fault.action else ""
        lines.append(f"  {thread}program {tuple(fault.block)}{act}")
    other_line = None
    if fault.other is not None:
        others = _written(fault.other.source)
        other_line = others[0][1] if others else None
        thread = f"thread {tuple(fault.other.thread)} of " if fault.other.thread is not None else ""
        did = f"{thread}program {tuple(fault.other.block)} had done its {fault.other.action}"
        lines.append(f"  {did}" + (f" at {_quoted(*others[0])}" if others else ""))
        if fault.kind != "stale-read":
            lines.append("  and nothing orders the two: no barrier, no atomic that one releases and the other acquires")
        if _between_warps_of_a_program(fault):
            lines += _SEVERAL_WARPS
    if fault.detail:
        lines.append(f"  {fault.detail}")
    if fault.kind == "runaway" and "instructions and has not ended" in (fault.detail or ""):
        lines.append("  GPUEMU_BUDGET, or activate(budget=...), lets it run for longer")
    if fault.line:
        lines.append(f"  PTX line {fault.line}: {fault.instruction}")
    lines.append("  a GPU answers {} ({})".format(*fault.cuda) if fault.cuda else "  a GPU says nothing")
    return KernelFault(
        "\n".join(lines),
        kind=fault.kind,
        kernel=kernel,
        tensor=tensor,
        offset=index,
        program=_tuple(fault.block),
        thread=_tuple(fault.thread),
        file=places[0][0] if places else None,
        line=places[0][1] if places else None,
        other_line=other_line,
        detail=fault.detail,
    )
