"""The arguments that `where`, `what` and `layout` share, and how they write places and elements.

1. An operand is A, B, C, D, metadata, scale_a, scale_b or address, in small or capital letters; `sfa` and `sfb` are
   scales as in CUTLASS, `p` is an address as in PTX.
2. A place is written `a1 of lane 14, bits 16-31 of register 0`; of a warpgroup with thread, lane and warp.
3. An element is written `A[3, 5]`; a stored one of a sparse A is one of its group's columns, `one of A[3, 8-11]`. What
   a nibble or a scale is for is written by rows and columns of A or B.
4. A place in shared memory is written `B[3, 5] at byte 0x6d6, bits 16-31 of bank 21`, then the address before the
   swizzle.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._arguments import check_choice
from ..._lazy import later
from ...errors import shown
from ...isa import FragmentHolder, FragmentInstruction, MatrixInstruction
from ...layouts import MAJORS, SharedCell
from ...lookup import REGISTER_OPERANDS, Cell, ids_of, operand_layout
from ..output.terminal import Paint
from .naming import add_instruction, holder_of, target_of

if TYPE_CHECKING:
    from ... import scaling, sparsity
else:  # loaded on use, to keep look-ups quick
    scaling, sparsity = later("...scaling", __package__), later("...sparsity", __package__)

_MEANT = {"meta": "metadata", "sfa": "scale_a", "sfb": "scale_b", "p": "address", "addresses": "address"}
_SELECTORS = {
    "selector": "sparsity selector, of metadata", "byte_id": "byte-id, of scales", "thread_id": "thread-id, of scales"
}  # fmt: skip


def add_operand(parser: argparse.ArgumentParser) -> None:
    """Add the instruction and the operand."""
    add_instruction(parser)
    parser.add_argument("operand", metavar="OPERAND", help=f"{', '.join(REGISTER_OPERANDS)}")


def add_selectors(parser: argparse.ArgumentParser, default: int | None) -> None:
    """Add the options that choose lanes of metadata and scales, and the target, whose layouts may differ."""
    for name, help_ in _SELECTORS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=number, default=default, metavar="N", help=help_)
    parser.add_argument("--target", help="whose layout, of `wmma`, whose fragments differ between GPUs")


def add_descriptor(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a `wgmma` reads A or B from shared memory."""
    parser.add_argument(
        "--descriptor", type=number, metavar="BITS", help="of A or B of wgmma in memory, such as 0x4000004000000040"
    )
    add_major(parser)


def add_major(parser: argparse.ArgumentParser) -> None:
    """Add `--major`."""
    parser.add_argument("--major", choices=MAJORS, default="K", help="MN where imm-trans of wgmma is 1; by default K")


def described(options: argparse.Namespace) -> dict[str, Any]:
    """Return the descriptor and the major-ness, if a descriptor was given."""
    return {} if options.descriptor is None else {"descriptor": options.descriptor, "major": options.major}


def shared_facts(cell: SharedCell) -> dict[str, Any]:
    """Return what JSON has of an element in shared memory."""
    return {x: getattr(cell, x) for x in ("operand", "row", "column", "address", "linear", "bank", "low", "high")}


def shared_text(cell: SharedCell, paint: Paint) -> str:
    """Write where an element lies in shared memory."""
    bits = f"bits {cell.low}-{cell.high}" if cell.high > cell.low else f"bit {cell.low}"
    name = paint(f"{cell.operand}[{cell.row}, {cell.column}]", "bold")
    where = f"{paint(f'byte {cell.address:#x}', 'lane')}, {bits} of {paint(f'bank {cell.bank}', 'register')}"
    swizzle = f"before the swizzle {cell.linear:#x}" if cell.linear != cell.address else "not moved by a swizzle"
    return f"{name} at {where}; {swizzle}"


def number(text: str) -> int:
    """Read a number as Python writes it: 14, 0x3c00bc00."""
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{shown(text)} is not a number; expected one such as 14 or 0x3c00bc00"
        ) from None


def coordinate(text: str) -> int:
    """Read a row or a column; the error shows the order of the arguments, which is the usual mistake."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{shown(text)} is not a number; expected INSTRUCTION OPERAND ROW COLUMN, such as m16n8k16 f16 A 3 5"
        ) from None


def selected(options: argparse.Namespace) -> dict[str, Any]:
    """Return the selectors that were given, by name."""
    return {name: getattr(options, name) for name in _SELECTORS}


def looked_up(options: argparse.Namespace) -> tuple[FragmentHolder, str, str | None]:
    """Return the instruction, the operand (rule 1), checked first so that a missing one is reported, and the target."""
    word: str = options.operand
    small = word.lower().replace("-", "_")
    small = _MEANT.get(small, small)
    named = next((name for name in REGISTER_OPERANDS if name.lower() == small), word)
    check_choice("operand", named, REGISTER_OPERANDS)
    instruction = holder_of(options.instruction, named, options.target)
    return instruction, named, target_of(instruction, named, options.target)


def name_of(cell: Cell) -> str:
    """Write an element's name in its lane: `a1`, `nibble 6`, `byte 3`."""
    letter = REGISTER_OPERANDS[cell.operand].letter
    return f"{letter}{' ' * (len(letter) > 1)}{cell.index}"


def bits_of(cell: Cell) -> str:
    """Write the bits that an element takes."""
    return f"bits {cell.low}-{cell.high}" if cell.high > cell.low else f"bit {cell.low}"


def element_of(instruction: FragmentHolder, cell: Cell, target: str | None = None) -> str:
    """Rule 3."""
    if cell.operand == "metadata":
        width = sparsity.pattern(instruction).width  # type: ignore[arg-type]
        return f"A[{cell.row}, {width * cell.column}-{width * (cell.column + 1) - 1}]"
    if cell.operand.startswith("scale"):
        size = scaling.block_size(instruction)  # type: ignore[arg-type]
        k = f"{size * cell.column}-{size * (cell.column + 1) - 1}"
        return f"A[{cell.row}, {k}]" if cell.operand == "scale_a" else f"B[{k}, {cell.row}]"
    if cell.operand == "address":
        return f"row {cell.row} of matrix {cell.matrix}"
    if cell.operand == "A" and isinstance(instruction, MatrixInstruction) and instruction.sparse:
        law = sparsity.pattern(instruction)
        first = law.width * (cell.column // law.kept)
        return f"one of A[{cell.row}, {first}-{first + law.width - 1}]"
    several = operand_layout(instruction, cell.operand, target).matrices > 1
    copies = isinstance(instruction, FragmentInstruction) and instruction.variant(cell.operand) == "copy"
    number = f", copy {cell.matrix}" if copies else f" of matrix {cell.matrix}"
    return f"{cell.operand}[{cell.row}, {cell.column}]{number * several}"


def cell_facts(instruction: FragmentHolder, cell: Cell, target: str | None = None) -> dict[str, Any]:
    """Return what JSON has of an element and its place; instead of a matrix's number the selectors that choose it."""
    ids: Mapping[str, int] = ids_of(instruction, cell.operand, target)[cell.matrix]
    facts = {x: getattr(cell, x) for x in ("operand", "row", "column", "lane", "register", "low", "high", "index")}
    return {**facts, "name": name_of(cell), **ids}
