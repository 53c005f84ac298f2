"""Which functions compute which ops: what `@gpuemu.op` has decorated, and what a contract's `module` names."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_gpuemu import arrays, calling, gpu
from pytest_gpuemu.arrays import Unusable

if TYPE_CHECKING:
    from pytest_gpuemu._core import OpInfo, Project

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Binding:
    """A decorated function."""

    function: Callable[..., Any]
    place: str
    dtypes: tuple[str, ...] | None
    arrays: str | None


_bound: dict[str, list[Binding]] = {}
# Ops in the order in which functions were bound to them.
_log: list[str] = []


def bound_so_far() -> int:
    """How many functions were ever bound."""
    return len(_log)


def op(name: str, *, dtypes: Sequence[str] | None = None, arrays: str | None = None) -> Callable[[Function], Function]:
    """Binds a function to an op of the contract, and returns it as it is.

    `dtypes`: those it computes; all by default. `arrays`: `numpy`, `torch`, `jax`, `tensorflow` or `cupy`, what it is
    given; by default what the contract's `frameworks` says, else NumPy.
    """
    check_names(arrays, dtypes)

    def bind(function: Function) -> Function:
        place = calling.place_of(function)
        own = _bound.setdefault(name, [])
        # A module that is imported again replaces what it has bound.
        own[:] = [other for other in own if not place or other.place != place]
        _log.append(name)
        own.append(Binding(function, place, None if dtypes is None else tuple(dtypes), arrays))
        return function

    return bind


def check_names(kind: str | None, dtypes: Sequence[str] | None) -> None:
    if kind is not None and kind not in arrays.KINDS:
        raise ValueError(f"arrays={kind!r}, which must be one of {', '.join(arrays.KINDS)}")
    check_list("dtypes", dtypes)
    for dtype in dtypes or ():
        if dtype not in arrays.DTYPES:
            raise ValueError(f"dtypes: {dtype!r} is no dtype of gpuemu: {', '.join(sorted(arrays.DTYPES))}")


def check_list(argument: str, names: Any) -> None:
    """Refuses what is no list of names: a text is one of letters."""
    if names is None:
        return
    if isinstance(names, str) or not isinstance(names, Sequence):
        example = f", [{names!r}]" if isinstance(names, str) else ""
        raise TypeError(f"{argument}={names!r}, which must be a list of names{example}")
    if not names:
        raise ValueError(f"{argument}=[] asks for nothing: leave it out for all of them")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{argument}: {name!r} is no name")


def kind_for(info: OpInfo, asked: str | None) -> str:
    """The kind of array that a function of this op is given."""
    if asked is not None:
        return asked
    kinds = (arrays.kind_of(framework) for framework in info.frameworks)
    return next((kind for kind in kinds if kind), "numpy")


class Several:
    """Functions that together compute one op, each for dtypes of its own; or what is wrong with them."""

    bits = False

    def __init__(self, subjects: Sequence[calling.Subject], wrong: str | None = None) -> None:
        self.by_dtype: dict[str, calling.Subject] = {}
        names = [subject.description.removeprefix("function ") for subject in subjects]
        self.description = "function" + "s" * (len(names) > 1) + " " + ", ".join(names)
        for subject in subjects:
            for dtype in subject.dtypes or ():
                self.by_dtype[dtype] = subject
        self.dtypes = None if wrong else list(self.by_dtype)
        self.wrong = wrong
        kinds = {subject.kind for subject in subjects}
        self.bits = kinds == {"torch"}
        if len(kinds) > 1 and "torch" in kinds:
            self.wrong, self.dtypes = "functions of one op take torch tensors all or none", None

    def run(self, inputs: Any, outputs: Any, params: Any, dtypes: dict[str, str], dtype: str) -> calling.Answers:
        if self.wrong:
            raise Unusable(self.wrong)
        return self.by_dtype[dtype].run(inputs, outputs, params, dtypes, dtype)


class Failing:
    """Stands where a function should be that cannot be had; each of its tests says why."""

    bits = False
    dtypes = None

    def __init__(self, description: str, error: str | BaseException) -> None:
        self.description = description
        self.error: BaseException
        if isinstance(error, (Exception, SystemExit)):
            self.error = Unusable(calling.explain(error))
        else:
            # Of what ends more than a test, such as pytest.skip, pytest has to know.
            self.error = Unusable(error) if isinstance(error, str) else error

    def run(self, *_: Any) -> calling.Answers:
        raise self.error.with_traceback(None)

    def answer(self, *_: Any) -> calling.Answers:
        raise self.error.with_traceback(None)


def subject_of(info: OpInfo, root: str, device: str) -> Any:
    """What computes an op: decorated functions, else the contract's `module`, else nothing."""
    own = _bound.get(info.name, [])
    below = [binding for binding in own if binding.place.startswith(root + os.sep)]
    own = below or own
    if own:
        subjects = [
            calling.Subject(binding.function, info, kind_for(info, binding.arrays), binding.dtypes, device)
            for binding in own
        ]
        if len(own) == 1:
            return subjects[0]
        taken: dict[str, str] = {}
        for binding, subject in zip(own, subjects):
            subject.dtypes = subject.dtypes if subject.dtypes is not None else list(info.dtypes)
            for dtype in subject.dtypes:
                if dtype in taken:
                    return Failing(
                        f"functions of {info.name}",
                        f"op `{info.name}` has two functions for {dtype}: {calling.relative(taken[dtype])} and "
                        f"{calling.relative(binding.place)}; remove the @gpuemu.op of one of them",
                    )
                taken[dtype] = binding.place
        return Several(subjects)
    if info.module is None:
        return None
    target = info.module if ":" in info.module else f"{info.module}:{info.name}"
    try:
        return calling.Subject(calling.resolve(target, root), info, kind_for(info, None), device=device)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Failing(f"function {target}", error)


def bind_all(project: Project) -> None:
    """Binds what is bound by now, and evaluates Python references in this process."""
    root = os.fspath(project.root)
    for info in project.ops:
        bind(project, info)
        if info.reference is not None:
            reference: Any
            try:
                function = calling.resolve(info.reference, root)
                reference = calling.Reference(function, info.reference)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                reference = Failing(f"reference {info.reference}", error)
            project.bind_reference(info.name, reference)


def bind_since(project: Project, count: int) -> None:
    """Binds what was decorated after `count` functions had been."""
    names = set(_log[count:])
    for info in project.ops:
        if info.name in names:
            bind(project, info)


def bind(project: Project, info: OpInfo) -> None:
    """Binds an op's functions."""
    subject = subject_of(info, os.fspath(project.root), project.device)
    if subject is not None:
        project.bind(info.name, subject)


def lacks_gpu(project: Project, test: str) -> str | None:
    """Why a test cannot run here: it computes with PyTorch on a GPU that is asked for and is not there."""
    if project.device != "cuda":
        return None
    parts = test.split("::")
    op = parts[1] if parts[0] == "accuracy" else parts[0]
    info = next((info for info in project.ops if info.name == op), None)
    subject = None if info is None else subject_of(info, os.fspath(project.root), project.device)
    try:
        for one in getattr(subject, "by_dtype", {"": subject}).values():
            gpu.copies(project.device, getattr(one, "kind", "numpy"))
    except gpu.Absent as absent:
        return str(absent)
    return None
