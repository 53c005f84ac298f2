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


# What `@gpuemu.cases` is given, and the one line about it.
MARKS = [
    ("'softmx'", "@gpuemu.cases: no op `softmx` in gpuemu.toml, which has softmax; did you mean `softmax`?"),
    (
        "'softmax', strategies=['layout', 'edge']",
        "@gpuemu.cases: op `softmax` of gpuemu.toml has no strategy `edge`; it has boundary, layout: name one of them, or list "
        "`edge` in `strategies` of the op or of [validation]",
    ),
    (
        "'softmax', strategies=['boundry']",
        "@gpuemu.cases: op `softmax` of gpuemu.toml has no strategy `boundry`; it has boundary, layout; did you mean "
        "`boundary`?",
    ),
    (
        "'softmax', dtypes=['float16']",
        "@gpuemu.cases: op `softmax` of gpuemu.toml has no dtype `float16`; it has float32: name one of them, or list "
        "`float16` in `dtypes` of the op or of [validation]",
    ),
]


@pytest.mark.parametrize("given, line", MARKS)
def test_marks_that_ask_for_what_is_not_there(small: Small, given: str, line: str) -> None:
    small.write("test_own.py", f"import gpuemu\n\n@gpuemu.cases({given})\ndef test_wrong(case):\n    pass\n")
    small.write("test_other.py", "def test_other():\n    pass\n")
    result = small.run("--continue-on-collection-errors")
    assert line in result.outlines
    assert "_hookexec" not in result.stdout.str() and "Traceback" not in result.stdout.str()
    # The rest of the run: the contract's two tests and the other file.
    result.assert_outcomes(passed=3, errors=1)


def test_a_contract_that_is_wrong_is_told_where_cases_are_asked_for(small: Small) -> None:
    small.change("[[ops]]", "[[opz]]")
    small.write("test_own.py", "import gpuemu\n\n@gpuemu.cases('softmax')\ndef test_wrong(case):\n    pass\n")
    result = small.run("test_own.py")
    assert "_hookexec" not in result.stdout.str()
    result.stdout.fnmatch_lines(["@gpuemu.cases('softmax'): *gpuemu.toml:*opz*"])


def test_strategies_of_the_run_leave_others_out(small: Small) -> None:
    small.write("test_own.py", TESTS)
    # The one test for `layout` has no case then.
    small.run("test_own.py", "--gpuemu-strategies=boundary").assert_outcomes(passed=18, skipped=1)


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
