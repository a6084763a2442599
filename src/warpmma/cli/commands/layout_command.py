"""The command `layout`: a whole operand as a table or a picture."""

from __future__ import annotations

import argparse

from ..._views import view
from ...layouts import ORDERS, TABLE_FORMATS
from ...lookup import layout_table
from ..arguments.fragment_words import holder_of, target_of
from ..arguments.operand_words import add_operand, add_selectors, add_target, operand_of, selected
from ..output.output_files import add_files, kind_of
from ..output.whole_files import write_or_replace


def add_layout(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "layout", description="Print an operand: every element with its lane and its place in the lane's fragment."
    )
    add_operand(parser)
    parser.add_argument("--by", choices=ORDERS, default="element", help="rows and columns, or lanes and registers")
    parser.add_argument("--format", choices=TABLE_FORMATS, help="by default text, or what the file's ending says")
    add_files(parser, TABLE_FORMATS, "write it there; a file of that name is replaced", once=True)
    add_selectors(parser, None)
    add_target(parser)
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.set_defaults(run=_layout)


def _layout(options: argparse.Namespace) -> int:
    operand = operand_of(options.operand)
    instruction = holder_of(options.instruction, operand, options.target)
    target = target_of(instruction, operand, options.target)
    table = layout_table(instruction, operand, by=options.by, target=target, **selected(options))
    form = "json" if options.json else options.format
    if form is None:
        form = "text" if options.output is None else kind_of(options.output, TABLE_FORMATS)
    write_or_replace(view(table, "page" if form == "html" else form), options.output)
    return 0
