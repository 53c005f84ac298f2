"""`torch.cuda` and its like while CUDA is served from the CPU: one device, on which everything has happened when a call
returns.

Torch's function mode sees what is done with tensors, not the functions of `torch.cuda`: those that code for a GPU asks for are
replaced while the mode is entered, and put back when it is left.
"""

from __future__ import annotations

import contextlib
import itertools
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

DEVICE = torch.device("cuda", 0)
_CPU = torch.device("cpu")
_REAL = torch.Generator

MEMORY = 80 << 30
"""Bytes of the device, an A100's: what code asks before it chooses how much to do at once."""


def is_cuda(value: Any) -> bool:
    """Whether a device, as torch takes one, is CUDA's."""
    if isinstance(value, torch.device):
        return str(value.type) == "cuda"
    return isinstance(value, str) and (value == "cuda" or value.startswith("cuda:"))


def index_of(device: Any) -> int:
    """The number of a device, which is 0; an error as torch has it for any other."""
    if device is None:
        return 0
    if isinstance(device, int):
        index = device
    else:
        device = torch.device(device)
        if device.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {device}")
        index = device.index or 0
    if index > 0:
        raise RuntimeError(f"CUDA error: invalid device ordinal: {index}; the emulator is one device")
    return 0


class Event:
    """A point in this machine's time."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **_: Any
    ) -> None:
        self.enable_timing = enable_timing
        self.device = DEVICE
        self.at: float | None = None

    def record(self, stream: Any = None) -> None:
        self.at = time.perf_counter()

    def query(self) -> bool:
        """It has passed."""
        return True

    def wait(self, stream: Any = None) -> None:
        """It has passed."""

    def synchronize(self) -> None:
        """It has passed."""

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds to another event; at least a microsecond, since benchmarks divide by it."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.at is None or end_event.at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return max((end_event.at - self.at) * 1e3, 1e-3)


_STREAMS = itertools.count()


class Stream(torch.Stream):  # type: ignore[misc]
    """A queue of work that is done as soon as it is asked for."""

    cuda_stream = 0

    def __new__(cls, device: Any = None, priority: int = 0, **_: Any) -> Any:
        index_of(device)
        # The type of CUDA's devices in torch is 1; a stream by its number is made without a driver.
        made = super().__new__(cls, stream_id=next(_STREAMS), device_index=0, device_type=1)
        made.priority = priority
        return made

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        """All is done."""

    def __enter__(self) -> Stream:
        _CURRENT.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _CURRENT.pop()

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def synchronize(self) -> None:
        """All of it is done."""

    def wait_event(self, event: Any) -> None:
        """It has passed."""

    def wait_stream(self, stream: Any) -> None:
        """All of it is done."""

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event


_DEFAULT = Stream()
_CURRENT: list[Any] = [_DEFAULT]


@contextlib.contextmanager
def _stream(stream: Any) -> Iterator[None]:
    if stream is None:
        yield
        return
    with stream:
        yield


def _set_stream(stream: Any) -> None:
    if stream is not None:
        _CURRENT[-1] = stream


class _Device:
    """`torch.cuda.device(0)`: the device in a `with` statement."""

    def __init__(self, device: Any) -> None:
        self.idx = index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = 0

    def __exit__(self, *_: Any) -> None:
        """It was it before."""


class _DeviceOf(_Device):
    """`torch.cuda.device_of(tensor)`."""

    def __init__(self, obj: Any) -> None:
        super().__init__(0)


class _Instances(type(_REAL)):  # type: ignore[misc]
    """Every generator of torch's is an instance of the class that stands for them."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, _REAL)

    def __subclasscheck__(cls, other: Any) -> bool:
        return issubclass(other, _REAL)


class Generator(_REAL, metaclass=_Instances):  # type: ignore[misc, valid-type]
    """`torch.Generator`, which may be asked for on CUDA: it draws what the CPU's does."""

    _cuda: bool

    def __new__(cls, device: Any = "cpu") -> Any:
        if not is_cuda(device):
            return _REAL(device)
        index_of(device)
        made = _REAL.__new__(cls)
        made._cuda = True
        return made

    def __init__(self, device: Any = "cpu") -> None:
        """All is done."""

    @property
    def device(self) -> torch.device:
        return DEVICE


def check_generator(generator: Any, cuda: bool) -> None:
    """Refuses the CPU's generator for a tensor of CUDA, and the other way, as torch does."""
    if generator is None:
        return
    wanted, found = ("cuda", "cpu") if cuda else ("cpu", "cuda")
    if (type(generator) is Generator) != cuda:
        raise RuntimeError(f"Expected a '{wanted}' device type for generator but found '{found}'")


class Counted:
    """Bytes of tensors that call themselves CUDA's."""

    now = 0
    most = 0
    ever = 0

    @classmethod
    def made(cls, size: int) -> None:
        cls.now += size
        cls.ever += size
        cls.most = max(cls.most, cls.now)

    @classmethod
    def gone(cls, size: int) -> None:
        cls.now -= size

    @classmethod
    def reset(cls, device: Any = None) -> None:
        cls.most = cls.now


def _statistics(device: Any = None) -> dict[str, int]:
    index_of(device)
    found = {"current": Counted.now, "peak": Counted.most, "allocated": Counted.ever}
    found["freed"] = Counted.ever - Counted.now
    kinds = ("allocated_bytes", "reserved_bytes", "active_bytes")
    return {f"{kind}.all.{name}": value for kind in kinds for name, value in found.items()}


_GRAPHS = ("CUDAGraph", "graph", "make_graphed_callables")


def _refused(name: str) -> Callable[..., Any]:
    why = "is not there on the emulator"
    if name in _GRAPHS:
        why += ", which executes each launch at once and records none: call the function without a graph"

    def refuse(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"torch.cuda.{name} {why}")

    return refuse


def _check(device: Any = None) -> None:
    """There is one device, and all of its work is done."""
    index_of(device)


def _none(*_: Any, **__: Any) -> None:
    return None


def _properties(driver: Any) -> Any:
    limits = driver.utils.limits
    major, minor = driver.get_device_capability()
    return types.SimpleNamespace(
        name=f"gpuemu {driver.settings.target}",
        major=major,
        minor=minor,
        total_memory=MEMORY,
        multi_processor_count=limits["multiprocessors"],
        warp_size=32,
        max_threads_per_block=limits["threads_per_block"],
        max_threads_per_multi_processor=limits["threads_per_multiprocessor"],
        regs_per_multiprocessor=limits["registers_per_multiprocessor"],
        shared_memory_per_block=limits["shared_per_block_static"],
        shared_memory_per_block_optin=limits["shared_per_block"],
        shared_memory_per_multiprocessor=limits["shared_per_multiprocessor"],
        L2_cache_size=40 << 20,
        is_integrated=0,
        is_multi_gpu_board=0,
    )


def _of_cuda(driver: Any) -> dict[str, Any]:
    """The attributes of `torch.cuda`."""

    def seed(value: int) -> None:
        torch.default_generator.manual_seed(int(value))

    def draw() -> int:
        return int(torch.default_generator.seed())

    def properties(device: Any = None) -> Any:
        index_of(device)
        return _properties(driver)

    def capability(device: Any = None) -> tuple[int, int]:
        index_of(device)
        answer: tuple[int, int] = driver.get_device_capability()
        return answer

    served: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": _none,
        "_lazy_init": _none,
        "_lazy_call": lambda call, **_: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": _check,
        "device": _Device,
        "device_of": _DeviceOf,
        "get_device_name": lambda device=None: properties(device).name,
        "get_device_capability": capability,
        "get_device_properties": properties,
        "get_arch_list": lambda: [driver.settings.target],
        "can_device_access_peer": lambda device, peer: False,
        "is_bf16_supported": lambda including_emulation=True: capability() >= (8, 0),
        "is_tf32_supported": lambda: capability() >= (8, 0),
        "is_current_stream_capturing": lambda: False,
        "synchronize": _check,
        "Event": Event,
        "Stream": Stream,
        "stream": _stream,
        "StreamContext": _stream,
        "current_stream": lambda device=None: _CURRENT[-1],
        "default_stream": lambda device=None: _DEFAULT,
        "set_stream": _set_stream,
        "empty_cache": _none,
        "ipc_collect": _none,
        "memory_allocated": lambda device=None: Counted.now,
        "memory_reserved": lambda device=None: Counted.now,
        "max_memory_allocated": lambda device=None: Counted.most,
        "max_memory_reserved": lambda device=None: Counted.most,
        "reset_peak_memory_stats": Counted.reset,
        "reset_max_memory_allocated": Counted.reset,
        "memory_stats": _statistics,
        "mem_get_info": lambda device=None: (MEMORY - Counted.now, MEMORY),
        "manual_seed": seed,
        "manual_seed_all": seed,
        "seed": draw,
        "seed_all": draw,
        "initial_seed": lambda: torch.default_generator.initial_seed(),
        "get_rng_state": lambda device=None: torch.default_generator.get_state(),
        "set_rng_state": lambda new_state, device=None: torch.default_generator.set_state(new_state),
        "get_rng_state_all": lambda: [torch.default_generator.get_state()],
        "set_rng_state_all": lambda new_states: torch.default_generator.set_state(new_states[0]),
        "default_generators": (torch.default_generator,),
    }
    missing = (*_GRAPHS, "ExternalStream", "cudart", "utilization", "temperature")
    served.update((name, _refused(name)) for name in missing)
    return served


def _of_accelerator() -> dict[str, Any]:
    """The attributes of `torch.accelerator`, where there is one."""
    return {
        "is_available": lambda: True,
        "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "device_count": lambda: 1,
        "current_device_index": lambda: 0,
        "current_device_idx": lambda: 0,
        "set_device_index": _check,
        "set_device_idx": _check,
        "synchronize": _check,
        "current_stream": lambda device=None: _CURRENT[-1],
        "set_stream": _set_stream,
        "empty_cache": _none,
    }


def _of_nvtx() -> dict[str, Any]:
    return {name: _none for name in ("range_push", "range_pop", "range_start", "range_end", "mark")}


def _named(name: str, value: Any) -> Any:
    """A function of its own for each name: torch keeps what it knows of its functions by the function itself."""
    if isinstance(value, type) or not callable(value):
        return value

    def served(*arguments: Any, **named: Any) -> Any:
        return value(*arguments, **named)

    served.__name__ = served.__qualname__ = name
    return served


def serve(driver: Any, more: list[tuple[Any, dict[str, Any]]]) -> list[tuple[Any, str, Any]]:
    """Puts all of it in place, and `more` by object and attribute; answers what stood there."""
    places: list[tuple[Any, dict[str, Any]]] = [
        *more,
        (torch.cuda, _of_cuda(driver)),
        (torch.cuda.nvtx, _of_nvtx()),
        # What is CUDA's alone is not there: torch's own code takes its other way.
        (torch.backends.cudnn, {"is_acceptable": lambda tensor: False}),
        (torch, {"Generator": Generator}),
    ]
    if hasattr(torch, "accelerator"):
        places.append((torch.accelerator, _of_accelerator()))
    stood = []
    for module, attributes in places:
        for name, value in attributes.items():
            if hasattr(module, name):
                stood.append((module, name, getattr(module, name)))
                setattr(module, name, _named(name, value))
    return stood


def put_back(stood: list[tuple[Any, str, Any]]) -> None:
    """Undoes `serve`."""
    for module, name, value in reversed(stood):
        setattr(module, name, value)
