"""From the arguments of `kernel[grid](...)` to a launch on the emulator."""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_gpuemu import _core

from . import uninitialised
from .faults import KernelFault, raised
from .memory import UNKNOWN, Memory, Placed, by_address, elsewhere, placed, shared

_FLOATS = {"fp32", "f32", "fp64"}

Getter = Callable[[Sequence[Any]], Any]


@dataclass(frozen=True)
class Launched:
    """What the last launch did."""

    kernel: str
    """The kernel's name."""
    grid: tuple[int, int, int]
    instructions: int
    """Instructions executed, those of each warp counted."""
    printed: str
    """What `tl.device_print` wrote."""


@dataclass(frozen=True)
class Slot:
    """One parameter of the compiled kernel, or the argument that several are made of."""

    name: str
    type: str
    get: Getter


def ptx_of(metadata: Any) -> str:
    """The PTX of a compiled kernel, from Triton's cache."""
    from triton.runtime.cache import get_cache_manager

    manager = get_cache_manager(metadata.hash)
    file = f"{metadata.name[:150]}.ptx"
    group = next(
        (found for name in (f"{metadata.name[:150]}.json",) if (found := manager.get_group(name)) and file in found),
        None,
    )
    path = group[file] if group else manager.get_file(file)
    if path is None:
        raise RuntimeError(
            f"Triton's cache has no PTX of {metadata.name}: it keeps machine code alone where TRITON_STORE_BINARY_ONLY "
            f"is set, which the emulator does not execute"
        )
    return Path(path).read_text(encoding="utf-8")


def _step(path: tuple[int, ...]) -> Getter:
    if len(path) == 1:
        index = path[0]
        return lambda arguments: arguments[index]

    def get(arguments: Sequence[Any]) -> Any:
        value: Any = arguments
        for index in path:
            value = value[index]
        return value

    return get


def _slots(signature: Any, names: Sequence[str]) -> Iterator[Slot]:
    """The arguments that reach the compiled kernel, tuples taken apart."""

    def visit(type_: Any, path: tuple[int, ...], name: str) -> Iterator[Slot]:
        if isinstance(type_, (tuple, list)):
            for index, inner in enumerate(type_):
                yield from visit(inner, (*path, index), f"{name}[{index}]")
        elif type_ != "constexpr":
            yield Slot(name, type_, _step(path))

    for index, type_ in enumerate(signature):
        yield from visit(type_, (index,), names[index])


def _float16(value: float) -> bytes:
    return struct.pack("<e", value)


def _bfloat16(value: float) -> bytes:
    # Triton's own launcher cuts the low half off.
    return struct.pack("<f", value)[2:]


def _budget(settings: Any) -> int | None:
    """The instructions that a program may run: what the settings say, else the environment; `None` for the default."""
    text = os.environ.get("GPUEMU_BUDGET", "").strip()
    if settings.budget is not None or not text:
        return settings.budget
    if not text.isdecimal() or not int(text):
        raise ValueError(f"GPUEMU_BUDGET is `{text}` and must be a number of instructions, 1 or more")
    return int(text)


class Launcher:
    """A compiled kernel, ready to launch: what Triton asks of `launcher_cls`."""

    def __init__(self, driver: Any, source: Any, metadata: Any) -> None:
        self.driver = driver
        self.name = metadata.name
        self.metadata = metadata
        self.function = getattr(source, "fn", None)
        settings = driver.settings
        budget = _budget(settings)
        try:
            self.kernel = _core.EmulatedKernel(
                ptx_of(metadata),
                entry=metadata.name,
                arch=settings.target,
                races=settings.races,
                initialisation=settings.initialisation,
                threads=settings.threads,
                budget=budget,
                seed=settings.seed,
            )
        except ValueError as error:
            raise NotImplementedError(f"{metadata.name} cannot be executed on the emulator: {error}") from None
        signature = source.signature
        names = list(getattr(self.function, "arg_names", None) or [])
        names += [f"argument {index}" for index in range(len(names), len(signature))]
        self.constants = {
            name: value
            for path, value in getattr(source, "constants", {}).items()
            for name in [names[path[0]] if isinstance(path, tuple) else str(path)]
        }
        self.slots = list(_slots(signature.values(), names))
        self.block = tuple(self.kernel.block or (32 * metadata.num_warps, 1, 1))
        self.blocks = getattr(metadata, "num_ctas", 1)
        self.shared = metadata.shared
        self.scratch = getattr(metadata, "global_scratch_size", 0) or 0
        self.scratch_alignment = getattr(metadata, "global_scratch_align", 1) or 1
        self.profile_scratch = getattr(metadata, "profile_scratch_size", 0) or 0

    def __call__(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: int,
        function: Any,
        kernel_metadata: Any,
        launch_metadata: Any,
        enter_hook: Any,
        exit_hook: Any,
        *arguments: Any,
    ) -> None:
        if enter_hook is not None:
            enter_hook(launch_metadata)
        # As Triton's own launcher: a grid without programs is no launch.
        if grid_x > 0 and grid_y > 0 and grid_z > 0:
            with _plain_torch():
                self._launch((grid_x, grid_y, grid_z), stream, arguments)
        if exit_hook is not None:
            exit_hook(launch_metadata)

    def _launch(self, grid: tuple[int, int, int], stream: int, arguments: Sequence[Any]) -> None:
        tensors: list[Placed] = []
        passed: list[Any] = []
        sizes = self.kernel.parameters
        for slot in self.slots:
            value = slot.get(arguments)
            kind = slot.type
            if kind[0] == "*":
                self._pointer(slot.name, value, tensors, passed)
            elif kind in _FLOATS:
                passed.append(float(value))
            elif kind == "fp16":
                passed.append(_float16(value))
            elif kind == "bf16":
                passed.append(_bfloat16(value))
            elif kind.startswith("tensordesc"):
                self._descriptor(slot, value, tensors, passed)
            else:
                passed.append(int(value))
        self._scratch(grid, stream, tensors, passed)
        passed += [0] * (len(sizes) - len(passed))
        served = sys.modules.get("pytest_gpuemu.triton.torch_mode")
        if served is not None and served.is_active():
            served.check_launch(self.name, tensors)
        memories, places = shared(tensors)
        memories += by_address()
        trial = self.driver.trial
        run = _Run(self, grid, memories, [places[p.index] if isinstance(p, _Tensor) else p for p in passed])
        if trial is not None:
            trial.run(run)
        else:
            self.driver.tuned(self.function)
            run()

    def _pointer(self, name: str, value: Any, tensors: list[Placed], passed: list[Any]) -> None:
        if value is None:
            passed.append(0)
        elif isinstance(value, int):
            # The address as it is: of a tensor that is lent by address, or a fault once it is used.
            passed.append(value - (1 << 64) if value >= 1 << 63 else value)
        else:
            passed.append(_Tensor(len(tensors)))
            tensors.append(placed(name, value))

    def _descriptor(self, slot: Slot, value: Any, tensors: list[Placed], passed: list[Any]) -> None:
        """A descriptor of the host, which targets without tensor-map hardware take apart: base, shape, strides, what is
        outside, then shape and strides again."""
        sizes = self.kernel.parameters
        if sizes[len(passed)] != 8:
            raise NotImplementedError(
                f"{self.name}: {slot.name} is a tensor map of {self.kernel.arch}, which the emulator does not execute: "
                f"choose sm_80, for which Triton takes descriptors apart"
            )
        shape, strides = [int(extent) for extent in value.shape], [int(stride) for stride in value.strides]
        self._pointer(slot.name, value.base, tensors, passed)
        passed += [*shape, *strides]
        # Newer versions say what stands outside the tensor, and how float32 is rounded; how many of them there are, the
        # compiled kernel tells.
        flags = [getattr(value, "padding", "zero") == "nan", bool(getattr(value, "round_f32_to_tf32", False))]
        for flag in flags:
            if sizes[len(passed)] == 1:
                passed.append(int(flag))
        passed += [*shape, *strides]

    def _scratch(self, grid: tuple[int, int, int], stream: int, tensors: list[Placed], passed: list[Any]) -> None:
        """The workspace that kernels may ask for, from the allocator that the user set, as on a GPU."""
        for size, alignment, which in (
            (self.scratch, self.scratch_alignment, "_allocator"),
            (self.profile_scratch, 1, "_profile_allocator"),
        ):
            if len(passed) >= len(self.kernel.parameters):
                return
            if not size:
                passed.append(0)
                continue
            from triton.runtime import _allocation

            allocator = getattr(_allocation, which)
            allocator = allocator.get() if hasattr(allocator, "get") else allocator
            buffer = allocator(size * grid[0] * grid[1] * grid[2] * self.blocks, alignment, stream)
            self._pointer("the scratch memory", buffer, tensors, passed)

    def described(self) -> str:
        """The configuration, for messages: `BLOCK=128, num_warps=4`."""
        constants = [
            f"{name}={value!r}" for name, value in self.constants.items() if isinstance(value, (int, float, str))
        ]
        return ", ".join([*constants, f"num_warps={self.metadata.num_warps}", f"num_stages={self.metadata.num_stages}"])


@dataclass(frozen=True)
class _Tensor:
    """Stands for a pointer until it is known where the tensor lies."""

    index: int


@dataclass
class _Run:
    """One launch with its arguments, which can be run several times."""

    launcher: Launcher
    grid: tuple[int, int, int]
    memories: list[Memory]
    passed: list[Any]

    def __call__(self) -> Any:
        """Runs it over what the tensors hold; what it did not write of what nobody wrote stays unwritten."""
        records = [uninitialised.of(memory.start, memory.end) for memory in self.memories]
        launched = self.execute([record.ranges if record else [] for record in records])
        for record, left in zip(records, launched.unwritten):
            if record is not None:
                record.update(left)
        return launched

    def execute(self, unwritten: list[list[tuple[int, int]]], initialisation: bool | None = None) -> Any:
        """Runs it; `unwritten` are the bytes of each memory that nobody wrote. Raises what went wrong."""
        launcher = self.launcher
        launched = launcher.kernel.launch(
            (self.grid[0] * launcher.blocks, self.grid[1], self.grid[2]),
            launcher.block,
            launcher.shared,
            [memory.lent(ranges) for memory, ranges in zip(self.memories, unwritten)],
            self.passed,
            initialisation=initialisation,
        )
        text = "".join(text for _, _, text in launched.printed)
        if text:
            sys.stdout.write(text)
        launcher.driver.last = Launched(launcher.name, self.grid, launched.instructions, text)
        if launched.fault is not None:
            raise self.fault(launched.fault)
        return launched

    def fault(self, fault: Any) -> KernelFault:
        described = [memory.described() for memory in self.memories]
        names = [memory.name for memory in self.memories]
        other = None
        if fault.region in names:
            other = elsewhere(self.memories[names.index(fault.region)], fault.offset)
        elif fault.kind == "illegal-address":
            other = f"in the memory of no argument, nor near one, and of no tensor {UNKNOWN}"
        return raised(fault, self.launcher.name, described, names, other)


def _plain_torch() -> Any:
    """Tensors as they are, whatever they pretend to be."""
    torch = sys.modules.get("torch")
    return torch._C.DisableTorchFunction() if torch is not None else contextlib.nullcontext()
