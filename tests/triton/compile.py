"""Compiles the Triton kernels of this folder to PTX, without a GPU: `compile.py OUT_DIR [--targets 80,89,90,100]`.

OUT_DIR receives `<kernel>.sm_XX.ptx`, `<kernel>.tensors` and `manifest.json`. A second run over the same sources, with
the same Triton, does nothing. `manifest.json` has

- `compiled`: of every kernel and target the file, the entry, threads a block, bytes of dynamic shared memory, and so on,
  or why it was `skipped`;
- `launches`: of every kernel the grid and the arguments in the order of the entry's parameters. Two pointers follow
  them: to `scratch_bytes` for each block, aligned to `scratch_alignment`, or null; and null. A tensor's bytes lie in
  `<kernel>.tensors` at `before.offset`, and the right ones after the launch at `after.offset`. Without `before` the
  kernel writes all of it; without `after` nothing of it may change. `tolerance` is for every tensor with `after`.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import importlib
import json
import os
import platform
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from declaration import TYPES, Kernel, Scalar, Tensor

HERE = Path(__file__).resolve().parent
FILES = ["reductions", "dots", "attention", "atomics", "scans", "elementwise", "memory", "control"]
TARGETS = [80, 89, 90, 100]
ALIGNMENT = 256


def kernels() -> dict[str, Kernel]:
    """Every kernel by name."""
    found: dict[str, Kernel] = {}
    for file in FILES:
        for kernel in importlib.import_module(file).KERNELS:
            if kernel.title in found:
                raise SystemExit(f"two kernels are named {kernel.title}")
            found[kernel.title] = kernel
    return found


def triton_type(argument: Tensor | Scalar) -> str:
    """How a signature spells an argument's type."""
    name = TYPES[argument.dtype][0]
    return f"*{name}" if isinstance(argument, Tensor) else name


def compile_kernel(kernel: Kernel, target: int, out: Path, cubins: bool) -> dict[str, Any]:
    """Writes the PTX of one kernel for one target and says what a launch needs to know of it."""
    title = kernel.title
    entry: dict[str, Any] = {"kernel": title, "target": f"sm_{target}", "skipped": None}
    if not kernel.first_target <= target <= kernel.last_target:
        return {**entry, "skipped": kernel.why_not}
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature = {name: triton_type(argument) for name, argument in kernel.arguments.items()}
    # As the just-in-time compiler does: pointers are aligned, and so are sizes that 16 divides.
    attributes = {
        (place,): [["tt.divisibility", 16]]
        for place, argument in enumerate(kernel.arguments.values())
        if isinstance(argument, Tensor) or (isinstance(argument.value, int) and argument.value % 16 == 0)
    }
    if list(kernel.function.arg_names) != [*signature, *kernel.constants]:
        raise SystemExit(f"{title}: declared {[*signature, *kernel.constants]}, takes {kernel.function.arg_names}")
    source = ASTSource(
        kernel.function,
        {**signature, **dict.fromkeys(kernel.constants, "constexpr")},
        {(kernel.function.arg_names.index(name),): value for name, value in kernel.constants.items()},
        attributes,
    )
    options = {
        "num_warps": kernel.num_warps,
        "num_stages": kernel.num_stages,
        "enable_fp_fusion": True,
        **kernel.options,
    }
    compiled = triton.compile(source, target=GPUTarget("cuda", target, 32), options=options)
    ptx = compiled.asm["ptx"]
    file = f"{title}.sm_{target}.ptx"
    (out / file).write_text(ptx, encoding="utf-8")
    if cubins:
        (out / f"{title}.sm_{target}.cubin").write_bytes(compiled.asm["cubin"])
    facts = compiled.metadata
    version = re.search(r"^\.version\s+(\S+)", ptx, re.M)
    threads = re.search(r"^\.reqntid\s+(\d+)", ptx, re.M)
    return {
        **entry,
        "file": file,
        "entry": facts.name,
        "ptx_version": version.group(1) if version else None,
        "signature": list(signature.values()),
        "num_warps": kernel.num_warps,
        "num_stages": kernel.num_stages,
        # More than those of num_warps where warps are specialised.
        "threads": int(threads.group(1)) if threads else 32 * kernel.num_warps,
        # Blocks of a cluster: the launch has so many times the grid's blocks along x.
        "cluster": int(facts.num_ctas),
        "shared_bytes": int(facts.shared),
        # For each block; the address of all is the last parameter but one of the entry. The last one may be null.
        "scratch_bytes": int(getattr(facts, "global_scratch_size", 0) or 0),
        "scratch_alignment": int(getattr(facts, "global_scratch_align", 1) or 1),
    }


def launch_of(kernel: Kernel, out: Path) -> dict[str, Any]:
    """Writes a kernel's tensors to `<kernel>.tensors` and says where each lies."""
    inputs, expected = kernel.inputs(), kernel.expected()
    data = bytearray()

    def place(array: np.ndarray) -> dict[str, int]:
        data.extend(bytes(-len(data) % ALIGNMENT))
        offset = len(data)
        data.extend(array.tobytes())
        return {"offset": offset, "bytes": array.nbytes}

    arguments: list[dict[str, Any]] = []
    for name, argument in kernel.arguments.items():
        if isinstance(argument, Scalar):
            arguments.append({"name": name, "kind": "scalar", "dtype": argument.dtype, "value": argument.value})
        else:
            arguments.append(
                {
                    "name": name,
                    "kind": "tensor",
                    "dtype": argument.dtype,
                    "shape": list(argument.shape),
                    "before": place(inputs[name]) if name in inputs else None,
                    "after": place(expected[name]) if name in expected else None,
                }
            )
    (out / f"{kernel.title}.tensors").write_bytes(data)
    return {
        "grid": [*kernel.grid, 1, 1][:3],
        "arguments": arguments,
        "constants": {name: str(value) for name, value in kernel.constants.items()},
        "tolerance": {"absolute": kernel.tolerance.absolute, "relative": kernel.tolerance.relative},
        "prints": list(kernel.prints),
        "tensors": f"{kernel.title}.tensors",
    }


def stamp(targets: list[int]) -> str:
    """Changes when the output would."""
    import triton

    digest = hashlib.sha256(f"{triton.__version__} {np.__version__} {targets} {platform.machine()}".encode())
    for source in sorted(HERE.glob("*.py")):
        digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()


def job(task: tuple[str, int, str, bool]) -> dict[str, Any]:
    """One compilation, in a process of its own; a failure is told with its kernel."""
    title, target, out, cubins = task
    try:
        return compile_kernel(kernels()[title], target, Path(out), cubins)
    except Exception as error:
        return {"kernel": title, "target": f"sm_{target}", "failed": f"{type(error).__name__}: {error}"[:2000]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("--targets", default=",".join(map(str, TARGETS)), help="compute capabilities times 10")
    parser.add_argument(
        "--only", help="kernels with this in their name, added to what lies there; the manifest is of them alone"
    )
    parser.add_argument("--cubins", action="store_true", help="machine code too, as `<kernel>.sm_XX.cubin`")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    targets = [int(target) for target in options.targets.split(",")]
    out: Path = options.out.resolve()
    want = stamp(targets)
    stamped = out / "stamp"
    if not options.only and stamped.is_file() and stamped.read_text() == want:
        print(f"{out}: up to date")
        return 0
    declared = {title: kernel for title, kernel in kernels().items() if (options.only or "") in title}
    if not options.only:
        shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    launches = {title: launch_of(kernel, out) for title, kernel in declared.items()}
    tasks = [(title, target, str(out), options.cubins) for title in declared for target in targets]
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        with concurrent.futures.ProcessPoolExecutor(max_workers=options.jobs) as pool:
            entries = list(pool.map(job, tasks))
    failed = [entry for entry in entries if entry.get("failed")]
    for entry in failed:
        print(f"{entry['kernel']} for {entry['target']} failed: {entry['failed']}", file=sys.stderr)
    import triton

    manifest = {"triton": triton.__version__, "launches": launches, "compiled": entries}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    skipped = sum(1 for entry in entries if entry.get("skipped"))
    print(f"{out}: {len(declared)} kernels, {len(entries) - skipped - len(failed)} PTX files, {skipped} skipped")
    if failed:
        return 1
    if not options.only:
        stamped.write_text(want)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
