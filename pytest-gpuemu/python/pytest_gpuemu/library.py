"""gpuemu without pytest: a verdict on one function, for benchmarks of generated kernels."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pytest_gpuemu import _core, bindings, calling, others


@dataclasses.dataclass(frozen=True)
class Statistics:
    """Error statistics of one output. ULPs are those of the output's dtype; `worst_of_bound` is the largest error as a
    share of what was allowed."""

    count: int
    exceeding: int
    max_abs: float
    mean_abs: float
    p50_abs: float
    p90_abs: float
    p99_abs: float
    max_rel: float
    mean_rel: float
    max_ulp: float
    mean_ulp: float
    worst_of_bound: float


@dataclasses.dataclass(frozen=True)
class Mismatch:
    """The first element that differs."""

    index: tuple[int, ...]
    expected: float
    got: float
    allowed: float
    ulp: float


@dataclasses.dataclass(frozen=True)
class Failure:
    """Why a test failed. `check` is one word (`values`, `shape`, `unwritten`, ...); `spec` names the smallest failing
    case, where there is one; `report` is the whole text."""

    check: str
    message: str
    output: str | None
    spec: str | None
    first: Mismatch | None
    statistics: Statistics | None
    diagnosis: tuple[str, ...]
    report: str


@dataclasses.dataclass(frozen=True)
class TestVerdict:
    """What became of one test: its cases, error statistics of each output over all of them, seconds in the function."""

    __test__ = False

    test: str
    cases: int
    outputs: Mapping[str, Statistics]
    seconds: float
    failure: Failure | None

    @property
    def passed(self) -> bool:
        return self.failure is None


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of a function. It is true when every test passed."""

    op: str
    tests: tuple[TestVerdict, ...]

    @property
    def passed(self) -> bool:
        return all(test.passed for test in self.tests)

    def __bool__(self) -> bool:
        return self.passed

    @property
    def cases(self) -> int:
        return sum(test.cases for test in self.tests)

    @property
    def failures(self) -> tuple[Failure, ...]:
        return tuple(test.failure for test in self.tests if test.failure is not None)

    def __str__(self) -> str:
        failures = self.failures
        if not failures:
            return f"{self.op} passed: {self.cases} cases in {len(self.tests)} tests"
        count = f"{self.op} failed {len(failures)} of {len(self.tests)} tests"
        return "\n".join([count, *(failure.report.rstrip() for failure in failures)])


class Watched(calling.Subject):
    """A function that may try to look right without computing: before each call that counts, it is called with other
    values in the very same arrays, so that what it kept by address or identity is wrong."""

    others: others.Others | None = None

    def run(
        self,
        inputs: dict[str, np.ndarray],
        outputs: dict[str, np.ndarray | None],
        params: dict[str, Any],
        dtypes: dict[str, str],
        dtype: str,
    ) -> calling.Answers:
        written = [array for array in outputs.values() if array is not None]
        arrays = [*inputs.values(), *written]
        kept = [array.copy() for array in arrays]
        drawn = None if self.others is None else self.others.of(inputs, outputs, params, dtypes)
        for name, array in inputs.items():
            if drawn is not None:
                others.put(array, drawn[name])
            elif dtypes[name].startswith(("float", "bfloat")):
                # Of a case that nobody planned, its own values are the only ones that are known to be valid.
                array[...] = array.ravel()[::-1].reshape(array.shape)
        try:
            super().run(inputs, outputs, params, dtypes, dtype)
        except Exception:
            pass  # The call that counts will say so, unless it is about these values alone.
        for array, values in zip(arrays, kept):
            array[...] = values
        return super().run(inputs, outputs, params, dtypes, dtype)


class Unchanged:
    """What makes a verdict of what the core tells, as it is before a function runs, which might put others in its place."""

    def __init__(self) -> None:
        owners = [sys.modules[__name__], Statistics, Mismatch, Failure, TestVerdict, Verdict]
        self.kept = [(owner, dict(vars(owner))) for owner in owners]

    def restore(self) -> None:
        for owner, kept in self.kept:
            now = dict(vars(owner))
            for name in now.keys() - kept.keys():
                delattr(owner, name)
            for name, value in kept.items():
                if name not in now or now[name] is not value:
                    setattr(owner, name, value)


class Library:
    """`check` with a contract and settings of its own."""

    def __init__(
        self, contract: str | os.PathLike[str] | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        self.contract = contract
        self.settings = dict(settings or {})

    def check(
        self,
        function: Callable[..., Any],
        op: str,
        *,
        contract: str | os.PathLike[str] | None = None,
        cases: int | None = None,
        seed: int | None = None,
        dtypes: Sequence[str] | None = None,
        strategies: Sequence[str] | None = None,
        arrays: str | None = None,
        case: str | None = None,
    ) -> Verdict:
        """See `gpuemu.check`."""
        if not callable(function):
            raise TypeError(f"function is {function!r}, which cannot be called")
        bindings.check_names(arrays, dtypes)
        bindings.check_list("strategies", strategies)
        settings = {
            "GPUEMU_CONFIG": "",
            "GPUEMU_CALIBRATE": "",
            "GPUEMU_PYTHON": os.environ.get("GPUEMU_PYTHON") or sys.executable,
            **self.settings,
            # A case belongs to one test and is asked for by name.
            "GPUEMU_CASE": "",
        }
        own = {"cases": cases, "seed": seed, "strategies": None if strategies is None else ",".join(strategies)}
        asked = {argument: str(value) for argument, value in own.items() if value is not None}
        try:
            _core.Project.check_settings({_variable(argument): value for argument, value in asked.items()})
        except _core.RequestError as error:
            raise _in_words_of_arguments(error, asked) from None
        settings.update((_variable(argument), value) for argument, value in asked.items())
        project = opened(contract if contract is not None else self.contract, settings)
        info = next((info for info in project.ops if info.name == op), None)
        if info is None:
            names = ", ".join(info.name for info in project.ops)
            raise _not_found(f"no op `{op}` in the contract, which has {names}")
        subject = Watched(function, info, bindings.kind_for(info, arrays), device=project.device)
        project.bind(op, subject)
        if case is not None:
            try:
                test = project.test_of_case(case)
            except _core.RequestError as error:
                raise _reworded(error, f"case: {str(error).removeprefix('case: ')}") from None
            if test.split("::")[0] != op:
                raise _coded(
                    _core.RequestError(f"case is one of {test}, and the function is checked as `{op}`"),
                    "InvalidRequest",
                )
            return _judged(project, info, subject, [test], case)
        tests = [
            f"{op}::{dtype}::{strategy}"
            for dtype in info.dtypes
            if dtypes is None or dtype in dtypes
            for strategy in info.strategies
        ]
        if not tests:
            raise _not_found(
                f"op `{op}` has none of the dtypes {', '.join(dtypes or ())}; it has {', '.join(info.dtypes)}"
            )
        return _judged(project, info, subject, tests)


def _judged(
    project: _core.Project, info: _core.OpInfo, subject: Watched, tests: Sequence[str], case: str | None = None
) -> Verdict:
    """Runs tests, or the one case. Nothing is looked up in this module once the function has run, before what it may have
    changed here is as it was."""
    restore, validate, prepare = Unchanged().restore, project.validate, _prepare
    told = []
    for test in tests:
        prepare(project, info, subject, test, case)
        try:
            told.append(validate(test, case))
        finally:
            restore()
    return Verdict(info.name, tuple([verdict(one) for one in told]))


def _prepare(project: _core.Project, info: _core.OpInfo, subject: Watched, test: str, case: str | None) -> None:
    """Draws other values for the cases of a test, before any time is measured."""
    subject.others = others.Others(project, info.inputs, subject.bits)
    try:
        specs = (project.spec(test, index) for index in range(project.case_count(test)))
        for spec in specs if case is None else [case]:
            subject.others.learn(spec)
    except _core.GpuemuError:
        pass  # The test will say so.


def _variable(argument: str) -> str:
    return f"GPUEMU_{argument.upper()}"


def _in_words_of_arguments(error: _core.RequestError, arguments: Mapping[str, str]) -> _core.GpuemuError:
    """An error that names arguments of `check` rather than the variables that stand for them."""
    text = str(error)
    for argument in arguments:
        text = text.replace(_variable(argument), argument)
    return _reworded(error, text)


def _reworded(error: _core.GpuemuError, text: str) -> _core.GpuemuError:
    return _coded(type(error)(text), error.code)


def _coded(error: _core.GpuemuError, code: str) -> _core.GpuemuError:
    error.code = code
    return error


def _not_found(message: str) -> _core.GpuemuError:
    return _coded(_core.NotFoundError(message), "OpNotFound")


def opened(contract: str | os.PathLike[str] | None, settings: dict[str, str]) -> _core.Project:
    """A contract by its path, by its text, or the nearest one from the current folder upwards."""
    if contract is None:
        try:
            found = _core.Project.find(Path.cwd())
        except _core.ConfigError as error:
            text = str(error).replace("set GPUEMU_CONFIG to one", "give `contract`")
            raise _reworded(error, f"contract is not given, and {text}") from None
        return _core.Project(found, settings, keep=False)
    if isinstance(contract, str) and _is_text(contract):
        return _core.Project(Path.cwd() / "gpuemu.toml", settings, text=contract, keep=False)
    return _core.Project(Path(contract), settings, keep=False)


def _is_text(contract: str) -> bool:
    """Whether it is a contract rather than the path of one, which may not be there."""
    return "\n" in contract or (any(sign in contract for sign in "[={") and not os.path.exists(contract))


def verdict(told: Mapping[str, Any]) -> TestVerdict:
    """The classes above from what `_core` tells."""
    failure = told["failure"]
    return TestVerdict(
        test=told["test"],
        cases=told["cases"],
        outputs={name: Statistics(**statistics) for name, statistics in told["outputs"].items()},
        seconds=told["seconds"],
        failure=None if failure is None else _failure(failure),
    )


def _failure(told: Mapping[str, Any]) -> Failure:
    first, statistics = told["first"], told["statistics"]
    return Failure(
        check=told["check"],
        message=told["message"],
        output=told["output"],
        spec=told["spec"],
        first=None if first is None else Mismatch(**{**first, "index": tuple(first["index"])}),
        statistics=None if statistics is None else Statistics(**statistics),
        diagnosis=tuple(told["diagnosis"]),
        report=told["report"],
    )


def check(
    function: Callable[..., Any],
    op: str,
    *,
    contract: str | os.PathLike[str] | None = None,
    cases: int | None = None,
    seed: int | None = None,
    dtypes: Sequence[str] | None = None,
    strategies: Sequence[str] | None = None,
    arrays: str | None = None,
    case: str | None = None,
) -> Verdict:
    """Runs the cases of an op on a function, and says what became of it.

    `contract`: a path, the text of a contract, or by default the nearest `gpuemu.toml`. `cases`: how many a test.
    `seed`: parent seed of the cases, instead of the contract's: one that the function cannot know, such as
    `secrets.randbits(63)`. `arrays`: what the function is given, as in `@gpuemu.op`. `case`: the spec of one case.

    The function is called with outputs full of poison, before the right answer exists; before each call that counts, the
    same arrays hold the values of another case, and the time of both calls counts. References that are Python functions are evaluated in another process. Nothing is
    saved.
    """
    return Library().check(
        function,
        op,
        contract=contract,
        cases=cases,
        seed=seed,
        dtypes=dtypes,
        strategies=strategies,
        arrays=arrays,
        case=case,
    )
