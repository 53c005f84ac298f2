"""Arrays of any framework: from NumPy on the way in, to NumPy on the way out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

DTYPES = frozenset(
    "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 "
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split()
)
KINDS = ("numpy", "torch", "jax", "tensorflow", "cupy")
# The contract's names of frameworks, where they are others.
FRAMEWORKS = {"pytorch": "torch", "triton": "torch"}


class Refused(Exception):
    """A call or an answer that cannot be used; the message says why."""


class Unusable(Refused):
    """The same of every call, whatever the case: there is no function, or none that can be called."""


def kind_of(framework: str) -> str | None:
    """The kind of array that a framework computes with, if it is known."""
    kind = FRAMEWORKS.get(framework, framework)
    return kind if kind in KINDS else None


def importer(kind: str) -> Any:
    """The module of a kind of array."""
    name = {"jax": "jax.numpy"}.get(kind, kind)
    try:
        module = __import__(name)
    except ImportError as error:
        raise Unusable(f"{kind} arrays are asked for, and {kind} cannot be imported: {error}") from None
    return sys.modules.get(name, module)


def giver(kind: str) -> Callable[[np.ndarray, str], Any]:
    """What makes an array of that kind of a NumPy array and the name of its dtype, over the same memory where the
    framework can."""
    if kind == "numpy":
        return lambda array, dtype: array
    module = importer(kind)
    if kind == "torch":
        return lambda array, dtype: to_torch(module, array, dtype)
    make = module.constant if kind == "tensorflow" else module.asarray

    def give(array: np.ndarray, dtype: str) -> Any:
        try:
            return make(array)
        except Exception as error:
            # No driver, no GPU, or a dtype that the framework has not.
            raise Refused(f"{kind} arrays cannot be made here: {type(error).__name__} for {dtype}: {error}") from None

    return give


# PyTorch's own types for what NumPy lacks; the bits come as integers.
TORCH_BITS = frozenset(["bfloat16", "float8_e4m3fn", "float8_e5m2"])


def to_torch(torch: Any, array: np.ndarray, dtype: str) -> Any:
    """A tensor over the array's memory. PyTorch has no negative strides: reversed views come as copies."""
    if any(stride < 0 for stride in array.strides):
        array = array.copy()
    # Where CUDA is served from the CPU, nobody has asked for this tensor on either.
    with torch._C.DisableTorchFunction():
        tensor = torch.from_numpy(array)
        return tensor.view(getattr(torch, dtype)) if dtype in TORCH_BITS else tensor


def from_torch(name: str, value: Any) -> tuple[str, np.ndarray]:
    torch = sys.modules["torch"]
    if type(value) is not torch.Tensor and type(value) is not torch.nn.Parameter:
        raise Refused(
            f"returned a {type(value).__module__}.{type(value).__qualname__} for {name}: a subclass of torch.Tensor may "
            "compute when it is read; return a plain torch.Tensor"
        )
    if value.layout is not torch.strided or value.is_meta or value.is_quantized or value.is_nested:
        raise Refused(f"returned a tensor without plain memory for {name} (layout {value.layout}, {value.device})")
    value = value.detach().resolve_conj().resolve_neg().cpu()
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype in TORCH_BITS:
        value = value.view(torch.int16 if dtype == "bfloat16" else torch.uint8)
    elif dtype not in DTYPES:
        raise Refused(f"returned {name} as a tensor of {dtype}, which is no dtype of gpuemu")
    return dtype, value.numpy()


def from_any(name: str, value: Any) -> tuple[str, np.ndarray]:
    """The dtype's name and a NumPy array of an answer. Libraries are known by their classes, not by what an object says
    of itself."""
    kind = type(value)
    if kind is np.ndarray:
        return from_numpy(name, value)
    if issubclass(kind, np.generic):
        if np.dtype(kind).type is not kind:
            raise Refused(_subclass(name, kind, "a scalar of NumPy"))
        return from_numpy(name, np.asarray(value))
    if issubclass(kind, np.ndarray):
        raise Refused(_subclass(name, kind, "numpy.ndarray"))
    if "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor):
        return from_torch(name, value)
    for library, read in (("cupy", from_cupy), ("jax", from_jax), ("tensorflow", from_tensorflow)):
        array = read(name, value, sys.modules[library]) if sys.modules.get(library) is not None else None
        if array is not None:
            return from_numpy(name, array)
    if hasattr(value, "__array_interface__"):
        return from_numpy(name, np.asarray(value))
    if hasattr(value, "__dlpack__"):
        try:
            return from_numpy(name, np.from_dlpack(value))
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise Refused(f"returned {name} through DLPack as something NumPy cannot read: {error}") from None
    if hasattr(value, "__cuda_array_interface__"):
        raise Refused(
            f"returned {name} as a {kind.__module__}.{kind.__qualname__} in the memory of a GPU: return it in "
            "this machine's memory, or as an array of CuPy or PyTorch"
        )
    raise Refused(f"returned {name} as {described(value)}; it must return {'an array' if name else 'arrays'}")


def _subclass(name: str, kind: type, of: str) -> str:
    return (
        f"returned a {kind.__qualname__} for {name}: a subclass of {of} may answer differently when it is read; return a "
        "plain array"
    )


def from_cupy(name: str, value: Any, cupy: Any) -> np.ndarray | None:
    """An array of CuPy on this machine; nothing where the value is none."""
    array = getattr(cupy, "ndarray", None)
    if not isinstance(array, type) or not issubclass(type(value), array):
        return None
    if type(value) is not array:
        raise Refused(_subclass(name, type(value), "cupy.ndarray"))
    copy: np.ndarray = array.get(value)
    return copy


def from_jax(name: str, value: Any, jax: Any) -> np.ndarray | None:
    """An array of JAX; nothing where the value is none. What stands for an array while a function is traced, and a key
    of random numbers, hold no values."""
    array = getattr(jax, "Array", None)
    if array is None or not isinstance(value, array):
        return None
    plain = type(jax.numpy.zeros(()))
    return _held(name, value, type(value) is plain)


def from_tensorflow(name: str, value: Any, tf: Any) -> np.ndarray | None:
    """A tensor or a variable of TensorFlow; nothing where the value is neither. A tensor of a graph has no values."""
    classes = tuple(getattr(tf, name) for name in ("Tensor", "Variable") if hasattr(tf, name))
    if not isinstance(value, classes):
        return None
    if isinstance(value, tf.Variable):
        return _held(name, value, type(value) is type(tf.Variable(0)))
    return _held(name, value, type(value) is type(tf.constant(0)))


def _held(name: str, value: Any, plain: bool) -> np.ndarray:
    """The values of an array that holds some."""
    kind = type(value)
    if not plain:
        raise Refused(f"returned a {kind.__module__}.{kind.__qualname__} for {name} that holds no values of its own")
    try:
        return np.asarray(value)
    except Exception as error:
        raise Refused(f"returned a {kind.__qualname__} for {name} that holds no values: {error}") from None


def described(value: Any) -> str:
    """What a value is, for messages."""
    kind = type(value)
    if hasattr(value, "__next__") and hasattr(value, "send"):
        return "a generator, which has computed nothing yet"
    if hasattr(value, "__await__"):
        return "a coroutine, which has computed nothing yet"
    if hasattr(value, "__array__"):
        return f"a {kind.__module__}.{kind.__qualname__}, which computes its values when it is asked for them"
    if value is None or isinstance(value, (bool, int, float, complex)):
        return f"{value!r}, which has no dtype"
    return f"a {kind.__qualname__}"


def from_numpy(name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
    dtype = array.dtype
    if not dtype.isnative:
        array = array.astype(dtype.newbyteorder("="))
    if dtype.name not in DTYPES:
        raise Refused(f"returned {name} as an array of {dtype}, which is no dtype of gpuemu")
    return dtype.name, array


# An answer of another shape than declared is judged by its shape alone: one larger than this is not copied for that.
LARGE = 1 << 26


def dense(name: str, array: np.ndarray, shape: tuple[int, ...] | None) -> np.ndarray:
    """The elements in row-major order, without gaps."""
    if shape is not None and array.shape != shape and array.size > LARGE:
        raise Refused(f"returned {name} of shape {list(array.shape)}, the op declares {list(shape)}")
    return array if array.flags.c_contiguous else array.copy(order="C")
