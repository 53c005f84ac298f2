"""`torch.autocast("cuda")` while CUDA is served from the CPU: what CUDA computes in lower precision the CPU's autocast does
too, and what CUDA computes in single precision is handed single precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.amp.autocast_mode import autocast

# PyTorch's list of CUDA functions that autocast to float32, those that the CPU's has not.
_SINGLE_NAMES = """
    pow rpow rdiv rtruediv acos asin binary_cross_entropy_with_logits cosh cosine_embedding_loss cdist cosine_similarity
    cross_entropy cumprod cumsum dist erfinv exp expm1 group_norm hinge_embedding_loss kl_div l1_loss layer_norm log
    log10 log_softmax log1p log2 margin_ranking_loss mse_loss multilabel_margin_loss multi_margin_loss nll_loss norm
    normalize pdist poisson_nll_loss prod reciprocal rsqrt sinh smooth_l1_loss soft_margin_loss softmax softmin softplus
    sum renorm tan triplet_margin_loss
""".split()
_SINGLE = frozenset(
    getattr(owner, spelling)
    for name in _SINGLE_NAMES
    for spelling in (name, f"__{name}__")
    for owner in (torch, torch.Tensor, F)
    if hasattr(owner, spelling)
)
_RECURRENT = frozenset(
    getattr(torch, name) for name in "lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell".split()
)
_LOW = (torch.float16, torch.bfloat16)

_ENTER, _EXIT = autocast.__enter__, autocast.__exit__
_BEFORE: list[tuple[bool, torch.dtype]] = []
"""The CPU's own settings, where CUDA's were put in their place."""


def _enter(self: Any) -> Any:
    answer = _ENTER(self)
    if self.device == "cuda":
        _BEFORE.append((torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")))
        torch.set_autocast_enabled("cpu", torch.is_autocast_enabled("cuda"))
        torch.set_autocast_dtype("cpu", torch.get_autocast_dtype("cuda"))
    return answer


def _exit(self: Any, *error: Any) -> Any:
    if self.device == "cuda" and _BEFORE:
        enabled, dtype = _BEFORE.pop()
        torch.set_autocast_enabled("cpu", enabled)
        torch.set_autocast_dtype("cpu", dtype)
    return _EXIT(self, *error)


def methods() -> tuple[Any, dict[str, Any]]:
    """The class, and what is put in place of its methods."""
    return autocast, {"__enter__": _enter, "__exit__": _exit}


def _cast(value: Any, dtypes: tuple[torch.dtype, ...], dtype: torch.dtype) -> Any:
    """A value with its tensors of some dtypes in another."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.dtype in dtypes else value
    if type(value) in (list, tuple):
        return type(value)(_cast(one, dtypes, dtype) for one in value)
    return value


def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call with tensors of CUDA, as its autocast makes it."""
    recurrent = function in _RECURRENT
    if not _BEFORE or not (recurrent or function in _SINGLE) or not torch.is_autocast_enabled("cuda"):
        return function(*args, **kwargs)
    args = _cast(args, _LOW, torch.float32)
    kwargs = {name: _cast(value, _LOW, torch.float32) for name, value in kwargs.items()}
    if not recurrent:
        return function(*args, **kwargs)
    # Not every CPU has them in lower precision: they are computed in single, and rounded.
    with autocast("cpu", enabled=False):
        return _cast(function(*args, **kwargs), (torch.float32,), torch.get_autocast_dtype("cuda"))
