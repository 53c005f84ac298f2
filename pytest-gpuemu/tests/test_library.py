"""`gpuemu.check`: its verdict, and functions that try to look right without computing."""

from __future__ import annotations

import gc
import inspect
import math
import threading
import time
from collections.abc import Callable
from typing import Any

import gpuemu
import numpy as np
import pytest
from pytest_gpuemu import _core, others

CONTRACT = """
[validation]
dtypes = ["float32"]
strategies = ["boundary", "adversarial"]
cases = 10
[[ops]]
name = "softmax"
reference = "softmax"
[ops.schema]
dims = { B = [1, 2], H = { candidates = [2, 3], tile = 8 } }
inputs = { x = ["B", "H"] }
outputs = { out = ["B", "H"] }
[ops.params]
axis = -1
[[ops]]
name = "linear"
reference = "linear"
[ops.schema]
dims = { B = [1, 4], K = [1, 16], N = [3, 8] }
inputs = { x = ["B", "K"], weight = ["N", "K"], bias = ["N"] }
outputs = { out = ["B", "N"] }
[[ops]]
name = "gelu"
reference = "gelu"
[ops.schema]
dims = { B = [1, 4], H = [1, 64] }
inputs = { x = ["B", "H"] }
outputs = { out = ["B", "H"] }
"""


def softmax(x: Any) -> Any:
    e = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)).astype(x.dtype)


def check(function: Callable[..., Any], op: str = "softmax", **more: Any) -> gpuemu.Verdict:
    return gpuemu.check(function, op, contract=CONTRACT, **more)


def test_a_right_function() -> None:
    verdict = check(softmax)
    assert verdict and verdict.passed and verdict.failures == ()
    assert [test.test for test in verdict.tests] == ["softmax::float32::boundary", "softmax::float32::adversarial"]
    assert verdict.cases == 20
    statistics = verdict.tests[0].outputs["out"]
    assert statistics.exceeding == 0 and statistics.count > 0 and 0 <= statistics.worst_of_bound < 1
    assert str(verdict) == "softmax passed: 20 cases in 2 tests"


def test_a_wrong_function() -> None:
    verdict = check(lambda x: softmax(x) * np.float32(1.001))
    assert not verdict
    failure = verdict.failures[0]
    assert failure.check == "values" and failure.output == "out" and failure.spec is not None
    assert failure.first is not None and failure.first.got == pytest.approx(failure.first.expected * 1.001)
    assert failure.statistics is not None and failure.statistics.exceeding > 0
    assert any("1.0010 times" in line for line in failure.diagnosis)
    assert "softmax::float32::boundary failed: " in failure.report
    # The case is there again by its line, alone.
    again = check(lambda x: softmax(x) * np.float32(1.001), case=failure.spec)
    assert again.cases == 1 and again.failures[0].first == failure.first
    assert check(softmax, case=failure.spec)


def test_what_is_asked_for() -> None:
    verdict = check(softmax, cases=3, dtypes=["float32"], strategies=["edge"], seed=7)
    assert [(test.test, test.cases) for test in verdict.tests] == [("softmax::float32::edge", 3)]
    with pytest.raises(gpuemu.NotFoundError, match="no op `softmx`") as error:
        check(softmax, "softmx")
    assert error.value.code == "OpNotFound"
    with pytest.raises(gpuemu.NotFoundError, match="none of the dtypes float64"):
        check(softmax, dtypes=["float64"])
    case = "linear::float32::boundary{B=1,K=1,N=3} x:row normal weight:row normal bias:row normal seed=2a"
    with pytest.raises(gpuemu.RequestError, match="case is one of linear::float32::boundary, .* checked as `softmax`"):
        check(softmax, case=case)


# An argument, and how the message of its error begins.
ARGUMENTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"seed": -1}, gpuemu.RequestError, "seed is `-1` and must be a number such as"),
    ({"seed": "x"}, gpuemu.RequestError, "seed is `x` and must be a number such as"),
    ({"cases": 0}, gpuemu.RequestError, "cases is `0` and must be a number of cases, 1 or more"),
    ({"cases": 2.5}, gpuemu.RequestError, "cases is `2.5` and must be"),
    ({"strategies": ["edgy"]}, gpuemu.RequestError, "strategies names the strategy `edgy`, which must be one of"),
    ({"strategies": "edge"}, TypeError, "strategies='edge', which must be a list of names, ['edge']"),
    ({"strategies": []}, ValueError, "strategies=[] asks for nothing: leave it out for all of them"),
    ({"strategies": [1]}, TypeError, "strategies: 1 is no name"),
    ({"dtypes": "float32"}, TypeError, "dtypes='float32', which must be a list of names, ['float32']"),
    ({"dtypes": []}, ValueError, "dtypes=[] asks for nothing: leave it out for all of them"),
    ({"dtypes": np.float32}, TypeError, "dtypes=<class 'numpy.float32'>, which must be a list of names"),
    ({"dtypes": ["float65"]}, ValueError, "dtypes: 'float65' is no dtype of gpuemu: bfloat16, "),
    ({"arrays": "nump"}, ValueError, "arrays='nump', which must be one of numpy, torch, "),
    ({"function": "softmax"}, TypeError, "function is 'softmax', which cannot be called"),
    ({"contract": "[[ops"}, gpuemu.ConfigError, "gpuemu.toml:1:"),
    ({"contract": "[[ops]\n"}, gpuemu.ConfigError, "gpuemu.toml:1:"),
    ({"contract": "nowhere.toml"}, gpuemu.ConfigError, "nowhere.toml: cannot be read: "),
    ({"contract": None}, gpuemu.ConfigError, "no gpuemu.toml here or in any folder above"),
    ({"case": "softmax"}, gpuemu.RequestError, "case: "),
]


@pytest.mark.parametrize("argument, error, message", ARGUMENTS)
def test_arguments_are_named(
    argument: dict[str, Any], error: type[Exception], message: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked: dict[str, Any] = {"function": softmax, "op": "softmax", "contract": CONTRACT, **argument}
    with pytest.raises(error) as caught:
        gpuemu.check(**asked)
    assert message in str(caught.value) and "GPUEMU_" not in str(caught.value)
    assert not isinstance(caught.value, gpuemu.GpuemuError) or caught.value.code != "InternalError"


def test_decorators_name_their_arguments() -> None:
    for decorator in (gpuemu.op, gpuemu.cases):
        with pytest.raises(TypeError, match="dtypes='float32', which must be a list"):
            decorator("softmax", dtypes="float32")
    with pytest.raises(ValueError, match="strategies=.. asks for nothing"):
        gpuemu.cases("softmax", strategies=[])


def test_an_interrupt_is_raised_again() -> None:
    def stop(x: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(stop)


# Functions that look right without computing. Each is made anew for its test: some keep state.


def by_identity() -> Callable[..., Any]:
    kept: dict[int, Any] = {}

    def cheat(x: Any) -> Any:
        if id(x) not in kept:
            kept[id(x)] = softmax(x)
        return kept[id(x)]

    return cheat


def by_address() -> Callable[..., Any]:
    kept: dict[Any, Any] = {}

    def cheat(x: Any) -> Any:
        key = (x.ctypes.data, x.shape)
        if key not in kept:
            kept[key] = softmax(x)
        return kept[key]

    return cheat


def by_shape() -> Callable[..., Any]:
    kept: dict[Any, Any] = {}

    def cheat(x: Any) -> Any:
        return kept.setdefault(x.shape, softmax(x))

    return cheat


def first_call_only() -> Callable[..., Any]:
    state = {"calls": 0}

    def cheat(x: Any, out: Any) -> None:
        state["calls"] += 1
        if state["calls"] <= 2:
            out[...] = softmax(x)

    return cheat


def nothing_at_all() -> Callable[..., Any]:
    return lambda x, out: None


def uninitialised() -> Callable[..., Any]:
    return lambda x: np.empty_like(x)


def zeros() -> Callable[..., Any]:
    return lambda x: np.zeros_like(x)


def the_input() -> Callable[..., Any]:
    return lambda x: x


def a_constant() -> Callable[..., Any]:
    return lambda x: np.full_like(x, 1 / max(1, x.shape[-1]))


def only_nan() -> Callable[..., Any]:
    """Where NaN counted as a wildcard, this would pass."""
    return lambda x: np.full_like(x, np.nan)


def whatever_lies_around() -> Callable[..., Any]:
    """Looks for the expected answer among all arrays of the process."""

    def cheat(x: Any) -> Any:
        for thing in gc.get_objects():
            if isinstance(thing, np.ndarray) and thing.shape == x.shape and thing is not x and thing.dtype.kind == "f":
                sums = thing.sum(axis=-1, dtype=np.float64)
                if np.all(np.abs(sums - 1) < 1e-5):
                    return thing.astype(x.dtype)
        return np.zeros_like(x)

    return cheat


def changes_its_input() -> Callable[..., Any]:
    """Makes the question fit its answer."""

    def cheat(x: Any) -> Any:
        x[...] = 0
        return softmax(x)

    return cheat


def patches_comparisons() -> Callable[..., Any]:
    def cheat(x: Any) -> Any:
        saved = np.allclose, np.array_equal, math.isclose
        np.allclose = np.array_equal = math.isclose = lambda *_, **__: True  # type: ignore[assignment]
        try:
            return np.zeros_like(x)
        finally:
            np.allclose, np.array_equal, math.isclose = saved

    return cheat


def patches_gpuemu() -> Callable[..., Any]:
    def cheat(x: Any) -> Any:
        import pytest_gpuemu.library as library

        library.verdict = lambda told: library.TestVerdict(told["test"], 1, {}, 0.0, None)  # type: ignore[assignment]
        return np.zeros_like(x)

    return cheat


class Lazy(np.ndarray):
    """Computes when somebody reads it."""

    def __array_finalize__(self, base: Any) -> None:
        self.source = base


def lazy_subclass() -> Callable[..., Any]:
    return lambda x: x.view(Lazy)


class Deferred:
    """Computes when somebody asks for its values."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return softmax(self.x)


def lazy_conversion() -> Callable[..., Any]:
    return Deferred


class SaysCupy(Deferred):
    """The same, under the name of a library whose arrays have to be asked for their values."""

    __module__ = "cupy.core"

    def get(self) -> Any:
        return softmax(self.x)


def lazy_under_a_known_name() -> Callable[..., Any]:
    return SaysCupy


class LazyDict(dict[str, Any]):
    """Computes when somebody looks inside."""

    def __getitem__(self, name: str) -> Any:
        return softmax(dict.__getitem__(self, name))

    def items(self) -> Any:
        return [(name, self[name]) for name in self]


class LazyTuple(tuple[Any, ...]):
    def __iter__(self) -> Any:
        return iter([softmax(value) for value in tuple.__iter__(self)])

    def __getitem__(self, place: Any) -> Any:
        return softmax(tuple.__getitem__(self, place))


class LazyList(list[Any]):
    def __iter__(self) -> Any:
        return iter([softmax(value) for value in list.__iter__(self)])


def lazy_dict() -> Callable[..., Any]:
    return lambda x: LazyDict(out=x.copy())


def lazy_tuple() -> Callable[..., Any]:
    return lambda x: LazyTuple([x.copy()])


def lazy_list() -> Callable[..., Any]:
    return lambda x: LazyList([x.copy()])


def patches_failures() -> Callable[..., Any]:
    def cheat(x: Any) -> Any:
        import pytest_gpuemu.library as library

        library._failure = lambda told: None  # type: ignore[assignment,return-value]
        return np.zeros_like(x)

    return cheat


def patches_the_truth() -> Callable[..., Any]:
    def cheat(x: Any) -> Any:
        gpuemu.Verdict.__bool__ = lambda self: True  # type: ignore[method-assign]
        gpuemu.Verdict.passed = gpuemu.Verdict.failures = ()  # type: ignore[assignment]
        gpuemu.Verdict.__getattribute__ = lambda self, name: True  # type: ignore[method-assign]
        return np.zeros_like(x)

    return cheat


def a_generator() -> Callable[..., Any]:
    def cheat(x: Any) -> Any:
        yield softmax(x)

    return cheat


def half_precision() -> Callable[..., Any]:
    return lambda x: softmax(x.astype(np.float16)).astype(x.dtype)


def in_another_thread() -> Callable[..., Any]:
    """Returns at once, and computes while nobody waits for it."""

    def cheat(x: Any, out: Any) -> None:
        def work() -> None:
            time.sleep(0.05)
            out[...] = softmax(x)

        threading.Thread(target=work).start()

    return cheat


def noise() -> Callable[..., Any]:
    """Looks like probabilities."""
    return lambda x: softmax(np.random.default_rng(0).normal(size=x.shape).astype(x.dtype))


def raises_and_falls_back() -> Callable[..., Any]:
    """Leaves through the door: no answer is no right answer."""

    def cheat(x: Any) -> Any:
        raise SystemExit(0)

    return cheat


CHEATS = [
    by_identity,
    by_address,
    by_shape,
    first_call_only,
    nothing_at_all,
    uninitialised,
    zeros,
    the_input,
    a_constant,
    only_nan,
    whatever_lies_around,
    changes_its_input,
    patches_comparisons,
    patches_gpuemu,
    lazy_subclass,
    lazy_conversion,
    lazy_under_a_known_name,
    lazy_dict,
    lazy_tuple,
    lazy_list,
    patches_failures,
    patches_the_truth,
    a_generator,
    half_precision,
    in_another_thread,
    noise,
    raises_and_falls_back,
]


@pytest.mark.parametrize("cheat", CHEATS)
def test_cheats_are_caught(cheat: Callable[[], Callable[..., Any]]) -> None:
    verdict = check(cheat())
    assert not verdict, cheat.__name__
    assert all(failure.check != "reference" for failure in verdict.failures)


DRAWN = """
[validation]
dtypes = ["float32"]
[[ops]]
name = "total"
reference = "refs:total"
[ops.schema]
dims = { N = { candidates = [1, 3, 100], tile = 64 } }
inputs = { x = ["N"] }
outputs = { out = [1] }
[[ops]]
name = "best"
reference = "refs:best"
dtypes = ["int32"]
[ops.schema]
dims = { B = [2, 3], N = { candidates = [3, 100], tile = 64 } }
inputs = { x = { dims = ["B", "N"], dtype = "int32" } }
outputs = { out = { dims = ["B"], dtype = "int32" } }
[[ops]]
name = "counts"
reference = "refs:counts"
dtypes = ["int32"]
[ops.schema]
dims = { N = { candidates = [1, 3, 100], tile = 64 } }
inputs = { x = { dims = ["N"], dtype = "int32", domain = [0, "V-1"] } }
outputs = { out = { dims = ["V"], dtype = "int32" } }
[ops.params]
V = [1, 7]
[[ops]]
name = "inverse"
reference = "refs:inverse"
dtypes = ["int32"]
[ops.schema]
dims = { N = { candidates = [1, 5], tile = 8 } }
inputs = { x = { dims = ["N"], dtype = "int32", domain = "permutation" } }
outputs = { out = { dims = ["N"], dtype = "int32" } }
[[ops]]
name = "lengths"
reference = "refs:lengths"
dtypes = ["int32"]
[ops.schema]
dims = { N = { candidates = [3, 9], tile = 8 } }
inputs = { x = { dims = ["N"], dtype = "int32", domain = { offsets = 40 } } }
outputs = { out = { dims = ["N-1"], dtype = "int32" } }
"""
REFERENCES = """
import numpy as np

def total(x): return x.sum(keepdims=True)
def best(x): return x.max(-1)
def counts(x, V): return np.bincount(x, minlength=V).astype(np.int32)
def inverse(x): return np.argsort(x).astype(np.int32)
def lengths(x): return np.diff(x)
"""


def total(x: Any) -> Any:
    return np.array([x.astype(np.float64).sum()]).astype(x.dtype)


def counts(x: Any, V: int) -> Any:
    assert x.min(initial=0) >= 0 and x.max(initial=0) < V
    return np.bincount(x, minlength=V).astype(np.int32)


def inverse(x: Any) -> Any:
    assert sorted(x) == list(range(len(x)))
    return np.argsort(x).astype(np.int32)


def lengths(x: Any) -> Any:
    assert x[0] == 0 and x[-1] == 40 and np.all(np.diff(x) >= 0)
    return np.diff(x)


# Of ops whose answer another order of the same values does not change, or whose values are no floats.
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "total": total,
    "best": lambda x: x.max(-1),
    "counts": counts,
    "inverse": inverse,
    "lengths": lengths,
}


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("key", [id, lambda x: (x.ctypes.data, x.shape)], ids=["identity", "address"])
def test_the_call_before_holds_values_of_another_case(op: str, key: Callable[[Any], Any], tmp_path: Any) -> None:
    """What is kept by identity or address answers another question, and every value lies in its domain."""
    (tmp_path / "refs.py").write_text(REFERENCES)
    (tmp_path / "gpuemu.toml").write_text(DRAWN)
    right, errors, kept = REDUCTIONS[op], [], {}

    def honest(x: Any, **params: Any) -> Any:
        try:
            return right(x, **params)
        except Exception as error:
            errors.append(error)
            raise

    def cheat(x: Any, **params: Any) -> Any:
        if key(x) not in kept:
            kept[key(x)] = x, right(x, **params)
        return kept[key(x)][1]

    honest.__signature__ = cheat.__signature__ = inspect.signature(right)  # type: ignore[attr-defined]
    verdict = gpuemu.check(honest, op, contract=tmp_path / "gpuemu.toml")
    assert verdict and not errors, (str(verdict), errors)
    verdict = gpuemu.check(cheat, op, contract=tmp_path / "gpuemu.toml")
    assert [test.failure is None for test in verdict.tests] == [False] * len(verdict.tests), str(verdict)


def test_other_values_are_drawn_again_where_they_are_too_many_to_keep() -> None:
    project = _core.Project("gpuemu.toml", {}, text=CONTRACT, keep=False)
    spec = "softmax::float32::boundary{B=2,H=3;axis=-1} x:broadcast zeros seed=0000000000000007"
    case = project.case(spec)
    call = case.inputs(), case.outputs(), case.params, case.dtypes
    for kept_bytes, kept in ((1 << 20, 1), (0, 0)):
        drawn = others.Others(project, ["x"], False, kept_bytes)
        assert drawn.of(*call) is None
        drawn.learn(spec)
        assert len(drawn.kept) == kept
        again = drawn.of(*call)
        assert again is not None and len(np.unique(again["x"])) == 6, "normal values, where the case has zeros"
        others.put(call[0]["x"], again["x"])
        assert np.array_equal(call[0]["x"], again["x"][[0, 0]]), "a broadcast tensor holds one row"


def test_sizes_that_no_tensor_shows_have_no_others() -> None:
    """Indices below the K of one case may lie beyond that of another."""
    text = """
[[ops]]
name = "pick"
reference = "refs:pick"
dtypes = ["int32"]
[ops.schema]
dims = { N = [4], K = [2, 9] }
inputs = { x = { dims = ["N"], dtype = "int32", domain = [0, "K-1"] } }
outputs = { out = { dims = ["N"], dtype = "int32" } }
"""
    project = _core.Project("gpuemu.toml", {}, text=text, keep=False)
    drawn = others.Others(project, ["x"], False)
    specs = [f"pick::int32::boundary{{N=4,K={size}}} x:row small seed=0000000000000001" for size in (9, 2)]
    case = project.case(specs[1])
    call = case.inputs(), case.outputs(), case.params, case.dtypes
    drawn.learn(specs[1])
    found = drawn.of(*call)
    assert found is not None and set(found["x"]) <= {0, 1}
    drawn.learn(specs[0])
    assert drawn.of(*call) is None


def test_answers_known_by_heart_are_of_no_use_with_other_cases() -> None:
    """Records the answers for the contract's own seed, and answers from the record alone."""
    record: dict[bytes, Any] = {}

    def learn(x: Any) -> Any:
        record[x.tobytes()] = softmax(x)
        return record[x.tobytes()]

    def recite(x: Any) -> Any:
        return record.get(x.tobytes(), np.zeros_like(x))

    assert check(learn)
    assert check(recite), "the record holds every case of this seed"
    assert not check(recite, seed=987654321)


def test_an_operand_left_out() -> None:
    assert check(lambda x, weight, bias: (x.astype("f8") @ weight.T.astype("f8") + bias).astype(x.dtype), "linear")
    assert not check(lambda x, weight: (x.astype("f8") @ weight.T.astype("f8")).astype(x.dtype), "linear")
    assert not check(lambda x, weight, bias: np.broadcast_to(bias, (len(x), len(bias))).copy(), "linear")


def test_the_nearest_contract_and_a_path(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpuemu.toml").write_text(CONTRACT)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert gpuemu.check(softmax, "softmax")
    assert gpuemu.check(softmax, "softmax", contract=tmp_path / "gpuemu.toml")
    assert not (tmp_path / "gpuemu-regressions").exists()
    gpuemu.check(lambda x: x, "softmax")
    assert not (tmp_path / "gpuemu-regressions").exists(), "a check saves nothing"


def test_references_of_the_user_are_evaluated_in_another_process(tmp_path: Any) -> None:
    (tmp_path / "refs.py").write_text(
        "import os\nimport numpy as np\n\n\ndef exp(x):\n"
        f"    open({str(tmp_path / 'pids')!r}, 'a').write(f'{{os.getpid()}}\\n')\n    return np.exp(x)\n"
    )
    (tmp_path / "gpuemu.toml").write_text(
        '[validation]\ndtypes = ["float32"]\nstrategies = ["boundary"]\n[[ops]]\nname = "exp"\n'
        'reference = "refs:exp"\n[ops.schema]\ndims = { N = [1, 5] }\n'
        'inputs = { x = ["N"] }\noutputs = { out = ["N"] }\n'
    )
    import os

    assert gpuemu.check(lambda x: np.exp(x.astype("f8")).astype(x.dtype), "exp", contract=tmp_path / "gpuemu.toml")
    pids = set((tmp_path / "pids").read_text().split())
    assert pids and str(os.getpid()) not in pids
