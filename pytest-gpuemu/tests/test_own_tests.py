"""`@gpuemu.cases` and the fixture `gpuemu`."""

from __future__ import annotations

import pytest
from conftest import Small

TESTS = """
import gpuemu
import numpy as np
import kernels

@gpuemu.cases("softmax", strategies=["layout"])
def test_right(case):
    assert case.dtype == "float32" and case.params == {"axis": -1} and set(case.dims) == {"B", "H"}
    assert set(case.inputs) == {"x"} and set(case.outputs) == {"out"}
    assert case["x"].shape == (case["B"], case["H"]) and case["axis"] == -1
    case.check(kernels.softmax(case["x"], axis=case["axis"]))

@gpuemu.cases("softmax", strategies=["boundary"])
def test_written_in_place(case):
    case.outputs["out"][...] = kernels.softmax(case["x"], -1)
    case.check()

@gpuemu.cases("softmax", strategies=["boundary"])
def test_by_name(case):
    case.check(out=kernels.softmax(case["x"], -1))

@gpuemu.cases("softmax", strategies=["boundary"])
def test_expected(case):
    expected = case.expected["out"]
    assert expected.dtype == np.float64 and expected.shape == case["x"].shape
    right = kernels.softmax(case["x"].astype(np.float64), -1)
    assert np.allclose(expected, right, rtol=1e-12, atol=0, equal_nan=True)
    case.check(expected.astype(np.float32))
"""


def test_cases_as_parameters(small: Small) -> None:
    small.write("test_own.py", TESTS)
    small.run("test_own.py").assert_outcomes(passed=24)
    result = small.run("test_own.py", "--collect-only", "-q")
    assert "test_own.py::test_right[float32-layout-0]" in result.outlines
    small.pytester.runpytest_inprocess("-p", "no:randomly").assert_outcomes(skipped=4)


@pytest.mark.parametrize(
    "body, message",
    [
        ("case.check(kernels.softmax(case['x'], -1) * 2)", "of out differ by more than allowed"),
        ("case.check(kernels.softmax(case['x'], -1)[:0])", "out has shape"),
        ("case.check()", "failed: "),
        ("case.check(kernels.softmax(case['x'], -1), 1)", "returned 2 values; it must return one array, out"),
        ("x = case['x']; y = kernels.softmax(x, -1); x[...] = 7; case.check(y)", "failed: "),
        ("case['y']", "y: the case has x, out, axis, B, H"),
    ],
)
def test_answers_that_are_wrong(small: Small, body: str, message: str) -> None:
    small.write(
        "test_own.py",
        "import gpuemu, kernels\n\n@gpuemu.cases('softmax', strategies=['boundary'])\n"
        f"def test_wrong(case):\n    {body}\n",
    )
    result = small.run("test_own.py")
    assert result.parseoutcomes().get("passed", 0) == 0
    assert message in result.stdout.str()


def test_an_op_that_is_not_there(small: Small) -> None:
    small.write("test_own.py", "import gpuemu\n\n@gpuemu.cases('softmx')\ndef test_wrong(case):\n    pass\n")
    result = small.run("test_own.py")
    assert "@gpuemu.cases: no op `softmx` in" in result.stdout.str() + result.stderr.str()


def test_the_fixture(small: Small) -> None:
    small.write(
        "test_own.py",
        """
        import kernels

        def test_check(gpuemu):
            verdict = gpuemu.check(kernels.softmax, "softmax")
            assert verdict and verdict.cases == 4
        """,
    )
    small.run("test_own.py", "--gpuemu-cases=2").assert_outcomes(passed=1)
    small.pytester.runpytest_inprocess("-p", "no:randomly").assert_outcomes(skipped=1)
