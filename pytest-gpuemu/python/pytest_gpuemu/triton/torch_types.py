"""The types of CUDA's tensors by their old names (`torch.cuda.FloatTensor`), while CUDA is served from the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _device as defaults

from .torch_cuda import DEVICE, is_cuda

_NAMES = {
    torch.float64: "DoubleTensor",
    torch.float32: "FloatTensor",
    torch.float16: "HalfTensor",
    torch.bfloat16: "BFloat16Tensor",
    torch.int64: "LongTensor",
    torch.int32: "IntTensor",
    torch.int16: "ShortTensor",
    torch.int8: "CharTensor",
    torch.uint8: "ByteTensor",
    torch.bool: "BoolTensor",
}


class Type(type):
    """One of them: it makes tensors, and CUDA's tensors of its dtype are its instances."""

    dtype: torch.dtype

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.is_cuda and value.dtype is cls.dtype

    def __call__(cls, *values: Any, device: Any = DEVICE) -> torch.Tensor:
        """Of a size (numbers, or a `torch.Size`) without values; of values; of a tensor of the type, which it shares."""
        if len(values) == 1 and isinstance(values[0], torch.Tensor):
            if not isinstance(values[0], cls):
                raise TypeError(f"expected torch.cuda.{cls.__name__} (got {values[0].type()})")
            return values[0].detach()
        if len(values) == 1 and not isinstance(values[0], (int, torch.Size)):
            return torch.tensor(values[0], dtype=cls.dtype, device=device)
        size = values[0] if values and isinstance(values[0], torch.Size) else values or (0,)
        return torch.empty(size, dtype=cls.dtype, device=device)


_TYPES = {
    name: Type(name, (), {"dtype": dtype, "is_cuda": True, "__module__": "torch.cuda"})
    for dtype, name in _NAMES.items()
}


def of_cuda() -> dict[str, Any]:
    """The attributes of `torch.cuda`."""
    return dict(_TYPES)


def _asked(kind: Any) -> Type | None:
    """CUDA's type that is meant, if one is."""
    if isinstance(kind, str) and kind.startswith("torch.cuda."):
        return _TYPES.get(kind.removeprefix("torch.cuda."))
    return kind if isinstance(kind, Type) else None


def cast(tensor: torch.Tensor, kind: Any, plain: Callable[[], Any], **named: Any) -> Any:
    """`tensor.type(kind)` of any tensor; `plain` is torch's own."""
    cuda = is_cuda(tensor.device)
    if kind is None:
        name: str = plain()
        return name.replace("torch.", "torch.cuda.", 1) if cuda else name
    asked = _asked(kind)
    if asked is not None:
        return tensor.to(DEVICE, asked.dtype, **named)
    if cuda and not isinstance(kind, torch.dtype):
        return tensor.cpu().type(kind, **named)
    return tensor.to(kind, **named) if isinstance(kind, torch.dtype) else plain()


def of_torch() -> dict[str, Any]:
    """The attributes of `torch`."""
    stood = torch.set_default_tensor_type

    def set_default_tensor_type(t: Any) -> None:
        asked = _asked(t)
        if asked is not None:
            torch.set_default_dtype(asked.dtype)
            torch.set_default_device(DEVICE)
            return
        stood(t)
        if is_cuda(defaults.CURRENT_DEVICE):
            torch.set_default_device(None)

    return {"set_default_tensor_type": set_default_tensor_type}
