"""Figures of the plugin: `python pytest-gpuemu/benches/figures.py`. Each is the median (fastest) of five."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pytest_gpuemu import _core, bindings

STRATEGIES = ["default", "boundary", "adversarial", "layout", "structured"]
DTYPES = ["float32", "float16", "bfloat16", "float64"]
OP = """
[[ops]]
name = "{name}"
reference = "relu"
module = "kernels:relu"
[ops.schema]
dims = {{ N = [1, 3] }}
inputs = {{ x = ["N"] }}
outputs = {{ out = ["N"] }}
"""
SMALL = '[validation]\ndtypes = ["float32"]\nstrategies = ["boundary"]\ncases = 2000\n' + OP.format(
    name="relu"
).replace("[1, 3]", "[3]")


def measure(what: str, work: Callable[[], float], unit: str) -> None:
    times = [work() for _ in range(5)]
    print(f"{what:<64} {statistics.median(times):.4g} {unit} ({min(times):.4g})")


def pytest(folder: Path, *arguments: str) -> float:
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def relu_in_place(x: np.ndarray, out: np.ndarray) -> None:
    np.maximum(x, 0, out=out)


def a_case(function: Callable[..., object]) -> float:
    project = _core.Project("gpuemu.toml", {}, text=SMALL, keep=False)
    bindings._bound.clear()
    bindings.op("relu")(function)
    (info,) = project.ops
    bindings.bind(project, info)
    project.validate("relu::float32::boundary", project.spec("relu::float32::boundary", 0))
    started = time.perf_counter()
    verdict = project.validate("relu::float32::boundary")
    assert verdict["failure"] is None and verdict["cases"] == 2000
    return (time.perf_counter() - started) / 2000 * 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernels.py").write_text("import numpy as np\n\ndef relu(x):\n    return np.maximum(x, 0)\n")
        head = f"[validation]\ndtypes = {DTYPES}\nstrategies = {STRATEGIES}\n".replace("'", '"')
        ops = "".join(OP.format(name=f"op_{number:03}") for number in range(500))
        (folder / "gpuemu.toml").write_text(head + ops)
        measure("pytest --collect-only, no --gpuemu, an empty folder", lambda: pytest(folder, "--co", "--version"), "s")
        measure(
            "pytest --gpuemu --collect-only, 10,000 tests, whole process",
            lambda: pytest(folder, "--gpuemu", "--co"),
            "s",
        )
    measure("a case of three elements, the answer returned", lambda: a_case(relu), "us")
    measure("a case of three elements, written in place", lambda: a_case(relu_in_place), "us")


if __name__ == "__main__":
    main()
