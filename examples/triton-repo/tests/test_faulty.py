"""Every faulty twin is caught, with a diagnosis that leads to its line."""

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest
import torch
from faulty import memory, order, tuning
from gpuemu.triton import AutotuneError, KernelFault, emulated

DEVICE = "cuda"


def caught(function, *args):
    """The fault of a call, which stands on the line that is marked."""
    with pytest.raises(KernelFault) as caught:
        function(*args)
    fault = caught.value
    assert fault.file == inspect.getfile(function), fault
    assert "# fault" in statement(fault.file, fault.line), fault
    return fault


def statement(file, line):
    """The smallest statement that a line is part of: Triton names any line of one that spans several."""
    text = Path(file).read_text(encoding="utf-8")
    within = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno
    ]
    smallest = min(within, key=lambda node: node.end_lineno - node.lineno)
    return "\n".join(text.splitlines()[smallest.lineno - 1 : smallest.end_lineno])


def test_unmasked_load():
    fault = caught(memory.unmasked_load, torch.randn(1000, device=DEVICE))
    assert (fault.kind, fault.tensor, fault.offset) == ("out-of-bounds", "x_ptr", 1000)
    assert (fault.program, fault.thread) == ((7, 0, 0), (104, 0, 0))
    assert "element 1000 of x_ptr, float32 of shape (1000,): 1 past its end" in str(fault)


def test_unmasked_store():
    fault = caught(memory.unmasked_store, torch.randn(1000, device=DEVICE))
    assert (fault.kind, fault.tensor, fault.offset) == ("out-of-bounds", "out_ptr", 1000)
    assert "write out of bounds in unmasked_store_kernel" in str(fault)


def test_wrong_bound():
    fault = caught(memory.wrong_bound, torch.randn(3, 5, device=DEVICE))
    assert (fault.kind, fault.tensor, fault.offset, fault.program) == ("out-of-bounds", "x_ptr", 15, (2, 0, 0))


def test_shifted():
    fault = caught(memory.shifted, torch.randn(100, device=DEVICE))
    assert (fault.kind, fault.tensor, fault.offset) == ("out-of-bounds", "x_ptr", -1)
    assert "1 before its start" in str(fault)


def test_narrow_offset():
    # Three rows 2^30 bytes apart; of memory that nobody touches a machine gives none.
    x = torch.from_numpy(np.zeros(2**31 + 64, np.int8)).as_strided((3, 32), (2**30, 1))
    fault = caught(memory.narrow_offset, x)
    assert (fault.kind, fault.tensor, fault.offset) == ("out-of-bounds", "x_ptr", -(2**31))


def test_unchecked_ids():
    fault = caught(memory.unchecked_ids, torch.randn(5, 8, device=DEVICE), torch.tensor([4, -1], device=DEVICE))
    assert (fault.kind, fault.tensor, fault.offset, fault.program) == ("out-of-bounds", "table_ptr", -8, (1, 0, 0))


def test_false_promise():
    fault = caught(memory.false_promise, torch.randn(1024, device=DEVICE), 3)
    assert (fault.kind, fault.tensor, fault.offset) == ("misaligned", "x_ptr", 3)


def test_unset_sums():
    fault = caught(memory.unset_sums, torch.randn(2, 200, device=DEVICE))
    assert (fault.kind, fault.tensor, fault.offset) == ("uninitialised-read", "out_ptr", 0)


def test_split_store():
    fault = caught(order.split_store, torch.randn(2, 200, device=DEVICE))
    assert (fault.kind, fault.tensor) == ("global-race", "out_ptr")
    assert fault.other_line == fault.line


def test_counted():
    fault = caught(order.counted, torch.zeros(300, dtype=torch.int64, device=DEVICE), 4)
    assert (fault.kind, fault.tensor, fault.offset) == ("global-race", "counts_ptr", 0)


def test_in_place_shift():
    fault = caught(order.in_place_shift, torch.randn(300, device=DEVICE))
    assert (fault.kind, fault.tensor, fault.offset) == ("global-race", "x_ptr", 1)


def test_unguarded_exchange():
    fault = caught(order.unguarded_exchange, torch.arange(128, dtype=torch.int32, device=DEVICE))
    assert fault.kind in ("shared-race", "uninitialised-read")


def test_endless():
    with emulated(torch_cuda=True, budget=100_000):
        fault = caught(order.endless, torch.zeros(1, device=DEVICE))
    assert fault.kind == "runaway"


def test_asserted():
    fault = caught(order.asserted, torch.tensor([0, 1, 2, 7], dtype=torch.int32, device=DEVICE), 4)
    assert fault.kind == "assert"
    assert "an id beyond the table" in fault.detail


def test_tall_grid():
    with pytest.raises(KernelFault, match="65535") as caught:
        order.tall_grid(torch.zeros(65_536, device=DEVICE))
    assert caught.value.kind == "invalid-launch"


def test_half_tuned():
    message = "half_tuned_kernel disagree on out_ptr: with BLOCK=128, .* it writes element 64, with BLOCK=64, .* not"
    with emulated(torch_cuda=True, autotune="error"), pytest.raises(AutotuneError, match=message):
        tuning.half_tuned(torch.randn(128, device=DEVICE))


def test_tuned_in_place():
    with emulated(torch_cuda=True, autotune="error"), pytest.raises(AutotuneError, match="updates x_ptr in place"):
        tuning.tuned_in_place(torch.randn(100, device=DEVICE), 2.0)
