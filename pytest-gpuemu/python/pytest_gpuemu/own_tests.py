"""Cases for people who write their own test functions: `@gpuemu.cases("softmax")`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_gpuemu import _core, arrays, bindings, calling, gpu

if TYPE_CHECKING:
    from pytest_gpuemu.session import Run


class CaseFailed(AssertionError):
    """An answer is wrong; the message is the whole report."""


def cases(
    op: str,
    *,
    dtypes: Sequence[str] | None = None,
    strategies: Sequence[str] | None = None,
    arrays: str | None = None,
) -> Callable[[Any], Any]:
    """Runs a test function, which has an argument `case`, once for every case of an op. Without `--gpuemu` the test is
    skipped.

    ```python
    @gpuemu.cases("softmax")
    def test_softmax(case):
        case.check(softmax(case["x"]))
    ```
    """
    bindings.check_names(arrays, dtypes)
    bindings.check_list("strategies", strategies)
    return pytest.mark.gpuemu(op, dtypes=dtypes, strategies=strategies, arrays=arrays)


class Case:
    """One case: inputs, outputs to write into, parameters and dimensions by name, and a judge."""

    def __init__(self, project: _core.Project, info: _core.OpInfo, test: str, index: int, kind: str) -> None:
        self._project = project
        self._info = info
        self._test = test
        self._index = index
        self._kind = kind
        self._made: _core.Case | None = None
        self._given: dict[str, Any] = {}
        self._copies: gpu.Copies | None = None

    def _case(self) -> _core.Case:
        # Planned and built when a test asks for it: collection stays quick, and a rerun gets fresh memory.
        if self._made is None:
            self._made = self._project.case(self._project.spec(self._test, self._index))
            give = arrays.giver(self._kind)
            made, bits = self._made, self._kind == "torch"
            tensors = {**made.inputs(bits), **{k: v for k, v in made.outputs(bits).items() if v is not None}}
            self._given = {name: give(array, made.dtypes[name]) for name, array in tensors.items()}
            try:
                self._copies = gpu.copies(self._project.device, self._kind)
            except gpu.Absent as absent:
                pytest.skip(str(absent))
            if self._copies:
                self._given = {name: self._copies.to_gpu(tensor) for name, tensor in self._given.items()}
        return self._made

    @property
    def spec(self) -> str:
        """The line that names the case."""
        return self._case().spec

    @property
    def dtype(self) -> str:
        """The dtype of the test."""
        return self._case().dtype

    @property
    def dims(self) -> dict[str, int]:
        """Sizes by name."""
        return self._case().dims

    @property
    def params(self) -> dict[str, Any]:
        """Parameters by name."""
        return self._case().params

    @property
    def inputs(self) -> dict[str, Any]:
        """Inputs by name, with their strides and offsets."""
        return {name: self._given[name] for name in self._case().inputs(True)}

    @property
    def outputs(self) -> dict[str, Any]:
        """Outputs by name, full of poison; those whose shape is declared."""
        return {name: self._given[name] for name in self._case().outputs(True) if name in self._given}

    @property
    def expected(self) -> dict[str, Any]:
        """The right answers by name, as NumPy arrays: float64, never rounded to the output's dtype."""
        return dict(self._case().expected())

    def __getitem__(self, name: str) -> Any:
        """A tensor, a parameter or a dimension by name."""
        made = self._case()
        for known in (self._given, made.params, made.dims):
            if name in known:
                return known[name]
        raise KeyError(f"{name}: the case has {', '.join([*self._given, *made.params, *made.dims])}")

    def check(self, *results: Any, **named: Any) -> None:
        """Judges answers: by position in the order of the outputs, or by name; without any, what was written into
        `outputs`."""
        __tracebackhide__ = True
        made = self._case()
        outputs = made.outputs(True)
        own = [name for name in outputs if name not in named]
        values = dict(named)
        if results:
            result = results[0] if len(results) == 1 else tuple(results)
            values.update(calling.by_name(result, own, [*self._info.inouts, *outputs]))
        if self._copies:
            self._copies.back()
        answers: calling.Answers = []
        for name, value in values.items():
            if value is self._given.get(name):
                continue
            declared = outputs.get(name)
            dtype, array = arrays.from_any(name, value)
            answers.append((name, dtype, arrays.dense(name, array, None if declared is None else declared.shape)))
        failure = made.judge(answers)
        if failure is not None:
            raise CaseFailed(failure.rstrip("\n"))

    def __repr__(self) -> str:
        return f"<case {self._index} of {self._test}>"


def parameters(run: Run, marker: pytest.Mark) -> tuple[list[Case], list[str]]:
    """The cases that a mark asks for, and their names. What is wrong with the mark is an error of its file."""
    (op,) = marker.args
    try:
        contract = run.contract()
        project = run.project(contract)
    except _core.GpuemuError as error:
        raise pytest.Collector.CollectError(f"@gpuemu.cases({op!r}): {error}") from None
    named = run.from_there(contract)
    info = next((info for info in project.ops if info.name == op), None)
    if info is None:
        names = [info.name for info in project.ops]
        raise pytest.Collector.CollectError(
            f"@gpuemu.cases: no op `{op}` in {named}, which has {', '.join(names)}{_near(op, names)}"
        )
    kind = bindings.kind_for(info, marker.kwargs.get("arrays"))
    dtypes = _asked(op, "dtype", marker.kwargs.get("dtypes"), info.dtypes, named)
    strategies = marker.kwargs.get("strategies")
    if strategies is not None and run.strategies_given():
        # This run has other strategies than the contract: those that it leaves out are no mistake.
        strategies = [name for name in strategies if name in info.strategies]
    else:
        strategies = _asked(op, "strategy", strategies, info.strategies, named)
    found: list[Case] = []
    names = []
    for dtype in dtypes:
        for strategy in strategies:
            test = f"{op}::{dtype}::{strategy}"
            for index in range(project.case_count(test)):
                found.append(Case(project, info, test, index, kind))
                names.append(f"{dtype}-{strategy}-{index}")
    return found, names


PLURALS = {"dtype": "dtypes", "strategy": "strategies"}


def _asked(op: str, noun: str, names: Sequence[str] | None, known: list[str], contract: str) -> Sequence[str]:
    """The names that a mark gives, which the op must have; without any, all of the op's."""
    for name in names or ():
        if name in known:
            continue
        near = _near(name, known) if noun == "strategy" else ""
        way_out = near or f": name one of them, or list `{name}` in `{PLURALS[noun]}` of the op or of [validation]"
        raise pytest.Collector.CollectError(
            f"@gpuemu.cases: op `{op}` of {contract} has no {noun} `{name}`; it has {', '.join(known)}{way_out}"
        )
    return known if names is None else names


def _near(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""
