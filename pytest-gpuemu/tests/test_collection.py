"""What is collected, under which names, and what selects it."""

from __future__ import annotations

import shlex

import pytest
from conftest import WRONG, Small

NAMES = ["gpuemu.toml::softmax::float32::boundary", "gpuemu.toml::softmax::float32::layout"]


def names(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line and " " not in line]


def test_inert_without_the_option(small: Small) -> None:
    small.write("gpuemu.toml", "this is no contract")
    small.write("test_own.py", "def test_own(): pass")
    result = small.pytester.runpytest_inprocess("-p", "no:randomly")
    result.assert_outcomes(passed=1)
    assert "gpuemu" not in "\n".join(line for line in result.outlines if not line.startswith("plugins:"))


def test_an_option_without_gpuemu_is_an_error(small: Small) -> None:
    for option in ("--gpuemu-device=emulate", "--gpuemu-cases=3", "--gpuemu-config=gpuemu.toml", "--gpuemu-update=ptx"):
        result = small.pytester.runpytest_inprocess(option)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert f"{option.partition('=')[0]} needs --gpuemu" in result.stderr.str()
    result = small.pytester.runpytest_inprocess("--gpuemu-seed", "3")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_settings_without_gpuemu_are_told(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a repository keeps for its runs with gpuemu is no error in others."""
    small.write("test_own.py", "def test_own(): pass")
    small.write("pytest.ini", "[pytest]\naddopts = --gpuemu-snapshots=check\ngpuemu_profile = quick\n")
    monkeypatch.setenv("GPUEMU_CASES", "3")
    result = small.pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["gpuemu: off without --gpuemu, whatever --gpuemu-snapshots, GPUEMU_CASES says"])
    assert "off without" not in small.run().stdout.str()


def test_no_part_of_gpuemu_is_imported_without_the_option(small: Small) -> None:
    small.write(
        "test_own.py",
        """
        import sys
        def test_own():
            assert "pytest_gpuemu.plugin" in sys.modules
            assert "pytest_gpuemu._core" not in sys.modules and "numpy" not in sys.modules
        """,
    )
    small.pytester.runpytest_subprocess("-p", "no:randomly").assert_outcomes(passed=1)


def test_ids_are_the_file_and_the_name(small: Small) -> None:
    result = small.run("--collect-only", "-q")
    assert names(result) == NAMES


def test_a_run_passes(small: Small) -> None:
    result = small.run()
    result.assert_outcomes(passed=2)
    assert (small.path / ".gpuemu" / ".gitignore").read_text() == "*\n"
    result.stdout.fnmatch_lines(
        ["*= gpuemu =*", "12 cases in 2 tests", "worst errors*% of what is allowed, softmax::*"]
    )


@pytest.mark.parametrize(
    "argument, selected",
    [
        ("gpuemu.toml", NAMES),
        ("gpuemu.toml::softmax", NAMES),
        ("gpuemu.toml::softmax::float32", NAMES),
        (NAMES[1], NAMES[1:]),
        ("-k layout", NAMES[1:]),
    ],
)
def test_selection(small: Small, argument: str, selected: list[str]) -> None:
    assert names(small.run("--collect-only", "-q", *argument.split())) == selected


def test_the_contract_belongs_to_a_run_whose_testpaths_do_not_hold_it(small: Small) -> None:
    small.write("pytest.ini", "[pytest]\ntestpaths = tests\n")
    small.write("tests/test_own.py", "def test_own(): pass")
    small.run().assert_outcomes(passed=3)
    small.run("tests").assert_outcomes(passed=1)


def test_a_named_contract(small: Small) -> None:
    small.write("gpuemu.toml", "this is no contract")
    (small.path / "other").mkdir()
    from conftest import CONTRACT

    small.write("other/kernels.toml", CONTRACT)
    result = small.run("--gpuemu-config", "other/kernels.toml", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["other/kernels.toml::softmax::float32::boundary PASSED*"])
    result = small.run("--gpuemu-config", "nowhere.toml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*there is no contract*nowhere.toml*"])


def test_a_bad_contract_is_one_error_with_its_places(small: Small) -> None:
    small.change('dtypes = ["float32"]', 'dtypes = ["float31"]')
    small.write("test_own.py", "def test_own(): pass")
    result = small.run("--continue-on-collection-errors")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*gpuemu.toml:5:*float31*", "*did you mean*float32*"])
    assert "Traceback" not in result.stdout.str()


@pytest.mark.parametrize(
    "option, message",
    [
        ("--gpuemu-seed=many", "--gpuemu-seed is `many` and must be a number"),
        ("--gpuemu-cases=0", "--gpuemu-cases is `0` and must be a number of cases, 1 or more"),
        ("--gpuemu-strategies=edgy", "--gpuemu-strategies names the strategy `edgy`, which must be one of"),
        ("--gpuemu-case=nonsense", "--gpuemu-case: "),
    ],
)
def test_bad_options(small: Small, option: str, message: str) -> None:
    result = small.run(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()


def test_options_change_what_is_run(small: Small) -> None:
    result = small.run("--gpuemu-cases=2", "--gpuemu-strategies=edge,boundary")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["4 cases in 2 tests"])
    small.change('name = "softmax"', 'dtypes = ["float32", "float64"]\nname = "softmax"')
    small.run("--gpuemu-profile=quick").assert_outcomes(passed=2, skipped=2)


def test_one_case(small: Small) -> None:
    spec = "softmax::float32::boundary{B=1,H=3;axis=-1} x:row normal seed=2a"
    small.write("test_own.py", "def test_own(): pass")
    result = small.pytester.runpytest_inprocess("-p", "no:randomly", "--gpuemu-case", spec)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 case in 1 test"])
    # Where a selection is given as well, it must hold the case's test.
    result = small.run("--gpuemu-case", spec, "gpuemu.toml")
    result.assert_outcomes(passed=1, deselected=1)
    result = small.run("--gpuemu-case", spec, NAMES[1])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "names a test that this run does not select" in result.stderr.str()
    result = small.run("--gpuemu-case", spec.replace("softmax", "softmx"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "did you mean `softmax`?" in result.stderr.str()


def test_a_case_from_the_environment_leaves_other_tests_as_they_are(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUEMU_CASE", "softmax::float32::boundary{B=1,H=3;axis=-1} x:row normal seed=2a")
    result = small.run()
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["7 cases in 2 tests"])


def saved(small: Small) -> str:
    """The saved case of a failure in boundary."""
    small.write("kernels.py", WRONG)
    small.run("--gpuemu-strategies=boundary").assert_outcomes(failed=1)
    (file,) = (small.path / "gpuemu-regressions" / "softmax").glob("*.toml")
    return file.relative_to(small.path).as_posix()


def test_one_case_from_another_folder(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = "softmax::float32::boundary{B=1,H=3;axis=-1} x:row normal seed=2a"
    file = saved(small)
    small.write("below/deep/empty.txt", "")
    small.write("aside/empty.txt", "")
    test = "softmax::float32::boundary"

    def one(folder: str, *arguments: str) -> str:
        monkeypatch.chdir(small.path / folder)
        result = small.pytester.runpytest_inprocess("-p", "no:randomly", *arguments)
        assert result.parseoutcomes()["failed"] == 1, result.stdout.str()
        result.stdout.fnmatch_lines(["1 case in 1 test"])
        (line,) = [line for line in result.outlines if line.startswith("FAILED")]
        return line.split()[1]

    # From below, the contract is the nearest above. The name is one that can be selected by.
    for case in (spec, f"@{file}", f"@../../{file}"):
        name = one("below/deep", f"--gpuemu-case={case}")
        assert name == f"../../gpuemu.toml::{test}"
    one("below/deep", "--gpuemu-case", spec, name)
    # From aside, it is named.
    contract = str(small.path / "gpuemu.toml")
    for case in (spec, f"@{file}", f"@../{file}"):
        one("aside", f"--gpuemu-case={case}", contract)
    above = small.path.name
    assert one("..", f"--gpuemu-case=@{above}/{file}") == f"{above}/gpuemu.toml::{test}"
    monkeypatch.chdir(small.path.parent)
    result = small.pytester.runpytest_inprocess("--gpuemu-case", spec)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "there is no gpuemu.toml here or in any folder above: name it behind the case" in result.stderr.str()


def test_a_replay_line_is_for_the_folder_of_the_run(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    small.write("kernels.py", WRONG)
    small.write("below/empty.txt", "")
    monkeypatch.chdir(small.path / "below")
    result = small.run("--gpuemu-strategies=boundary")
    (line,) = [line for line in result.outlines if line.startswith("  replay")]
    assert line.endswith("' ../gpuemu.toml")
    result = small.pytester.runpytest_inprocess("-p", "no:randomly", *shlex.split(line)[2:])
    assert result.parseoutcomes()["failed"] == 1


@pytest.mark.parametrize("distributed", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_ci_machine_has_one_line_of_each_failure_in_its_summary(
    small: Small, monkeypatch: pytest.MonkeyPatch, distributed: tuple[str, ...]
) -> None:
    """There pytest repeats in its summary whatever a failure says."""
    small.write("kernels.py", WRONG)
    monkeypatch.setenv("CI", "true")
    result = small.run("--gpuemu-strategies=boundary", *distributed)
    lines = result.outlines
    (summary,) = [line for line in lines if line.startswith("FAILED")]
    assert summary.startswith("FAILED gpuemu.toml::softmax::float32::boundary - softmax::float32::boundary failed: ")
    assert lines[lines.index(summary) + 1].startswith("====")
    assert len([line for line in lines if line.startswith("  replay")]) == 1


@pytest.mark.parametrize(
    ("expression", "count"),
    [("softmax::float32::boundary", 1), ("float32::boundary", 1), ("softmax and boundary", 1), ("float64::boundary", 0)],
)
def test_parts_of_a_name_as_it_is_printed_select(small: Small, expression: str, count: int) -> None:
    result = small.run("-k", expression, "--collect-only", "-q")
    assert len(names(result)) == count


def test_a_root_that_is_not_the_folder_of_the_run(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(small.path.parent)
    result = small.run("--rootdir", str(small.path), str(small.path), "--collect-only", "-q")
    assert names(result) == NAMES


def test_a_contract_below_another(small: Small) -> None:
    """Each is one of its own, and so is a saved case of either."""
    text = (small.path / "gpuemu.toml").read_text()
    small.write("below/gpuemu.toml", text.replace('"kernels:softmax"', '"own:softmax"'))
    small.write("below/own.py", WRONG)
    result = small.run("--gpuemu-strategies=boundary")
    result.assert_outcomes(passed=1, failed=1)
    (file,) = (small.path / "below" / "gpuemu-regressions" / "softmax").glob("*.toml")
    result = small.pytester.runpytest_inprocess(
        "-p", "no:randomly", f"--gpuemu-case=@below/gpuemu-regressions/softmax/{file.name}", "."
    )
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["1 case in 1 test", "FAILED below/gpuemu.toml::softmax::float32::boundary*"])


def test_a_contract_as_editors_of_windows_write_it(small: Small) -> None:
    text = (small.path / "gpuemu.toml").read_text()
    (small.path / "gpuemu.toml").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    result = small.run("-v")
    result.assert_outcomes(passed=2)
    (small.path / "gpuemu.toml").write_bytes(text.replace('"softmax"', '"softmx"').replace("\n", "\r\n").encode())
    result = small.run()
    result.stdout.fnmatch_lines(["*gpuemu.toml:10:*softmx*", "*did you mean `softmax`?*"])
    assert "\r" not in result.stdout.str()


def test_several_contracts_in_one_run(small: Small) -> None:
    for folder in ("one", "two"):
        small.write(
            f"{folder}/gpuemu.toml", (small.path / "gpuemu.toml").read_text().replace("kernels:", f"{folder}_k:")
        )
        small.write(f"{folder}/{folder}_k.py", (small.path / "kernels.py").read_text())
    (small.path / "gpuemu.toml").unlink()
    result = small.run("-v")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["one/gpuemu.toml::softmax::float32::boundary PASSED*", "two/gpuemu.toml::softmax*"])


def test_contracts_with_modules_of_one_name(small: Small) -> None:
    """Each contract gets the functions of its own folder."""
    from conftest import RIGHT, WRONG

    for folder, kernels in (("one", RIGHT), ("one/two", WRONG), ("three", RIGHT)):
        small.write(f"{folder}/gpuemu.toml", (small.path / "gpuemu.toml").read_text())
        small.write(f"{folder}/kernels.py", kernels)
    (small.path / "gpuemu.toml").unlink()
    (small.path / "kernels.py").unlink()
    result = small.run("-v")
    result.assert_outcomes(passed=4, failed=2)
    assert all("two/" in line for line in result.outlines if " FAILED" in line)


def test_kernels_and_artifacts_are_collected(small: Small) -> None:
    small.write("kernels/scale.ptx", SCALE)
    small.write(
        "gpuemu.toml",
        """
        [validation]
        dtypes = ["float32"]
        strategies = ["boundary"]
        [[ops]]
        name = "relu"
        reference = "relu"
        [ops.schema]
        dims = { N = [1, 7, 33] }
        inputs = { x = ["N"] }
        outputs = { out = ["N"] }
        [[kernels]]
        name = "relu_ptx"
        op = "relu"
        source = "kernels/scale.ptx"
        dtypes = ["float32"]
        [kernels.launch]
        grid = ["ceil_div(N, 32)"]
        block = [32]
        shared = "0"
        args = ["x", "out", "N"]
        """,
    )
    result = small.run("-v")
    assert "gpuemu.toml::kernel::relu_ptx::float32::boundary PASSED" in result.stdout.str()
    result.stdout.fnmatch_lines(["gpuemu.toml::relu::float32::boundary SKIPPED (only compiled kernels *"])


SCALE = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry relu(.param .u64 x, .param .u64 out, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    .reg .f32 %f<4>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.s32 %r3, %r1, 32, %r2;
    ld.param.u32 %r4, [n];
    setp.ge.s32 %p, %r3, %r4;
    @%p bra DONE;
    ld.param.u64 %d1, [x];
    ld.param.u64 %d2, [out];
    cvta.to.global.u64 %d1, %d1;
    cvta.to.global.u64 %d2, %d2;
    mul.wide.s32 %d3, %r3, 4;
    add.s64 %d4, %d1, %d3;
    add.s64 %d5, %d2, %d3;
    ld.global.f32 %f1, [%d4];
    max.NaN.f32 %f2, %f1, 0f00000000;
    st.global.f32 [%d5], %f2;
DONE:
    ret;
}
"""
