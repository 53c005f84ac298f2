"""A pytest run with gpuemu: its contracts, what it collects, what it says at the end."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_gpuemu import _core, bindings, plugin
from pytest_gpuemu.collection import ContractFile, TestItem
from pytest_gpuemu.summary import Summary
from pytest_gpuemu.triton import compiling

OPTIONS = {variable: "--" + option.replace("_", "-") for option, variable in plugin.SETTINGS.items()}


class Run:
    """What the parts of the plugin share."""

    def __init__(self, config: pytest.Config, settings: dict[str, str]) -> None:
        self.config = config
        self.settings = settings
        self.case = self.from_here(config.getoption("gpuemu_case") or os.environ.get("GPUEMU_CASE") or None)
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
            if self.case is not None:
                file = saved_file(self.case)
                if not self.owns(path, self.case, given):
                    given["GPUEMU_CASE"] = ""
                elif file is not None and path.parent in file.parents:
                    given["GPUEMU_CASE"] = f"@{file.relative_to(path.parent).as_posix()}"
            self.projects[path] = self.open(path, given)
        return self.projects[path]

    def open(self, path: Path, given: dict[str, str], keep: bool = True) -> _core.Project:
        place = self.from_there(path)
        project = _core.Project(path, given, place=place, keep=keep, progress=self.summary.progress)
        self.bound[id(project)] = bindings.bound_so_far()
        bindings.bind_all(project)
        return project

    def bind_new(self, project: _core.Project) -> None:
        """Binds what has been decorated since the contract was read: test modules are imported after it."""
        count = bindings.bound_so_far()
        if self.bound[id(project)] != count:
            bindings.bind_since(project, self.bound[id(project)])
            self.bound[id(project)] = count

    def from_there(self, path: Path) -> str:
        """A file as a command line names it in the folder where this run was started."""
        try:
            path = Path(os.path.relpath(path, self.config.invocation_params.dir))
        except ValueError:
            pass  # On another drive.
        return path.as_posix()

    def from_here(self, case: str | None) -> str | None:
        """A case; where it is a saved file that is named from the current folder, by its whole path. Otherwise it is
        named from the contract's folder, as reports do."""
        file = saved_file(case)
        here = Path(self.config.invocation_params.dir)
        return f"@{os.path.abspath(here / file)}" if file is not None and (here / file).is_file() else case

    def owns(self, path: Path, case: str, given: dict[str, str]) -> bool:
        """Whether a case is one of this contract, where a run has several."""
        if saved_file(case) is not None:
            return self.lies_by(path)
        try:
            project = _core.Project(path, {**given, "GPUEMU_CASE": ""})
            project.test_of_case(case)
        except _core.NotFoundError:
            return False
        except _core.GpuemuError:
            return True
        return True

    def lies_by(self, contract: Path) -> bool:
        """Whether the case of this run may be one of this contract for where it is saved, if it is."""
        file = saved_file(self.case)
        return file is None or not file.is_absolute() or _contract_of(file) in (None, contract)

    def in_words_of_options(self, text: str) -> str:
        for variable, option in OPTIONS.items():
            if variable in self.settings:
                text = text.replace(variable, option)
        return text

    def contract(self) -> Path:
        """The one contract of a run, for test functions of the user's own."""
        return self.named or Path(_core.Project.find(self.config.rootpath))

    def strategies_given(self) -> bool:
        """Whether the command line or the environment names strategies, instead of the contract's."""
        return bool(self.settings.get("GPUEMU_STRATEGIES", os.environ.get("GPUEMU_STRATEGIES")))

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
        self.folder = run.config.rootpath / ".gpuemu"

    def pytest_report_header(self) -> list[str]:
        crashed = compiling.of_the_dead(self.folder)
        lines = [f"gpuemu: the run before ended while Triton compiled {kernel}" for kernel in crashed]
        device = self.run.settings.get("GPUEMU_DEVICE", os.environ.get("GPUEMU_DEVICE"))
        if device == "emulate" and importlib.util.find_spec("triton") is None:
            option = self.run.in_words_of_options("GPUEMU_DEVICE=emulate")
            lines.append(f"gpuemu: {option} has nothing to act on: there is no Triton here (`pip install triton`)")
        return lines

    @pytest.hookimpl
    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        named = self.run.named
        wanted = file_path.name == "gpuemu.toml" if named is None else _same(file_path, named)
        if not wanted:
            return None
        # Of a file above the root of the run pytest has no name.
        outside = self.run.config.rootpath not in file_path.parents
        name = self.run.from_there(file_path) if outside else None
        return ContractFile.from_parent(  # type: ignore[no-any-return]
            parent, path=file_path, run=self.run, nodeid=name
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Where no path is given, the contract at hand belongs to the run wherever `testpaths` points. xdist hands the
        paths to its workers right after this."""
        config = session.config
        run = self.run
        if config.args_source is pytest.Config.ArgsSource.ARGS:
            return
        saved = saved_file(run.case) if run.case_alone else None
        contract = run.named or (_contract_of(saved) if saved is not None and saved.is_absolute() else None)
        try:
            contract = contract or Path(_core.Project.find(config.invocation_params.dir))
        except _core.GpuemuError:
            if run.case_alone:
                raise pytest.UsageError(
                    "--gpuemu-case: there is no gpuemu.toml here or in any folder above: name it behind the case"
                ) from None
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

    @pytest.hookimpl
    def pytest_runtest_teardown(self) -> None:
        compiling.forget()

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any) -> None:
        """A worker of xdist has died."""
        gateway = getattr(getattr(report, "node", None), "gateway", None)
        kernel = compiling.of_worker(self.folder, gateway.id) if gateway is not None else None
        if kernel is not None:
            report.longrepr = f"{report.longrepr}\nTriton's compiler crashed on {kernel}"

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


def saved_file(case: str | None) -> Path | None:
    """The file of a case that is a saved one, as it is named."""
    name = (case or "").strip()
    return Path(name[1:]) if name.startswith("@") else None


def _contract_of(file: Path) -> Path | None:
    """The contract in whose folder a file lies."""
    try:
        return Path(_core.Project.find(file.parent))
    except _core.GpuemuError:
        return None


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
