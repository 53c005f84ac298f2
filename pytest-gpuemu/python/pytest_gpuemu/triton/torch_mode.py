"""Torch code that asks for CUDA, on a machine that has none: torch's own function mode answers with CPU tensors.

While the mode is entered, factories with `device="cuda"`, `.cuda()` and `.to("cuda")` give tensors of this machine's memory
that call themselves CUDA's (`device`, `is_cuda`), and so does what is computed from them. Copies are made where a GPU would
have made them. What torch does not hand to modes, the functions of `torch.cuda` and generators, `torch_cuda` serves.

Tensors that are made without values (`torch.empty`) are filled with NaN, or a pattern where they hold integers, and kernels
that read what nothing wrote to them are told.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import serialization
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils import _device as defaults

from . import torch_autocast, torch_cuda, torch_devices, torch_types, uninitialised
from .memory import lend
from .torch_cuda import is_cuda

_CUDA = torch_cuda.DEVICE
_CPU = torch.device("cpu")
_EMPTY = {
    torch.empty,
    torch.empty_like,
    torch.empty_strided,
    torch.empty_permuted,
    torch.Tensor.new_empty,
    torch.Tensor.new_empty_strided,
}
# Memory goes to somebody whose writes torch does not count.
_ESCAPES = {
    torch.Tensor.numpy,
    torch.Tensor.__array__,
    torch.Tensor.__dlpack__,
    torch.Tensor.untyped_storage,
    torch.Tensor.storage,
}
_OF_NUMPY = {torch.Tensor.numpy, torch.Tensor.__array__}
# What they answer may be their argument.
_SHARING = {torch.as_tensor, torch.asarray}
_DEVICE = torch.Tensor.device.__get__
_IS_CUDA = torch.Tensor.is_cuda.__get__
_DATA = torch.Tensor.data.__get__
_SET_DATA = torch.Tensor.data.__set__

_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_FOUND = importlib.util.find_spec("triton")
_TRITON = os.path.join(os.path.dirname(str(_FOUND.origin)), "") if _FOUND else _HERE

_STORAGES: dict[int, Any] = {}
"""Storages that call themselves CUDA's, by address."""
_ON_CPU: dict[int, Any] = {}
"""Storages that were asked for on the CPU. Of others nothing is known: what a test of a contract is handed, what torch
makes on its way back."""
_BACKWARD: list[bool] = [False]
"""Whether torch is on its way back from tensors of CUDA, where its own gradients are CUDA's too."""
_ENTERED: list[tuple[Any, list[tuple[Any, str, Any]]]] = []


def is_active() -> bool:
    """Whether torch code that asks for CUDA is served."""
    return bool(_ENTERED)


def enter(driver: Any) -> None:
    """Begins: torch code that asks for CUDA finds the device of `driver`."""
    mode = CudaOnCpu()
    mode.__enter__()
    run = torch.autograd._engine_run_backward
    more = [
        torch_autocast.methods(),
        (torch.autograd, {"_engine_run_backward": _on_the_way_back(mode, run)}),
        (torch.cuda, torch_types.of_cuda()),
        (torch, torch_types.of_torch()),
    ]
    _ENTERED.append((mode, torch_cuda.serve(driver, more)))
    # Before those of the CPU and of CUDA, which are 10 and 20.
    serialization.register_package(5, _location, _located)


def leave() -> None:
    """Ends what the last `enter` began."""
    mode, stood = _ENTERED.pop()
    serialization._package_registry.remove((5, _location, _located))
    torch_cuda.put_back(stood)
    mode.__exit__(None, None, None)


def _storage(tensor: torch.Tensor) -> Any:
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        # Sparse tensors and the like have no storage of their own.
        return None


def calls_itself_cuda(tensor: torch.Tensor) -> bool:
    """Whether a tensor of the CPU stands for one of CUDA."""
    storage = _storage(tensor)
    if storage is None:
        return False
    return storage._cdata in _STORAGES or (_BACKWARD[-1] and storage._cdata not in _ON_CPU)


def _is_marked(tensor: torch.Tensor) -> bool:
    """Whether it was asked for on CUDA, or computed from what was."""
    storage = _storage(tensor)
    return storage is not None and storage._cdata in _STORAGES


def is_on_cpu(tensor: torch.Tensor) -> bool:
    """Whether a tensor was asked for on the CPU."""
    storage = _storage(tensor)
    return storage is not None and storage._cdata in _ON_CPU


def _leave_on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    storage = _storage(tensor)
    if storage is not None and storage._cdata not in _ON_CPU and storage._cdata not in _STORAGES:
        key = storage._cdata
        _ON_CPU[key] = weakref.ref(storage, lambda _: _ON_CPU.pop(key, None))
    return tensor


def _mark(tensor: torch.Tensor) -> torch.Tensor:
    storage = _storage(tensor)
    if storage is not None:
        _mark_storage(storage)
    return tensor


def _mark_storage(storage: Any) -> None:
    key, size = storage._cdata, storage.nbytes()
    if key in _STORAGES:
        return
    _ON_CPU.pop(key, None)

    def gone(_: Any) -> None:
        _STORAGES.pop(key, None)
        torch_cuda.Counted.gone(size)

    _STORAGES[key] = weakref.ref(storage, gone)
    torch_cuda.Counted.made(size)


def _location(storage: Any) -> str | None:
    """Where a storage lies, for `torch.save`."""
    return "cuda:0" if storage._cdata in _STORAGES else None


def _located(storage: Any, location: str) -> Any:
    """A storage that `torch.load` has read, where it shall lie."""
    if not is_cuda(location):
        return None
    torch_cuda.index_of(location)
    _mark_storage(storage)
    return storage


def check_launch(kernel: str, arguments: Sequence[Any]) -> None:
    """Refuses a tensor that was left on the CPU beside others of CUDA, as a GPU's driver does with any of the CPU."""
    left = other = None
    for place, argument in enumerate(arguments):
        if isinstance(argument.tensor, torch.Tensor):
            key = argument.tensor.untyped_storage()._cdata
            if key in _STORAGES:
                other = argument
            elif left is None and key in _ON_CPU:
                left = place, argument
    if left is not None and other is not None:
        place, argument = left
        raise ValueError(
            f"Pointer argument (at {place}) cannot be accessed from Triton (cpu tensor?): "
            f"{kernel} is given {argument.name} on the CPU and {other.name} on cuda:0"
        )


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _is_device(value: Any) -> bool:
    return isinstance(value, torch.device) or (isinstance(value, str) and value.split(":")[0] in ("cpu", "cuda"))


def _poison(tensor: torch.Tensor) -> None:
    """Fills what holds no values yet with values that show, where it is a plain tensor with memory of its own."""
    plain = type(tensor) is torch.Tensor and tensor.device.type == "cpu" and tensor.is_contiguous()
    if plain and _storage(tensor) is not None:
        uninitialised.made(tensor)


def _on_the_way_back(mode: TorchFunctionMode, run: Callable[..., Any]) -> Callable[..., Any]:
    """Torch's walk from results to gradients, with the mode: torch calls functions of the user's on it."""

    def served(outputs: Any, *arguments: Any, **named: Any) -> Any:
        _BACKWARD.append(any(calls_itself_cuda(tensor) for tensor in _tensors(outputs)))
        try:
            if any(isinstance(other, CudaOnCpu) for other in _get_current_function_mode_stack()):
                return run(outputs, *arguments, **named)
            with mode:
                return run(outputs, *arguments, **named)
        finally:
            _BACKWARD.pop()

    return served


class CudaOnCpu(TorchFunctionMode):
    """Serves torch code that asks for CUDA from this machine's memory."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func == _DEVICE:
            return _CUDA if calls_itself_cuda(args[0]) else func(*args)
        if func == _IS_CUDA:
            return calls_itself_cuda(args[0]) or func(*args)
        if func is torch.device:
            return func(*args, **kwargs)
        if func is torch.Tensor.cuda:
            return _to_cuda(args[0], args[0])
        if func is torch.Tensor.cpu:
            return _to_cpu(args[0], func(*args, **kwargs))
        if func is torch.Tensor.to:
            return _moved(func, args, kwargs)
        if func is torch.Tensor.get_device:
            return 0 if calls_itself_cuda(args[0]) else func(*args)
        if func is torch.Tensor.pin_memory:
            return args[0]
        if func is torch.Tensor.record_stream:
            return None
        if func is torch.Tensor.data_ptr:
            if not _is_triton(sys._getframe(1).f_code.co_filename):
                # Somebody else wants the address: kernels may be given it in another way than as a tensor.
                lend(args[0])
                uninitialised.aliased(args[0])
            return func(*args)
        if func is torch.Tensor.__repr__ and calls_itself_cuda(args[0]):
            with self:
                return torch._tensor_str._str(args[0], **kwargs)
        if func is torch.Tensor.__format__ and calls_itself_cuda(args[0]) and args[0].dim() > 0 and not args[1]:
            with self:
                return str(args[0])
        if func is torch.Tensor.type:
            return _typed(self, func, args, **kwargs)
        if func in _OF_NUMPY and _is_marked(args[0]):
            if kwargs.get("force"):
                return func(args[0].detach().clone(), **kwargs)
            raise TypeError(
                f"can't convert {_CUDA} device type tensor to numpy. "
                f"Use Tensor.cpu() to copy the tensor to host memory first."
            )
        if func in _ESCAPES:
            uninitialised.forget(args[0])
            return func(*args, **kwargs)
        if func == _DATA:
            uninitialised.aliased(args[0])
        elif func == _SET_DATA:
            uninitialised.forget(args[0])
        return _served(func, args, kwargs)


def _typed(
    mode: TorchFunctionMode,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    dtype: Any = None,
    non_blocking: bool = False,
    **named: Any,
) -> Any:
    """`tensor.type(...)`: the type's name, or a tensor of another."""
    tensor, kind = args[0], args[1] if len(args) > 1 else dtype

    def plain() -> Any:
        with torch._C.DisableTorchFunction():
            return func(tensor, kind) if kind is not None else func(tensor)

    with mode:
        return torch_types.cast(tensor, kind, plain, non_blocking=non_blocking)


def _is_triton(file: str) -> bool:
    """Whether code is Triton's, what it makes while it runs included, or this package's."""
    return file == "<string>" or file.startswith((_TRITON, _HERE))


def _served(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Any other function: on the CPU, its answers CUDA's where that was asked for or its arguments are."""
    asked = kwargs.get("device")
    if asked is None and defaults.CURRENT_DEVICE is not None and func in defaults._device_constructors():
        # The default device is a mode of torch's own, which comes after this one.
        asked = defaults.CURRENT_DEVICE
    if isinstance(asked, int):
        # Torch takes a number for a device of the accelerator that there is.
        asked = torch.device("cuda", asked)
    cuda = is_cuda(asked)
    if cuda:
        torch_cuda.index_of(asked)
        kwargs = {**kwargs, "device": _CPU}
        kwargs.pop("pin_memory", None)
    if any(isinstance(value, torch.device) and value.type == "cuda" for value in args):
        args = tuple(_CPU if isinstance(value, torch.device) and value.type == "cuda" else value for value in args)
        cuda = True
    tensors = list(_tensors((*args, *kwargs.values())))
    if not cuda and asked is None and any(calls_itself_cuda(tensor) for tensor in tensors):
        cuda = True
        torch_devices.check(func, tensors, is_on_cpu)
    made = asked is not None and func not in _SHARING
    on_cpu = not cuda and (made or all(is_on_cpu(tensor) for tensor in tensors))
    if kwargs.get("generator") is not None:
        torch_cuda.check_generator(kwargs["generator"], cuda)
    answer = torch_autocast.call(func, args, kwargs) if cuda else func(*args, **kwargs)
    if func == _SET_DATA:
        return answer
    if func in _EMPTY:
        _poison(answer)
    if func in _SHARING and asked is not None and calls_itself_cuda(answer) != cuda:
        answer = answer.clone()
    for tensor in _tensors([answer]):
        if cuda:
            _mark(tensor)
        elif on_cpu:
            _leave_on_cpu(tensor)
    return answer


def _to_cuda(source: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
    """A tensor of CUDA's with these values: a copy, where `source` was on the CPU."""
    if calls_itself_cuda(source):
        return _mark(answer)
    shares = answer.untyped_storage()._cdata == source.untyped_storage()._cdata
    return _mark(answer.clone() if shares else answer)


def _to_cpu(source: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
    """The same the other way."""
    if answer.untyped_storage()._cdata != source.untyped_storage()._cdata:
        return _leave_on_cpu(answer)
    return _leave_on_cpu(answer.clone()) if calls_itself_cuda(source) else answer


def _moved(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    source, rest = args[0], list(args[1:])
    target: str | None = None
    if "device" in kwargs and kwargs["device"] is not None:
        target = "cuda" if is_cuda(kwargs["device"]) or isinstance(kwargs["device"], int) else "cpu"
        kwargs = {**kwargs, "device": _CPU}
    elif rest and (_is_device(rest[0]) or (isinstance(rest[0], int) and not isinstance(rest[0], bool))):
        target = "cuda" if is_cuda(rest[0]) or isinstance(rest[0], int) else "cpu"
        rest[0] = _CPU
    elif rest and isinstance(rest[0], torch.Tensor):
        target = "cuda" if calls_itself_cuda(rest[0]) else "cpu"
    answer = func(source, *rest, **kwargs)
    if target == "cuda":
        return _to_cuda(source, answer)
    if target == "cpu":
        return _to_cpu(source, answer)
    if calls_itself_cuda(source):
        return _mark(answer)
    return _leave_on_cpu(answer) if is_on_cpu(source) else answer
