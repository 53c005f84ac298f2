"""Which kernel Triton is compiling, for whoever finds this process dead: a crash inside of the compiler takes all of Python
with it, and nothing in the process can say why.

A file beside the results holds the kernel's name for as long as it is compiled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pytest_gpuemu.calling import relative

PREFIX = "compiling."


def _file(folder: Path) -> Path:
    """The file of this process. That of a worker of xdist says whose worker it is."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    return folder / f"{PREFIX}{os.getpid()}{f'.{os.getppid()}.{worker}' if worker else ''}"


def of_worker(folder: Path, worker: str) -> str | None:
    """What a worker of this process was compiling, which is dead."""
    found = [_told(path) for path in folder.glob(f"{PREFIX}*.{os.getpid()}.{worker}")]
    return next((kernel for kernel in found if kernel), None)


def _told(path: Path) -> str | None:
    """What a file says, once."""
    try:
        kernel = path.read_text(encoding="utf-8")
        path.unlink()
    except OSError:
        return None
    return kernel or None


def of_the_dead(folder: Path) -> Iterator[str]:
    """What processes of earlier runs were compiling when they ended."""
    for path in sorted(folder.glob(f"{PREFIX}*")):
        process = path.name.split(".")[1]
        if process.isdecimal() and not _lives(int(process)):
            kernel = _told(path)
            if kernel is not None:
                yield kernel


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def note(folder: Path) -> Callable[[], None]:
    """Begins to note what this process compiles; the answer ends it."""
    from triton import knobs

    before, after = knobs.runtime.jit_cache_hook, knobs.runtime.jit_post_compile_hook

    def begins(*arguments: Any, **named: Any) -> Any:
        answer = before(*arguments, **named) if before is not None else None
        if not answer:
            _write(folder, _described(named.get("fn"), named.get("compile") or {}))
        return answer

    def ended(*arguments: Any, **named: Any) -> Any:
        forget()
        return after(*arguments, **named) if after is not None else None

    def end() -> None:
        forget()
        if knobs.runtime.jit_cache_hook is begins:
            knobs.runtime.jit_cache_hook = before
        if knobs.runtime.jit_post_compile_hook is ended:
            knobs.runtime.jit_post_compile_hook = after

    knobs.runtime.jit_cache_hook, knobs.runtime.jit_post_compile_hook = begins, ended
    return end


def _described(function: Any, compiled: dict[str, Any]) -> str:
    """`softmax_kernel at kernels.py:12: x_ptr: *fp32, n: i32, BLOCK=128, num_warps=4, num_stages=3`"""
    written = getattr(function, "jit_function", None)
    code = getattr(getattr(written, "fn", None), "__code__", None)
    place = f" at {relative(code.co_filename)}:{code.co_firstlineno}" if code is not None else ""
    # Triton's own line of it has lost the arguments' types.
    constants = {path[0]: value for path, value in compiled.get("constants", {}).items() if len(path) == 1}
    arguments = [
        f"{name}={constants[index]!r}" if index in constants else f"{name}: {type_}"
        for index, (name, type_) in enumerate(compiled.get("signature", {}).items())
    ]
    arguments += [f"{name}={compiled[name]}" for name in ("num_warps", "num_stages") if name in compiled]
    return f"{getattr(function, 'name', 'a kernel')}{place}" + (f": {', '.join(arguments)}" if arguments else "")


_NOTED: list[Path] = []
"""Files of this process that are there."""


def _write(folder: Path, kernel: str) -> None:
    path = _file(folder)
    try:
        folder.mkdir(exist_ok=True)
        path.write_text(kernel, encoding="utf-8")
        _NOTED.append(path)
    except OSError:
        pass  # Nothing is said of a crash then, as without all this.


def forget() -> None:
    """Nothing is being compiled: it is done, or ended with an exception."""
    while _NOTED:
        _NOTED.pop().unlink(missing_ok=True)
