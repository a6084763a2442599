"""Operands of Python kernels, checked by the signature of their instruction: handlers get registers and numbers.

The rules:

1. An operand of several registers is a sequence of them; registers may also follow each other, all in one row.
2. A number stands for a register with it in every lane (`literals`); an immediate stays one. An
   address may be a register of 32 bits in every state space.
3. A matrix descriptor may be a `MatrixDescriptor`, or a `SharedTile` that has the operand's matrix.
4. What is bound is one register or number after the other, and None for what is left out: as steps of programs have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._arguments import is_integer
from ..._text import counted
from ...errors import OperandError, shown
from ...isa import OperandSpec, PtxInstruction, check_since, present, printed
from ...layouts import MatrixDescriptor, SharedTile
from ...operations import DTYPES, WarpgroupMultiply
from ..base import WarpRegister
from ..block import Batch

_LONG = 48


def bound(batch: Batch, row: PtxInstruction, operands: Sequence[Any]) -> list[Any]:
    """Check the operands of an instruction, and bind them.

    Raises
    ------
    OperandError
        Too many or too few, or what does not fit the signature.
    """
    signature = row.sources
    found: list[Any] = []
    there = _matched(row, signature, operands)
    if isinstance(row, WarpgroupMultiply):
        _check_majors(row, {spec.names[0]: there[id(spec)] for spec in signature if len(spec.names) == 1})
    for spec in signature:
        given = there.get(id(spec))
        if given is not None:
            check_since(row, spec, batch.target)
        found += [spec.default] * len(spec.names) if given is None else _bound(batch, row, spec, given)
    return found


def _matched(row: PtxInstruction, signature: Sequence[OperandSpec], operands: Sequence[Any]) -> dict[int, list[Any]]:
    """Return the arguments of each operand, register by register (rule 1)."""
    groups = [list(x) if isinstance(x, list | tuple) else [x] for x in operands]
    there = present(signature, len(groups), defaults=True)
    if there is not None and (any(len(x) > 1 for x in groups) or all(len(spec.names) == 1 for spec in there)):
        return {id(spec): group for spec, group in zip(there, groups, strict=True)}
    flat = [x for group in groups for x in group]
    there = present(signature, len(flat), lambda x: len(x.names), defaults=True)
    if there is None:
        raise OperandError(f"{row} takes {printed(row.sources) or 'no operands'}; got {counted(len(flat), 'operand')}")
    items = iter(flat)
    return {id(spec): [next(items) for _ in spec.names] for spec in there}


def _bound(batch: Batch, row: PtxInstruction, spec: OperandSpec, given: Sequence[Any]) -> list[Any]:
    if len(given) != len(spec.names):
        raise OperandError(f"{row}: {spec}: got {counted(len(given), 'register')}; expected {len(spec.names)}")
    return [_checked(batch, row, spec, x, name) for x, name in zip(given, spec.names, strict=True)]


def _checked(batch: Batch, row: PtxInstruction, spec: OperandSpec, x: Any, name: str) -> Any:
    """Return a register or a number that fits (rule 2)."""
    if spec.literal and is_integer(x):
        if spec.kind == "pred" and x not in (0, 1):
            raise OperandError(f"{_who(row, name)} is {shown(x)}; expected a predicate, 0 or 1")
        return int(x)
    if spec.kind == "imm":
        if not is_integer(x):
            raise OperandError(f"{_who(row, name)} is {type(x).__name__}; expected an immediate int")
        if spec.values and x not in spec.values:
            raise OperandError(f"{_who(row, name)} is {shown(x)}; expected {spec.allowed}")
        return int(x)
    register = x
    if isinstance(x, MatrixDescriptor | SharedTile):
        x = _word(row, x, name)
    if not isinstance(x, WarpRegister):
        register = batch.operand(x, spec.type, spec.kind, _who(row, name))
    if not spec.accepts(register.kind):
        raise OperandError(f"{_who(row, name)} is {register.kind}; expected {spec.expected}")
    if spec.role == "address" or register.kind in (spec.kind, spec.other):
        return register
    return WarpRegister(register.bits.astype(DTYPES[spec.kind]), register.shadow)  # wider: the low bits count


def _word(row: PtxInstruction, x: MatrixDescriptor | SharedTile, name: str) -> int:
    """Return a descriptor's 64 bits (rule 3)."""
    if not isinstance(row, WarpgroupMultiply) or not name.endswith("-desc"):
        raise OperandError(f"{_who(row, name)} is {type(x).__name__}; expected a register or a number")
    if isinstance(x, MatrixDescriptor):
        return x.word
    record, operand = row.record, name[0].upper()
    rows, columns = (record.m if operand == "A" else record.n), record.k
    if record.sparse and operand == "A":
        columns //= 2
    bits = record.format(operand).bits  # type: ignore[arg-type]
    if (x.bits, x.rows >= rows, x.columns >= columns) != (bits, True, True):
        raise OperandError(
            f"{_who(row, name)} is a tile of {x.rows} x {x.columns} elements of {x.bits} bits; expected {rows} x "
            f"{columns} of {bits} bits or more, or its .descriptor() to read it as another one"
        )
    return x.descriptor(columns=columns, rows=rows).word


def _check_majors(row: PtxInstruction, there: dict[str, list[Any]]) -> None:
    """Refuse a tile that runs along the other coordinate than the instruction reads (rule 3)."""
    for operand in "ab":
        tile, turned = there.get(f"{operand}-desc", []), there.get(f"imm-trans-{operand}", [0])
        if len(tile) != 1 or not isinstance(tile[0], SharedTile) or len(turned) != 1 or not is_integer(turned[0]):
            continue
        if turned[0] in (0, 1) and (tile[0].major == "MN") != turned[0]:
            name, has = f"{row}: operand {operand}-desc is a tile that is {tile[0].major}-major", f"imm-trans-{operand}"
            if has in there:
                raise OperandError(f"{name}, and {has} is {turned[0]}; expected {1 - turned[0]}")
            raise OperandError(f"{name}; expected a K-major one")


def _who(row: PtxInstruction, name: str) -> str:
    whole = f" of {row.syntax}" if name != row.syntax and len(row.syntax) <= _LONG else ""
    return f"{row}: operand {name}{whole}"
