"""Measures the emulator on the kernels of this file and prints the table of the README:
`emulator.py OUT_DIR [--seconds S]`. Needs NumPy, ml_dtypes, Triton and cargo.

Every kernel is one launch. Ours is timed with sanitizers off and on, on one thread of the host and on two, by
`cargo run --release -p gpuemu-ptx --example manifest`, which checks the outputs of the first launch against NumPy. Beside
it stand the same mathematics in NumPy on one core and, for kernels written in Triton, Triton's own interpreter
(`TRITON_INTERPRET=1`) on the same function with the same arguments. Of each the fastest of the runs within S seconds
counts. OUT_DIR receives the compiled kernels.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# One core for NumPy, before it is imported.
os.environ.update(dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1"))

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "triton"))

import numpy as np  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from attention import attention  # noqa: E402
from compile import compile_kernel, launch_of  # noqa: E402
from declaration import Kernel, Scalar, Tolerance, f32, i32, normal, reads, wide, writes  # noqa: E402
from dots import matmul  # noqa: E402
from elementwise import swiglu, swiglu_of  # noqa: E402
from reductions import layer_norm_of, softmax, softmax_of  # noqa: E402

ROWS, COLUMNS = 1024, 1000
SIDE = 256
KEYS, WIDTH = 256, 64
ELEMENTS = 1 << 20

Arrays = dict[str, np.ndarray]


@triton.jit
def layer_norm(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    """A row a program, read once."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    values = tl.load(x + row * columns + column, mask=mask, other=0.0)
    centred = tl.where(mask, values - tl.sum(values, axis=0) / columns, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    w = tl.load(weight + column, mask=mask)
    b = tl.load(bias + column, mask=mask)
    tl.store(out + row * columns + column, centred * rstd * w + b, mask=mask)


def attention_of(t: Arrays) -> Arrays:
    q, k, v = (wide(t[name])[0] for name in "qkv")
    return {"out": (softmax_of(q @ k.T / math.sqrt(WIDTH)) @ v)[None]}


def product(t: Arrays) -> Arrays:
    return {"c": wide(t["a"]) @ wide(t["b"])}


TRITON = [
    Kernel(
        swiglu,
        grid=(ELEMENTS // 1024,),
        arguments={
            "gate": reads("float32", ELEMENTS),
            "up": reads("float32", ELEMENTS),
            "out": writes("float32", ELEMENTS),
            "size": i32(ELEMENTS),
        },
        constants={"BLOCK": 1024},
        reference=swiglu_of,
        tolerance=Tolerance(1e-5, 1e-5),
    ),
    Kernel(
        softmax,
        grid=(ROWS,),
        arguments={
            "x": reads("float32", ROWS, COLUMNS),
            "out": writes("float32", ROWS, COLUMNS),
            "columns": i32(COLUMNS),
        },
        constants={"BLOCK": 1024},
        reference=lambda t: {"out": softmax_of(t["x"])},
        tolerance=Tolerance(1e-7, 1e-5),
    ),
    Kernel(
        layer_norm,
        grid=(ROWS,),
        arguments={
            "x": reads("float32", ROWS, COLUMNS, values=normal(2.0, 1.0)),
            "weight": reads("float32", COLUMNS),
            "bias": reads("float32", COLUMNS),
            "out": writes("float32", ROWS, COLUMNS),
            "columns": i32(COLUMNS),
            "eps": f32(1e-5),
        },
        constants={"BLOCK": 1024},
        reference=lambda t: {"out": layer_norm_of(t)["out"]},
        tolerance=Tolerance(1e-5, 1e-5),
    ),
    Kernel(
        matmul,
        name="matmul_f16",
        grid=(SIDE // 64, SIDE // 64),
        arguments={
            "a": reads("float16", SIDE, SIDE),
            "b": reads("float16", SIDE, SIDE),
            "c": writes("float16", SIDE, SIDE),
            **{name: i32(SIDE) for name in ["m", "n", "k", "stride_a", "stride_b", "stride_c"]},
        },
        constants={"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "PRECISION": "ieee", "SUM": tl.float32},
        reference=product,
        tolerance=Tolerance(5e-2, 2e-3),
    ),
    Kernel(
        attention,
        grid=(KEYS // 64, 1),
        arguments={
            "q": reads("float16", 1, KEYS, WIDTH),
            "k": reads("float16", 1, KEYS, WIDTH),
            "v": reads("float16", 1, KEYS, WIDTH),
            "out": writes("float16", 1, KEYS, WIDTH),
            "scale": f32(1 / math.sqrt(WIDTH)),
            "queries": i32(KEYS),
            "keys": i32(KEYS),
        },
        constants={"GROUP": 1, "CAUSAL": False, "WIDTH": WIDTH, "BLOCK_Q": 64, "BLOCK_K": 64},
        reference=attention_of,
        tolerance=Tolerance(5e-3, 5e-3),
    ),
]


def not_compiled(*_: Any) -> None:
    """Stands for a kernel of `examples/cuda-kernels`, whose PTX is there."""


CUDA = {
    "row_sum": Kernel(
        not_compiled,
        name="row_sum",
        grid=(ROWS,),
        arguments={"x": reads("float32", ROWS, COLUMNS), "out": writes("float32", ROWS), "columns": i32(COLUMNS)},
        reference=lambda t: {"out": wide(t["x"]).sum(axis=1)},
        tolerance=Tolerance(1e-4),
    ),
    "matmul_tiled": Kernel(
        not_compiled,
        name="matmul_tiled",
        grid=(SIDE // 64, SIDE // 64),
        arguments={
            "a": reads("float32", SIDE, SIDE),
            "b": reads("float32", SIDE, SIDE),
            "c": writes("float32", SIDE, SIDE),
            **{name: i32(SIDE) for name in "mnk"},
        },
        reference=product,
        tolerance=Tolerance(1e-4, 1e-4),
    ),
}
THREADS = {"row_sum": [256, 1, 1], "matmul_tiled": [16, 16, 1]}


def numpy_softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


def numpy_layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", centred, centred) / np.float32(x.shape[1])
    centred *= (1 / np.sqrt(variance + np.float32(1e-5)))[:, None]
    centred *= weight
    centred += bias
    return centred


def numpy_swiglu(gate: np.ndarray, up: np.ndarray) -> np.ndarray:
    out = np.exp(-gate)
    out += 1
    np.divide(gate, out, out=out)
    out *= up
    return out


def in_numpy(t: Arrays) -> dict[str, Callable[[], np.ndarray]]:
    """The mathematics of every kernel, in float32, where its inputs are."""

    def single(name: str) -> np.ndarray:
        return t[name].astype(np.float32)

    def attend() -> np.ndarray:
        q, k, v = single("q")[0], single("k")[0], single("v")[0]
        return (numpy_softmax(q @ k.T * np.float32(1 / math.sqrt(WIDTH))) @ v).astype(np.float16)

    return {
        "swiglu": lambda: numpy_swiglu(t["gate"], t["up"]),
        "softmax": lambda: numpy_softmax(t["x"]),
        "layer_norm": lambda: numpy_layer_norm(t["x"], t["weight"], t["bias"]),
        "row_sum": lambda: t["x"].sum(axis=1),
        "matmul_tiled": lambda: t["a"] @ t["b"],
        "matmul_f16": lambda: (single("a") @ single("b")).astype(np.float16),
        "attention": attend,
    }


def fastest(run: Callable[[], Any], seconds: float) -> float:
    """Seconds of the fastest run within so many; of one run at least."""
    best, end = math.inf, time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        run()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best


class Storage:
    """What Triton's interpreter asks of a tensor's memory, around a NumPy array."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def cpu(self) -> Storage:
        return self

    def copy_(self, other: Storage) -> None:
        if other is not self:
            self.array[...] = other.array


class Held:
    """What Triton's interpreter asks of a tensor, around a NumPy array."""

    def __init__(self, array: np.ndarray) -> None:
        self.held = Storage(array)
        self.dtype = array.dtype.name

    def data_ptr(self) -> int:
        return self.held.data_ptr()

    def untyped_storage(self) -> Storage:
        return self.held

    def new_empty(self, *_: Any, **__: Any) -> Held:
        return Held(self.held.array[:0])

    def set_(self, storage: Storage, *_: Any) -> None:
        self.held = storage

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self.held.array.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.held.array.itemsize for step in self.held.array.strides)


def interpret(seconds: float) -> dict[str, float]:
    """Seconds of every Triton kernel in Triton's interpreter, its outputs checked."""
    times = {}
    for kernel in TRITON:
        inputs, expected = kernel.inputs(), kernel.expected()
        arrays = {**{name: np.zeros_like(array) for name, array in expected.items()}, **inputs}
        arguments = [
            argument.value if isinstance(argument, Scalar) else Held(arrays[name])
            for name, argument in kernel.arguments.items()
        ]
        launch = kernel.function[kernel.grid]
        times[kernel.title] = fastest(lambda: launch(*arguments, **kernel.constants), seconds)
        for name, right in expected.items():
            close = np.allclose(wide(arrays[name]), wide(right), atol=5e-2, rtol=5e-2)
            if not close:
                raise SystemExit(f"{kernel.title}: Triton's interpreter gives another {name} than NumPy")
    return times


def prepare(out: Path) -> None:
    """Compiles the kernels and writes the manifest that the emulator's example reads."""
    out.mkdir(parents=True, exist_ok=True)
    kernels = [*TRITON, *CUDA.values()]
    launches = {kernel.title: launch_of(kernel, out) for kernel in kernels}
    compiled = [compile_kernel(kernel, 80, out, cubins=False) for kernel in TRITON]
    for name in CUDA:
        text = (ROOT / "examples" / "cuda-kernels" / "kernels" / f"{name}.sm_80.ptx").read_text()
        (out / f"{name}.sm_80.ptx").write_text(text)
        compiled.append(
            {"kernel": name, "target": "sm_80", "file": f"{name}.sm_80.ptx", "entry": name, "block": THREADS[name]}
        )
    manifest = {"launches": launches, "compiled": compiled}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def ours(out: Path, seconds: float, *flags: str) -> dict[str, tuple[float, float]]:
    """Of every kernel the seconds of its fastest launch and its lane-instructions."""
    command = ["cargo", "run", "--quiet", "--release", "-p", "gpuemu-ptx", "--example", "manifest", "--"]
    command += [str(out), "sm_80", f"--seconds={seconds}", *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"failed: {' '.join(command)}\n{done.stdout}{done.stderr}")
    times = {}
    for line in done.stdout.splitlines():
        if line.startswith("ok "):
            _, name, milliseconds, _, speed, *_ = line.split()
            times[name] = float(milliseconds) / 1e3, float(speed) * 1e9 * float(milliseconds) / 1e3
    return times


TITLES = {
    "swiglu": "elementwise: SwiGLU of 2^20",
    "softmax": "row softmax, 1024x1000",
    "layer_norm": "layer norm, 1024x1000",
    "row_sum": "shared-memory reduction, 1024x1000 (CUDA)",
    "matmul_tiled": "tiled float32 matmul, 256^3 (CUDA)",
    "matmul_f16": "float16 matmul through mma, 256^3",
    "attention": "flash attention, N 256, D 64",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("--seconds", type=float, default=1.0, help="for every figure")
    parser.add_argument("--interpret", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.interpret:
        print(json.dumps(interpret(options.seconds)))
        return 0
    out = options.out.resolve()
    prepare(out)
    modes = {
        (watched, threads): ours(out, options.seconds, f"--threads={threads}", *([] if watched else ["--plain"]))
        for watched in (False, True)
        for threads in (1, 2)
    }
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, __file__, str(out), "--interpret", "--seconds", str(options.seconds)]
    interpreted = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    print(
        "| kernel | sanitizers | one core | two cores | G lane-instructions/s | NumPy's time | Triton's interpreter |"
    )
    print("|---|---|---|---|---|---|---|")
    speeds: dict[bool, list[float]] = {False: [], True: []}
    for kernel in [*TRITON, *CUDA.values()]:
        name = kernel.title
        numpy = fastest(in_numpy(kernel.inputs())[name], options.seconds / 2)
        for watched in (False, True):
            one, lanes = modes[watched, 1][name]
            two, _ = modes[watched, 2][name]
            speeds[watched].append(lanes / one / 1e9)
            triton = interpreted.get(name)
            told = f"{1e3 * triton:.0f} ms, {triton / one:.0f} times ours" if triton else ""
            print(
                f"| {TITLES[name]} | {'all' if watched else 'off'} | {1e3 * one:.2f} ms | {1e3 * two:.2f} ms, "
                f"{one / two:.2f} times faster | {lanes / one / 1e9:.2f} | {1e3 * numpy:.2f} ms, ours "
                f"{one / numpy:.1f} times | {told} |"
            )
    for watched, values in speeds.items():
        middle = sorted(values)[len(values) // 2]
        print(f"\nMedian row, sanitizers {'all' if watched else 'off'}, one core: {middle:.2f} G lane-instructions/s.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
