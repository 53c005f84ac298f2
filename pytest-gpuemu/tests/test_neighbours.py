"""Beside other plugins: xdist, randomly, rerunfailures, coverage, no cache, and an editor's test explorer."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from conftest import WRONG, Small


def passed(result: pytest.RunResult) -> list[str]:
    return sorted(line.split()[0] for line in result.outlines if " PASSED" in line)


def test_xdist(small: Small) -> None:
    pytest.importorskip("xdist")
    small.change("cases = 6", "cases = 4")
    small.change('strategies = ["boundary", "layout"]', 'strategies = ["boundary", "layout", "edge", "structured"]')
    result = small.pytester.runpytest_subprocess("--gpuemu", "-n2", "-p", "no:randomly")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["16 cases in 4 tests", "worst errors*softmax::float32::*"])
    small.write("kernels.py", WRONG)
    result = small.pytester.runpytest_subprocess("--gpuemu", "-n2", "-p", "no:randomly")
    assert result.parseoutcomes()["failed"] == 4
    assert "replay   pytest --gpuemu-case '" in result.stdout.str()


def test_xdist_is_given_the_contract_and_the_case(small: Small) -> None:
    pytest.importorskip("xdist")
    small.write("pytest.ini", "[pytest]\ntestpaths = tests\n")
    small.write("tests/test_own.py", "def test_own(): pass")
    small.pytester.runpytest_subprocess("--gpuemu", "-n1", "-p", "no:randomly").assert_outcomes(passed=3)
    case = "softmax::float32::boundary{B=1,H=3;axis=-1} x:row normal seed=2a"
    result = small.pytester.runpytest_subprocess("--gpuemu-case", case, "-n1", "-p", "no:randomly")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 case in 1 test"])


def test_a_worker_that_is_killed_is_told_and_the_rest_goes_on(small: Small) -> None:
    pytest.importorskip("xdist")
    small.kernel(
        """
        import os, signal
        if x.shape[0] == 1 and not os.path.exists("killed"):
            open("killed", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return right(x, axis)
        """
    )
    result = small.pytester.runpytest_subprocess("--gpuemu", "-n2", "-p", "no:randomly")
    result.stdout.fnmatch_lines(["*crashed while running*gpuemu.toml::softmax::float32::*"])
    assert result.parseoutcomes() == {"failed": 1, "passed": 1}


def test_randomly_changes_neither_names_nor_cases(small: Small) -> None:
    pytest.importorskip("pytest_randomly")
    small.kernel("open('seen.txt', 'a').write(f'{x.tobytes().hex()}\\n'); return right(x, axis)")
    seen = []
    for seed in ("1", "2"):
        result = small.pytester.runpytest_subprocess("--gpuemu", f"--randomly-seed={seed}")
        result.assert_outcomes(passed=2)
        seen.append(sorted((small.path / "seen.txt").read_text().split()))
        (small.path / "seen.txt").unlink()
    assert seen[0] == seen[1]


def test_rerunfailures(small: Small) -> None:
    pytest.importorskip("pytest_rerunfailures")
    small.kernel(
        """
        import os
        if not os.path.exists("failed"):
            open("failed", "w").close()
            raise ValueError("the first time")
        return right(x, axis)
        """
    )
    result = small.pytester.runpytest_subprocess(
        "--gpuemu", "-p", "no:randomly", "--reruns", "2", "--junitxml=report.xml", "-k", "boundary"
    )
    assert result.parseoutcomes() == {"passed": 1, "rerun": 1, "deselected": 1}
    # What the first run told is not told of the last.
    *_, last = ElementTree.parse(small.path / "report.xml").iter("testcase")
    names = [entry.get("name") for entry in last.iter("property")]
    assert names.count("gpuemu.cases") == 1 and "gpuemu.replay" not in names


def test_coverage_sees_the_kernels(small: Small) -> None:
    pytest.importorskip("pytest_cov")
    result = small.pytester.runpytest_subprocess("--gpuemu", "-p", "no:randomly", "--cov=kernels")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["kernels.py * 100%"])


def test_what_failed_last_is_run_first_or_alone(small: Small) -> None:
    small.kernel("if x.strides[-1] != 4:\n    raise ValueError('strides')\nreturn right(x, axis)")
    small.run().assert_outcomes(passed=1, failed=1)
    small.run("--lf").assert_outcomes(failed=1)
    result = small.run("--ff", "-x")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["FAILED gpuemu.toml::softmax::float32::layout *"])
    small.kernel("return right(x, axis)")
    small.run("--lf").assert_outcomes(passed=1, deselected=2)


def test_without_a_cache(small: Small) -> None:
    small.run("-p", "no:cacheprovider").assert_outcomes(passed=2)


EXPLORER = """
import pytest

def pytest_collection_finish(session):
    for item in session.items:
        # What the Python extension of VS Code reads of an item that is no function.
        assert not hasattr(item, "callspec")
        path, line, name = item.location
        print("ITEM", item.nodeid, item.name, item.path.is_file(), path, line, name)
        parent = item.parent
        # Levels between a test and its file are shown when they are classes.
        levels = []
        while not isinstance(parent, pytest.File):
            assert isinstance(parent, pytest.Class) and isinstance(parent.obj, type)
            assert parent.path == item.path and "::" not in parent.name and "@" not in parent.name
            levels.insert(0, parent.name)
            parent = parent.parent
        assert item.nodeid == "::".join([parent.nodeid, *levels, item.name])
"""


def test_an_editor_finds_names_paths_and_lines(small: Small) -> None:
    small.write("conftest.py", EXPLORER)
    result = small.run("--collect-only", "-q")
    items = [line.split()[1:] for line in result.outlines if line.startswith("ITEM")]
    toml = (small.path / "gpuemu.toml").read_text().splitlines()
    line = str(toml.index("[[ops]]"))
    assert items == [
        [f"gpuemu.toml::softmax::float32::{name}", name, "True", "gpuemu.toml", line, f"softmax::float32::{name}"]
        for name in ("boundary", "layout")
    ]


def test_a_failure_is_no_error_to_an_editor(small: Small) -> None:
    """VS Code tells them apart by the name of the exception's class."""
    small.write("kernels.py", WRONG)
    small.write("conftest.py", "def pytest_exception_interact(call): print('TYPE', call.excinfo.typename)\n")
    result = small.run("-s")
    assert [line for line in result.outlines if "TYPE" in line and "AssertionError" not in line] == []
    assert "TYPE AssertionError" in result.stdout.str()


def test_ctrl_c_ends_a_long_run_at_once(small: Small) -> None:
    """Also where no Python runs between the cases: a compiled kernel."""
    from test_collection import SCALE

    small.write("scale.ptx", SCALE)
    small.write(
        "gpuemu.toml",
        """
        [validation]
        dtypes = ["float32"]
        strategies = ["boundary"]
        cases = 100000
        [[ops]]
        name = "relu"
        reference = "relu"
        [ops.schema]
        dims = { N = [1000, 3000] }
        inputs = { x = ["N"] }
        outputs = { out = ["N"] }
        [[kernels]]
        name = "relu_ptx"
        op = "relu"
        source = "scale.ptx"
        dtypes = ["float32"]
        [kernels.launch]
        grid = ["ceil_div(N, 32)"]
        block = [32]
        shared = "0"
        args = ["x", "out", "N"]
        """,
    )
    said = small.interrupted("-v", once=lambda said: b"kernel::relu_ptx" in said, pause=0.5)
    assert b"KeyboardInterrupt" in said
