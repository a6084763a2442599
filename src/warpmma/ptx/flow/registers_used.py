"""The registers that a statement writes and reads, by the signature of its instruction.

A statement without a row (refused later), except control flow, writes its first operand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ...errors import WarpmmaError
from ...isa import PtxInstruction, parse_any
from ...operations import Access, Operation, row
from ..text import Element, Immediate, Negation, Operand, Place, Selection, Statement, Symbol, VectorOf, words_of

Register = tuple[str, int]
_CONTROL_FLOW = frozenset(("bra", "brx", "call", "ret"))


class _Facts(NamedTuple):
    """What holds for all statements of a mnemonic."""

    results: int  # leading operands that are results, without the predicate of a pair; -1 for `call`
    updated: bool  # whether it reads what it writes
    pure: bool
    arithmetic: bool


@lru_cache(maxsize=4096)
def _instruction(mnemonic: str) -> _Facts:
    """Look up an instruction on any target; what has no row, but control flow, writes its first operand."""
    opcode = words_of(mnemonic).opcode
    if opcode in _CONTROL_FLOW:
        return _Facts(-1 if opcode == "call" else 0, updated=False, pure=False, arithmetic=False)
    found = _found(mnemonic)
    if found is None:
        moves = opcode == "mov"  # of vectors, which have no row of their own
        return _Facts(1, updated=False, pure=moves, arithmetic=moves)
    arithmetic = isinstance(found, Operation) and not found.lanes
    pure = arithmetic and not (isinstance(found, Operation) and found.writes_carry)
    if isinstance(found, Access):
        pure = found.direction == "load" and found.order == "weak"
    results = 0 if all(x.implicit for x in found.results) else 1
    return _Facts(results, any(x.updated for x in found.results), pure, arithmetic)


def _found(mnemonic: str) -> PtxInstruction | None:
    for find in (row, parse_any):
        try:
            return find(mnemonic)
        except WarpmmaError:
            continue
    return None


@dataclass(frozen=True, slots=True)
class Uses:
    """Registers of a statement: what it writes, and what it reads except for its guard.

    `whole` says whether the writes replace the registers completely: no guard, and no element of a vector.
    """

    written: tuple[Register, ...]
    read: tuple[Register, ...]
    whole: bool


def uses(one: Statement) -> Uses:
    """Find the registers that a statement reads and writes."""
    operands, facts = one.operands, _instruction(one.mnemonic)
    if facts.results < 0:
        first = int(bool(operands) and isinstance(operands[0], VectorOf))
    else:
        first = facts.results and facts.results + one.paired
    written: list[Register] = []
    read: list[Register] = []
    whole = one.guard is None
    for index, operand in enumerate(operands):
        if index >= first or isinstance(operand, Place):
            found = read
        else:
            found = written
            if isinstance(operand, Element | Selection):
                whole = False
            elif isinstance(operand, VectorOf):
                whole = whole and not any(isinstance(item, Element) for item in operand.items)
        if isinstance(operand, Symbol):
            if operand.scope >= 0:
                found.append((operand.name, operand.scope))
        elif not isinstance(operand, Immediate):
            found += registers_of(operand)
    if facts.updated:
        read += written
    return Uses(tuple(written), tuple(read), whole)


def registers_of(operand: Operand) -> list[Register]:
    """List the registers, and other names of the function's scopes, in an operand."""
    if isinstance(operand, Symbol):
        return [(operand.name, operand.scope)] if operand.scope >= 0 else []
    return [(one.name, one.scope) for one in symbols_of(operand) if one.scope >= 0]


def symbols_of(x: Operand) -> Iterator[Symbol]:
    """Names in an operand."""
    if isinstance(x, Symbol):
        yield x
    elif isinstance(x, Negation):
        yield from symbols_of(x.operand)
    elif isinstance(x, Element):
        yield x.vector
    elif isinstance(x, Selection):
        yield x.register
    elif isinstance(x, VectorOf):
        for y in x.items:
            yield from symbols_of(y)
    elif isinstance(x, Place):
        if x.base is not None:
            yield x.base
        for y in x.more:
            yield from symbols_of(y)


def pure(one: Statement) -> bool:
    """Whether a statement does nothing but give results."""
    return _instruction(one.mnemonic).pure


def arithmetic(one: Statement) -> bool:
    """Whether a statement computes from registers of its own lane."""
    return _instruction(one.mnemonic).arithmetic
