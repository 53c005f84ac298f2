"""Compiles one CUDA C++ file to PTX with NVRTC: `nvrtc.py LIBRARY SOURCE NAME OUT OPTION...`.

Prints the version of NVRTC to standard output, what it says of the source to standard error, and ends with 1 where it
refuses the source, with 3 where the library is of no use. A process of its own: a compiler that dies or hangs does so
there.
"""

import ctypes
import sys


def main() -> int:
    path, source, name, out, *options = sys.argv[1:]
    try:
        nvrtc = ctypes.CDLL(path)
        create, compile_program = nvrtc.nvrtcCreateProgram, nvrtc.nvrtcCompileProgram
    except (OSError, AttributeError) as error:
        print(error, file=sys.stderr)
        return 3
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    print(f"{major.value}.{minor.value}")
    with open(source, "rb") as file:
        text = file.read()
    program = ctypes.c_void_p()
    if create(ctypes.byref(program), text, name.encode(), 0, None, None) != 0:
        print("nvrtcCreateProgram failed", file=sys.stderr)
        return 3
    arguments = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = compile_program(program, len(options), arguments)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    nvrtc.nvrtcGetProgramLog(program, log)
    sys.stderr.write(log.value.decode(errors="replace"))
    if failed:
        return 1
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value + 1)
    nvrtc.nvrtcGetPTX(program, ptx)
    with open(out, "wb") as file:
        file.write(ptx.value)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
