"""What an instruction keeps in registers, by name: its operands, and the words of metadata and scales beside them.

1. "A", "B", "C" and "D" are the operands. Of a sparse A there are the stored elements, k/2 of them to a row; where they
   stand the metadata says. A `wgmma` has A (where it is in registers), C and D.
2. "metadata" is the register of a sparse instruction: an element is a nibble, and speaks of a group of columns in a row
   of A. The selector chooses which lanes are read: it names one of several matrices. A sparse `wgmma` has it too.
3. "scale_a" and "scale_b" are the registers of block scales: an element is a byte, of a row of A, or a column of B, and
   one of its blocks along k. Byte-id and thread-id name one of several matrices.
4. `ldmatrix`, `stmatrix`, `movmatrix` and `wmma` have what `FragmentInstruction.operands` says. "address" is the
   register with the address of a row of memory: it has an element for each row of each matrix. Where a `wmma` holds an
   element more than once, its copies are counted as matrices are.
5. Where the layouts of an instruction differ between targets, a target must be named; else it need not be.
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
from ..isa import FragmentHolder, FragmentInstruction, Instruction, WarpgroupInstruction, check_target, parse_holder
from ..layouts import OPERANDS, Layout

if TYPE_CHECKING:
    from .. import scaling, sparsity
else:  # loaded by the look-ups that need it
    scaling, sparsity = later("..scaling", __package__), later("..sparsity", __package__)


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
    "address": RegisterOperand(name="address", letter="p"),
})  # fmt: skip
"""What registers keep, by name."""


def checked(instruction: str | FragmentHolder, operand: str, target: str | None = None) -> FragmentHolder:
    """Read an instruction that has such an operand, on a target if one is named; the errors are those of `where`."""
    record = parse_holder(instruction)
    check_choice("operand", operand, REGISTER_OPERANDS)
    if target is not None:
        check_target(record, target)
    return record


def operand_layout(instruction: str | FragmentHolder, operand: str, target: str | None = None) -> Layout:
    """Layout of an operand, of metadata, of scales or of addresses.

    Parameters
    ----------
    instruction : str, Instruction, WarpgroupInstruction or FragmentInstruction
    operand : {"A", "B", "C", "D", "metadata", "scale_a", "scale_b", "address"}
    target : str, optional
        Where layouts differ between targets, as those of some `wmma` do, it must be named.

    Returns
    -------
    Layout
        Of metadata its matrices are the selectors; of scales they are byte-ids and thread-ids, see `ids_of`; of `wmma`
        they are copies.

    Raises
    ------
    MnemonicError, OperandError, MetadataError, ScaleError, TargetError
        No instruction; no such operand; a dense instruction has no metadata, one without block scaling no scales; a
        target without the instruction, or none where layouts differ.

    Examples
    --------
    >>> operand_layout("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "metadata").shape
    (2, 16, 8)
    >>> operand_layout("ldmatrix.sync.aligned.m8n8.x4.b16", "D").shape
    (4, 8, 8)
    """
    record = checked(instruction, operand, target)
    if isinstance(record, FragmentInstruction):
        return record.fragment(operand, target)
    if operand in OPERANDS:
        return record.layout(operand)
    if operand == "metadata" and record.sparse:
        return sparsity.metadata_layout(record)
    if not isinstance(record, Instruction):
        expected = "'A', 'C', 'D' or 'metadata'" if record.sparse else "'A', 'C' or 'D'"
        raise OperandError(f"{record} has no {operand}; expected {expected}")
    if operand == "address":
        raise OperandError(f"{record} has no address; expected 'A', 'B', 'C' or 'D'")
    if operand == "metadata":
        return sparsity.metadata_layout(record)
    return scaling.scale_layout(record, "A" if operand == "scale_a" else "B")


def ids_of(instruction: str | FragmentHolder, operand: str, target: str | None = None) -> tuple[dict[str, int], ...]:
    """Return what chooses each of the matrices that count: arguments of `where`, by name.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    >>> ids_of(i, "scale_a")[1]
    {'byte_id': 2, 'thread_id': 0}
    >>> ids_of("ldmatrix.sync.aligned.m8n8.x2.b16", "address")
    ({'matrix': 0}, {'matrix': 1})
    """
    record, layout = checked(instruction, operand), operand_layout(instruction, operand, target)
    names = REGISTER_OPERANDS[operand].selectors
    if len(names) == 1:
        counted = record.counted(operand, target) if isinstance(record, FragmentInstruction) else layout.matrices
        return tuple({names[0]: number} for number in range(counted))
    pairs = scaling.scale_ids(record, "A" if operand == "scale_a" else "B")  # type: ignore[arg-type]
    return tuple({"byte_id": byte, "thread_id": thread} for byte, thread in pairs)


def chosen(
    record: FragmentHolder, operand: str, selectors: Mapping[str, int | None], target: str | None = None
) -> tuple[int, ...]:
    """Return which matrices some selectors leave; None is not given, nor is 0 for one that the operand has not."""
    names = REGISTER_OPERANDS[operand].selectors
    legal, given = ids_of(record, operand, target), {name: x for name, x in selectors.items() if x is not None}
    for name, value in given.items():
        numbers = sorted({ids[name] for ids in legal}) if name in names else [0]
        if not is_integer(value) or value not in numbers:
            expected = ", ".join(map(str, numbers))
            raise OperandError(f"{record}: {name} of {operand} is {shown(value)}; expected {expected}")
    asked = {name: value for name, value in given.items() if name in names}
    return tuple(number for number, ids in enumerate(legal) if asked.items() <= ids.items())


def type_of(record: FragmentHolder, operand: str) -> str:
    """Return the PTX type of an operand's elements; "address" of addresses, "metadata" of nibbles."""
    if isinstance(record, FragmentInstruction):
        return record.element_type(operand)
    if operand.startswith("scale"):
        return getattr(record, "stype", None) or ""
    return operand if operand == "metadata" else record.type(operand)  # type: ignore[arg-type]


def variant_of(record: FragmentHolder, operand: str) -> str:
    """Return what the numbers of a layout's matrices count, in a word: "matrix", or "copy" of one."""
    return record.variant(operand) if isinstance(record, FragmentInstruction) else "matrix"


def layout_known(instruction: str | FragmentHolder, target: str | None = None) -> str:
    """Say in a line how the layouts of an instruction are known.

    Raises
    ------
    MnemonicError, TargetError
        No instruction; a target without it.

    Examples
    --------
    >>> print(layout_known("wmma.load.a.sync.aligned.row.m16n16k16.f16", "sm_80"))
    opaque in PTX; read from machine code of ptxas for sm_80; not measured on such a GPU
    """
    record = parse_holder(instruction)
    if target is not None:
        check_target(record, target)
    if isinstance(record, FragmentInstruction):
        return record.layout_known(target)
    return f"published: PTX ISA 9.1, {'9.7.15' if isinstance(record, WarpgroupInstruction) else '9.7.14.5'}"
