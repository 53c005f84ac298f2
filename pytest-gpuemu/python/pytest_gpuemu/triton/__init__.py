"""Unmodified Triton kernels on a machine with no GPU.

`activate()` makes the emulator Triton's device: `kernel[grid](...)` compiles with the stock compiler and runs its PTX over
tensors of torch, and NumPy arrays that `array` wraps, without copies. What goes wrong in a kernel is a `KernelFault`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .autotune import AutotuneError, AutotuneWarning
from .faults import KernelFault
from .memory import array, lend

if TYPE_CHECKING:
    import pytest

__all__ = [
    "AutotuneError",
    "AutotuneWarning",
    "KernelFault",
    "activate",
    "active",
    "array",
    "deactivate",
    "emulated",
    "last_launch",
    "lend",
    "lint",
    "metrics",
]

_ACTIVE: list[tuple[Any, bool]] = []
"""Drivers, and whether torch is served with each."""


def activate(*, torch_cuda: bool = False, **settings: Any) -> Any:
    """Makes the emulator Triton's device, until `deactivate`. Answers the driver.

    `settings` are the fields of `driver.Settings`: `target` ("sm_80"), `races`, `initialisation`, `autotune`, `budget`,
    `seed`, `threads`. With `torch_cuda` torch code that asks for CUDA tensors gets CPU ones that call themselves CUDA's.
    """
    try:
        import triton
    except ImportError:
        raise ImportError(
            "there is no Triton here: `pip install triton` brings its compiler, which needs no GPU"
        ) from None
    version = tuple(int(part) for part in triton.__version__.split(".")[:2])
    if version < (3, 4):
        raise ImportError(f"Triton {triton.__version__} is too old: the driver is written for 3.4 and later")
    from .driver import EmulatorDriver, Settings

    unknown = set(settings) - set(Settings.__dataclass_fields__)
    if unknown:
        raise TypeError(f"unknown settings {sorted(unknown)}: there are {sorted(Settings.__dataclass_fields__)}")
    driver = EmulatorDriver(Settings(**settings))
    _cache_where_it_can_be_written()
    if torch_cuda:
        from . import torch_mode

        torch_mode.enter(driver)
    triton.runtime.driver.set_active(driver)
    _ACTIVE.append((driver, torch_cuda))
    return driver


def _cache_where_it_can_be_written() -> None:
    """Triton keeps what it compiles in a folder, from which the PTX is taken: one that cannot be written to is replaced
    by a folder of this process."""
    from triton import knobs

    folder = Path(knobs.cache.dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        knobs.cache.dir = tempfile.mkdtemp(prefix="gpuemu-triton-")
        warnings.warn(
            f"Triton's cache cannot be written to ({error}): kernels are compiled anew in {knobs.cache.dir}",
            stacklevel=3,
        )


def deactivate() -> None:
    """Undoes the last `activate`."""
    import triton

    if not _ACTIVE:
        raise RuntimeError("the emulator is not active")
    _, torch_cuda = _ACTIVE.pop()
    if torch_cuda:
        from . import torch_mode

        torch_mode.leave()
    if _ACTIVE:
        triton.runtime.driver.set_active(_ACTIVE[-1][0])
        return
    try:
        triton.runtime.driver.reset_active()
    except RuntimeError:
        # No device of this machine's own: Triton says so again when it is asked.
        triton.runtime.driver.set_active(None)


@contextlib.contextmanager
def emulated(**settings: Any) -> Iterator[Any]:
    """`activate` for the length of a `with` statement."""
    driver = activate(**settings)
    try:
        yield driver
    finally:
        deactivate()


def begin_run(config: pytest.Config) -> None:
    """Makes the emulator Triton's device for a run of pytest, if there is a Triton: before tests are collected, since
    their modules may ask for the device when they are imported."""
    if importlib.util.find_spec("triton") is None:
        return
    import pytest

    from . import compiling

    try:
        activate(torch_cuda=importlib.util.find_spec("torch") is not None)
    except ImportError as error:
        raise pytest.UsageError(f"--gpuemu-device=emulate: {error}") from None
    config.add_cleanup(deactivate)
    config.add_cleanup(compiling.note(config.rootpath / ".gpuemu"))


def active() -> Any:
    """The driver that was activated last; `None` where none is."""
    return _ACTIVE[-1][0] if _ACTIVE else None


def last_launch() -> Any:
    """What the last launch did: `kernel`, `grid`, `instructions`, `printed`; `None` before the first."""
    driver = active()
    return driver.last if driver is not None else None


def metrics(compiled: Any) -> dict[str, Any]:
    """What a compiled kernel, which `kernel[grid](...)` answers, costs as its PTX tells."""
    found: dict[str, Any] = compiled.run.kernel.metrics()
    found["registers"] = compiled.n_regs
    return found


def lint(compiled: Any) -> list[tuple[str, str, str, list[tuple[str, int, int]]]]:
    """What the lint finds in a compiled kernel: severity, rule, message, places."""
    findings: list[tuple[str, str, str, list[tuple[str, int, int]]]] = compiled.run.kernel.lint()
    return findings
