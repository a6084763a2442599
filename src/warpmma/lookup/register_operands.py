"""What an instruction keeps in registers, by name: its operands, and the words of metadata and scales beside them.

1. "A", "B", "C" and "D" are the operands. Of a sparse A there are the stored elements, k/2 of them to a row; where they
   stand the metadata says. A `wgmma` has A (where it is in registers), C and D.
2. "metadata" is the register of a sparse instruction: an element is a nibble, and speaks of a group of columns in a row
   of A. The selector chooses which lanes are read: it names one of several matrices.
3. "scale_a" and "scale_b" are the registers of block scales: an element is a byte, of a row of A, or a column of B, and
   one of its blocks along k. Byte-id and thread-id name one of several matrices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from .._arguments import check_choice, is_integer
from .._lazy import later
from .._records import Shown
from ..errors import OperandError, shown
from ..isa import AnyInstruction, Instruction, plainest
from ..layouts import OPERANDS, Layout

if TYPE_CHECKING:
    from .. import scaling, sparsity
else:  # a look-up loads what it asks
    scaling, sparsity = later("..scaling", __package__), later("..sparsity", __package__)

__all__ = ["REGISTER_OPERANDS", "RegisterOperand", "checked", "chosen", "ids_of", "operand_layout"]


@dataclass(frozen=True, kw_only=True)
class RegisterOperand(Shown):
    """A row: what registers keep.

    Attributes
    ----------
    name : str
    letter : str
        PTX's name of an element, `a` of `ai`; "nibble" or "byte" where it has none.
    row, column : str
        What its coordinates are.
    selectors : tuple of str
        Names of the arguments that choose one of several matrices.
    """

    name: str
    letter: str
    row: str = "row"
    column: str = "column"
    selectors: tuple[str, ...] = ("matrix",)


_IDS = ("byte_id", "thread_id")

REGISTER_OPERANDS: Mapping[str, RegisterOperand] = MappingProxyType({
    **{name: RegisterOperand(name=name, letter=name.lower()) for name in OPERANDS},
    "metadata": RegisterOperand(name="metadata", letter="nibble", column="group", selectors=("selector",)),
    "scale_a": RegisterOperand(name="scale_a", letter="byte", column="block", selectors=_IDS),
    "scale_b": RegisterOperand(name="scale_b", letter="byte", row="column", column="block", selectors=_IDS),
})  # fmt: skip
"""What registers keep, by name."""


def checked(instruction: str | AnyInstruction, operand: str) -> AnyInstruction:
    """Read an instruction that has such an operand; the errors are those of `where`."""
    record = plainest(instruction)
    check_choice("operand", operand, REGISTER_OPERANDS)
    return record


def operand_layout(instruction: str | AnyInstruction, operand: str) -> Layout:
    """Layout of an operand, of metadata or of scales.

    Parameters
    ----------
    instruction : str, Instruction or WarpgroupInstruction
    operand : {"A", "B", "C", "D", "metadata", "scale_a", "scale_b"}

    Returns
    -------
    Layout
        Of metadata its matrices are the selectors; of scales they are byte-ids and thread-ids, see `ids_of`.

    Raises
    ------
    MnemonicError, OperandError, MetadataError, ScaleError
        No instruction; no such operand; a dense instruction has no metadata, one without block scaling no scales.

    Examples
    --------
    >>> operand_layout("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "metadata").shape
    (2, 16, 8)
    """
    record = checked(instruction, operand)
    if operand in OPERANDS:
        return record.layout(operand)
    if not isinstance(record, Instruction):
        raise OperandError(f"{record} has no {operand}; expected 'A', 'C' or 'D'")
    if operand == "metadata":
        return sparsity.metadata_layout(record)
    return scaling.scale_layout(record, "A" if operand == "scale_a" else "B")


def ids_of(instruction: str | AnyInstruction, operand: str) -> tuple[dict[str, int], ...]:
    """Return what chooses each of a layout's matrices: arguments of `where`, by name.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    >>> ids_of(i, "scale_a")[1]
    {'byte_id': 2, 'thread_id': 0}
    """
    record, layout = checked(instruction, operand), operand_layout(instruction, operand)
    names = REGISTER_OPERANDS[operand].selectors
    if len(names) == 1:
        return tuple({names[0]: number} for number in range(layout.matrices))
    pairs = scaling.scale_ids(record, "A" if operand == "scale_a" else "B")  # type: ignore[arg-type]
    return tuple({"byte_id": byte, "thread_id": thread} for byte, thread in pairs)


def chosen(record: AnyInstruction, operand: str, selectors: Mapping[str, int | None]) -> tuple[int, ...]:
    """Return which matrices some selectors leave; None is not given, nor is 0 for one that the operand has not."""
    names = REGISTER_OPERANDS[operand].selectors
    legal, given = ids_of(record, operand), {name: x for name, x in selectors.items() if x is not None}
    for name, value in given.items():
        numbers = sorted({ids[name] for ids in legal}) if name in names else [0]
        if not is_integer(value) or value not in numbers:
            expected = ", ".join(map(str, numbers))
            raise OperandError(f"{record}: {name} of {operand} is {shown(value)}; expected {expected}")
    asked = {name: value for name, value in given.items() if name in names}
    return tuple(number for number, ids in enumerate(legal) if asked.items() <= ids.items())
