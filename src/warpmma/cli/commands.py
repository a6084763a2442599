"""The command line: a thin reader of the library."""

from __future__ import annotations

import argparse
import io
import sys
import traceback
from collections.abc import Sequence
from contextlib import redirect_stdout

from .._version import __version__
from ..errors import CompilationError, PtxError, WarpmmaError
from .ptx_files import add_ptx
from .run_kernel import add_run
from .streams import discard, say, write
from .verify import add_verify

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of those of the process.

    Returns
    -------
    int
        Exit status: 0 if all is well, 1 if something differs, 2 if the request or the file is unusable or the output
        cannot be written, 3 if the program fails.
    """
    parser = argparse.ArgumentParser(prog="warpmma", description="Bit-exact NVIDIA warp-level matrix instructions.")
    parser.add_argument("--version", action="version", version=f"warpmma {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_verify(commands)
    add_ptx(commands)
    add_run(commands)
    try:
        said = io.StringIO()  # help and version: argparse does not notice when these cannot be written
        try:
            with redirect_stdout(said):
                options = parser.parse_args(arguments)
        except SystemExit:
            if said.getvalue():
                write(said.getvalue().removesuffix("\n"))
            raise
        return int(options.run(options))
    except (PtxError, CompilationError) as error:  # whose messages show lines, and in them only what can be printed
        say(f"warpmma: {error}")
        return 2
    except WarpmmaError as error:
        text = "; ".join([str(error), *getattr(error, "__notes__", ())])
        say(f"warpmma: {' '.join(text.split())}")  # one line, whatever a file's names hold
        return 2
    except KeyboardInterrupt:
        say("warpmma: interrupted")
        return 130
    except BrokenPipeError:  # the reader has enough, as `head` does
        discard(sys.stdout)
        return 141
    except OSError as error:
        discard(sys.stdout)
        say(f"warpmma: the output cannot be written: {error.strerror}")
        return 2
    except Exception:  # a fault of ours, which must not look like one of the GPU's: Python's own status would be 1
        say(traceback.format_exc().rstrip())
        return 3
