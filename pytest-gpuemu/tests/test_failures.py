"""What a failure says, where it is saved, and how it is run again."""

from __future__ import annotations

import fnmatch
import re
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import RIGHT, WRONG, Small


def replay_of(result: pytest.RunResult) -> str:
    found = re.search(r"^  replay   pytest --gpuemu-case '(.*)'$", result.stdout.str(), re.MULTILINE)
    assert found, result.stdout.str()
    return found.group(1)


def test_a_failure_is_the_report_alone(small: Small) -> None:
    small.write("kernels.py", WRONG)
    result = small.run("--gpuemu-strategies=boundary")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "softmax::float32::boundary failed: * of out differ by more than allowed, the first at *",
            "  replay   pytest --gpuemu-case 'softmax::float32::boundary{*} x:* seed=*'",
            "  found    case * of 6, shrunk from *",
            "  subject  function softmax",
            "  first    out[[]*]: expected *, got *, allowed *",
            "  saved    gpuemu-regressions/softmax/*.toml (commit it: it runs first from now on)",
        ]
    )
    assert "Traceback" not in result.stdout.str() and "collection.py" not in result.stdout.str()


def test_the_replay_line_runs_that_case(small: Small) -> None:
    small.write("kernels.py", WRONG)
    spec = replay_of(small.run("--gpuemu-strategies=boundary"))
    result = small.pytester.runpytest_inprocess("-p", "no:randomly", "--gpuemu-case", spec)
    result.assert_outcomes(failed=1)
    assert replay_of(result) == spec
    small.kernel("return right(x, axis)")
    small.pytester.runpytest_inprocess("-p", "no:randomly", "--gpuemu-case", spec).assert_outcomes(passed=1)


def test_a_saved_failure_is_a_test_that_runs_until_it_passes(small: Small) -> None:
    small.write("kernels.py", WRONG)
    small.run("--gpuemu-strategies=boundary").assert_outcomes(failed=1)
    result = small.run("--gpuemu-strategies=boundary")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["softmax::regressions::* failed: *"])
    small.kernel("return right(x, axis)")
    small.run("--gpuemu-strategies=boundary").assert_outcomes(passed=2)


def test_the_replay_line_is_in_a_junit_report(small: Small) -> None:
    small.write("kernels.py", WRONG)
    spec = replay_of(small.run("--gpuemu-strategies=boundary", "--junitxml=report.xml"))
    tree = ElementTree.parse(small.path / "report.xml")
    (case,) = tree.iter("testcase")
    properties = {entry.get("name"): entry.get("value") for entry in case.iter("property")}
    assert properties["gpuemu.replay"] == f"pytest --gpuemu-case '{spec}'"
    assert properties["gpuemu.check"] == "values"
    (failure,) = case.iter("failure")
    assert failure.text is not None and spec in failure.text


# What a kernel does, and what its test says.
SUBJECTS = [
    ("raise ValueError('bad shape')", "raised ValueError: bad shape"),
    ("return None", "returned None; it must return one array, out"),
    ("return right(x, axis)[:, :0]", "out has shape"),
    ("return right(x, axis).astype(np.float64)", "out is float64"),
    ("yield right(x, axis)", "returned out as a generator, which has computed nothing yet"),
    (
        "return np.broadcast_to(x[:1, :1], (1 << 20, 1 << 20))",
        "returned out of shape [1048576, 1048576], the op declares",
    ),
    ("return [1.0]", "returned out as 1.0, which has no dtype"),
    ("return 'text'", "returned out as a str"),
    ("return right(x, axis), x", "returned 2 values; it must return one array, out"),
    ("return {'y': x}", "returned a dict of y; it must return one array, out"),
    ("return right(x, axis).astype('complex64')", "returned out as an array of complex64, which is no dtype of gpuemu"),
    ("return np.ma.masked_array(right(x, axis))", "returned a MaskedArray for out: a subclass of numpy.ndarray"),
    ("x[...] = 0; return right(x, axis)", "failed: "),
    ("raise SystemExit(3)", "raised SystemExit: 3"),
    ("return np.empty_like(x)", "failed: "),
]


@pytest.mark.parametrize("body, message", SUBJECTS)
def test_kernels_that_do_not_answer(small: Small, body: str, message: str) -> None:
    small.kernel(body)
    result = small.run("--gpuemu-strategies=boundary")
    result.assert_outcomes(failed=1)
    assert message in result.stdout.str()
    assert "pytest_gpuemu" not in result.stdout.str().partition("= FAILURES =")[2].partition("= gpuemu =")[0]


def test_an_exception_names_the_line_of_the_kernel(small: Small) -> None:
    small.kernel("return helper(x)", "def helper(x):\n    return 1 // 0\n\ndef softmax(x, axis):")
    result = small.run("--gpuemu-strategies=boundary")
    result.stdout.fnmatch_lines(["*raised ZeroDivisionError: *", "*in kernels.py:*, softmax: return helper(x)"])


@pytest.mark.parametrize(
    "header, body",
    [
        ("def softmax(x, out, axis):", "out[...] = right(x, axis)"),
        ("def softmax(x, out, *, axis):", "out[...] = right(x, axis); return out"),
        ("def softmax(a, /, axis=-1):", "return right(a, axis)"),
        ("def softmax(values):", "return right(values, -1)"),
        ("def softmax(**given):", "return {'out': right(given['x'], given['axis'])}"),
        ("def softmax(x):", "return (right(x, -1),)"),
        ("def softmax(x, axis, scale=1.0):", "return right(x * scale, axis).astype(x.dtype)"),
    ],
)
def test_ways_to_take_and_to_answer(small: Small, header: str, body: str) -> None:
    small.kernel(body, header)
    small.run().assert_outcomes(passed=2)


@pytest.mark.parametrize(
    "header, message",
    [
        (
            "def softmax(x, axes):",
            "softmax takes `axes`, which is no tensor or parameter of op `softmax` (x, out, axis)",
        ),
        ("def softmax(x, axiss):", "did you mean `axis`?"),
    ],
)
def test_functions_that_do_not_fit(small: Small, header: str, message: str) -> None:
    small.kernel("return x", header)
    result = small.run("--gpuemu-strategies=boundary")
    result.assert_outcomes(failed=1)
    assert message in result.stdout.str()


def test_outputs_that_are_partly_written(small: Small) -> None:
    small.kernel("out[:, :8] = right(x, axis)[:, :8]", "def softmax(x, out, axis):")
    result = small.run("--gpuemu-strategies=boundary")
    result.assert_outcomes(failed=1)
    assert "never written" in result.stdout.str() or "not written" in result.stdout.str()


# What `module` names, what stands in its file, and what each test of the op says.
UNUSABLE = [
    ("kernls:softmax", "", "there is no module kernls; it is looked for in"),
    ("kernels:sofmax", "", "module kernels has no function sofmax"),
    ("kernels:np", "", "kernels:np is module, not a function"),
    ("kernels:softmax", "import nowhere_at_all", "raised ModuleNotFoundError: No module named 'nowhere_at_all'"),
    ("kernels:softmax", "1 // 0", "raised ZeroDivisionError: *in kernels.py:*: 1 // 0"),
    ("kernels:softmax", "def softmax(:", "raised SyntaxError: invalid syntax*in kernels.py:*: def softmax(:"),
    ("kernels:softmax", "raise SystemExit(3)", "raised SystemExit: 3"),
    ("kernels:softmax", "def softmax(x, axes): ...", "softmax takes `axes`, which is no tensor or parameter of op"),
    ("kernels:softmax", "def softmax(): ...", "softmax cannot be called with x: too many positional arguments"),
    ("kernels:softmax", "def softmax(a, b): ...", "softmax cannot be called with x: missing a required argument: 'b'"),
    (
        "kernels:softmax",
        "def softmax(x, axis):\n    import nowhere_at_all",
        "raised ModuleNotFoundError: No module named 'nowhere_at_all'*in kernels.py:*, softmax: import nowhere_at_all",
    ),
]


@pytest.mark.parametrize("module, text, message", UNUSABLE)
def test_a_function_that_cannot_be_called_is_no_failing_case(
    small: Small, module: str, text: str, message: str
) -> None:
    small.change("kernels:softmax", module)
    small.write("kernels.py", f"{RIGHT}\n{text}\n")
    result = small.run("-rf")
    result.assert_outcomes(failed=2)
    said = result.stdout.str()
    for test in ("softmax::float32::boundary", "softmax::float32::layout"):
        assert fnmatch.fnmatch(said, f"*{test} failed: {message}*"), said
    assert "shrunk" not in said and "--gpuemu-case" not in said and "INTERNALERROR" not in said
    assert not (small.path / "gpuemu-regressions").exists()


def test_a_script_that_does_not_start_is_no_failing_case(small: Small) -> None:
    small.change('module = "kernels:softmax"', 'op_script = "op.bin"')
    small.write("op.bin", "no program\n")
    result = small.run()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*failed: script op.bin could not be started: *it must be executable, or end in .py"])
    assert not (small.path / "gpuemu-regressions").exists()


def test_a_module_that_cannot_be_imported_leaves_other_ops_alone(small: Small) -> None:
    text = (small.path / "gpuemu.toml").read_text()
    other = (
        text[text.index("[[ops]]") :].replace('"softmax"', '"other"', 1).replace("kernels:softmax", "skipping:other")
    )
    small.write("gpuemu.toml", text + other)
    small.write("skipping.py", "import pytest\npytest.importorskip('nowhere_at_all')\n")
    result = small.run("-rs")
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED*could not import 'nowhere_at_all'*"])


def test_nothing_computes_the_op(small: Small) -> None:
    small.change('module = "kernels:softmax"\n', "")
    result = small.run("--gpuemu-strategies=boundary")
    result.assert_outcomes(failed=1)
    assert 'decorate a function with @gpuemu.op("softmax") in a conftest.py' in result.stdout.str()


def test_decorated_functions(small: Small) -> None:
    small.change('module = "kernels:softmax"\n', 'dtypes = ["float32", "float64"]\n')
    small.write(
        "conftest.py",
        """
        import gpuemu, kernels

        @gpuemu.op("softmax", dtypes=["float32"])
        def single(x, axis):
            return kernels.softmax(x, axis)

        @gpuemu.op("softmax", dtypes=["float64"])
        def double(x, axis):
            return kernels.softmax(x, axis)
        """,
    )
    small.run().assert_outcomes(passed=4)
    small.write(
        "test_more.py",
        """
        import gpuemu

        @gpuemu.op("softmax", dtypes=["float64"])
        def again(x, axis):
            return x
        """,
    )
    result = small.run("--gpuemu-strategies=boundary")
    result.assert_outcomes(failed=2)
    assert "op `softmax` has two functions for float64: conftest.py:8 and test_more.py:4" in result.stdout.str()


REFERENCES = [
    ("return x", "differ by more than allowed"),
    ("print('hello from the reference'); return kernels.softmax(x, axis)", None),
    ("return None", "it returned None; it must return one array, out"),
    ("return x[:, :0]", "answered out of shape"),
    ("raise KeyError('gamma')", "reference refs:softmax: raised KeyError: 'gamma'"),
    ("return x + np.random.default_rng().normal(size=x.shape)", "failed: "),
]


@pytest.mark.parametrize("body, message", REFERENCES)
def test_references_in_this_process(small: Small, body: str, message: str | None) -> None:
    small.change('reference = "softmax"', 'reference = "refs:softmax"')
    small.write("refs.py", f"import kernels\nimport numpy as np\n\ndef softmax(x, axis):\n    {body}\n")
    result = small.run("--gpuemu-strategies=boundary")
    if message is None:
        result.assert_outcomes(passed=1)
    else:
        result.assert_outcomes(failed=1)
        assert message in result.stdout.str()


def test_a_reference_is_asked_in_float64_and_in_the_working_precision(small: Small) -> None:
    small.change('reference = "softmax"', 'reference = "refs:softmax"')
    small.write(
        "refs.py",
        """
        import kernels

        def softmax(x, axis):
            with open("asked.txt", "a") as file:
                print(x.dtype, file=file)
            return kernels.softmax(x, axis)
        """,
    )
    small.run("--gpuemu-strategies=boundary").assert_outcomes(passed=1)
    asked = (small.path / "asked.txt").read_text().split()
    assert set(asked) == {"float64", "float32"}


def test_interrupt_ends_the_run_and_saves_nothing(small: Small) -> None:
    small.kernel("raise KeyboardInterrupt")
    result = small.pytester.runpytest_subprocess("--gpuemu", "-p", "no:randomly")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert not (small.path / "gpuemu-regressions").exists()


def test_a_skip_inside_of_a_kernel_skips_the_test(small: Small) -> None:
    small.kernel("import pytest; pytest.skip('no device')")
    small.run().assert_outcomes(skipped=2)
    assert not (small.path / "gpuemu-regressions").exists()


def test_a_folder_that_cannot_be_written_is_told(small: Small) -> None:
    (small.path / ".gpuemu").write_text("in the way")
    result = small.run()
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["warning: results not written: *"])
