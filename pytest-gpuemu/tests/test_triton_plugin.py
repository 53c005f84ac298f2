"""Runs of pytest whose kernels are Triton's: what is not there, what crashes, what is interrupted, what asks for a GPU."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys

import pytest
from conftest import Small

TRITON_KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def softmax_kernel(x_ptr, out_ptr, row_stride, column_stride, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    place = x_ptr + row * row_stride + column * column_stride
    x = tl.load(place, mask=column < columns, other=-float("inf"))
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + column, powers / tl.sum(powers, axis=0), mask=column < columns)

def softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    softmax_kernel[(x.shape[0],)](x, out, *x.stride(), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""


class Kernels(Small):
    """A project whose kernel is Triton's."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        super().__init__(pytester)
        self.change('module = "kernels:softmax"', 'module = "kernels:softmax"\nframeworks = ["triton"]')
        self.change("cases = 6", "cases = 2")
        self.write("kernels.py", TRITON_KERNEL)

    def outside(self, *arguments: str) -> pytest.RunResult:
        """A run in a process of its own."""
        return self.pytester.runpytest_subprocess("--gpuemu", "-p", "no:randomly", *arguments)


@pytest.fixture
def kernels(pytester: pytest.Pytester, nothing_bound: None, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(pytester.path / "cache"))
    return Kernels(pytester)


@pytest.fixture
def compiler() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("triton")


def hidden(kernels: Kernels, *names: str) -> None:
    """The project as where these packages are not installed."""
    kernels.write("hide.py", f"import sys\nsys.modules.update(dict.fromkeys({list(names)}))\n")


@pytest.mark.usefixtures("compiler")
def test_cases_run_on_the_emulator(kernels: Kernels) -> None:
    result = kernels.outside("--gpuemu-device=emulate", "-n2")
    result.assert_outcomes(passed=2)
    assert not list((kernels.path / ".gpuemu").glob("compiling.*"))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_what_a_function_of_the_contract_is_given_is_on_either_device(kernels: Kernels, device: str) -> None:
    """On the emulator it is given tensors of this machine, on a GPU the GPU's: its own constants may stand for both."""
    scaled = f"\n\ndef scaled(x):\n    return softmax(x * torch.ones(x.shape[1], dtype=x.dtype, device='{device}'))\n"
    kernels.write("kernels.py", TRITON_KERNEL + scaled)
    kernels.change("kernels:softmax", "kernels:scaled")
    kernels.outside("--gpuemu-device=emulate").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    "missing, message",
    [
        (["triton"], "raised ModuleNotFoundError: *triton*"),
        (["torch", "triton"], "raised ModuleNotFoundError: *torch*"),
    ],
)
def test_what_is_not_installed_is_named(kernels: Kernels, missing: list[str], message: str) -> None:
    if "torch" not in missing and importlib.util.find_spec("torch") is None:
        pytest.skip("needs PyTorch")
    hidden(kernels, *missing)
    result = kernels.outside("-p", "hide", "--gpuemu-device=emulate", "--gpuemu-strategies=boundary")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "gpuemu: --gpuemu-device=emulate has nothing to act on: there is no Triton here (`pip install triton`)",
            f"softmax::float32::boundary failed: {message}",
            "*in kernels.py:*: import *",
        ]
    )
    assert not (kernels.path / "gpuemu-regressions").exists()


def test_a_triton_that_is_too_old_is_told_before_anything_runs(kernels: Kernels) -> None:
    kernels.write("triton/__init__.py", "__version__ = '3.3.1'\n")
    result = kernels.outside("--gpuemu-device=emulate")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--gpuemu-device=emulate: Triton 3.3.1 is too old: the driver is written for 3.4 and later"]
    )


CRASH = """
import os

@tl.core.builtin
def crash(x, _semantic=None):
    os.abort()

"""


def crashing(kernels: Kernels) -> None:
    """A kernel on which the compiler dies, as LLVM does: without an exception."""
    text = TRITON_KERNEL.replace("@triton.jit\n", CRASH + "@triton.jit\n", 1)
    text = text.replace("    row, column =", "    crash(BLOCK)\n    row, column =")
    kernels.write("kernels.py", text)


@pytest.mark.usefixtures("compiler")
def test_a_compiler_that_crashes_a_worker_is_told_with_the_kernel(kernels: Kernels) -> None:
    pytest.importorskip("xdist")
    crashing(kernels)
    result = kernels.outside("--gpuemu-device=emulate", "-n2", "--gpuemu-strategies=boundary")
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(
        [
            "*crashed while running*gpuemu.toml::softmax::float32::boundary*",
            "Triton's compiler crashed on *softmax_kernel*",
        ]
    )
    assert "kernels.py:" in result.stdout.str()


@pytest.mark.usefixtures("compiler")
def test_a_compiler_that_crashes_the_run_is_told_by_the_next(kernels: Kernels) -> None:
    crashing(kernels)
    result = kernels.outside("--gpuemu-device=emulate", "--gpuemu-strategies=boundary")
    assert result.ret == -signal.SIGABRT
    # Where in the user's code it was launched from, at once.
    assert "in softmax" in result.stderr.str()
    kernels.write("kernels.py", TRITON_KERNEL)
    result = kernels.outside("--gpuemu-device=emulate", "--gpuemu-strategies=boundary")
    result.assert_outcomes(passed=1)
    arguments = r"x_ptr: \*fp32, .*BLOCK=\d+, num_warps=\d+, num_stages=\d+"
    result.stdout.re_match_lines(
        [rf"gpuemu: the run before ended while Triton compiled .*softmax_kernel at kernels.py:\d+: {arguments}$"]
    )
    assert "the run before" not in kernels.outside("--gpuemu-device=emulate", "--collect-only").stdout.str()


@pytest.mark.usefixtures("compiler")
def test_a_kernel_that_does_not_compile_is_a_failure_with_its_line(kernels: Kernels) -> None:
    kernels.write("kernels.py", TRITON_KERNEL.replace("tl.max(x, axis=0)", "tl.maximal(x)"))
    result = kernels.outside("--gpuemu-device=emulate", "--gpuemu-strategies=boundary")
    result.assert_outcomes(failed=1)
    assert "has no attribute 'maximal'" in result.stdout.str()
    # Triton 3.4 lets what it does not find through as it is, without the line.
    if tuple(map(int, pytest.importorskip("triton").__version__.split(".")[:2])) > (3, 4):
        assert "powers = tl.exp(x - tl.maximal(x))" in result.stdout.str()
    assert not list((kernels.path / ".gpuemu").glob("compiling.*"))


SCRIPT = """
import sys
import torch
import kernels

x = torch.randn(3, 5, device=sys.argv[1])
assert x.is_cuda == (sys.argv[1] == "cuda")
assert torch.allclose(kernels.softmax(x), torch.softmax(x, -1))
print(__name__, sys.argv[1:])
"""


def started(kernels: Kernels, *arguments: str, **environment: str) -> pytest.RunResult:
    """A run of Python without pytest."""
    for name, value in environment.items():
        kernels.pytester._monkeypatch.setenv(name, value)
    return kernels.pytester.run(sys.executable, *arguments)


@pytest.mark.usefixtures("compiler")
def test_a_script_runs_as_on_a_machine_with_a_gpu(kernels: Kernels) -> None:
    kernels.write("scripts/__init__.py", "")
    kernels.write("scripts/script.py", SCRIPT)
    kernels.pytester._monkeypatch.setenv("PYTHONPATH", str(kernels.path), prepend=os.pathsep)
    for name in (["scripts/script.py"], ["-m", "scripts.script"]):
        result = started(kernels, "-m", "gpuemu.triton", *name, "cuda", "--more")
        assert result.ret == 0
        result.stdout.fnmatch_lines(["__main__ ['cuda', '--more']"])
    # Triton's own discovery, where the script takes the device that the driver names or any tensor of the CPU.
    assert started(kernels, "scripts/script.py", "cpu", GPUEMU_DEVICE="emulate").ret == 0
    result = started(kernels, "-m", "gpuemu.triton", "nowhere.py")
    assert result.ret == 1
    result.stderr.fnmatch_lines(["there is no script nowhere.py; usage: python -m gpuemu.triton *"])


ENDLESS = """
import gpuemu.triton
import torch
import triton
import triton.language as tl

@triton.jit
def endless_kernel(x_ptr):
    # A loop that only waits would be told at once.
    count = 0
    while tl.load(x_ptr, volatile=True) == 0.0:
        count += 1
    tl.store(x_ptr, count)

def test_endless():
    # In a driver of its own, which lets it run for hours.
    with gpuemu.triton.emulated(budget=1 << 50, torch_cuda=True):
        x = torch.zeros(1, device="cuda")
        open("begun", "w").close()
        endless_kernel[(1,)](x)
"""


@pytest.mark.usefixtures("compiler")
def test_ctrl_c_ends_a_launch(kernels: Kernels) -> None:
    test = kernels.write("test_endless.py", ENDLESS)

    def begun(_: bytes) -> bool:
        return (kernels.path / "begun").exists() and any((kernels.path / "cache").rglob("*.cubin"))

    # Long enough for the kernel, once it is compiled, to run.
    said = kernels.interrupted("--gpuemu-device=emulate", str(test), once=begun, pause=2)
    assert b"KeyboardInterrupt" in said


@pytest.mark.usefixtures("compiler")
def test_another_thread_may_ask_while_a_kernel_runs(kernels: Kernels) -> None:
    """What asks a kernel whose launch is not over waits, and keeps nobody from ending the launch."""
    kernels.write(
        "test_threads.py",
        ENDLESS.replace(
            "        endless_kernel[(1,)](x)\n",
            "        compiled = endless_kernel.warmup(x, grid=(1,))\n"
            "        kernel = compiled.run.kernel\n"
            "        asked = []\n"
            "        asking = threading.Thread(target=lambda: asked.append(kernel.metrics()))\n"
            "        signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError))\n"
            "        signal.setitimer(signal.ITIMER_REAL, 1.0)\n"
            "        threading.Timer(0.3, asking.start).start()\n"
            "        with pytest.raises(TimeoutError):\n"
            "            endless_kernel[(1,)](x)\n"
            "        asking.join(20)\n"
            "        assert asked\n",
        ).replace("import torch\n", "import pytest, signal, threading, torch\n", 1),
    )
    kernels.outside("--gpuemu-device=emulate", "test_threads.py").assert_outcomes(passed=1)


@pytest.mark.usefixtures("compiler")
def test_a_gpu_that_is_not_there(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where this machine has one."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    result = kernels.outside("--gpuemu-device=cuda", "-rs")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED*a GPU is asked for (--gpuemu-device=cuda), and *PyTorch*"])
    monkeypatch.setenv("GPUEMU_REQUIRE", "1")
    result = kernels.outside("--gpuemu-device=cuda")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*cannot run on this host: a GPU is asked for (--gpuemu-device=cuda), and *"])
    monkeypatch.delenv("GPUEMU_REQUIRE")
    # What this machine has: the emulator.
    kernels.outside("--gpuemu-device=auto").assert_outcomes(passed=2)


@pytest.mark.usefixtures("compiler")
def test_a_gpu_that_is_there(kernels: Kernels) -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    kernels.outside("--gpuemu-device=cuda").assert_outcomes(passed=2)
    kernels.outside("--gpuemu-device=auto").assert_outcomes(passed=2)
    # It ran there: a tensor of this machine's memory is none that its driver takes.
    kernels.write("kernels.py", TRITON_KERNEL.replace("def softmax(x):", "def softmax(x):\n    assert x.is_cuda"))
    kernels.outside("--gpuemu-device=cuda").assert_outcomes(passed=2)
    kernels.write("kernels.py", TRITON_KERNEL.replace("column < columns)\n\n", "column < columns - 1)\n\n"))
    kernels.outside("--gpuemu-device=cuda").assert_outcomes(failed=2)


def test_compiled_kernels_of_a_contract_are_not_for_a_gpu(small: Small) -> None:
    from test_collection import SCALE

    small.write("scale.ptx", SCALE)
    text = (small.path / "gpuemu.toml").read_text()
    small.write(
        "gpuemu.toml",
        text
        + '[[ops]]\nname = "relu"\nreference = "relu"\n[ops.schema]\ndims = { N = [5] }\n'
        + 'inputs = { x = ["N"] }\noutputs = { out = ["N"] }\n'
        + '[[kernels]]\nname = "relu_ptx"\nop = "relu"\nsource = "scale.ptx"\ndtypes = ["float32"]\n'
        + '[kernels.launch]\ngrid = ["1"]\nblock = [32]\nshared = "0"\nargs = ["x", "out", "N"]\n',
    )
    result = small.run("--gpuemu-device=cuda", "-k", "kernel", "-rs")
    assert result.parseoutcomes()["skipped"] >= 1
    result.stdout.fnmatch_lines(
        ["SKIPPED*--gpuemu-device=cuda: compiled kernels of a contract are executed by the emulator*"]
    )
