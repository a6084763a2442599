"""The command `where`: the place of an element."""

from __future__ import annotations

import argparse

from ..isa import AnyInstruction
from ..lookup import Cell, operand_layout, where
from .naming import instruction_of
from .operand_words import (
    add_operand,
    add_selectors,
    bits_of,
    cell_facts,
    coordinate,
    element_of,
    name_of,
    operand_of,
    selected,
)
from .streams import write
from .terminal import Paint, add_output, paint_of

__all__ = ["add_where"]


def add_where(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "where",
        description="Say where an element sits: its lane, register and bits.",
        epilog="Of a sparse A, COLUMN counts stored elements; of metadata it is a group of columns, of scales a block "
        "of k, and of scale_b ROW is B's column.",
    )
    add_operand(parser)
    parser.add_argument("row", type=coordinate, metavar="ROW")
    parser.add_argument("column", type=coordinate, metavar="COLUMN")
    parser.add_argument("--matrix", type=int, default=0, metavar="N", help="one of m8n8k4's four")
    add_selectors(parser, 0)
    add_output(parser)
    parser.set_defaults(run=_where)


def _where(options: argparse.Namespace) -> int:
    operand = operand_of(options.operand)
    instruction = instruction_of(options.instruction)
    found = where(
        instruction, operand, options.row, options.column, matrix=options.matrix, **selected(options)
    )  # fmt: skip
    if options.json:
        import json  # a look-up is quick without it

        write(json.dumps({"instruction": str(instruction), **cell_facts(instruction, found)}))
    else:
        write(_text(instruction, found, paint_of(options)))
    return 0


def _text(instruction: AnyInstruction, cell: Cell, paint: Paint) -> str:
    lane = paint(f"lane {cell.lane}", "lane")
    if operand_layout(instruction, cell.operand).lanes > 32:
        lane = f"{paint(f'thread {cell.lane}', 'lane')} (lane {cell.lane % 32} of warp {cell.lane // 32})"
    register = paint(f"register {cell.register}", "register")
    text = f"{paint(name_of(instruction, cell), 'bold')} of {lane}, {bits_of(cell)} of {register}"
    plain = len(cell.operand) == 1 and not (cell.operand == "A" and instruction.sparse)
    return text if plain else f"{text}, for {element_of(instruction, cell)}"
