"""Small projects for the plugin's own tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import ml_dtypes  # noqa: F401  imported here, since a module of C cannot be imported anew by each run inside this process
import numpy  # noqa: F401
import pytest
import pytest_gpuemu.library
import pytest_gpuemu.own_tests
import pytest_gpuemu.session  # noqa: F401
from pytest_gpuemu import bindings, calling

pytest_plugins = ["pytester"]

CONTRACT = """
[project]
name = "small"
[validation]
dtypes = ["float32"]
strategies = ["boundary", "layout"]
cases = 6
[[ops]]
name = "softmax"
reference = "softmax"
module = "kernels:softmax"
[ops.schema]
dims = { B = [1, 2], H = { candidates = [1, 3], tile = 8 } }
inputs = { x = ["B", "H"] }
outputs = { out = ["B", "H"] }
[ops.params]
axis = -1
"""

RIGHT = """
import numpy as np

def softmax(x, axis):
    e = np.exp(x.astype(np.float64) - x.max(axis=axis, keepdims=True))
    return (e / e.sum(axis=axis, keepdims=True)).astype(x.dtype)
"""

# The tail of a row beyond whole tiles of 8 is left out of the sum.
WRONG = """
import numpy as np

def softmax(x, axis):
    e = np.exp(x.astype(np.float64) - x.max(axis=axis, keepdims=True))
    whole = max(1, x.shape[-1] // 8 * 8)
    return (e / e[:, :whole].sum(axis=axis, keepdims=True)).astype(x.dtype)
"""


@pytest.fixture(autouse=True)
def nothing_bound(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test binds its own, in an environment without gpuemu's variables."""
    for name in "CONFIG CASE CASES SEED STRATEGIES PROFILE DEVICE REQUIRE CALIBRATE UPDATE".split():
        monkeypatch.delenv(f"GPUEMU_{name}", raising=False)
    bindings._bound.clear()
    calling._of_roots.clear()
    yield
    bindings._bound.clear()


class Small:
    """A project of one op."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.write("gpuemu.toml", CONTRACT)
        self.write("kernels.py", RIGHT)

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def change(self, old: str, new: str) -> None:
        """Replaces a piece of the contract."""
        text = (self.path / "gpuemu.toml").read_text()
        assert old in text, old
        self.write("gpuemu.toml", text.replace(old, new))

    def kernel(self, body: str, header: str = "def softmax(x, axis):") -> None:
        """The right softmax under the name `right`, and this one beside it."""
        own = "\n".join("    " + line for line in textwrap.dedent(body).strip().splitlines())
        self.write("kernels.py", RIGHT.replace("def softmax", "def right") + f"\n{header}\n{own}\n")

    def run(self, *arguments: str) -> pytest.RunResult:
        calling._of_roots.clear()
        return self.pytester.runpytest_inprocess("--gpuemu", "-p", "no:randomly", *arguments)

    def interrupted(self, *arguments: str, once: Callable[[bytes], bool], pause: float) -> bytes:
        """What a run in a process of its own says that Ctrl-C ends, so many seconds after `once` holds of its output."""
        command = [sys.executable, "-m", "pytest", "--gpuemu", "-p", "no:randomly", *arguments]
        log = self.path / "log.txt"
        with log.open("wb") as output:
            child = subprocess.Popen(
                command,
                cwd=self.path,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Where this suite is a shell's background job, Ctrl-C is ignored, and by what it starts too.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
            try:
                deadline = time.monotonic() + 60
                while not once(log.read_bytes()) and time.monotonic() < deadline:
                    time.sleep(0.1)
                time.sleep(pause)
                os.kill(child.pid, signal.SIGINT)
                assert child.wait(timeout=30) == pytest.ExitCode.INTERRUPTED
            finally:
                child.kill()
                child.wait()
        return log.read_bytes()


@pytest.fixture
def small(pytester: pytest.Pytester, nothing_bound: None) -> Small:
    """A project whose kernel is right."""
    pytester.syspathinsert()
    return Small(pytester)
