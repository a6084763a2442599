"""Steps of `mma` and `wmma`: a fragment is what stands in `{ }`, of one register too."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from ..._text import counted
from ...isa import Instruction
from ...layouts import Layout
from ...layouts import Operand as OperandName
from ...machine import Slot, StepOperand
from ...operations import RegisterType, WmmaMove, WmmaMultiply
from ..text import Immediate, Operand, Statement, VectorOf
from .matched import Matched, all_targets, between, check_registers, exactly_as_many, immediate, vector
from .resolving import Resolver


def multiply_step(names: Resolver, statement: Statement, row: Instruction) -> Matched:
    """Return what an `mma` has."""
    expected = 4 + 2 * row.sparse + 4 * row.block_scale
    if len(statement.operands) != expected:
        raise names.fail(statement, f"got {counted(len(statement.operands), 'operand')}; expected {expected}")
    operands, results = _fragments(names, statement, row, row.layout)
    more = statement.operands[4:]
    return Matched(row, (*operands, *(_word(names, statement, x) for x in more)), results)


def wmma_step(names: Resolver, statement: Statement, row: WmmaMultiply) -> Matched:
    """Return what a `wmma.mma` has."""
    exactly_as_many(names, statement, row, 4)
    newest = row.targets[-1]  # fragments have as many registers on every target
    operands, results = _fragments(names, statement, row, lambda name: row.layout(name, newest))
    return Matched(row, operands, results)


def _fragments(
    names: Resolver, statement: Statement, row: Instruction | WmmaMultiply, layout: Callable[[OperandName], Layout]
) -> tuple[tuple[StepOperand, ...], tuple[Slot | None, ...]]:
    """Return fragments of A, B and C, and the registers of D."""
    operands: list[StepOperand] = []
    results: tuple[Slot | None, ...] = ()
    for letter, x in zip("DABC", statement.operands, strict=False):
        name = cast(OperandName, letter)
        kind, items = cast(RegisterType, f"b{layout(name).packing.width}"), vector(names, statement, x)
        if name == "D":
            results = all_targets(names, statement, items, kind, layout(name).registers, "D")
        else:
            check_registers(names, statement, items, layout(name).registers, name)
            operands.append(tuple(names.source(y, kind, row.type(name), statement) for y in items))
    return tuple(operands), results


def wmma_move_step(names: Resolver, statement: Statement, row: WmmaMove) -> Matched:
    """Return what a `wmma.load` or `wmma.store` has."""
    first, second, *more = between(names, statement, row, 2, 3)
    stride = [names.source(x, "b32", "u32", statement) for x in more]
    if row.direction == "load":
        items = vector(names, statement, first)
        results = all_targets(names, statement, items, row.kind, row.registers, row.syntax)
        return Matched(row, (names.place(second, statement), *stride), results)
    items = vector(names, statement, second)
    check_registers(names, statement, items, row.registers, row.syntax)
    fragment = tuple(names.source(x, row.kind, row.type, statement) for x in items)
    return Matched(row, (names.place(first, statement), fragment, *stride))


def _word(names: Resolver, statement: Statement, x: Operand) -> StepOperand:
    """Return what follows C: a selector, a register of metadata or scales, or a pair of numbers."""
    if isinstance(x, VectorOf) and len(x.items) == 1:
        (x,) = x.items
    if isinstance(x, VectorOf):
        return tuple(
            immediate(names, statement, y) if isinstance(y, Immediate) else names.source(y, "b16", "u16", statement)
            for y in x.items
        )
    return immediate(names, statement, x) if isinstance(x, Immediate) else names.source(x, "b32", "u32", statement)
