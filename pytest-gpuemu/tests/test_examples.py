"""`examples/numpy-repo`, as its user runs it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "numpy-repo"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy: a run writes beside the contract."""
    leftovers = shutil.ignore_patterns("__pycache__", ".gpuemu", "gpuemu-regressions", ".pytest_cache")
    return Path(shutil.copytree(EXAMPLE, tmp_path / "numpy-repo", ignore=leftovers))


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider", "-q", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_repository_passes(example: Path) -> None:
    status, text = run(example, "--gpuemu")
    assert status == 0 and "70 passed" in text and "1170 cases in 39 tests" in text, text
    status, text = run(example)
    assert status == 0 and "1 passed, 1 skipped" in text, text


FAULTS = {
    "softmax_tail": "every wrong line along H is off by a factor of its own",
    "matmul_rows": "elements of out were never written, the first at [32, 0]",
    "relu_strides": "the same values pass when every input is contiguous",
    "rms_norm_half": "elements of out differ by more than allowed",
}


def test_every_fault_is_caught_and_said(example: Path) -> None:
    status, text = run(example, "--gpuemu", "faulty")
    assert status == 1 and f"{len(FAULTS)} failed in" in text, text
    for op, diagnosis in FAULTS.items():
        start = text.index(f"{op}::float")
        report = text[start : text.index("  saved ", start)]
        assert diagnosis in " ".join(report.split()), report
