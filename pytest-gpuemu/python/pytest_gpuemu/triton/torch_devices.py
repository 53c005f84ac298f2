"""Functions of torch that take tensors of one device only, as CUDA's kernels insist on it: while CUDA is served from the
CPU, nothing else would say that a tensor was left behind there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

_ELEMENTWISE = """
    add sub subtract mul multiply div divide true_divide truediv floor_divide floordiv fmod remainder mod pow rsub
    eq ne lt le gt ge less greater less_equal greater_equal not_equal maximum minimum fmax fmin atan2 arctan2
    logaddexp logaddexp2 bitwise_and bitwise_or bitwise_xor and or xor logical_and logical_or logical_xor hypot copysign
    nextafter xlogy lerp addcmul addcdiv where isclose allclose equal
"""
_OTHER = """
    matmul mm bmm mv dot vdot inner outer addmm addmv addbmm baddbmm addr einsum tensordot kron cross cdist dist
    cat concat concatenate stack hstack vstack dstack
    gather scatter scatter_add index_select index_add take_along_dim masked_fill masked_select
    linear bilinear embedding conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    layer_norm rms_norm group_norm batch_norm instance_norm scaled_dot_product_attention
    mse_loss l1_loss smooth_l1_loss huber_loss cross_entropy nll_loss kl_div binary_cross_entropy
    binary_cross_entropy_with_logits
"""


def _found(names: str) -> Iterator[Callable[..., Any]]:
    for name in names.split():
        for spelling in (name, f"{name}_", f"__{name}__", f"__r{name}__", f"__i{name}__"):
            for owner in (torch, torch.Tensor, F):
                function = getattr(owner, spelling, None)
                if function is not None:
                    yield function


_OF_ONE_DEVICE = frozenset(_found(_ELEMENTWISE + _OTHER))


def check(function: Callable[..., Any], tensors: Iterable[Any], is_left_behind: Callable[[Any], bool]) -> None:
    """Refuses a tensor of the CPU beside one of CUDA, in torch's words. A single number may come from the CPU."""
    if function not in _OF_ONE_DEVICE:
        return
    for tensor in tensors:
        if is_left_behind(tensor) and tensor.dim() > 0:
            name = getattr(function, "__name__", "a function of torch").strip("_")
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
                f"(one of shape {tuple(tensor.shape)} on the CPU, in a call of {name})"
            )
