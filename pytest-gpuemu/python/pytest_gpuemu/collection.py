"""`gpuemu.toml` as collectors: a node id is the file and the test's name, `gpuemu.toml::softmax::float32::boundary`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback

from pytest_gpuemu import _core, bindings

if TYPE_CHECKING:
    from pytest_gpuemu.session import Run

# What a test leaves in the report, in the order it is shown.
PREFIX = "gpuemu."


class Level(pytest.Class):
    """One part of a test's name with what is below it. Editors show classes as levels of a tree, and other collectors
    not at all."""

    def __init__(self, *, tree: dict[str, Any], project: _core.Project, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Plugins may ask a class for its object.
        self._obj = type(self.name, (), {})
        self.tree = tree
        self.project = project

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        return children(self, self.tree, self.project)


class ContractFile(pytest.File):
    """A contract."""

    def __init__(self, *, run: Run, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        try:
            project = self.run.project(self.path)
            listed = project.tests()
        except _core.GpuemuError as error:
            raise self.CollectError(str(error)) from None
        if not listed:
            raise self.CollectError(
                "there is no test: no op of the contract has a dtype and a strategy that this run may use"
            )
        tree: dict[str, Any] = {}
        for entry in listed:
            *levels, last = entry[0].split("::")
            place = tree
            for level in levels:
                place = place.setdefault(level, {})
            place[last] = entry
        return children(self, tree, project)


def children(parent: Any, tree: dict[str, Any], project: _core.Project) -> Iterator[pytest.Item | pytest.Collector]:
    for name, below in tree.items():
        if isinstance(below, dict):
            yield Level.from_parent(parent, name=name, tree=below, project=project)
        else:
            yield TestItem.from_parent(parent, name=name, listed=below, project=project)


class TestItem(pytest.Item):
    """A test of the contract."""

    __test__ = False

    def __init__(self, *, listed: tuple[str, str | None, bool, int], project: _core.Project, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.test, self.cannot_run, self.regression, self.line = listed
        # What is printed can be given to `-k`, which otherwise sees each level alone.
        self.extra_keyword_matches.add(self.test)
        self.project = project
        self.failure: AssertionError | None = None

    def fail(self, report: str) -> None:
        """Ends the test with a report. Tools tell a failure from an error by the name of the exception's class."""
        self.failure = AssertionError(report)
        raise self.failure

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        return self.path, self.line - 1, self.test

    def has_case(self) -> bool:
        """Whether the case that this run names is one of this test's."""
        run = self.config.stash[_run_key()]
        assert run.case is not None
        try:
            return run.lies_by(self.path) and self.project.test_of_case(run.case) == self.test
        except _core.GpuemuError:
            return False

    def runtest(self) -> None:
        # A rerun tells of itself alone.
        self.user_properties[:] = [entry for entry in self.user_properties if not entry[0].startswith(PREFIX)]
        run = self.config.stash[_run_key()]
        run.bind_new(self.project)
        reason = self.project.cannot_run(self.test) or bindings.lacks_gpu(self.project, self.test)
        if reason is not None:
            reason = run.in_words_of_options(reason)
            if self.project.requires:
                self.fail(f"{self.test} cannot run on this host: {reason}")
            pytest.skip(reason)
        failure, properties = self.project.run(self.test)
        self.user_properties.extend((PREFIX + name, value) for name, value in properties)
        if failure is not None:
            self.fail(failure.rstrip("\n"))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if excinfo.value is self.failure:
            return self._told(str(excinfo.value))
        if isinstance(excinfo.value, _core.GpuemuError):
            return self._told(f"{self.test} failed: {excinfo.value} [{excinfo.value.code}]")
        return super().repr_failure(excinfo, style)

    def _told(self, report: str) -> ReprExceptionInfo:
        """A report under its first line alone: on a CI machine pytest's summary repeats all of what stands there."""
        crash = ReprFileLocation(str(self.path), self.line, report.partition("\n")[0])
        return ReprExceptionInfo(ReprTraceback([ReprEntryNative([report + "\n"])], None, "native"), crash)


def _run_key() -> Any:
    from pytest_gpuemu.plugin import run_key

    return run_key
