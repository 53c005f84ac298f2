"""`python -m gpuemu.triton script.py`: a script on the emulator, as it would run on a machine with a GPU."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys

from . import activate

USAGE = "usage: python -m gpuemu.triton [-m MODULE | SCRIPT] [ARGUMENT ...]"


def main(arguments: list[str]) -> None:
    """Runs what the command line names, as Python itself would."""
    if arguments and arguments[0] in ("-h", "--help"):
        print(USAGE)
        return
    if not arguments or arguments == ["-m"]:
        sys.exit(USAGE)
    try:
        activate(torch_cuda=importlib.util.find_spec("torch") is not None)
    except ImportError as error:
        sys.exit(str(error))
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    if not os.path.isfile(arguments[0]):
        sys.exit(f"there is no script {arguments[0]}; {USAGE}")
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")
