"""The command `where`: the place of an element.

1. The answer is a line for each place: `wmma` may hold an element more than once, and all its copies are listed unless
   one is asked for.
2. Of `ldmatrix` and `stmatrix` it says which lane has the address of the element's row, too.
3. Of what PTX does not define, and of what moves fragments, a line says how it is known.
"""

from __future__ import annotations

import argparse

from ...isa import FragmentHolder, FragmentInstruction, Instruction
from ...lookup import Cell, ids_of, layout_known, operand_layout, where
from ..arguments.fragment_words import holder_of, target_of
from ..arguments.operand_words import (
    add_operand,
    add_selectors,
    add_target,
    bits_of,
    cell_facts,
    coordinate,
    element_of,
    name_of,
    operand_of,
    selected,
)
from ..output.streams import write
from ..output.terminal import Paint, add_output, paint_of


def add_where(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "where",
        description="Say where an element sits: its lane, register and bits.",
        epilog="Of a sparse A, COLUMN counts stored elements; of metadata it is a group of columns, of scales a block "
        "of k, and of scale_b ROW is B's column. Of ldmatrix and stmatrix ROW is a row of memory; of address COLUMN "
        "is 0.",
    )
    add_operand(parser)
    parser.add_argument("row", type=coordinate, metavar="ROW")
    parser.add_argument("column", type=coordinate, metavar="COLUMN")
    parser.add_argument(
        "--matrix", type=int, metavar="N", help="one of m8n8k4's four, or of .x2 and .x4; 0 by default; of wmma a copy"
    )
    add_selectors(parser, 0)
    add_target(parser)
    add_output(parser)
    parser.set_defaults(run=_where)


def _where(options: argparse.Namespace) -> int:
    operand = operand_of(options.operand)
    instruction = holder_of(options.instruction, operand, options.target)
    target = target_of(instruction, operand, options.target)
    found = [
        where(instruction, operand, options.row, options.column, matrix=matrix, target=target, **selected(options))
        for matrix in _matrices(instruction, operand, options.matrix, target)
    ]
    if options.json:
        import json  # a look-up is quick without it

        facts = [{**cell_facts(instruction, cell, target), **_address_facts(instruction, cell)} for cell in found]
        rest = {"copies": facts[1:]} if len(facts) > 1 else {}
        write(json.dumps({"instruction": str(instruction), **facts[0], **rest, **_known(instruction, target)}))
        return 0
    paint = paint_of(options)
    lines = [_text(instruction, cell, paint, target) for cell in found]
    known = _known(instruction, target).get("known", "")
    write("\n".join([*lines, *filter(None, [paint(known, "dim")])]))
    return 0


def _matrices(instruction: FragmentHolder, operand: str, given: int | None, target: str | None) -> list[int]:
    """Rule 1."""
    copies = isinstance(instruction, FragmentInstruction) and instruction.variant(operand) == "copy"
    if given is None and copies:
        return [ids["matrix"] for ids in ids_of(instruction, operand, target)]
    return [given or 0]


def _known(instruction: FragmentHolder, target: str | None) -> dict[str, str]:
    """Rule 3."""
    return {"known": layout_known(instruction, target)} if isinstance(instruction, FragmentInstruction) else {}


def _address_facts(instruction: FragmentHolder, cell: Cell) -> dict[str, int]:
    """Rule 2."""
    if not isinstance(instruction, FragmentInstruction) or "address" not in instruction.operands:
        return {}
    return {"address_lane": where(instruction, "address", cell.row, 0, matrix=cell.matrix).lane}


def _text(instruction: FragmentHolder, cell: Cell, paint: Paint, target: str | None) -> str:
    lane = paint(f"lane {cell.lane}", "lane")
    if operand_layout(instruction, cell.operand, target).lanes > 32:
        lane = f"{paint(f'thread {cell.lane}', 'lane')} (lane {cell.lane % 32} of warp {cell.lane // 32})"
    if cell.operand == "address":
        return f"{paint(name_of(instruction, cell), 'bold')} of {lane}, for {element_of(instruction, cell)}"
    register = paint(f"register {cell.register}", "register")
    text = f"{paint(name_of(instruction, cell), 'bold')} of {lane}, {bits_of(cell)} of {register}"
    plain = len(cell.operand) == 1 and not (
        cell.operand == "A" and isinstance(instruction, Instruction) and instruction.sparse
    )
    if plain and not isinstance(instruction, FragmentInstruction):
        return text
    text += f", for {element_of(instruction, cell, target)}"
    if facts := _address_facts(instruction, cell):
        pointing = paint(f"lane {facts['address_lane']}", "lane")
        text += f", whose row is at the address of {pointing}"
    return text
