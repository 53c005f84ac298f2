"""The far side of worker.rs: answers calls of Python functions until its standard input ends.

A frame is the magic, the length of a JSON header (uint32) and of a body (uint64), both little-endian, the header and
the body. The first frame says which protocol this side speaks; then each request is answered by one reply. Arrays
stand in the body, each at a multiple of 8 bytes. User code may print: what it sees as standard output is standard
error here, and its standard input is empty.
"""

import sys

sys.path[:] = [entry for entry in sys.path if entry]  # The project's modules must not stand in for those below.

import faulthandler
import importlib
import inspect
import json
import os
import struct
import traceback

PROTOCOL = 1
MAGIC = b"gpuW"
FRAME = struct.Struct("<4sIQ")
DTYPES = {
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
}  # fmt: skip
READ = {"int": int, "float": float, "bool": lambda text: text == "True", "text": str}
HERE = (lambda: 0).__code__.co_filename


class Refused(Exception):
    """Something to tell the user that is not an exception of their own code."""


class Pipe:
    """Frames over the two descriptors that were standard input and output."""

    def __init__(self):
        self.requests, self.replies = os.dup(0), os.dup(1)
        if os.name == "nt":
            import msvcrt

            msvcrt.setmode(self.requests, os.O_BINARY)
            msvcrt.setmode(self.replies, os.O_BINARY)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self.reader = open(self.requests, "rb", buffering=0)

    def exactly(self, count):
        """The next bytes, or None at the end. Writable: functions may work in place."""
        buffer = bytearray(count)
        view, got = memoryview(buffer), 0
        while got < count:
            read = self.reader.readinto(view[got:])
            if not read:
                return None
            got += read
        return buffer

    def receive(self):
        start = self.exactly(FRAME.size)
        if start is None:
            return None
        _, header, body = FRAME.unpack(start)
        header, body = self.exactly(header), self.exactly(body)
        return None if header is None or body is None else (json.loads(header.decode()), body)

    def send(self, header, parts=()):
        text = json.dumps(header).encode()
        chunks = [FRAME.pack(MAGIC, len(text), sum(len(part) for part in parts)) + text]
        for part in parts:
            if len(part) < 1 << 16:
                chunks[-1] += part
            else:
                chunks += [part, b""]
        for chunk in chunks:
            view = memoryview(chunk)
            while len(view):
                view = view[os.write(self.replies, view) :]


def resolve(name, found={}):
    """The function `package.module:function`, and whether its arguments have no names to be passed by."""
    if name in found:
        return found[name]
    module, _, path = name.partition(":")
    try:
        value = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module + ".").startswith(error.name + "."):
            raise
        raise Refused(
            f"there is no module {error.name}; it is looked for in {sys.path[0]} and where Python looks"
        ) from None
    for part in path.split("."):
        if not hasattr(value, part):
            raise Refused(f"module {module} has no function {path}")
        value = getattr(value, part)
    if not callable(value):
        raise Refused(f"{name} is {type(value).__name__}, not a function")
    try:
        parameters = inspect.signature(value).parameters
        unnamed = any(parameter.kind is parameter.POSITIONAL_ONLY for parameter in parameters.values())
    except (TypeError, ValueError):
        parameters, unnamed = None, True
    found[name] = value, parameters, unnamed
    return found[name]


def reference(numpy, request, body):
    function, _, unnamed = resolve(request["function"])
    inputs = {}
    for name, dtype, shape, offset, count in request["arrays"]:
        inputs[name] = numpy.frombuffer(body, dtype, count, offset).reshape(shape)
    params = {name: READ[kind](text) for name, kind, text in request["params"]}
    result = function(*inputs.values(), **params) if unnamed else function(**inputs, **params)
    names = request["outputs"]
    if result is None and names and all(name in inputs for name in names):
        result = [inputs[name] for name in names]
    elif result is None:
        raise Refused("it returned None; it must return " + wanted(names))
    elif isinstance(result, dict):
        if set(result) != set(names):
            raise Refused(
                f"it returned a dict of {', '.join(map(str, result)) or 'nothing'}; it must return {wanted(names)}"
            )
        result = [result[name] for name in names]
    elif not isinstance(result, (tuple, list)) or (len(names) == 1 and isinstance(result, list)):
        result = [result]
    if len(result) != len(names):
        raise Refused(f"it returned {len(result)} value{'s' * (len(result) != 1)}; it must return {wanted(names)}")
    return [array(numpy, name, value) for name, value in zip(names, result)]


def generated(numpy, request):
    function, parameters, _ = resolve(request["generate"])
    offered = dict(request["dims"])
    offered.update((name, READ[kind](text)) for name, kind, text in request["params"])
    offered.update(seed=request["seed"], shape=tuple(request["shape"]), dtype=request["dtype"])
    offered["rng"] = numpy.random.Generator(numpy.random.PCG64(request["seed"]))
    if parameters is not None and not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        offered = {name: value for name, value in offered.items() if name in parameters}
    result = function(**offered)
    if result is None:
        raise Refused("it returned None; it must return an array of the shape it is given")
    return [array(numpy, "value", result)]


def wanted(names):
    return "one array" if len(names) == 1 else f"{len(names)} arrays, in this order or as a dict: {', '.join(names)}"


def array(numpy, name, value):
    try:
        value = numpy.asarray(value)
    except Exception as error:
        raise Refused(f"it returned {type(value).__name__} for {name}, which is no array: {error}") from None
    if value.dtype.kind == "f" and value.dtype.itemsize > 8:
        value = value.astype(numpy.float64)
    if value.dtype.name not in DTYPES:
        raise Refused(f"it returned {name} as an array of {value.dtype}, which is no dtype of gpuemu")
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    return value


def reply(arrays):
    header, parts, at = [], [], 0
    for value in arrays:
        header.append([value.dtype.name, value.shape, at, value.nbytes])
        if value.size:
            parts.append(value.ravel().view("uint8").data)
        parts.append(bytes(-value.nbytes % 8))
        at += value.nbytes + len(parts[-1])
    return {"arrays": header}, parts


def explain(error, request):
    """What the user should read: the exception, and where in their own code it came from."""
    if isinstance(error, Refused):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    while frames and frames[0].filename == HERE:
        frames.pop(0)
    own = [frame for frame in frames if not frame.filename.startswith("<frozen ")][-12:]
    text = "".join(traceback.format_exception_only(type(error), error)).rstrip()
    if isinstance(error, TypeError) and not own and "arrays" in request:
        names = [entry[0] for entry in request["arrays"] + request["params"]]
        return f"{text}; it is called with {', '.join(name + '=' for name in names)}"
    if own:
        text += "\nin " + "".join(traceback.format_list(own)).strip().replace("\n  File ", "\nin ").replace(
            "File ", "", 1
        )
    return text


def main():
    pipe = Pipe()
    faulthandler.enable()
    sys.stdout.reconfigure(line_buffering=True)
    hello = {"protocol": PROTOCOL, "python": "%d.%d.%d" % sys.version_info[:3], "numpy": None}
    try:
        import numpy

        numpy.seterr(all="ignore")
        hello["numpy"] = numpy.__version__
    except Exception as error:
        hello["reason"] = str(error).strip().split("\n")[0]
    pipe.send(hello)
    sys.path.insert(0, sys.argv[1])
    while True:
        frame = pipe.receive()
        if frame is None:
            return
        request, body = frame
        try:
            arrays = reference(numpy, request, body) if "function" in request else generated(numpy, request)
            answer = reply(arrays)
        except BaseException as error:
            answer = ({"error": explain(error, request)},)
            sys.stdout.flush()
            sys.stderr.flush()
        pipe.send(*answer)
        arrays = answer = body = frame = None


main()
