"""The pytest plugin. It does nothing without `--gpuemu` (or `--gpuemu-case`)."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_gpuemu.session import Run

# Options that stand for an environment variable of the same meaning.
SETTINGS = {
    "gpuemu_seed": "GPUEMU_SEED",
    "gpuemu_cases": "GPUEMU_CASES",
    "gpuemu_case": "GPUEMU_CASE",
    "gpuemu_strategies": "GPUEMU_STRATEGIES",
    "gpuemu_profile": "GPUEMU_PROFILE",
    "gpuemu_device": "GPUEMU_DEVICE",
    "gpuemu_calibrate": "GPUEMU_CALIBRATE",
    "gpuemu_update": "GPUEMU_UPDATE",
}
OPTIONS = (*SETTINGS, "gpuemu_config", "gpuemu_snapshots")
SNAPSHOTS = {"check": "no", "pending": "new", "update": "always"}

run_key: pytest.StashKey[Run] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpuemu", "GPU kernels, tested without a GPU")
    group.addoption("--gpuemu", action="store_true", help="collect gpuemu.toml and run its cases")
    group.addoption(
        "--gpuemu-case",
        metavar="SPEC",
        help="run this one case in the test it names, as the replay line of a failure gives it (or =@ and a saved file)",
    )
    group.addoption("--gpuemu-config", metavar="FILE", help="the contract, instead of every gpuemu.toml that is found")
    group.addoption("--gpuemu-seed", metavar="N", help="parent seed of every case, instead of the contract's")
    group.addoption("--gpuemu-cases", metavar="N", help="cases a test, instead of the contract's")
    group.addoption("--gpuemu-strategies", metavar="NAMES", help="strategies of every op, separated by commas")
    group.addoption("--gpuemu-profile", choices=["quick", "thorough"], help="how much a run tries")
    group.addoption(
        "--gpuemu-device", choices=["emulate", "cuda", "auto"], help="what runs kernels of Triton and PyTorch"
    )
    group.addoption(
        "--gpuemu-snapshots",
        choices=sorted(SNAPSHOTS),
        help="figures that differ from the accepted ones: fail, leave a .snap.new for `cargo insta review`, or accept",
    )
    group.addoption(
        "--gpuemu-calibrate",
        choices=["check", "write"],
        help="envelopes of the operators: hold against the file, or write",
    )
    group.addoption("--gpuemu-update", choices=["ptx"], help="compile committed PTX again")
    parser.addini("gpuemu_config", "the contract, relative to the ini file", default=None)
    parser.addini("gpuemu_profile", "as --gpuemu-profile", default=None)
    parser.addini("gpuemu_device", "as --gpuemu-device", default=None)


def is_on(config: pytest.Config) -> bool:
    """Whether gpuemu was asked for."""
    return bool(config.getoption("gpuemu") or config.getoption("gpuemu_case"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpuemu(op): cases of an op of gpuemu.toml; needs --gpuemu")
    if not is_on(config):
        args = map(str, config.invocation_params.args)
        vain = [arg.partition("=")[0] for arg in args if arg.startswith("--gpuemu-")]
        if vain:
            raise pytest.UsageError(f"{vain[0]} needs --gpuemu: without it, nothing of gpuemu runs")
        return
    from pytest_gpuemu import gpu, session

    given = settings(config)
    device = given.get("GPUEMU_DEVICE", os.environ.get("GPUEMU_DEVICE"))
    if device == "emulate" or (device == "auto" and gpu.missing() is not None):
        from pytest_gpuemu.triton import begin_run

        begin_run(config)
    config.stash[run_key] = session.Run(config, given)
    config.pluginmanager.register(session.Hooks(config.stash[run_key]), "gpuemu-hooks")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """What is set for a run with gpuemu, and has no effect in this one."""
    if is_on(config):
        return []
    options = ["--" + name.replace("_", "-") for name in OPTIONS if config.getoption(name) is not None]
    variables = [name for name in (*SETTINGS.values(), "GPUEMU_CONFIG", "GPUEMU_REQUIRE") if os.environ.get(name)]
    lines = []
    if options or variables:
        lines.append(f"gpuemu: off without --gpuemu, whatever {', '.join([*options, *variables])} says")
    if os.environ.get("GPUEMU_DEVICE") == "emulate" and importlib.util.find_spec("triton") is not None:
        lines.append("gpuemu: GPUEMU_DEVICE makes the emulator Triton's device, for tensors of the CPU alone")
    return lines


def settings(config: pytest.Config) -> dict[str, str]:
    """Environment variables that this command line gives."""
    given: dict[str, str] = {}
    for option, variable in SETTINGS.items():
        value = config.getoption(option)
        if value is None and option in ("gpuemu_profile", "gpuemu_device"):
            value = config.getini(option) or None
        if value is not None:
            given[variable] = str(value)
    snapshots = config.getoption("gpuemu_snapshots")
    if snapshots is not None:
        given["INSTA_UPDATE"] = SNAPSHOTS[snapshots]
    return given


def contract_named(config: pytest.Config) -> Path | None:
    """The contract that the command line, the ini file or the environment names."""
    option = config.getoption("gpuemu_config") or os.environ.get("GPUEMU_CONFIG")
    if option:
        return Path(config.invocation_params.dir, option)
    ini = config.getini("gpuemu_config")
    return Path(config.inipath.parent if config.inipath else config.rootpath, ini) if ini else None


@pytest.fixture(scope="session")
def gpuemu(request: pytest.FixtureRequest) -> Any:
    """The library, with the settings of this run: `gpuemu.check(fn, op="softmax")`."""
    run = request.config.stash.get(run_key, None)
    if run is None:
        pytest.skip("needs --gpuemu")
    return run.library()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("gpuemu")
    if marker is None or "case" not in metafunc.fixturenames:
        return
    run = metafunc.config.stash.get(run_key, None)
    if run is None:
        reason = pytest.mark.skip(reason="needs --gpuemu")
        metafunc.parametrize("case", [pytest.param(None, marks=reason)], ids=["gpuemu"])
        return
    run.parametrize(metafunc, marker)
