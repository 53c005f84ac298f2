"""Both fronts over one contract: names, specs, verdicts and error statistics are equal, and inputs are those of the judge."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Small
from pytest_gpuemu import _core

REPOSITORY = Path(__file__).resolve().parents[2]
# A test of pytester's has a home of its own, where cargo finds no toolchain.
HOME = os.environ.get("HOME", "")
JUDGE = REPOSITORY / "tests" / "judge" / "judge.py"

SPECS = [
    "copy::{}::layout{{A=5,B=4}} x:row normal seed=0000000000000001",
    "copy::{}::layout{{A=5,B=4}} x:transposed uniform seed=9f3c5a7700112233",
    "copy::{}::layout{{A=1,B=3}} x:reversed shifted seed=0000000000000007",
    "copy::{}::layout{{A=70,B=90}} x:padded adversarial seed=0123456789abcdef",
    "copy::{}::layout{{A=2,B=3}} x:offset normal seed=0000000000000001 x[1,2]=inf x[0,0]=NaN",
]
COPY = """
[[ops]]
name = "copy"
reference = "relu"
dtypes = ["float32", "float16", "bfloat16", "float64"]
strategies = ["layout"]
[ops.schema]
dims = { A = [1, 2, 5, 70], B = [3, 4, 90] }
inputs = { x = ["A", "B"] }
outputs = { out = ["A", "B"] }
"""


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_inputs_are_those_of_the_judge(dtype: str) -> None:
    project = _core.Project("gpuemu.toml", {}, text=COPY)
    cases = [project.case(spec.format(dtype)) for spec in SPECS]
    jobs = [f"{case.spec} | {dtype} | {case.dims['A']},{case.dims['B']} | none" for case in cases]
    told = subprocess.run(
        [sys.executable, os.fspath(JUDGE)], input="\n".join(jobs) + "\n", capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(told) == len(cases)
    for case, line in zip(cases, told):
        offset, strides, memory = (part.strip() for part in line.split(";"))
        x = case.inputs(bits=True)["x"]
        size = x.itemsize
        assert [stride // size for stride in x.strides] == [int(stride) for stride in strides.split(",")], case.spec
        # Every element, read out of the judge's memory by the judge's strides.
        raw = bytes.fromhex(memory)
        for a in range(x.shape[0]):
            for b in range(x.shape[1]):
                at = (int(offset) + a * (x.strides[0] // size) + b * (x.strides[1] // size)) * size
                assert x[a, b].tobytes() == raw[at : at + size], (case.spec, a, b)


CONTRACT = """
[project]
name = "parity"
[validation]
dtypes = ["float32"]
strategies = ["boundary", "adversarial", "edge", "nan_injected", "layout"]
cases = 8
[[ops]]
name = "relu"
reference = "relu"
[ops.schema]
dims = { N = [1, 7, 33] }
inputs = { x = ["N"] }
outputs = { out = ["N"] }
[[ops]]
name = "relu_of_ours"
reference = "references:relu"
op_script = "scripts/relu.py"
cases = 2
[ops.schema]
dims = { N = [1, 7, 33] }
inputs = { x = ["N"] }
outputs = { out = ["N"] }
[[ops]]
name = "leaky"
reference = "references:leaky"
[ops.schema]
dims = { N = [1, 7, 33] }
inputs = { x = ["N"] }
outputs = { out = ["N"] }
[[kernels]]
name = "relu_ptx"
op = "relu"
source = "kernels/relu.ptx"
[kernels.launch]
grid = ["ceil_div(N, 32)"]
block = [32]
shared = "0"
args = ["x", "out", "N"]
[[kernels]]
name = "relu_for_leaky"
op = "leaky"
source = "kernels/relu.ptx"
[kernels.launch]
grid = ["ceil_div(N, 32)"]
block = [32]
shared = "0"
args = ["x", "out", "N"]
"""
REFERENCES = """
import numpy as np

def relu(x):
    return np.maximum(x, 0)

def leaky(x):
    return np.where(x > 0, x, x * 0.01)
"""
SCRIPT = """
import base64, json, sys
import numpy as np

question = json.load(sys.stdin)["inputs"]["x"]
x = np.frombuffer(base64.b64decode(question["data"]), question["dtype"]).reshape(question["shape"])
out = np.maximum(x, 0)
print(json.dumps({"shape": out.shape, "dtype": str(out.dtype), "data": base64.b64encode(out.tobytes()).decode()}))
"""


def results(folder: Path) -> dict[str, list[Any]]:
    """What the results files of a run say, without times."""
    told = {}
    for path in sorted(folder.rglob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            line.pop("subject_microseconds", None)
        told[path.name] = lines
    return told


@pytest.mark.skipif(
    "GPUEMU_TEST_CARGO" not in os.environ or shutil.which("cargo") is None,
    reason="compiles a test binary of the Rust front: set GPUEMU_TEST_CARGO=1",
)
def test_both_fronts_agree(small: Small) -> None:
    from test_collection import SCALE

    small.write("gpuemu.toml", CONTRACT)
    small.write("references.py", REFERENCES)
    small.write("scripts/relu.py", SCRIPT)
    small.write("kernels/relu.ptx", SCALE)

    front = REPOSITORY / "examples" / "seed-scripts"
    environment = {
        **os.environ,
        "HOME": HOME,
        "GPUEMU_CONFIG": os.fspath(small.path / "gpuemu.toml"),
        "GPUEMU_PYTHON": sys.executable,
        "GPUEMU_JUNIT": os.fspath(small.path / "junit.xml"),
    }
    cargo = ["cargo", "test", "--quiet", "--locked", "--test", "gpuemu", "--"]
    listed = subprocess.run([*cargo, "--list"], cwd=front, env=environment, capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    names = [line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")]
    ran = subprocess.run(cargo, cwd=front, env=environment, capture_output=True, text=True)
    assert ran.returncode == 101, ran.stdout + ran.stderr
    # The regressions that the first front has saved must not become tests of the second.
    shutil.rmtree(small.path / "gpuemu-regressions")
    target = Path(os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "examples" / "target")
    by_cargo = results(target / "gpuemu" / "results" / "parity")

    collected = small.run("--collect-only", "-q")
    own = [line.removeprefix("gpuemu.toml::") for line in collected.outlines if line.startswith("gpuemu.toml::")]
    assert own == names
    result = small.run()
    by_pytest = results(small.path / ".gpuemu" / "results" / "parity")
    assert by_pytest == by_cargo and len(by_cargo) == 13
    verdicts = {line["verdict"] for lines in by_cargo.values() for line in lines}
    assert verdicts == {"pass", "values"}
    # The text of a failure is the same, but for the command that runs it again.
    for name in names:
        if "relu_for_leaky" not in name:
            continue
        told = [line for line in ran.stdout.splitlines() if line.strip()]
        start = next((at for at, line in enumerate(told) if line.startswith(f"{name} failed: ")), None)
        if start is None:
            continue
        report = [told[start]]
        for line in told[start + 1 :]:
            if not line.startswith("  "):
                break
            report.append(line)
        for line in report:
            if not line.startswith("  replay "):
                assert line in result.outlines, line
        return
    pytest.fail("no kernel failed")
