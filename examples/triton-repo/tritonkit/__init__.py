"""Kernels for language models, in Triton: functions over torch tensors."""

from .activation import gelu, silu, swiglu
from .attention import attention, flash_attention
from .dropout import dropout
from .embedding import embedding
from .loss import cross_entropy
from .matmul import matmul, matmul_int8, matmul_split_k
from .norm import layer_norm, rms_norm, softmax
from .rope import rope
from .scan import cumsum

__all__ = [
    "attention",
    "cross_entropy",
    "cumsum",
    "dropout",
    "embedding",
    "flash_attention",
    "gelu",
    "layer_norm",
    "matmul",
    "matmul_int8",
    "matmul_split_k",
    "rms_norm",
    "rope",
    "silu",
    "softmax",
    "swiglu",
]
