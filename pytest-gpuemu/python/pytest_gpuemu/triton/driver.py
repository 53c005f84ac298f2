"""The driver that Triton launches through: it takes the compiler's PTX and runs it on this machine's processor."""

from __future__ import annotations

import functools
import itertools
import os
import struct
import time
from dataclasses import dataclass
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

_NUMBERS = itertools.count(1000)
"""Devices: each active driver is one of its own, so that kernels loaded for one are not launched by another."""


@dataclass(frozen=True)
class Settings:
    """How kernels run."""

    target: str = "sm_80"
    """What they are compiled for and run as."""
    races: bool = True
    """Whether accesses that nothing orders are faults."""
    initialisation: bool = True
    """Whether reads of what nothing wrote are faults."""
    autotune: str = "warn"
    """What follows when configurations disagree: `warn`, `error` or `ignore`."""
    budget: int | None = None
    """Instructions of a program, those of each warp counted, that count as a loop without end; `GPUEMU_BUDGET` else."""
    seed: int | None = None
    """The order of warps, from a seed; their own order without."""
    threads: int | None = None
    """Threads of this machine that run programs."""


class EmulatorDriver(DriverBase):  # type: ignore[misc]
    """Triton's interface to a device, over the emulator."""

    def __init__(self, settings: Settings | None = None) -> None:
        from .launcher import Launcher

        self.settings = settings or Settings()
        self.number = next(_NUMBERS)
        self.utils = _Utilities(self.settings.target)
        self.launcher_cls = functools.partial(Launcher, self)
        self.last: Any = None
        self.trial: Any = None
        self.tunings: dict[Any, Any] = {}

    @staticmethod
    def is_active() -> bool:
        """Whether Triton shall choose it by itself, where it is installed as a backend."""
        return os.environ.get("GPUEMU_DEVICE") == "emulate"

    def get_current_target(self) -> Any:
        return GPUTarget("cuda", int(self.settings.target.removeprefix("sm_").rstrip("af")), 32)

    def get_current_device(self) -> int:
        return self.number

    def set_current_device(self, device: int) -> None:
        """There is one."""

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        return divmod(int(self.settings.target.removeprefix("sm_").rstrip("af")), 10)

    def get_active_torch_device(self) -> Any:
        import torch

        from . import torch_mode

        # Where torch is asked to take CUDA tensors for ours, the device of a GPU's driver; else what tensors really are.
        return torch.device("cuda", 0) if torch_mode.is_active() else torch.device("cpu")

    def get_device_interface(self) -> Any:
        return _Interface(self)

    def get_benchmarker(self) -> Any:
        from .autotune import Benchmarker

        return Benchmarker(self)

    def get_empty_cache_for_benchmark(self) -> Any:
        return _NoCache()

    def clear_cache(self, cache: Any) -> None:
        """Nothing here depends on a cache's state."""

    def map_python_to_cpp_type(self, ty: str) -> str:
        from triton.backends.nvidia import driver

        return str(driver.ty_to_cpp(ty))

    def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Any) -> Any:
        return args

    def tuned(self, function: Any) -> None:
        """A launch that is no trial: the tuning of this function, if there was one, is over."""
        if self.tunings:
            self.tunings = {key: value for key, value in self.tunings.items() if key[0] != id(function)}


class _Utilities:
    """What Triton asks of a device before it launches."""

    def __init__(self, target: str) -> None:
        from pytest_gpuemu import _core

        self.limits = _core.architecture(target)
        self.handles = itertools.count(1)

    def get_device_properties(self, device: int) -> dict[str, int]:
        # Clocks and bus: an A100's. They say how fast a GPU would be, which nobody measures here.
        return {
            "max_shared_mem": self.limits["shared_per_block"],
            "max_num_regs": self.limits["registers_per_block"],
            "multiprocessor_count": self.limits["multiprocessors"],
            "warpSize": 32,
            "sm_clock_rate": 1410000,
            "mem_clock_rate": 1215000,
            "mem_bus_width": 5120,
        }

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """Handles of the module and its entry, registers of a thread, spilled words, threads a block may have."""
        handle = next(self.handles)
        registers = registers_of(binary, name)
        return handle, handle, registers, 0, self.limits["threads_per_block"]

    def unload_module(self, module: int) -> None:
        """The launcher owns it."""

    def set_printf_fifo_size(self, size: int) -> None:
        """What is printed is kept whole."""


def registers_of(cubin: bytes, kernel: str) -> int:
    """Registers of a thread, as `ptxas` wrote them beside the kernel's section; 0 where that is not found.

    In a cubin the top byte of `sh_info` of the section `.text.<kernel>` has them.
    """
    if cubin[:5] != b"\x7fELF\x02":
        return 0
    (sections,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, sections + index * size) for index in range(count)]
    strings = headers[names][4]
    for header in headers:
        start = strings + header[0]
        if cubin[start : cubin.index(b"\0", start)] == f".text.{kernel}".encode():
            return int(header[7] >> 24)
    return 0


class _NoCache:
    """Stands for the buffer with which a benchmark clears a GPU's cache."""

    def zero_(self) -> None:
        """Nothing."""


class _Interface:
    """What Triton's own benchmarks ask of `torch.cuda`."""

    def __init__(self, driver: EmulatorDriver) -> None:
        self._driver = driver

    def synchronize(self, device: Any = None) -> None:
        """A launch has ended when it returns."""

    def current_device(self) -> int:
        return self._driver.number

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        return self._driver.get_device_capability()

    class Event:
        """A point in this machine's time."""

        def __init__(self, enable_timing: bool = False) -> None:
            self.at = 0.0

        def record(self, stream: Any = None) -> None:
            self.at = time.perf_counter()

        def synchronize(self) -> None:
            """It has passed."""

        def elapsed_time(self, other: Any) -> float:
            """Milliseconds to another event; at least a microsecond, since benchmarks divide by it."""
            return max(float(other.at - self.at) * 1e3, 1e-3)
