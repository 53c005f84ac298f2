"""The script protocol: one JSON object on standard input, one on standard output.

In:  {"inputs": {name: {"shape", "strides", "dtype", "data"}}, "kwargs": {name: string}}
Out: {"shape", "dtype", "data"}, or {"outputs": {name: {"shape", "dtype", "data"}}} for several

"data" is base64 of the elements, little-endian, row-major. NumPy has no bfloat16 and no fp8: such inputs arrive in the
reference as float32, which holds their values exactly, and what is computed from them is answered as float32.
"""

import base64
import inspect
import json
import sys
import typing

import numpy as np

# fp8 formats: (fraction bits, exponent bias).
FP8 = {"float8_e4m3fn": (3, 7), "float8_e5m2": (2, 15)}


def main(reference):
    """Answers the request on standard input with `reference(*inputs, **params)`."""
    request = json.load(sys.stdin)
    inputs = [decode(tensor) for tensor in request["inputs"].values()]
    answer = reference(*inputs, **convert(reference, request.get("kwargs", {})))
    if isinstance(answer, tuple):
        reply = {"outputs": {f"out{number}": encode(array) for number, array in enumerate(answer)}}
    else:
        reply = encode(answer)
    json.dump(reply, sys.stdout)


def convert(reference, kwargs):
    """Turns the strings of a request into the types that the reference's parameters are annotated with."""
    known = inspect.signature(reference).parameters
    readers = {int: int, float: float, str: str, bool: lambda text: text.lower() in ("true", "1")}

    def read(name, text):
        annotation = known[name].annotation
        kind, *_ = typing.get_args(annotation) or (annotation,)  # of `float | None`: float
        return readers[kind](text)

    return {name: read(name, text) for name, text in kwargs.items() if name in known}


def decode(tensor):
    """The array that a tensor of a request describes."""
    data, shape, dtype = base64.b64decode(tensor["data"]), tensor["shape"], tensor["dtype"]
    if dtype == "bfloat16":  # the upper half of a float32
        halves = np.frombuffer(data, "<u2").astype(np.uint32)
        return (halves << 16).view(np.float32).reshape(shape)
    if dtype in FP8:
        return decode_fp8(np.frombuffer(data, np.uint8), dtype).reshape(shape)
    return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).astype(dtype).reshape(shape)


def decode_fp8(codes, dtype):
    """The values of fp8 codes (OCP 8-bit floating point specification), as float32."""
    fraction_bits, bias = FP8[dtype]
    magnitude = (codes & 0x7F).astype(np.int32)
    exponent, fraction = magnitude >> fraction_bits, magnitude & ((1 << fraction_bits) - 1)
    significand = np.where(exponent == 0, fraction, fraction + (1 << fraction_bits))
    value = np.ldexp(significand.astype(np.float32), np.maximum(exponent, 1) - bias - fraction_bits)
    if dtype == "float8_e5m2":
        value[magnitude == 0x7C] = np.inf
        value[magnitude > 0x7C] = np.nan
    else:
        value[magnitude == 0x7F] = np.nan
    return np.where(codes & 0x80, -value, value).astype(np.float32)


def encode(array):
    """The description of an array in a reply."""
    array = np.asarray(array)
    data = array.astype(array.dtype.newbyteorder("<")).tobytes()
    return {"shape": list(array.shape), "dtype": array.dtype.name, "data": base64.b64encode(data).decode()}
