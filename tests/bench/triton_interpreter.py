"""The kernels of examples/triton-repo on the emulator and in Triton's own interpreter: what each finds, and how long it takes.

`python tests/bench/triton_interpreter.py` prints two tables in Markdown: milliseconds of every right kernel over the same
calls, compiled before, and for every faulty twin what either says of the same call. Where only the answer is wrong, the right
kernel has to pass the same comparison first. Each twin runs in a process of its own: the interpreter reads and writes the
memory of its process, whatever is there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
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


Twin = Callable[[], object]


def faults() -> dict[str, Twin]:
    """The faulty twins whose fault is what they do, called so that it happens; where an answer is wrong too, it is compared."""
    import torch
    from faulty import memory, order, tuning

    torch.manual_seed(0)
    x, rows = torch.randn(1000), torch.randn(4, 100)
    huge = torch.from_numpy(np.zeros(2**31 + 64, np.int8)).as_strided((3, 32), (2**30, 1))
    pairs = torch.randn(2, 200)
    return {
        "unmasked_load": lambda: same(memory.unmasked_load(x), x * 2),
        "unmasked_store": lambda: same(memory.unmasked_store(x), x * 2),
        "wrong_bound": lambda: same(memory.wrong_bound(rows), rows.sum(1)),
        "shifted": lambda: memory.shifted(x),
        "narrow_offset": lambda: memory.narrow_offset(huge),
        "unchecked_ids": lambda: memory.unchecked_ids(rows, torch.tensor([3, -1])),
        "false_promise": lambda: memory.false_promise(x, 3),
        "unset_sums": lambda: same(memory.unset_sums(pairs), pairs.sum(1)),
        "split_store": lambda: same(order.split_store(pairs), pairs.sum(1)),
        "counted": lambda: same(order.counted(torch.zeros(300, dtype=torch.int64), 1), torch.tensor([300]).int()),
        "in_place_shift": lambda: same(order.in_place_shift(x.clone())[:-1], x[1:]),
        "unguarded_exchange": lambda: order.unguarded_exchange(torch.arange(128, dtype=torch.int32)),
        "endless": lambda: order.endless(torch.zeros(1)),
        "asserted": lambda: order.asserted(torch.tensor([0, 1, 2, 7], dtype=torch.int32), 4),
        "tall_grid": lambda: order.tall_grid(torch.zeros(65_536)),
        "half_tuned": lambda: same(tuning.half_tuned(x[:128]), x[:128]),
        "tuned_in_place": lambda: same(tuning.tuned_in_place(rows.clone(), 2.0), rows * 2),
    }


def answers() -> dict[str, tuple[str, tuple[Any, ...], Any]]:
    """The faulty twins whose answer is wrong: the right kernel, the arguments of both, and the right answer."""
    import torch
    import torch.nn.functional as F

    torch.manual_seed(0)
    rows, weight, x = torch.randn(4, 100), torch.randn(100), torch.randn(1000)
    q, k, v = torch.randn(1, 4, 37, 32), torch.randn(1, 2, 37, 32), torch.randn(1, 2, 37, 32)
    a, b = torch.randn(40, 70), torch.randn(70, 40)
    wide, long = torch.randn(5, 64)[:, :33], torch.randn(2, 300)
    angles, targets = torch.rand(37, 16), torch.tensor([1, -100, 2, 3])
    keys, values = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    norm = lambda rows: F.layer_norm(rows, (100,), weight, weight)
    attention = F.scaled_dot_product_attention
    first, second = q.chunk(2, -1)
    turned = torch.cat([first * angles - second * angles, second * angles + first * angles], -1)
    plain = attention(q, keys, values)
    return {
        "softmax_zero_padding": ("softmax", (rows,), rows.softmax(-1)),
        "softmax_unshifted": ("softmax", (rows * 100,), (rows * 100).softmax(-1)),
        "softmax_dense_rows": ("softmax", (wide,), wide.softmax(-1)),
        "layer_norm_padding": ("layer_norm", (rows + 3, weight, weight), norm(rows + 3)),
        "layer_norm_epsilon": ("layer_norm", (rows * 0.01, weight, weight), norm(rows * 0.01)),
        "gelu_tanh": ("gelu", (x,), F.gelu(x)),
        "matmul_last_block": ("matmul", (a, b), a @ b),
        "matmul_half_sums": ("matmul", (a, b), a @ b),
        "flash_attention_heads": ("flash_attention", (q, k, v), plain),
        "flash_attention_scale": ("flash_attention", (q, k, v), plain),
        "flash_attention_padding": ("flash_attention", (q, k, v), plain),
        "flash_attention_diagonal": ("flash_attention", (q, k, v, True), attention(q, keys, values, is_causal=True)),
        "flash_attention_rescale": ("flash_attention", (q * 9, k, v), attention(q * 9, keys, values)),
        "rope_pairs": ("rope", (q, angles, angles), turned),
        "cumsum_restart": ("cumsum", (long,), long.cumsum(-1)),
        "cross_entropy_ignored": (
            "cross_entropy",
            (rows, targets),
            F.cross_entropy(rows, targets, reduction="none"),
        ),
    }


def same(got: Any, expected: Any) -> None:
    """`AssertionError` where they are not, in single precision."""
    import torch

    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


def begin(on: str) -> None:
    """Prepares this process, before a kernel is defined."""
    sys.path.insert(0, str(EXAMPLE))
    if on == "emulator":
        import torch
        from gpuemu.triton import activate

        activate(torch_cuda=True, autotune="error", budget=1_000_000)
        torch.set_default_device("cuda")


def child(on: str, what: str) -> None:
    """Runs one thing and says what came of it, as JSON: whether something was found, and what."""
    begin(on)
    if what == "times":
        times = {}
        for name, call in right().items():
            try:
                call()
                times[name] = f"{min(_seconds(call) for _ in range(REPEATS)) * 1e3:.1f}"
            except Exception as error:
                times[name] = "cannot run it: " + _first_line(error)
        print(json.dumps(times))
        return
    known = faults()
    if what in known:
        twin = known[what]
    else:
        import tritonkit
        from faulty import values

        name, arguments, expected = answers()[what]
        try:
            # Only where the right kernel passes does the twin's failure say anything.
            same(getattr(tritonkit, name)(*arguments), expected)
        except Exception as error:
            print(json.dumps([False, "cannot judge it: " + _first_line(error)]))
            return
        twin = lambda: same(getattr(values, what)(*arguments), expected)
    try:
        twin()
    except AssertionError:
        print(json.dumps([True, "a wrong answer"]))
    except Exception as error:
        unable = "not supported" in str(error) or "0 active drivers" in str(error)
        print(json.dumps([not unable, ("cannot run it: " if unable else "") + _first_line(error)]))
    else:
        print(json.dumps([False, "nothing"]))


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return type(error).__name__ + (f": {textwrap.shorten(text[0], 90, placeholder=' ...')}" if text else "")


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def ask(on: str, what: str, limit: int = 60) -> Any:
    """What a child says; how it died, where it did, or that it never ended: both are seen by whoever runs it."""
    environment = {**os.environ, "TRITON_INTERPRET": "1" if on == "interpreter" else "0"}
    command = [sys.executable, __file__, "--child", on, what]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return [True, f"does not end (stopped after {limit} s)"]
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        if done.returncode < 0:
            return [True, f"the process dies of signal {-done.returncode}"]
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
    names = [*faults(), *answers()]
    print("\n| faulty twin | emulator | interpreter |\n|---|---|---|")
    found = {"emulator": 0, "interpreter": 0}
    for name in names:
        told = {on: ask(on, name) for on in found}
        for on, (seen, _) in told.items():
            found[on] += seen
        print(f"| `{name}` | {told['emulator'][1]} | {told['interpreter'][1]} |", flush=True)
    print(f"\nfound: {found['emulator']} and {found['interpreter']} of {len(names)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
