"""The command `ptx`: requirements of a PTX file, and its unsupported lines."""

from __future__ import annotations

import argparse

from ...ptx import load
from ..output.streams import write


def add_ptx(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "ptx", help="what a PTX file needs, and what of it is not simulated", description="Read PTX text."
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    check = actions.add_parser(
        "check",
        help="list what each entry needs, and every line that is not simulated",
        description="List each entry of a PTX file, what it needs, and every line that is not simulated.",
        epilog="Exit status: 0 if all is simulated, 1 if a line is not, 2 if the file cannot be read.",
    )
    check.add_argument("file", metavar="FILE", help="PTX text, as of `nvcc -ptx`")
    check.add_argument("--target", help="the device's; by default the one that the file was compiled for, or sm_70")
    check.add_argument("--json", action="store_true", help="print JSON instead of tables")
    check.set_defaults(run=_check)


def _check(options: argparse.Namespace) -> int:
    needs = load(options.file).check(options.target)
    write(needs.json() if options.json else needs.text())
    return int(needs.problems > 0)
