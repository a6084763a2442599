"""The command `explore`: all layouts and sums as one page of HTML."""

from __future__ import annotations

import argparse
import json
import webbrowser
from pathlib import Path

from ..output.streams import say, write
from ..output.whole_files import write_file

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
    parser.add_argument("-o", "--output", metavar="FILE", help="the same, as the other commands have it")
    parser.add_argument("--open", action="store_true", help="open it in a browser")
    parser.add_argument("--json", action="store_true", help="print where it is, and its size, as JSON")
    parser.set_defaults(run=_explore)


def _explore(options: argparse.Namespace) -> int:
    from ...show import explorer_page

    path = Path(options.output or options.out)
    if path.is_dir():
        path = path / _NAME
    content = explorer_page().encode()
    write_file(path, lambda stream: stream.write(content), "OUT.html in a folder that is there")
    size = len(content)
    where = path.resolve()
    if options.json:
        write(json.dumps({"file": str(where), "bytes": size}, indent=2))
    else:
        write(f"{path}: {size / 1e6:.1f} MB, to be opened in a browser")
    if options.open and not webbrowser.open(where.as_uri()):
        say(f"warpmma: no browser was found; {where} can be opened in any")
    return 0
