"""Types of the extension module."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

__version__: str

class GpuemuError(Exception):
    """Something outside of a verdict went wrong."""

    code: str

class ConfigError(GpuemuError): ...
class NotFoundError(GpuemuError): ...
class RequestError(GpuemuError): ...
class ReferenceFailed(GpuemuError): ...
class InternalError(GpuemuError): ...

class OpInfo:
    name: str
    line: int
    module: str | None
    frameworks: list[str]
    reference: str | None
    dtypes: list[str]
    strategies: list[str]
    inputs: list[str]
    inouts: list[str]
    outputs: list[str]
    params: list[str]

class Project:
    def __init__(
        self,
        path: str | PathLike[str],
        settings: Mapping[str, str],
        *,
        place: str | None = None,
        text: str | None = None,
        keep: bool = True,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None: ...
    @staticmethod
    def find(start: str | PathLike[str]) -> Path: ...
    @staticmethod
    def check_settings(settings: Mapping[str, str]) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def root(self) -> Path: ...
    @property
    def ops(self) -> list[OpInfo]: ...
    @property
    def requires(self) -> bool: ...
    def tests(self) -> list[tuple[str, str | None, bool, int]]: ...
    def cannot_run(self, test: str) -> str | None: ...
    def test_of_case(self, spec: str) -> str: ...
    def bind(self, op: str, subject: Any) -> None: ...
    def bind_reference(self, op: str, reference: Any) -> None: ...
    def run(self, test: str) -> tuple[str | None, list[tuple[str, str]]]: ...
    def validate(self, test: str, spec: str | None = None) -> dict[str, Any]: ...
    def case_count(self, test: str) -> int: ...
    def spec(self, test: str, index: int) -> str: ...
    def case(self, spec: str) -> Case: ...
    def finish(self) -> list[str]: ...

class Case:
    @property
    def spec(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def dims(self) -> dict[str, int]: ...
    @property
    def params(self) -> dict[str, Any]: ...
    @property
    def dtypes(self) -> dict[str, str]: ...
    def inputs(self, bits: bool = False) -> dict[str, np.ndarray]: ...
    def outputs(self, bits: bool = False) -> dict[str, np.ndarray | None]: ...
    def expected(self) -> dict[str, np.ndarray]: ...
    def judge(self, answers: list[tuple[str, str, np.ndarray | None]]) -> str | None: ...

class Memory:
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

Place = tuple[str, int, int]
"""A place in the user's source: path, line, column (0: none)."""

class EmulatedKernel:
    """One entry of a PTX module, loaded on a device of its own."""

    entry: str
    arch: str
    parameters: list[int]
    block: list[int] | None
    def __init__(
        self,
        ptx: str,
        *,
        entry: str | None = None,
        arch: str | None = None,
        races: bool = True,
        initialisation: bool = True,
        threads: int | None = None,
        budget: int | None = None,
        seed: int | None = None,
    ) -> None: ...
    def launch(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        memory: Sequence[Mapping[str, Any]],
        arguments: Sequence[tuple[int, int] | int | float | bytes],
        *,
        initialisation: bool | None = None,
    ) -> EmulatedLaunch: ...
    def metrics(self) -> dict[str, Any]: ...
    def lint(self) -> list[tuple[str, str, str, list[Place]]]: ...

class EmulatedLaunch:
    instructions: int
    printed: list[tuple[list[int], list[int], str]]
    fault: EmulatedFault | None
    unwritten: list[list[tuple[int, int]]]

class EmulatedFault:
    kind: str
    text: str
    block: list[int] | None
    thread: list[int] | None
    source: list[Place]
    line: int
    instruction: str
    action: str | None
    bytes: int
    region: str | None
    offset: int
    extent: int
    other: EmulatedOther | None
    detail: str
    cuda: tuple[str, int] | None

class EmulatedOther:
    block: list[int]
    thread: list[int] | None
    source: list[Place]
    line: int
    action: str

def architecture(name: str) -> dict[str, int]: ...
