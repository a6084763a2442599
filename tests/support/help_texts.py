"""What commands say about their options, from one process: it imports the package once, and forks for each command."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

__all__ = ["help_of"]

ROOT = Path(__file__).parents[2]

_FORKS = """
import json, os, runpy, sys
import warpmma.kernel, warpmma.ptx  # most of what commands import

def run(command):
    sys.argv = [*command, "--help"]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(sys.argv[0])
        runpy.run_path(sys.argv[0], run_name="__main__")

for line in sys.stdin:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(write, 1)
        os.dup2(write, 2)
        run(json.loads(line))
        sys.exit()
    os.close(write)
    with open(read) as printed:
        text = printed.read()
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text]), flush=True)
"""


@cache
def _process() -> subprocess.Popen[str]:
    """Start it; it ends when its input does."""
    started = subprocess.Popen(
        [sys.executable, "-c", _FORKS], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    atexit.register(started.communicate)
    return started


@cache
def help_of(*command: str) -> str:
    """Return what `python COMMAND --help` prints, in the repository's folder; it must succeed."""
    process = _process()
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(command) + "\n")
    status, text = json.loads(process.stdout.readline())
    assert status == 0, text
    return str(text)
