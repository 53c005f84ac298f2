"""gpuemu for Python. The names below are those of `import gpuemu`; each is imported when it is first used, so that a run
of pytest without `--gpuemu` pays for none of it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_gpuemu._core import (
        ConfigError,
        GpuemuError,
        InternalError,
        NotFoundError,
        ReferenceFailed,
        RequestError,
        __version__,
    )
    from pytest_gpuemu.bindings import op
    from pytest_gpuemu.library import Failure, Mismatch, Statistics, TestVerdict, Verdict, check
    from pytest_gpuemu.own_tests import Case, CaseFailed, cases

_HOMES = {
    "_core": [
        "ConfigError",
        "GpuemuError",
        "InternalError",
        "NotFoundError",
        "ReferenceFailed",
        "RequestError",
        "__version__",
    ],
    "bindings": ["op"],
    "library": ["Failure", "Mismatch", "Statistics", "TestVerdict", "Verdict", "check"],
    "own_tests": ["Case", "CaseFailed", "cases"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Case",
    "CaseFailed",
    "ConfigError",
    "Failure",
    "GpuemuError",
    "InternalError",
    "Mismatch",
    "NotFoundError",
    "ReferenceFailed",
    "RequestError",
    "Statistics",
    "TestVerdict",
    "Verdict",
    "__version__",
    "cases",
    "check",
    "op",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
