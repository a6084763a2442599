"""Which registers a statement writes and reads: what the signature of its instruction says.

What has no row (control flow, what is refused later) writes what stands first, if it is none of control flow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ...errors import WarpmmaError
from ...isa import Signed, parse_any
from ...operations import Access, Operation, row
from ..text import Element, Negation, Operand, Place, Selection, Statement, Symbol, VectorOf

Register = tuple[str, int]

_CONTROL_FLOW = frozenset(("bra", "brx", "call", "ret"))


@lru_cache(maxsize=4096)
def _instruction(mnemonic: str) -> Signed | None:
    """Return the instruction of a mnemonic on any target; None for what is none, as control flow."""
    if mnemonic.partition(".")[0] in _CONTROL_FLOW:
        return None
    for find in (row, parse_any):
        try:
            return find(mnemonic)
        except WarpmmaError:
            continue
    return None


@dataclass(frozen=True, slots=True)
class Uses:
    """Registers of a statement.

    Attributes
    ----------
    written : tuple of (str, int)
        Names and scopes.
    read : tuple of (str, int)
        In the order of the operands, the guard not among them.
    whole : bool
        Whether what is written leaves nothing of what was there: no guard, and no element of a vector.
    """

    written: tuple[Register, ...]
    read: tuple[Register, ...]
    whole: bool


def uses(one: Statement) -> Uses:
    """Find what a statement reads and writes."""
    operands, instruction = one.operands, _instruction(one.mnemonic)
    first = _results(one)
    if instruction is not None and all(x.implicit for x in instruction.results):
        first = 0
    written: list[Register] = []
    read: list[Register] = []
    whole = one.guard is None
    for index, operand in enumerate(operands):
        if index < first and not isinstance(operand, Place):
            whole = whole and not isinstance(operand, Element | Selection)
            written += registers_of(operand)
            if isinstance(operand, VectorOf):
                whole = whole and not any(isinstance(item, Element) for item in operand.items)
        else:
            read += registers_of(operand)
    if instruction is not None and any(x.updated for x in instruction.results):
        read += written
    return Uses(tuple(written), tuple(read), whole)


def _results(one: Statement) -> int:
    """How many operands stand first that are results, of what is no instruction of the table."""
    opcode = one.mnemonic.partition(".")[0]
    if opcode == "call":
        return int(bool(one.operands) and isinstance(one.operands[0], VectorOf))
    return 0 if opcode in _CONTROL_FLOW else 1 + one.paired


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
    instruction = _instruction(one.mnemonic)
    if isinstance(instruction, Access):
        return instruction.direction == "load" and instruction.order == "weak"
    return arithmetic(one) and not (isinstance(instruction, Operation) and instruction.writes_carry)


def arithmetic(one: Statement) -> bool:
    """Whether a statement computes from registers of its own lane."""
    instruction = _instruction(one.mnemonic)
    if instruction is None:
        return one.mnemonic.startswith("mov.")  # of vectors, which have no row of their own
    return isinstance(instruction, Operation) and not instruction.lanes
