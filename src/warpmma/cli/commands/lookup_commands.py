"""The commands `where` and `what`: the place of an element, and the contents of a lane's register.

1. `where` prints a line for each place: `wmma` may hold an element more than once, and all its copies are listed unless
   one is asked for.
2. Of `ldmatrix` and `stmatrix`, `where` names the lane with the address of the element's row, too.
3. With a descriptor, an element of A or B of a `wgmma` lies in shared memory: its byte, bank and address are printed.
4. Of layouts that PTX does not define, and of instructions that move fragments, a line says how the layout is known.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import OperandError
from ...isa import FragmentHolder, FragmentInstruction, Instruction
from ...lookup import Cell, ids_of, layout_known, operand_layout, what, where
from ..arguments.operand_words import (
    add_descriptor,
    add_operand,
    add_selectors,
    bits_of,
    cell_facts,
    coordinate,
    described,
    element_of,
    looked_up,
    name_of,
    number,
    selected,
    shared_facts,
    shared_text,
)
from ..output.streams import write
from ..output.terminal import Paint, add_output, paint_of, tabulated

if TYPE_CHECKING:
    from ...layouts import SharedCell
    from ...lookup import WordPart


def add_where(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.epilog = (
        "Of a sparse A, COLUMN counts stored elements; of metadata it is a group of columns, of scales a block of k, "
        "and of scale_b ROW is B's column. Of ldmatrix and stmatrix ROW is a row of memory; of address COLUMN is 0."
    )
    add_operand(parser)
    parser.add_argument("row", type=coordinate, metavar="ROW")
    parser.add_argument("column", type=coordinate, metavar="COLUMN")
    parser.add_argument(
        "--matrix", type=int, metavar="N", help="one of m8n8k4's four, or of .x2 and .x4; 0 by default; of wmma a copy"
    )
    add_selectors(parser, 0)
    add_descriptor(parser)
    add_output(parser)


def run_where(options: argparse.Namespace) -> int:
    """Say where an element sits: its lane, register and bits; of shared memory its byte and bank."""
    instruction, operand, target = looked_up(options)
    if options.descriptor is not None:
        in_memory = where(
            instruction, operand, options.row, options.column, target=target, **described(options),
            **selected(options),  # refused where they are not 0
        )  # fmt: skip
        if options.json:
            import json

            write(json.dumps({"instruction": str(instruction), **shared_facts(in_memory)}))
        else:
            write(shared_text(in_memory, paint_of(options)))
        return 0
    found = [
        where(instruction, operand, options.row, options.column, matrix=matrix, target=target, **selected(options))
        for matrix in _matrices(instruction, operand, options.matrix, target)
    ]
    if options.json:
        import json  # loaded here to keep `where` quick

        facts = [{**cell_facts(instruction, cell, target), **_address_facts(instruction, cell)} for cell in found]
        rest = {"copies": facts[1:]} if len(facts) > 1 else {}
        write(json.dumps({"instruction": str(instruction), **facts[0], **rest, **_known(instruction, target)}))
        return 0
    paint = paint_of(options)
    lines = [_place_text(instruction, cell, paint, target) for cell in found]
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
    """Rule 4."""
    return {"known": layout_known(instruction, target)} if isinstance(instruction, FragmentInstruction) else {}


def _address_facts(instruction: FragmentHolder, cell: Cell) -> dict[str, int]:
    """Rule 2."""
    if not isinstance(instruction, FragmentInstruction) or "address" not in instruction.operands:
        return {}
    return {"address_lane": where(instruction, "address", cell.row, 0, matrix=cell.matrix).lane}


def _place_text(instruction: FragmentHolder, cell: Cell, paint: Paint, target: str | None) -> str:
    lane = paint(f"lane {cell.lane}", "lane")
    if operand_layout(instruction, cell.operand, target).lanes > 32:
        lane = f"{paint(f'thread {cell.lane}', 'lane')} (lane {cell.lane % 32} of warp {cell.lane // 32})"
    if cell.operand == "address":
        return f"{paint(name_of(cell), 'bold')} of {lane}, for {element_of(instruction, cell)}"
    register = paint(f"register {cell.register}", "register")
    text = f"{paint(name_of(cell), 'bold')} of {lane}, {bits_of(cell)} of {register}"
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


# Registers


def add_what(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    add_operand(parser)
    parser.add_argument("--lane", type=int, metavar="N", help="0 to 31; of wgmma the thread, 0 to 127")
    parser.add_argument("--register", type=int, metavar="N", help="one of the operand's; by default all of them")
    parser.add_argument("--word", type=number, metavar="BITS", help="what the register holds, such as 0x3c00bc00")
    add_selectors(parser, None)
    add_descriptor(parser)
    parser.add_argument("--address", type=number, metavar="N", help="of a byte of shared memory, with --descriptor")
    parser.set_defaults(refuse=parser.error)
    add_output(parser)


def run_what(options: argparse.Namespace) -> int:
    """Say which elements a register of a lane holds, or a byte of shared memory, and what given bits in it mean."""
    needed = "--lane" if options.descriptor is None else "--address"
    if (options.lane if options.descriptor is None else options.address) is None:
        options.refuse(f"the following arguments are required: {needed}")
    instruction, operand, target = looked_up(options)
    if options.descriptor is not None:
        in_memory: tuple[SharedCell, ...] = what(  # type: ignore[call-overload]
            instruction, operand, address=options.address, target=target, lane=options.lane,
            register=options.register, **described(options), **selected(options),  # refused where they are not 0
        )  # fmt: skip
        if options.json:
            import json

            facts = [shared_facts(cell) for cell in in_memory]
            write(json.dumps({"instruction": str(instruction), "address": options.address, "cells": facts}, indent=2))
        else:
            nothing = f"nothing is read at {options.address:#x}"
            write("\n".join(shared_text(cell, paint_of(options)) for cell in in_memory) or nothing)
        return 0
    chosen = {**selected(options), "target": target}
    parts: Sequence[WordPart] = ()
    if options.word is None:
        cells = what(instruction, operand, lane=options.lane, register=options.register, **chosen)
    else:
        from ...lookup import read_word  # loaded here to keep `where` quick

        register = _register(instruction, operand, options.register, target)
        parts = read_word(instruction, operand, options.word, lane=options.lane, register=register, **chosen)
        cells = tuple(part.cell for part in parts)
    if options.json:
        import json

        write(json.dumps(_register_facts(instruction, operand, options, cells, parts, target), indent=2))
    elif cells:
        write(_table(instruction, cells, parts, paint_of(options), target))
    elif operand == "address":
        lanes = operand_layout(instruction, operand).shape[-2] * len(ids_of(instruction, operand))
        write(f"the address of lane {options.lane} does not count; those of lanes 0 to {lanes - 1} do")
    else:
        given = ", ".join(f"{x.replace('_', '-')} {y}" for x, y in selected(options).items() if y is not None)
        read = what(instruction, operand, lane=options.lane, register=options.register)
        does = dict.fromkeys(", ".join(_selectors(instruction, cell)) for cell in read)
        write(f"lane {options.lane} holds nothing that is read with {given}; it is read with {' or '.join(does)}")
    return 0


def _register(instruction: FragmentHolder, operand: str, given: int | None, target: str | None) -> int:
    registers = operand_layout(instruction, operand, target).registers
    if given is None and registers > 1:
        raise OperandError(f"{instruction}: {operand} has {registers} registers; say which has the word: --register 0")
    return given or 0


def _selectors(instruction: FragmentHolder, cell: Cell) -> list[str]:
    """Write the selectors of a cell; empty if there is no choice."""
    if cell.operand == "address" or len(cell.operand) == 1:
        return []
    every = ids_of(instruction, cell.operand)
    if len(every) == 1:
        return []
    return [f"{name.replace('_', '-')} {number}" for name, number in every[cell.matrix].items()]


def _table(
    instruction: FragmentHolder, cells: Sequence[Cell], parts: Sequence[WordPart], paint: Paint, target: str | None
) -> str:
    read_with = [", ".join(_selectors(instruction, cell)) for cell in cells]
    head, styles = ["register", "bits", "name", "holds"], ["register", "", "lane", ""]
    rows = [[str(x.register), bits_of(x).split()[1], name_of(x), element_of(instruction, x, target)] for x in cells]
    if any(read_with):
        head.append("read with")
        rows = [[*row, text] for row, text in zip(rows, read_with, strict=True)]
    if parts:
        head += ["code", "meaning"]
        digits = 1 + max(part.cell.high - part.cell.low for part in parts) // 4
        rows = [[*row, f"{x.code:#0{digits + 2}x}", _meaning(x)] for row, x in zip(rows, parts, strict=True)]
    table = tabulated([head, *rows], paint, range(len(head)), styles)
    if isinstance(instruction, FragmentInstruction):
        table += "\n" + paint(layout_known(instruction, target), "dim")
    return table


def _meaning(part: WordPart) -> str:
    """Return the meaning without the name of the group."""
    return part.meaning.partition(": ")[2] or part.meaning


def _register_facts(
    instruction: FragmentHolder, operand: str, options: argparse.Namespace, cells: Sequence[Cell],
    parts: Sequence[WordPart], target: str | None,
) -> dict[str, Any]:  # fmt: skip
    facts = [cell_facts(instruction, cell, target) for cell in cells]
    for each, part in zip(facts, parts, strict=False):
        each |= {"code": part.code, "meaning": part.meaning}
        if operand == "metadata":
            each["stored"] = list(part.stored)
    return {
        "instruction": str(instruction), "operand": operand, "lane": options.lane, "word": options.word,
        "cells": facts, **_known(instruction, target),
    }  # fmt: skip
