"""`triton.autotune` without a clock: every configuration alone, from the same memory, held against the first."""

from __future__ import annotations

import ctypes
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .memory import Memory

Ranges = list[tuple[int, int]]


class AutotuneWarning(UserWarning):
    """What the choice of a configuration would change beside the time."""


class AutotuneError(RuntimeError):
    """The same, where it shall fail: `activate(autotune="error")`."""


@dataclass
class Outcome:
    """What one configuration left in the tensors."""

    configuration: str
    after: list[bytes]
    unwritten: list[Ranges]


@dataclass
class Trial:
    """One configuration at work. The launcher hands its launches over."""

    driver: Any
    runs: list[Any] = field(default_factory=list)
    before: list[bytes] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    instructions: int = 0

    def run(self, run: Any) -> None:
        """Runs a launch over what the tensors hold, and remembers what it leaves."""
        if not self.runs:
            self.before = [_bytes(memory) for memory in run.memories]
            launched = run()
            self.instructions = launched.instructions
            _restore(run.memories, self.before)
        self.runs.append(run)
        whole = [[(0, memory.end - memory.start)] if memory.end > memory.start else [] for memory in run.memories]
        launched = run.execute(whole, initialisation=False)
        after = [_bytes(memory) for memory in run.memories]
        self.outcomes.append(Outcome(run.launcher.described(), after, launched.unwritten))

    def key(self) -> Any:
        """Trials of one tuning: the same function over the same memory."""
        run = self.runs[0]
        return id(run.launcher.function), tuple((memory.start, memory.end) for memory in run.memories)

    def restore(self) -> None:
        """The tensors as they were."""
        if self.runs:
            _restore(self.runs[0].memories, self.before)


class Benchmarker:
    """What `driver.get_benchmarker()` gives the tuner: a configuration's cost is the instructions that it executes."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def __call__(self, kernel_call: Callable[[], Any], *, quantiles: Sequence[float] | None = None, **_: Any) -> Any:
        trial = Trial(self.driver)
        self.driver.trial = trial
        try:
            kernel_call()
            first = bool(trial.runs) and trial.key() not in self.driver.tunings
            if first:
                # A tuner on a GPU runs a configuration again and again over the same tensors.
                kernel_call()
        except Exception as error:
            if trial.runs and hasattr(error, "add_note"):
                error.add_note(f"while tuning, with {trial.runs[0].launcher.described()}")
            raise
        finally:
            self.driver.trial = None
            trial.restore()
        if trial.runs:
            self._judge(trial, first)
        cost = float(trial.instructions)
        return [cost] * len(quantiles) if quantiles else cost

    def _judge(self, trial: Trial, first: bool) -> None:
        run, outcome = trial.runs[0], trial.outcomes[0]
        name = run.launcher.name
        if not first:
            self._report(_disagreement(name, run.memories, self.driver.tunings[trial.key()], outcome))
            return
        self.driver.tunings[trial.key()] = outcome
        if len(trial.outcomes) > 1:
            self._report(_accumulation(name, run.memories, outcome, trial.outcomes[1]))

    def _report(self, message: str | None) -> None:
        policy = self.driver.settings.autotune
        if message is None or policy == "ignore":
            return
        if policy == "error":
            raise AutotuneError(message)
        warnings.warn(message, AutotuneWarning, stacklevel=2)


def _bytes(memory: Memory) -> bytes:
    return ctypes.string_at(memory.start, memory.end - memory.start) if memory.end > memory.start else b""


def _restore(memories: Sequence[Memory], contents: Sequence[bytes]) -> None:
    for memory, content in zip(memories, contents):
        if content and not all(argument.constant for argument in memory.arguments):
            ctypes.memmove(memory.start, content, len(content))


def _values(memory: Memory, content: bytes) -> np.ndarray:
    """The numbers in memory, in double precision; bytes where they are no numbers."""
    dtype = memory.arguments[0].tensor.dtype
    whole = content[: len(content) // memory.arguments[0].element * memory.arguments[0].element]
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        if dtype.is_complex:
            return np.frombuffer(whole, dtype=np.float64 if dtype is torch.complex128 else np.float32)
        return torch.frombuffer(bytearray(whole), dtype=dtype).to(torch.float64).numpy() if whole else np.empty(0)
    return np.frombuffer(whole, dtype=dtype).astype(np.float64)


def _epsilon(memory: Memory) -> float:
    """How far apart two right orders of summation may be, of the largest value: a part in 250 for half precision and
    less, in 1,000 above, where matrix products may have used tf32; nothing for integers."""
    argument = memory.arguments[0]
    dtype = str(argument.tensor.dtype)
    if "float" not in dtype and "complex" not in dtype:
        return 0.0
    return 2.0**-10 if argument.element >= 4 else 2.0**-8


def _disagreement(kernel: str, memories: Sequence[Memory], one: Outcome, other: Outcome) -> str | None:
    head = f"configurations of {kernel} disagree"
    for index, memory in enumerate(memories):
        name, element = memory.name, memory.arguments[0].element
        if one.unwritten[index] != other.unwritten[index]:
            elements = _difference(one.unwritten[index], other.unwritten[index], len(one.after[index]))
            if elements is not None:
                byte, missing = elements
                less, more = (one, other) if missing == "one" else (other, one)
                return (
                    f"{head} on {name}: with {more.configuration} it writes element {byte // element}, "
                    f"with {less.configuration} it does not"
                )
        if one.after[index] == other.after[index]:
            continue
        x, y = _values(memory, one.after[index]), _values(memory, other.after[index])
        # Memory of neighbours that no element of a strided tensor holds is the same on both sides.
        finite = np.isfinite(x) & np.isfinite(y)
        largest = np.max(np.abs(np.concatenate([x[finite], y[finite]])), initial=0.0)
        with np.errstate(invalid="ignore"):
            same = (x == y) | (np.isnan(x) & np.isnan(y)) | (finite & (np.abs(x - y) <= _epsilon(memory) * largest))
        if not same.all():
            place = int(np.argmin(same))
            return (
                f"{head} on {name}: {np.count_nonzero(~same)} of {same.size} elements, element {place} is {x[place]:g} "
                f"with {one.configuration} and {y[place]:g} with {other.configuration}"
            )
    return None


def _difference(one: Ranges, other: Ranges, size: int) -> tuple[int, str] | None:
    """The first byte that one side wrote and the other did not, and which side lacks it."""
    masks = []
    for ranges in (one, other):
        mask = np.zeros(size, dtype=bool)
        for start, end in ranges:
            mask[start:end] = True
        masks.append(mask)
    differ = np.flatnonzero(masks[0] != masks[1])
    if not differ.size:
        return None
    byte = int(differ[0])
    return byte, "one" if masks[0][byte] else "other"


def _accumulation(kernel: str, memories: Sequence[Memory], one: Outcome, again: Outcome) -> str | None:
    for index, memory in enumerate(memories):
        if one.after[index] != again.after[index]:
            return (
                f"{kernel} updates {memory.name} in place, and a second run changes it again: a tuner runs it many times "
                f"over the same tensor, so that the first tuned call answers wrongly. Name it in `reset_to_zero` or "
                f"`restore_value` of triton.autotune"
            )
    return None
