"""The command `explore`: all layouts and sums as one page of HTML."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import webbrowser
from contextlib import suppress
from pathlib import Path

from ..errors import OperandError, shown
from .streams import say, write

__all__ = ["add_explore"]

_NAME = "warpmma.html"


def add_explore(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "explore",
        help="write all of it as one HTML page to look around in",
        description="Write the explorer: one HTML file, which needs no network and no server. It shows which lane "
        "holds which element of every instruction, and explains sums on two targets beside each other.",
    )
    parser.add_argument("out", nargs="?", default=_NAME, metavar="OUT.html", help=f"where to; by default {_NAME}")
    parser.add_argument("--open", action="store_true", help="open it in a browser")
    parser.add_argument("--json", action="store_true", help="print where it is, and its size, as JSON")
    parser.set_defaults(run=_explore)


def _explore(options: argparse.Namespace) -> int:
    from ..show import explorer_page

    path = Path(options.out)
    if path.is_dir():
        path = path / _NAME
    size = _written(path, explorer_page())
    where = path.resolve()
    if options.json:
        write(json.dumps({"file": str(where), "bytes": size}, indent=2))
    else:
        write(f"{path}: {size / 1e6:.1f} MB, to be opened in a browser")
    if options.open and not webbrowser.open(where.as_uri()):
        say(f"warpmma: no browser was found; {where} can be opened in any")
    return 0


def _written(path: Path, text: str) -> int:
    """Write a file whole or not at all: whoever reads it meanwhile has the old one or the new one."""
    content = text.encode()
    new = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        new = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        new.chmod(0o666 & ~mask)  # what an ordinary file has
        new.replace(path)
    except (OSError, ValueError) as error:
        if new is not None:
            with suppress(OSError):
                new.unlink()
        why = getattr(error, "strerror", None) or "no name of a file"
        raise OperandError(
            f"{shown(str(path), str)} cannot be written: {why}; expected OUT.html in a folder that is there"
        ) from None
    return len(content)
