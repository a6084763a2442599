"""The position of an element, and the contents of a register: inverse look-ups."""

from __future__ import annotations

from dataclasses import replace
from typing import overload

from .._arguments import is_integer
from .._text import counted
from ..errors import OperandError, shown
from ..isa import FragmentHolder, FragmentInstruction, Instruction, check_target, parse_holder
from ..layouts import Cell, FragmentTable, Major, MatrixDescriptor, SharedCell
from .register_operands import REGISTER_OPERANDS, checked, chosen, ids_of, layout_known, operand_layout, variant_of
from .shared_readings import SharedReading, shared_reading


@overload
def where(
    instruction: str | FragmentHolder, operand: str, row: int, column: int, *,
    matrix: int = ..., selector: int = ..., byte_id: int = ..., thread_id: int = ..., target: str | None = ...,
) -> Cell: ...  # fmt: skip


@overload
def where(
    instruction: str | FragmentHolder, operand: str, row: int, column: int, *, descriptor: int | MatrixDescriptor,
    major: Major = ..., target: str | None = ...,
) -> SharedCell: ...  # fmt: skip


def where(
    instruction: str | FragmentHolder, operand: str, row: int, column: int, *, matrix: int = 0, selector: int = 0,
    byte_id: int = 0, thread_id: int = 0, target: str | None = None, descriptor: int | MatrixDescriptor | None = None,
    major: Major = "K",
) -> Cell | SharedCell:  # fmt: skip
    """Find where an element sits: its lane, register and bits.

    Parameters
    ----------
    instruction : str, Instruction, WarpgroupInstruction or FragmentInstruction
        `mma`, `wgmma`, `ldmatrix`, `stmatrix`, `movmatrix` or `wmma`.
    operand : {"A", "B", "C", "D", "metadata", "scale_a", "scale_b", "address"}
        Of a sparse A the stored elements, k/2 of them to a row. D is what `ldmatrix` loads and A what `stmatrix`
        stores; `movmatrix` has A and D; "address" is the register with the address of a row.
    row, column : int
        Of metadata the row of A and the group of its columns; of scales the row of A, or the column of B, and the
        block of k. Of `ldmatrix` and `stmatrix` the row of memory and the element in it, whether or not it is
        transposed; of "address" the row, and 0.
    matrix : int
        0 to 3, of m8n8k4 with f16 operands, which multiplies four, and of `.x2` and `.x4`. Of `wmma` which copy of the
        element, where lanes hold several.
    selector : int
        Sparsity selector; of metadata alone.
    byte_id, thread_id : int
        Scale selectors; of scales alone.
    target : str, optional
        Of some `wmma` layouts differ between targets; then it must be named.
    descriptor : int or MatrixDescriptor, optional
        Of A or B of a `wgmma` in shared memory.
    major : {"K", "MN"}
        Of shared memory: "MN" where `imm-trans` is 1.

    Returns
    -------
    Cell
        With a descriptor a SharedCell: the byte, its bank, and the address before the swizzle.

    Raises
    ------
    MnemonicError, OperandError, MetadataError, ScaleError, TargetError
        No instruction, operand or element; a dense instruction has no metadata, one without block scaling no scales; a
        target without the instruction, or none where layouts differ.

    Examples
    --------
    >>> found = where("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "A", 3, 5)
    >>> found.lane, found.index, found.register, found.low, found.high
    (14, 1, 0, 16, 31)
    >>> where("wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16", "D", 35, 21).lane
    78
    >>> found = where("ldmatrix.sync.aligned.m8n8.x4.trans.b16", "D", 3, 5, matrix=2)
    >>> found.lane, found.register, found.low, found.high
    (21, 2, 16, 31)
    >>> found = where("wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16", "B", 3, 5, descriptor=0x4000004000000040)
    >>> hex(found.address), found.bank
    ('0x6d6', 21)
    """
    if descriptor is not None:
        _no_registers(
            {"matrix": matrix, "selector": selector, "byte_id": byte_id, "thread_id": thread_id}, instruction, target
        )
        return shared_reading(instruction, operand, descriptor, major=major).locate(row, column)
    record, layout = checked(instruction, operand), operand_layout(instruction, operand, target)
    given = {"matrix": matrix, "selector": selector, "byte_id": byte_id, "thread_id": thread_id}
    kind = REGISTER_OPERANDS[operand]
    for name, value, most in zip((kind.row, kind.column), (row, column), layout.shape[-2:], strict=True):
        if not is_integer(value) or not 0 <= value < most:
            has = f"{operand} has {counted(most, _stored(record, operand, name))}"
            raise OperandError(f"{record}: {has}; {name} is {shown(value)}, expected 0 to {most - 1}")
    (number,) = chosen(record, operand, given, target)
    return replace(layout.cell(row, column, number), operand=operand)


def _stored(record: FragmentHolder, operand: str, name: str) -> str:
    sparse = isinstance(record, Instruction) and record.sparse
    return "stored column" if sparse and (operand, name) == ("A", "column") else name


def _no_registers(given: dict[str, int | None], instruction: str | FragmentHolder, target: str | None) -> None:
    """Refuse what speaks of registers where a descriptor is given; check the target."""
    if target is not None:
        check_target(parse_holder(instruction), target)
    for name, value in given.items():
        if value not in (0, None):
            raise OperandError(f"{name} is {shown(value)}; what a descriptor reads lies in no registers, leave it out")


@overload
def what(
    instruction: str | FragmentHolder, operand: str, *, lane: int, register: int | None = ...,
    selector: int | None = ..., byte_id: int | None = ..., thread_id: int | None = ..., target: str | None = ...,
) -> tuple[Cell, ...]: ...  # fmt: skip


@overload
def what(
    instruction: str | FragmentHolder, operand: str, *, descriptor: int | MatrixDescriptor, address: int,
    major: Major = ..., target: str | None = ...,
) -> tuple[SharedCell, ...]: ...  # fmt: skip


def what(
    instruction: str | FragmentHolder, operand: str, *, lane: int | None = None, register: int | None = 0,
    selector: int | None = None, byte_id: int | None = None, thread_id: int | None = None, target: str | None = None,
    descriptor: int | MatrixDescriptor | None = None, address: int | None = None, major: Major = "K",
) -> tuple[Cell, ...] | tuple[SharedCell, ...]:  # fmt: skip
    """Find the contents of a lane's register.

    Parameters
    ----------
    instruction, operand
        As of `where`.
    lane : int
        0 to 31; of a warpgroup the thread, 0 to 127.
    register : int, optional
        Which of the operand's registers; all of them if None.
    selector, byte_id, thread_id : int, optional
        Only what the instruction reads with these; by default all that it could read with any.
    target, descriptor, major
        As of `where`.
    address : int, optional
        With a descriptor, in place of a lane: the shared address of a byte.

    Returns
    -------
    tuple of Cell
        Register after register, the lowest bits first. `matrix` of metadata is the selector that reads it; of scales
        it counts what `ids_of` lists; of `wmma` copies. Of addresses, those of lanes that point to no row are left out.
        With a descriptor SharedCells: the elements that have the byte.

    Raises
    ------
    MnemonicError, OperandError, MetadataError, ScaleError, TargetError
        As of `where`; no such lane or register.

    Examples
    --------
    >>> f16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> [(x.row, x.column) for x in what(f16, "A", lane=14, register=1)]
    [(11, 4), (11, 5)]
    """
    if descriptor is not None:
        given = {"lane": lane, "register": register, "selector": selector, "byte_id": byte_id, "thread_id": thread_id}
        _no_registers(given, instruction, target)
        reading = shared_reading(instruction, operand, descriptor, major=major)
        if address is None:
            raise OperandError(f"{reading.instruction}: address is None; expected a shared address, in bytes")
        return reading.elements(address)
    record, layout = checked(instruction, operand), operand_layout(instruction, operand, target)
    first = 0 if register is None else register
    for name, value, most in (("lane", lane, layout.lanes), ("register", first, layout.registers)):
        if not is_integer(value) or not 0 <= value < most:
            holder = f"{operand} is in {counted(most, name)}{' of a warpgroup' * (name == 'lane' and most > 32)}"
            raise OperandError(f"{record}: {holder}; {name} is {shown(value)}, expected 0 to {most - 1}")
    registers = range(layout.registers) if register is None else (int(first),)
    read = chosen(record, operand, {"selector": selector, "byte_id": byte_id, "thread_id": thread_id}, target)
    cells = (cell for number in registers for cell in layout.holds(int(lane), number))  # type: ignore[arg-type]  # checked
    return tuple(replace(cell, operand=operand) for cell in cells if cell.matrix in read)


@overload
def layout_table(
    instruction: str | FragmentHolder, operand: str, *, by: str = ..., selector: int | None = ...,
    byte_id: int | None = ..., thread_id: int | None = ..., target: str | None = ...,
) -> FragmentTable: ...  # fmt: skip


@overload
def layout_table(
    instruction: str | FragmentHolder, operand: str, *, descriptor: int | MatrixDescriptor, major: Major = ...,
    target: str | None = ...,
) -> SharedReading: ...  # fmt: skip


def layout_table(
    instruction: str | FragmentHolder, operand: str, *, by: str = "element",
    selector: int | None = None, byte_id: int | None = None, thread_id: int | None = None, target: str | None = None,
    descriptor: int | MatrixDescriptor | None = None, major: Major = "K",
) -> FragmentTable | SharedReading:  # fmt: skip
    """Return the whole table of an operand: every element with its lane, register and bits.

    Parameters
    ----------
    instruction, operand, selector, byte_id, thread_id, target, descriptor, major
        As of `what`.
    by : {"element", "lane"}
        Row after row, or lane after lane.

    Returns
    -------
    FragmentTable
        Its `text()`, `csv()`, `markdown()`, `json()`, `html()` and `svg()` are the same table. With a descriptor a
        SharedReading, which has `text()`, `csv()`, `json()` and `svg()`.

    Raises
    ------
    MnemonicError, OperandError, MetadataError, ScaleError, TargetError
        As of `what`; another order.

    Examples
    --------
    >>> i = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
    >>> print(layout_table(i, "A").csv().splitlines()[1])
    0,0,0,0,0,7,0
    """
    if descriptor is not None:
        _no_registers({"selector": selector, "byte_id": byte_id, "thread_id": thread_id}, instruction, target)
        return shared_reading(instruction, operand, descriptor, major=major)
    record, layout = checked(instruction, operand), operand_layout(instruction, operand, target)
    kind, every = REGISTER_OPERANDS[operand], ids_of(record, operand, target)
    read = chosen(record, operand, {"selector": selector, "byte_id": byte_id, "thread_id": thread_id}, target)
    named = {"matrix": variant_of(record, operand)}
    titles = tuple(
        ", ".join(f"{named.get(name, name).replace('_', '-')} {value}" for name, value in ids.items()) for ids in every
    )
    known = layout_known(record, target) if isinstance(record, FragmentInstruction) else ""
    known = layout_known(record, target) if isinstance(record, FragmentInstruction) else ""
    return FragmentTable(
        layout=layout, by=by, instruction=str(record), operand=operand, letter=kind.letter, target=target or "",
        coordinates=(kind.row, _stored(record, operand, kind.column)), known=known,
        matrices=titles if layout.matrix else (), shown=read,
    )  # fmt: skip
