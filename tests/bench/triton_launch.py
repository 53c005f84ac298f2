"""What a launch of a small Triton kernel on the emulator costs once it is compiled, argument handling included.

`python tests/bench/triton_launch.py [--profile]` prints a table in Markdown: microseconds of `kernel[grid](...)`, median and
fastest, and of Triton's own part of it, with a launcher that does nothing.
"""

from __future__ import annotations

import cProfile
import pstats
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from gpuemu.triton import emulated

WARM, ROUNDS = 200, 2000


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    x, y = tl.load(x_ptr + place, mask=mask), tl.load(y_ptr + place, mask=mask)
    tl.store(out_ptr + place, x + y, mask=mask)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, row_stride, columns, BLOCK: tl.constexpr):
    row, place = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * row_stride + place, mask=place < columns, other=-float("inf"))
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + place, powers / tl.sum(powers, axis=0), mask=place < columns)


def launches() -> dict[str, Callable[[], Any]]:
    """Small launches, by what they are."""
    x, y, out = (torch.randn(128) for _ in range(3))
    rows, answer = torch.randn(2, 100), torch.empty(2, 100)
    return {
        "sum of two vectors of 128, one program of a warp": lambda: add_kernel[(1,)](
            x, y, out, 128, BLOCK=128, num_warps=1
        ),
        "the same, one program of four warps": lambda: add_kernel[(1,)](x, y, out, 128, BLOCK=128),
        "softmax of two rows of 100, two programs of four warps": lambda: softmax_kernel[(2,)](
            rows, answer, 100, 100, BLOCK=128
        ),
    }


def microseconds(call: Callable[[], Any]) -> tuple[float, float]:
    """Median and fastest of many calls."""
    for _ in range(WARM):
        call()
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1e6, min(times) * 1e6


def main() -> int:
    print("| launch | served as | median, us | fastest, us | Triton's own part, us |")
    print("|---|---|---|---|---|")
    for torch_cuda in (False, True):
        with emulated(torch_cuda=torch_cuda):
            for name, call in launches().items():
                compiled = call()
                median, fastest = microseconds(call)
                launcher, compiled._run = compiled._run, lambda *_: None
                own, _ = microseconds(call)
                compiled._run = launcher
                served = "torch's CUDA" if torch_cuda else "CPU tensors"
                print(f"| {name} | {served} | {median:.0f} | {fastest:.0f} | {own:.0f} |", flush=True)
                if "--profile" in sys.argv:
                    profile = cProfile.Profile()
                    profile.enable()
                    for _ in range(ROUNDS):
                        call()
                    profile.disable()
                    pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    return 0


if __name__ == "__main__":
    sys.exit(main())
