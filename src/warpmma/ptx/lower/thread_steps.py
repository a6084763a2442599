"""Steps of rows by which threads wait for each other, and end."""

from __future__ import annotations

from ..._text import counted
from ...machine import Slot, StepOperand
from ...operations import Barrier, Control, Exit, register_type
from ..text import Immediate, Statement
from .matched import Matched, all_targets, between, exactly_as_many, immediate
from .resolving import Resolver


def barrier_step(names: Resolver, statement: Statement, row: Barrier) -> Matched:
    """Return what a barrier has."""
    if row.cluster:
        exactly_as_many(names, statement, row, 0)
        return Matched(row, ())
    operands: list[StepOperand] = []
    number = len(row.outputs)
    least, most = {"warp": (1, 1), "arrive": (2, 2), "red": (3, 4)}.get(row.action, (1, 2))
    between(names, statement, row, least, most)
    results = tuple(names.target(x, kind, statement) for x, kind in zip(statement.operands, row.outputs, strict=False))
    for i, x in enumerate(statement.operands[number:], number):
        if number and i == len(statement.operands) - 1:
            operands.append(names.source(x, "pred", "pred", statement))
        elif isinstance(x, Immediate) and row.action != "warp":
            operands.append(immediate(names, statement, x))
        else:
            operands.append(names.source(x, "b32", "u32", statement))
    return Matched(row, tuple(operands), results)


def control_step(names: Resolver, statement: Statement, row: Control) -> Matched:
    """Place results, then what the row takes, of which the last may be left out."""
    number, most = len(row.outputs), len(row.outputs) + len(row.takes)
    if not most - row.optional <= len(statement.operands) <= most:
        raise names.fail(statement, f"got {counted(len(statement.operands), 'operand')}; expected {row.syntax}")
    results: tuple[Slot | None, ...] = ()
    if number:
        results = all_targets(names, statement, statement.operands[:number], row.outputs[0], number, row.syntax)
    operands: list[StepOperand] = []
    for x, type_ in zip(statement.operands[number:], row.takes, strict=False):
        if type_ == "address":
            operands.append(names.place(x, statement))
        elif type_ == "imm":
            operands.append(immediate(names, statement, x))
        else:
            operands.append(names.source(x, register_type(type_), type_, statement))
    return Matched(row, tuple(operands), results)


def exit_step(names: Resolver, statement: Statement, row: Exit) -> Matched:
    """Return what an `exit` has."""
    exactly_as_many(names, statement, row, 0)
    return Matched(row, ())
