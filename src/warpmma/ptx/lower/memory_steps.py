"""Steps of rows that touch memory.

`ld` and `st` take registers that are wider than their elements: what is stored is cut off, what is loaded is extended,
by its sign where its type has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...machine import Slot, StepOperand
from ...operations import (
    Access,
    AsyncStore,
    Atomic,
    BulkCopy,
    CacheControl,
    CachePolicy,
    ClusterAddress,
    Copy,
    CopyGroup,
    MatrixMove,
    RegisterType,
)
from ..text import Negation, Operand, Statement
from .matched import Matched, all_targets, between, check_registers, exactly_as_many, immediate, taken, vector
from .resolving import Resolver

_POLICIES = {"fractional": ("f32",), "range": ("address", "u32", "u32"), "cvt": ("b64",)}


def access_step(names: Resolver, statement: Statement, row: Access) -> Matched:
    """Return what a load or a store has."""
    first, *rest = exactly_as_many(names, statement, row, 2 + row.hint)
    policy = [names.source(x, "b64", "b64", statement) for x in rest[1:]]
    if row.direction == "load":
        items = _accessed(names, statement, row, first)
        check_registers(names, statement, items, row.registers, row.syntax)
        targets = [names.target(x, row.kind, statement, wider=True) for x in items]
        return Matched(_into(names, row, targets), (names.place(rest[0], statement), *policy), tuple(targets))
    items = _accessed(names, statement, row, rest[0])
    check_registers(names, statement, items, row.registers, row.syntax)
    values = [names.source(x, row.kind, row.type, statement, wider=True) for x in items]
    return Matched(row, (names.place(first, statement), *values, *policy))


def _accessed(names: Resolver, statement: Statement, row: Access, x: Operand) -> list[Operand]:
    """Return the registers that are loaded or stored: braces may hold one, but not the halves of 128 bits."""
    return vector(names, statement, x, wanted=False) if row.bits == 128 else names.items(x)


def _into(names: Resolver, row: Access, targets: Sequence[Slot | None]) -> Access:
    """Return a load into registers that are wider than its elements (rule 2)."""
    kinds = {names.kind(x) for x in targets if x is not None} or {row.kind}
    return row if kinds == {row.kind} else replace(row, into=max(kinds))


def atomic_step(names: Resolver, statement: Statement, row: Atomic) -> Matched:
    """Place results first, then the address, the values and the policy."""
    first = int(row.returns)
    expected = first + 1 + row.values + row.hint
    given = exactly_as_many(names, statement, row, expected)
    results: tuple[Slot | None, ...] = ()
    if row.returns:
        items = vector(names, statement, given[0], row.count > 1)
        results = all_targets(names, statement, items, row.kind, row.registers, row.syntax)
    operands: list[StepOperand] = [names.place(given[first], statement)]
    for x in given[first + 1 : first + 1 + row.values]:
        items = vector(names, statement, x, row.count > 1)
        check_registers(names, statement, items, row.registers, row.syntax)
        operands += [names.source(y, row.kind, row.type, statement) for y in items]
    operands += [names.source(x, "b64", "b64", statement) for x in given[expected - row.hint :]]
    return Matched(row, tuple(operands), results)


def move_step(names: Resolver, statement: Statement, row: MatrixMove) -> Matched:
    """Return what an `ldmatrix` or `stmatrix` has."""
    first, second = exactly_as_many(names, statement, row, 2)
    load = row.direction == "load"
    items = vector(names, statement, first if load else second)
    check_registers(names, statement, items, row.registers, row.syntax)
    if load:
        results = tuple(names.target(x, "b32", statement) for x in items)
        return Matched(row, (names.place(second, statement),), results)
    values = [names.source(x, "b32", "b32", statement) for x in items]
    return Matched(row, (names.place(first, statement), *values))


def copy_step(names: Resolver, statement: Statement, row: Copy) -> Matched:
    """Return what a `cp.async` has."""
    to, source, *rest = between(names, statement, row, 3 + row.hint, 4 + row.hint)
    size = immediate(names, statement, rest[0])
    if size.bits not in row.sizes:
        raise names.fail(statement, f"copies {size.bits} bytes; expected {' or '.join(map(str, row.sizes))}")
    operands = [names.place(to, statement), names.place(source, statement), size]
    for i, x in enumerate(rest[1:]):
        policy = row.hint and i == len(rest) - 2
        kind: RegisterType = "b64" if policy else "b32"
        slot = names.register(x.operand if isinstance(x, Negation) else x, statement)
        if slot is not None and names.kind(slot) == "pred":
            operands.append(names.source(x, "pred", "pred", statement))
        else:
            operands.append(names.source(x, kind, f"u{kind[1:]}", statement))
    return Matched(row, tuple(operands))


def bulk_step(names: Resolver, statement: Statement, row: BulkCopy) -> Matched:
    """Return what a copy in bulk has."""
    given = exactly_as_many(names, statement, row, len(row.takes))
    return Matched(row, tuple(taken(names, statement, x, type_) for x, type_ in zip(given, row.takes, strict=True)))


def counted_step(names: Resolver, statement: Statement, row: AsyncStore) -> Matched:
    """Return what a store has that an mbarrier counts."""
    to, value, barrier = exactly_as_many(names, statement, row, 3)
    items = names.items(value)
    check_registers(names, statement, items, row.count, row.syntax)
    values = [names.source(x, row.kind, row.type, statement) for x in items]
    return Matched(row, (names.place(to, statement), *values, names.place(barrier, statement)))


def group_step(names: Resolver, statement: Statement, row: CopyGroup) -> Matched:
    """Return what a commit or a wait for copies has."""
    given = exactly_as_many(names, statement, row, row.action == "wait_group")
    return Matched(row, tuple(immediate(names, statement, x) for x in given))


def cache_step(names: Resolver, statement: Statement, row: CacheControl) -> Matched:
    """Return what a prefetch or a discard has."""
    address, *size = exactly_as_many(names, statement, row, 1 + bool(row.size))
    return Matched(row, (names.place(address, statement), *(immediate(names, statement, x) for x in size)))


def policy_step(names: Resolver, statement: Statement, row: CachePolicy) -> Matched:
    """Return what a `createpolicy` has."""
    takes = _POLICIES[row.by]
    least = 0 if row.by == "fractional" else len(takes)
    first, *given = between(names, statement, row, 1 + least, 1 + len(takes))
    operands = (taken(names, statement, x, type_) for x, type_ in zip(given, takes, strict=False))
    return Matched(row, tuple(operands), (names.target(first, "b64", statement),))


def mapped_step(names: Resolver, statement: Statement, row: ClusterAddress) -> Matched:
    """Return what a `mapa` has."""
    to, where, rank = exactly_as_many(names, statement, row, 3)
    operands = (names.source(where, row.kind, row.type, statement), names.source(rank, "b32", "u32", statement))
    return Matched(row, operands, (names.target(to, row.kind, statement),))
