"""A pytest run with gpuemu: its contracts, what it collects, what it says at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_gpuemu import _core, bindings, plugin
from pytest_gpuemu.collection import ContractFile, TestItem
from pytest_gpuemu.summary import Summary

OPTIONS = {variable: "--" + option.replace("_", "-") for option, variable in plugin.SETTINGS.items()}


class Run:
    """What the parts of the plugin share."""

    def __init__(self, config: pytest.Config, settings: dict[str, str]) -> None:
        self.config = config
        self.settings = settings
        self.case: str | None = config.getoption("gpuemu_case") or os.environ.get("GPUEMU_CASE") or None
        # Without the option, tests that the case does not name run as usual.
        self.case_alone = config.getoption("gpuemu_case") is not None
        self.named = plugin.contract_named(config)
        self.projects: dict[Path, _core.Project] = {}
        # How many functions had been decorated when a contract's ops were bound.
        self.bound: dict[int, int] = {}
        self.summary = Summary()
        try:
            _core.Project.check_settings(settings)
        except _core.RequestError as error:
            raise pytest.UsageError(self.in_words_of_options(str(error))) from None
        if self.named is not None and not self.named.is_file():
            raise pytest.UsageError(f"there is no contract {self.named}")

    def project(self, path: Path) -> _core.Project:
        """The contract of a file, with what is bound by now."""
        path = Path(os.path.abspath(path))
        if path not in self.projects:
            given = {"GPUEMU_PYTHON": os.environ.get("GPUEMU_PYTHON") or sys.executable, **self.settings}
            given["GPUEMU_CONFIG"] = ""
            if self.case is not None and not self.owns(path, self.case, given):
                given["GPUEMU_CASE"] = ""
            self.projects[path] = self.open(path, given)
        return self.projects[path]

    def open(self, path: Path, given: dict[str, str], keep: bool = True) -> _core.Project:
        place = path
        try:
            place = path.relative_to(self.config.invocation_params.dir)
        except ValueError:
            pass
        project = _core.Project(path, given, place=place.as_posix(), keep=keep, progress=self.summary.progress)
        self.bound[id(project)] = bindings.bound_so_far()
        bindings.bind_all(project)
        return project

    def bind_new(self, project: _core.Project) -> None:
        """Binds what has been decorated since the contract was read: test modules are imported after it."""
        count = bindings.bound_so_far()
        if self.bound[id(project)] != count:
            bindings.bind_since(project, self.bound[id(project)])
            self.bound[id(project)] = count

    def owns(self, path: Path, case: str, given: dict[str, str]) -> bool:
        """Whether a case is one of this contract, where a run has several."""
        if case.strip().startswith("@"):
            return True
        try:
            project = _core.Project(path, {**given, "GPUEMU_CASE": ""})
            project.test_of_case(case)
        except _core.NotFoundError:
            return False
        except _core.GpuemuError:
            return True
        return True

    def in_words_of_options(self, text: str) -> str:
        for variable, option in OPTIONS.items():
            if variable in self.settings:
                text = text.replace(variable, option)
        return text

    def contract(self) -> Path:
        """The one contract of a run, for test functions of the user's own."""
        return self.named or Path(_core.Project.find(self.config.rootpath))

    def library(self) -> Any:
        from pytest_gpuemu.library import Library

        return Library(contract=self.contract(), settings=self.settings)

    def parametrize(self, metafunc: pytest.Metafunc, marker: pytest.Mark) -> None:
        from pytest_gpuemu.own_tests import parameters

        specs, ids = parameters(self, marker)
        metafunc.parametrize("case", specs, ids=ids)


class Hooks:
    """The hooks of a run with gpuemu."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @pytest.hookimpl
    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        named = self.run.named
        wanted = file_path.name == "gpuemu.toml" if named is None else _same(file_path, named)
        if not wanted:
            return None
        return ContractFile.from_parent(parent, path=file_path, run=self.run)  # type: ignore[no-any-return]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Where no path is given, the contract at hand belongs to the run wherever `testpaths` points. xdist hands the
        paths to its workers right after this."""
        config = session.config
        run = self.run
        if config.args_source is pytest.Config.ArgsSource.ARGS:
            return
        try:
            contract = run.named or Path(_core.Project.find(config.invocation_params.dir))
        except _core.GpuemuError:
            if run.case_alone:
                raise pytest.UsageError("--gpuemu-case: there is no gpuemu.toml here or in any folder above") from None
            return
        if run.case_alone and run.case is not None:
            # One case needs no other file, and only its own test.
            try:
                test = run.project(contract).test_of_case(run.case)
            except _core.GpuemuError as error:
                raise pytest.UsageError(f"--gpuemu-case: {str(error).removeprefix('--gpuemu-case: ')}") from None
            config.args[:] = [f"{contract}::{test}"]
        elif not any(_holds(Path(config.invocation_params.dir, arg), contract) for arg in config.args):
            config.args.append(str(contract))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        run = self.run
        if run.case is None:
            return
        found = [item for item in items if isinstance(item, TestItem) and item.has_case()]
        if not found:
            names = sorted({item.project.test_of_case(run.case) for item in items if isinstance(item, TestItem)})
            source = "--gpuemu-case" if run.case_alone else "GPUEMU_CASE"
            told = f" ({names[0]})" if names else ""
            raise pytest.UsageError(f"{source} names a test that this run does not select{told}: {run.case}")
        if run.case_alone:
            config.hook.pytest_deselected(items=[item for item in items if item not in found])
            items[:] = found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.run.summary.add(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.config.option.collectonly:
            return
        for project in self.run.projects.values():
            try:
                self.run.summary.told.extend(project.finish())
            except _core.GpuemuError as error:
                self.run.summary.told.append(f"warning: {error}")
            _keep_out_of_git(Path(project.root, ".gpuemu"))
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["gpuemu"] = self.run.summary.told

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.run.summary.told.extend(getattr(node, "workeroutput", {}).get("gpuemu", []))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        self.run.summary.write(terminalreporter)


def _keep_out_of_git(folder: Path) -> None:
    """As pytest does with its own cache."""
    try:
        if folder.is_dir() and not (folder / ".gitignore").exists():
            (folder / ".gitignore").write_text("*\n")
    except OSError:
        pass  # What could not be written there is told by the results.


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def _holds(folder: Path, path: Path) -> bool:
    folder = Path(os.path.abspath(str(folder).partition("::")[0]))
    return folder == path or folder in path.parents


def walk(node: pytest.Collector | pytest.Item | None) -> Iterator[pytest.Collector | pytest.Item]:
    """A node and those above it."""
    while node is not None:
        yield node
        node = node.parent  # type: ignore[assignment]
