"""`python -m warpmma.triton [--device sm_90,hazards=warn] [-m] script.py ...`: run a script on a simulated GPU.

With `cuda=cpu` it prints the number of launches at the end: 0 shows code that did not find the GPU.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path

from ..errors import WarpmmaError
from .environment import VARIABLE
from .session import install_described


def main() -> None:
    """Make the device active, and run the script as Python would."""
    parser = argparse.ArgumentParser(prog="python -m warpmma.triton", description="run a script on a simulated GPU")
    asked = os.environ.get(VARIABLE) or "sm_90"
    parser.add_argument("--device", default=asked, help="a target, and options behind it: %(default)s")
    parser.add_argument("-m", action="store_true", dest="module", help="the script is a module")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    try:
        installed = install_described(given.device)
    except WarpmmaError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    sys.argv = [given.script, *given.arguments]
    try:
        if given.module:
            sys.path[0] = str(Path.cwd())
            runpy.run_module(given.script, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(given.script).resolve().parent)
            runpy.run_path(given.script, run_name="__main__")
    finally:
        if installed.cuda_on_cpu:
            print(f"{parser.prog}: {installed!r}", file=sys.stderr)


main()
