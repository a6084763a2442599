"""The command `ptx`: requirements of a PTX file, and its unsupported lines."""

from __future__ import annotations

import argparse

from ...ptx import load
from ..output.streams import write


def add_ptx(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.description = "Read PTX text."
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    check = actions.add_parser(
        "check",
        help="list what each entry needs, and every line that is not simulated",
        description=run_ptx.__doc__,
        epilog="Exit status: 0 if all is simulated, 1 if a line is not, 2 if the file cannot be read.",
    )
    check.add_argument("file", metavar="FILE", help="PTX text, as of `nvcc -ptx`")
    check.add_argument("--target", help="the device's; by default the one that the file was compiled for, or sm_70")
    check.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run_ptx(options: argparse.Namespace) -> int:
    """List each entry of a PTX file, what it needs, and every line that is not simulated."""
    needs = load(options.file).check(options.target)
    write(needs.json() if options.json else needs.text())
    return int(needs.problems > 0)
