"""Calls of the user's functions: which arguments they take, what they return, and what they raise."""

from __future__ import annotations

import difflib
import importlib
import inspect
import linecache
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from pytest_gpuemu import arrays, gpu
from pytest_gpuemu.arrays import Refused, Unusable

Answers = list[tuple[str, str, "np.ndarray | None"]]
HERE = os.path.dirname(os.path.abspath(__file__))


class Op(Protocol):
    """What has to be known of an op to call something."""

    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> list[str]: ...
    @property
    def inouts(self) -> list[str]: ...
    @property
    def outputs(self) -> list[str]: ...
    @property
    def params(self) -> list[str]: ...


def name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", None) or getattr(getattr(function, "func", None), "__name__", None)
    return name or type(function).__name__


def place_of(function: Callable[..., Any]) -> str:
    """Where a function stands, as `file:line`; empty where that is not known."""
    try:
        code = inspect.unwrap(function).__code__  # type: ignore[attr-defined]
    except (AttributeError, ValueError):
        return ""
    return f"{code.co_filename}:{code.co_firstlineno}"


class Signature:
    """How a function takes the tensors and parameters of an op: by name where it knows one of the names, else the
    inputs by position."""

    def __init__(self, function: Callable[..., Any], op: Op) -> None:
        known = [*op.inputs, *op.outputs, *op.params]
        try:
            parameters, told = list(inspect.signature(function).parameters.values()), True
        except (TypeError, ValueError):
            parameters, told = [], False
        by_name = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        self.everything = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self.names = [p.name for p in by_name if p.name in known]
        self.named = self.everything or bool(self.names)
        if not self.named or any(p.kind is p.POSITIONAL_ONLY for p in parameters):
            self.named = False
            # Of a function of C nothing is known: it is given all parameters, by name.
            self.names = [name for name in (self.names if told else op.params) if name in op.params]
            if told:
                self._try(function, op)
            return
        for p in by_name:
            if p.name not in known and p.default is p.empty:
                near = difflib.get_close_matches(p.name, known, n=1)
                hint = f"; did you mean `{near[0]}`?" if near else ""
                raise Unusable(
                    f"{name_of(function)} takes `{p.name}`, which is no tensor or parameter of op `{op.name}` "
                    f"({', '.join(known)}){hint}"
                )

    def _try(self, function: Callable[..., Any], op: Op) -> None:
        """Refuses a function that does not take what a call hands it by position."""
        try:
            inspect.signature(function).bind(*op.inputs, **dict.fromkeys(self.names))
        except TypeError as error:
            handed = ", ".join([*op.inputs, *(f"{name}=" for name in self.names)])
            raise Unusable(f"{name_of(function)} cannot be called with {handed}: {error}") from None

    def writes(self, output: str) -> bool:
        """Whether the function is handed this output to write into."""
        return output in self.names

    def call(
        self,
        function: Callable[..., Any],
        inputs: dict[str, Any],
        outputs: dict[str, Any],
        params: dict[str, Any],
    ) -> Any:
        if not self.named:
            with np.errstate(all="ignore"):
                return function(*inputs.values(), **{name: params[name] for name in self.names})
        if self.everything:
            wanted = {**inputs, **params}
            wanted.update((name, outputs[name]) for name in self.names if name in outputs)
        else:
            every = {**inputs, **outputs, **params}
            wanted = {name: every[name] for name in self.names}
        with np.errstate(all="ignore"):
            return function(**wanted)


def by_name(result: Any, own: Sequence[str], every: Sequence[str]) -> dict[str, Any]:
    """What a function returned, by the names of the answers: `own` are those that it does not write in place, `every`
    are all."""
    # What a container holds, whatever a class of its own says when it is asked: it might compute only then.
    kind = type(result)
    if issubclass(kind, dict):
        held: dict[str, Any] = dict(dict.items(result))
        unknown = [str(name) for name in held if name not in every]
        missing = [name for name in own if name not in held]
        if unknown or missing:
            said = ", ".join(map(str, held)) or "nothing"
            raise Refused(f"returned a dict of {said}; it must return {wanted(own or every)}")
        return held
    values = [result]
    if issubclass(kind, tuple):
        values = list(tuple.__iter__(result))
    elif issubclass(kind, list):
        values = list(list.__iter__(result))
        values = [result] if len(own) == 1 and len(values) != 1 else values
    for names in (own, every):
        if len(values) == len(names):
            return dict(zip(names, values))
    count = f"{len(values)} value{'s' * (len(values) != 1)}"
    raise Refused(f"returned {count}; it must return {wanted(own or every)}")


def wanted(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"one array, {names[0]}"
    return f"{len(names)} arrays, in this order or as a dict: {', '.join(names)}"


class Subject:
    """A function under test, as `_core` calls it."""

    def __init__(
        self,
        function: Callable[..., Any],
        op: Op,
        kind: str = "numpy",
        dtypes: Iterable[str] | None = None,
        device: str = "emulate",
    ) -> None:
        self.function = function
        self.description = f"function {name_of(function)}"
        self.dtypes = None if dtypes is None else list(dtypes)
        self.bits = kind == "torch"
        self.kind = kind
        self.op = op
        self.every = [*op.inouts, *op.outputs]
        self.device = device
        # What is wrong with a function is said by its tests.
        self.wrong: Unusable | None = None
        try:
            self.give = arrays.giver(kind)
            self.signature = Signature(function, op)
            self.own = [name for name in op.outputs if not self.signature.writes(name)]
            if kind in ("jax", "tensorflow") and len(self.own) < len(op.outputs):
                raise Unusable(f"{kind} arrays cannot be written in place: return {wanted(op.outputs)}")
        except Unusable as unusable:
            self.wrong = unusable

    def run(
        self,
        inputs: dict[str, np.ndarray],
        outputs: dict[str, np.ndarray | None],
        params: dict[str, Any],
        dtypes: dict[str, str],
        dtype: str,
    ) -> Answers:
        """Calls the function in a test of `dtype`. An answer that was written in place comes without an array."""
        if self.wrong is not None:
            raise self.wrong
        copies = gpu.copies(self.device, self.kind)
        turned: list[tuple[np.ndarray, np.ndarray]] = []
        if self.kind == "torch":
            # PyTorch has no negative strides: what it writes in place into such a view comes back from a copy.
            for name in self.op.inouts:
                view = inputs[name]
                if any(stride < 0 for stride in view.strides):
                    inputs = {**inputs, name: view.copy()}
                    turned.append((view, inputs[name]))
        if self.kind == "numpy":
            given: dict[str, Any] = inputs
            taken: dict[str, Any] = outputs
        else:
            place = copies.to_gpu if copies else lambda tensor: tensor
            given = {name: place(self.give(array, dtypes[name])) for name, array in inputs.items()}
            taken = {}
            for name in self.signature.names:
                array = outputs.get(name)
                if array is not None:
                    taken[name] = place(self.give(array, dtypes[name]))
        for name in self.signature.names:
            if name in outputs and outputs[name] is None:
                raise Unusable(f"output `{name}` declares no shape, so there is nothing to write into: return it")
        result = self.signature.call(self.function, given, taken, params)
        if copies:
            copies.back()
        for view, copy in turned:
            view[...] = copy
        if result is None:
            if not self.own:
                return []
            raise Refused(f"returned None; it must return {wanted(self.own)}")
        answers: Answers = []
        for name, value in by_name(result, self.own, self.every).items():
            if value is taken.get(name) or value is given.get(name) and name in self.op.inouts:
                continue
            dtype, array = arrays.from_any(name, value)
            declared = outputs.get(name)
            shape = None if declared is None else declared.shape
            answers.append((name, dtype, arrays.dense(name, array, shape)))
        return answers


class Reference:
    """A reference that is a Python function, as `_core` calls it: by name, inputs by position where its arguments have
    none."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function = function
        self.description = f"reference {name}"
        try:
            parameters = list(inspect.signature(function).parameters.values())
            self.unnamed = any(p.kind is p.POSITIONAL_ONLY for p in parameters)
        except (TypeError, ValueError):
            self.unnamed = True

    def answer(self, inputs: dict[str, np.ndarray], params: dict[str, Any], outputs: list[str]) -> Answers:
        try:
            with np.errstate(all="ignore"):
                if self.unnamed:
                    result = self.function(*inputs.values(), **params)
                else:
                    result = self.function(**inputs, **params)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                names = ", ".join(f"{name}=" for name in [*inputs, *params])
                raise Refused(f"raised TypeError: {error}; it is called with {names}") from None
            raise
        if result is None:
            if not all(name in inputs for name in outputs):
                raise Refused(f"it returned None; it must return {wanted(outputs)}")
            result = tuple(inputs[name] for name in outputs)
        answers: Answers = []
        values = by_name(result, outputs, outputs)
        for name in outputs:
            try:
                array = np.asarray(values[name])
            except Exception as error:
                raise Refused(
                    f"it returned {type(values[name]).__name__} for {name}, which is no array: {error}"
                ) from None
            if array.dtype.kind == "f" and array.dtype.itemsize > 8:
                array = array.astype(np.float64)
            dtype, array = arrays.from_numpy(name, array)
            answers.append((name, dtype, arrays.dense(name, array, None)))
        return answers


# Modules that stand for others of their name, which Python itself knows.
_of_roots: dict[tuple[str, str], types.ModuleType] = {}


def module_of(name: str, root: str) -> types.ModuleType:
    """A module, looked for in `root` first, also where another contract of this run has one of the same name."""
    if (root, name) in _of_roots:
        return _of_roots[root, name]
    top = name.partition(".")[0]
    loaded = sys.modules.get(top)
    own = os.path.isfile(os.path.join(root, top + ".py")) or os.path.isdir(os.path.join(root, top))
    others: dict[str, types.ModuleType] = {}
    if loaded is not None and own and not _lies_in(loaded, root):
        others = {key: sys.modules.pop(key) for key in list(sys.modules) if key == top or key.startswith(top + ".")}
    sys.path.insert(0, root)
    try:
        importlib.invalidate_caches()
        module = importlib.import_module(name)
    finally:
        sys.path.remove(root)
        if root not in sys.path:
            # Modules that are imported later, when a function runs.
            sys.path.append(root)
        if others:
            for key in [key for key in sys.modules if key == top or key.startswith(top + ".")]:
                del sys.modules[key]
            sys.modules.update(others)
            _of_roots[root, name] = module
    return module


def _lies_in(module: types.ModuleType, root: str) -> bool:
    """Whether a top-level module is one of this folder itself."""
    file, folders = getattr(module, "__file__", None), list(getattr(module, "__path__", []))
    parents = [os.path.dirname(folder) for folder in folders] or [os.path.dirname(file or "")]
    return any(os.path.realpath(parent) == os.path.realpath(root) for parent in parents)


def resolve(target: str, root: str) -> Callable[..., Any]:
    """The function `package.module:function`. Modules are looked for in `root` first."""
    module, _, path = target.partition(":")
    try:
        value: Any = module_of(module, root)
    except ModuleNotFoundError as error:
        if error.name is None or not (module + ".").startswith(error.name + "."):
            raise
        raise Refused(f"there is no module {error.name}; it is looked for in {root} and where Python looks") from None
    for part in path.split("."):
        if not hasattr(value, part):
            raise Refused(f"module {module} has no function {path}")
        value = getattr(value, part)
    if not callable(value):
        raise Refused(f"{target} is {type(value).__name__}, not a function")
    return value


def explain(error: BaseException) -> str:
    """What the user should read: the exception, and where in their own code it came from."""
    if isinstance(error, Refused):
        return str(error)
    if isinstance(error, SyntaxError) and error.filename is not None:
        text = f"{type(error).__name__}: {error.msg}\nin {relative(error.filename)}:{error.lineno}"
        text += f": {error.text.strip()}" if error.text and error.text.strip() else ""
    else:
        text = "".join(traceback.format_exception_only(type(error), error)).rstrip()
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((HERE, "<frozen ", os.path.dirname(importlib.__file__)))
    ]
    # What an installed library did after it was called says less than who called it.
    own = [place for place, frame in enumerate(frames) if f"{os.sep}site-packages{os.sep}" not in frame.filename]
    frames = frames[: own[-1] + 1] if own else frames
    for frame in frames[-6:]:
        line = linecache.getline(frame.filename, frame.lineno or 0).strip()
        text += f"\nin {relative(frame.filename)}:{frame.lineno}, {frame.name}" + (f": {line}" if line else "")
    return f"raised {text}"


def relative(path: str) -> str:
    """A path below the current folder as seen from there."""
    try:
        shorter = os.path.relpath(path)
    except ValueError:
        return path
    return path if shorter.startswith("..") else shorter
