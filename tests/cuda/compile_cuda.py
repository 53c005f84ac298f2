"""Compiles the CUDA sources of this folder to PTX, without a GPU: `compile_cuda.py OUT_DIR`.

`varied.cu` goes through nvcc, `plain.cu` through NVRTC, each with several targets and options; `ordered.cu`,
`collectives.cu` and the random programs of `programs.py` through nvcc. A second run over the same sources, with the same compilers, does nothing.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import programs

HERE = Path(__file__).resolve().parent
WHEELS = ["nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-cuda-runtime", "nvidia-cuda-cccl", "nvidia-cuda-nvrtc"]

NVCC: dict[str, list[str]] = {
    "varied.sm_75": ["-arch=sm_75"],
    "varied.sm_80": ["-arch=sm_80"],
    "varied.sm_90": ["-arch=sm_90"],
    "varied.sm_120": ["-arch=sm_120"],
    "varied_lineinfo.sm_80": ["-arch=sm_80", "-lineinfo"],
    "varied_debug.sm_90": ["-arch=sm_90", "-G"],
    "varied_relocatable.sm_80": ["-arch=sm_80", "-rdc=true", "-use_fast_math"],
}
# Right kernels that share memory.
ORDERED = [("ordered", "sm_80"), ("ordered", "sm_90"), ("collectives", "sm_80")]
# How many of the random programs, each once: what an H200 answers stands in gpuemu-ptx/truth/programs.txt.
PROGRAMS = 40

NVRTC: dict[str, list[str]] = {
    "plain.sm_75": ["--gpu-architecture=compute_75"],
    "plain.sm_80": ["--gpu-architecture=compute_80", "-lineinfo"],
    "plain.sm_90a": ["--gpu-architecture=compute_90a", "--use_fast_math"],
    "plain_debug.sm_80": ["--gpu-architecture=compute_80", "-G"],
}


def toolkit() -> Path:
    """Where the wheels lie: the folder with `bin/nvcc`."""
    import nvidia

    for root in nvidia.__path__:
        found = sorted(Path(root).glob("*/bin/nvcc"))
        if found:
            return found[0].parent.parent
    raise SystemExit(f"no nvcc in this Python environment: pip install {' '.join(WHEELS)}")


def nvcc(name: str, options: list[str], source: Path, out: Path) -> None:
    """Compiles one source."""
    command = [
        str(toolkit() / "bin" / "nvcc"),
        "-ptx",
        "-std=c++17",
        *options,
        str(source),
        "-o",
        str(out / f"{name}.ptx"),
    ]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed: {done.stdout}{done.stderr}")


def nvrtc(name: str, options: list[str], out: Path) -> None:
    """Compiles `plain.cu`."""
    library = ctypes.CDLL(str(next((toolkit() / "lib").glob("libnvrtc.so.*"))))
    program = ctypes.c_void_p()
    source = (HERE / "plain.cu").read_bytes()
    if library.nvrtcCreateProgram(ctypes.byref(program), source, b"plain.cu", 0, None, None) != 0:
        raise SystemExit("nvrtcCreateProgram failed")
    arguments = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), arguments)
    size = ctypes.c_size_t()
    if failed:
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        raise SystemExit(f"{name}: {log.value.decode()}")
    library.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    library.nvrtcGetPTX(program, text)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    (out / f"{name}.ptx").write_bytes(text.value)


def stamp() -> str:
    """Changes when the output would."""
    digest = hashlib.sha256(" ".join(importlib.metadata.version(wheel) for wheel in WHEELS).encode())
    for source in sorted(HERE.iterdir()):
        if source.is_file():
            digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: compile_cuda.py OUT_DIR", file=sys.stderr)
        return 2
    out = Path(sys.argv[1]).resolve()
    stamped, want = out / "stamp", stamp()
    if stamped.is_file() and stamped.read_text() == want:
        print(f"{out}: up to date")
        return 0
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        random_source = out / "programs.cu"
        random_source.write_text(programs.source(0, PROGRAMS))
        # Contraction would leave it to the compiler how often a product is rounded.
        jobs = [pool.submit(nvcc, "programs.sm_80", ["-arch=sm_80", "-fmad=false", "-w"], random_source, out)]
        jobs += [pool.submit(nvcc, name, options, HERE / "varied.cu", out) for name, options in NVCC.items()]
        for name, target in ORDERED:
            jobs.append(pool.submit(nvcc, f"{name}.{target}", [f"-arch={target}"], HERE / f"{name}.cu", out))
        jobs += [pool.submit(nvrtc, name, options, out) for name, options in NVRTC.items()]
        for job in jobs:
            job.result()
    print(f"{out}: {len(jobs)} PTX files")
    stamped.write_text(want)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
