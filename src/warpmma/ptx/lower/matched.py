"""What a step of a statement has, and what all kinds of rows ask of their operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._text import counted
from ...isa import PtxInstruction
from ...machine import Constant, Slot, StepOperand
from ...operations import RegisterType, Row, register_type
from ..text import Immediate, Operand, Statement, Symbol
from .resolving import Resolver, number, written


@dataclass(frozen=True)
class Matched:
    """A row with its operands and results.

    Attributes
    ----------
    row : PtxInstruction
        One that takes the registers that are there, which may be wider than those of the table's row.
    operands : tuple of StepOperand
    results : tuple of Slot or None
    """

    row: PtxInstruction
    operands: tuple[StepOperand, ...]
    results: tuple[Slot | None, ...] = ()


def all_targets(
    names: Resolver, statement: Statement, items: Sequence[Operand], kind: RegisterType, count: int, what: str
) -> tuple[Slot | None, ...]:
    """Return where a vector of results goes; `_` alone stands for all of it."""
    if len(items) == 1 and isinstance(items[0], Symbol) and items[0].name == "_":
        return (None,) * count
    check_registers(names, statement, items, count, what)
    return tuple(names.target(x, kind, statement) for x in items)


def taken(names: Resolver, statement: Statement, x: Operand, type_: str) -> StepOperand:
    """Return an operand of a type; of "address" and "imm" too."""
    if type_ == "address":
        return names.place(x, statement)
    return immediate(names, statement, x) if type_ == "imm" else names.source(x, register_type(type_), type_, statement)


def immediate(names: Resolver, statement: Statement, x: Operand) -> Constant:
    """Return an operand that is a number in the text."""
    if not isinstance(x, Immediate) or x.kind not in "su":
        raise names.fail(statement, "an operand that has to be a number in the text is none")
    return Constant(number(x, "imm", "imm"), "imm")


def between(names: Resolver, statement: Statement, row: Row, least: int, most: int) -> tuple[Operand, ...]:
    """Return the operands, of which there are so many at least, and so many at most."""
    if not least <= len(statement.operands) <= most:
        raise names.fail(statement, f"got {counted(len(statement.operands), 'operand')}; expected {row.syntax}")
    return statement.operands


def exactly_as_many(names: Resolver, statement: Statement, row: Row, count: int) -> tuple[Operand, ...]:
    """Return the operands, of which there are so many."""
    if len(statement.operands) != count:
        expected = row.syntax or "none"
        raise names.fail(statement, f"got {counted(len(statement.operands), 'operand')}; expected {expected}")
    return statement.operands


def vector(names: Resolver, statement: Statement, x: Operand, wanted: bool = True) -> list[Operand]:
    """Return what an operand holds that stands in braces, or is a vector register; or must not."""
    if names.is_vector(x) != wanted and not (isinstance(x, Symbol) and x.name == "_"):
        what = "a vector" if wanted else "one register"
        raise names.fail(statement, f"{written(x)} stands where {what} is expected")
    return names.items(x)


def check_registers(names: Resolver, statement: Statement, items: Sequence[Operand], count: int, what: str) -> None:
    """Refuse a vector or a fragment of another number of registers."""
    if len(items) != count:
        raise names.fail(statement, f"{what}: got {len(items)} registers; expected {count}")
