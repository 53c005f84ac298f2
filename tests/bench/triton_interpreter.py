"""The kernels of examples/triton-repo on the emulator and in Triton's own interpreter: what each finds, and how long it takes.

`python tests/bench/triton_interpreter.py` prints two tables in Markdown: seconds of every right kernel over the same calls,
compiled before, and for every faulty twin what either says. Each twin runs in a process of its own: the interpreter reads and
writes the memory of its process, whatever is there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "triton-repo"
REPEATS = 3


def right() -> dict[str, Callable[[], object]]:
    """Every right kernel, with tensors of one size."""
    import torch
    import tritonkit

    torch.manual_seed(0)
    rows, weight = torch.randn(64, 300), torch.randn(300)
    q, k, v = torch.randn(1, 4, 64, 32), torch.randn(1, 2, 64, 32), torch.randn(1, 2, 64, 32)
    a, b = torch.randn(128, 128), torch.randn(128, 128)
    angles = torch.rand(64, 16)
    return {
        "softmax": lambda: tritonkit.softmax(rows),
        "layer_norm": lambda: tritonkit.layer_norm(rows, weight, weight),
        "rms_norm": lambda: tritonkit.rms_norm(rows, weight),
        "gelu": lambda: tritonkit.gelu(rows),
        "silu": lambda: tritonkit.silu(rows),
        "swiglu": lambda: tritonkit.swiglu(rows, rows),
        "dropout": lambda: tritonkit.dropout(rows, 0.5, 1),
        "matmul": lambda: tritonkit.matmul(a, b),
        "matmul_split_k": lambda: tritonkit.matmul_split_k(a, b),
        "matmul_int8": lambda: tritonkit.matmul_int8(a, b.to(torch.int8), torch.rand(128)),
        "attention": lambda: tritonkit.attention(q, k, v),
        "flash_attention": lambda: tritonkit.flash_attention(q, k, v, causal=True),
        "rope": lambda: tritonkit.rope(q, angles, angles),
        "embedding": lambda: tritonkit.embedding(rows, torch.arange(64)),
        "cross_entropy": lambda: tritonkit.cross_entropy(rows, torch.arange(64)),
        "cumsum": lambda: tritonkit.cumsum(rows),
    }


def twins() -> dict[str, Callable[[], object]]:
    """Every faulty twin, called so that its fault shows, with the right answer held against its own where it has one."""
    import torch
    import torch.nn.functional as F
    import tritonkit
    from faulty import memory, order, tuning, values

    torch.manual_seed(0)
    x = torch.randn(1000)
    rows, weight = torch.randn(4, 100), torch.randn(100)
    q, k, v = torch.randn(1, 4, 37, 32), torch.randn(1, 2, 37, 32), torch.randn(1, 2, 37, 32)
    a, b = torch.randn(40, 70), torch.randn(70, 40)
    wide = torch.randn(5, 64)[:, :33]
    angles = torch.rand(37, 16)

    def differs(got: torch.Tensor, expected: torch.Tensor) -> None:
        torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)

    attention = F.scaled_dot_product_attention
    heads = [tensor.repeat_interleave(2, 1) for tensor in (k, v)]
    return {
        "unmasked_load": lambda: memory.unmasked_load(x),
        "unmasked_store": lambda: memory.unmasked_store(x),
        "wrong_bound": lambda: differs(memory.wrong_bound(rows), rows.sum(1)),
        "shifted": lambda: memory.shifted(x),
        "narrow_offset": lambda: memory.narrow_offset(
            torch.from_numpy(np.zeros(2**31 + 64, np.int8)).as_strided((3, 32), (2**30, 1))
        ),
        "unchecked_ids": lambda: memory.unchecked_ids(rows, torch.tensor([3, -1])),
        "false_promise": lambda: memory.false_promise(x, 3),
        "unset_sums": lambda: memory.unset_sums(torch.randn(2, 200)),
        "split_store": lambda: differs(order.split_store(torch.ones(2, 256)), torch.full((2,), 256.0)),
        "counted": lambda: differs(order.counted(torch.zeros(300, dtype=torch.int64), 1), torch.tensor([300]).int()),
        "in_place_shift": lambda: differs(order.in_place_shift(x.clone())[:-1], x[1:]),
        "unguarded_exchange": lambda: order.unguarded_exchange(torch.arange(128, dtype=torch.int32)),
        "endless": lambda: order.endless(torch.zeros(1)),
        "asserted": lambda: order.asserted(torch.tensor([0, 1, 2, 7], dtype=torch.int32), 4),
        "tall_grid": lambda: order.tall_grid(torch.zeros(65_536)),
        "half_tuned": lambda: tuning.half_tuned(torch.randn(128)),
        "tuned_in_place": lambda: tuning.tuned_in_place(torch.randn(100), 2.0),
        "softmax_zero_padding": lambda: differs(values.softmax_zero_padding(rows), rows.softmax(-1)),
        "softmax_unshifted": lambda: differs(values.softmax_unshifted(rows * 100), (rows * 100).softmax(-1)),
        "softmax_dense_rows": lambda: differs(values.softmax_dense_rows(wide), wide.softmax(-1)),
        "layer_norm_padding": lambda: differs(
            values.layer_norm_padding(rows + 3, weight, weight), F.layer_norm(rows + 3, (100,), weight, weight)
        ),
        "layer_norm_epsilon": lambda: differs(
            values.layer_norm_epsilon(rows * 0.01, weight, weight), F.layer_norm(rows * 0.01, (100,), weight, weight)
        ),
        "gelu_tanh": lambda: differs(values.gelu_tanh(x), F.gelu(x)),
        "matmul_last_block": lambda: differs(values.matmul_last_block(a, b), a @ b),
        "matmul_half_sums": lambda: differs(values.matmul_half_sums(a, b), a @ b),
        "flash_attention_heads": lambda: differs(values.flash_attention_heads(q, k, v), attention(q, *heads)),
        "flash_attention_scale": lambda: differs(values.flash_attention_scale(q, k, v), attention(q, *heads)),
        "flash_attention_padding": lambda: differs(values.flash_attention_padding(q, k, v), attention(q, *heads)),
        "flash_attention_diagonal": lambda: differs(
            values.flash_attention_diagonal(q, k, v, causal=True), attention(q, *heads, is_causal=True)
        ),
        "flash_attention_rescale": lambda: differs(
            values.flash_attention_rescale(q * 9, k, v), attention(q * 9, *heads)
        ),
        "rope_pairs": lambda: differs(values.rope_pairs(q, angles, angles), tritonkit.rope(q, angles, angles)),
        "cumsum_restart": lambda: differs(values.cumsum_restart(torch.randn(2, 300)), torch.zeros(2, 300)),
        "cross_entropy_ignored": lambda: differs(
            values.cross_entropy_ignored(rows, torch.tensor([1, -100, 2, 3])),
            F.cross_entropy(rows, torch.tensor([1, -100, 2, 3]), reduction="none"),
        ),
    }


def begin(on: str) -> None:
    """Prepares this process, before a kernel is defined."""
    sys.path.insert(0, str(EXAMPLE))
    if on == "emulator":
        from gpuemu.triton import activate

        activate(autotune="error", budget=1_000_000)


def child(on: str, what: str) -> None:
    """Runs one thing and says what came of it, as JSON."""
    begin(on)
    if what == "times":
        times = {}
        for name, call in right().items():
            try:
                call()
                times[name] = f"{min(_seconds(call) for _ in range(REPEATS)) * 1e3:.1f}"
            except Exception as error:
                # The interpreter has no libdevice.
                times[name] = type(error).__name__
        print(json.dumps(times))
        return
    call = twins()[what]
    try:
        call()
    except AssertionError:
        print(json.dumps("a wrong answer"))
    except Exception as error:
        print(json.dumps(f"{type(error).__name__}: {str(error).splitlines()[0]}"))
    else:
        print(json.dumps(""))


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def ask(on: str, what: str, limit: int = 120) -> Any:
    """What a child says; how it died, where it did."""
    environment = {**os.environ, "TRITON_INTERPRET": "1" if on == "interpreter" else "0"}
    command = [sys.executable, __file__, "--child", on, what]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"nothing after {limit} s"
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        if done.returncode < 0:
            return f"signal {-done.returncode}"
        raise SystemExit(done.stderr)
    return json.loads(lines[-1])


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:4])
        return 0
    times = {on: ask(on, "times", 600) for on in ("emulator", "interpreter")}
    print("| kernel | emulator, ms | interpreter, ms |\n|---|---|---|")
    for name in times["emulator"]:
        print(f"| `{name}` | {times['emulator'][name]} | {times['interpreter'][name]} |")
    begin("none")
    print("\n| twin | emulator | interpreter |\n|---|---|---|")
    found = {"emulator": 0, "interpreter": 0}
    for name in twins():
        told = {on: ask(on, name) for on in found}
        for on in found:
            found[on] += bool(told[on])
        print(f"| `{name}` | {told['emulator'] or 'nothing'} | {told['interpreter'] or 'nothing'} |", flush=True)
    print(f"\nfound: {found['emulator']} and {found['interpreter']} of {len(twins())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
