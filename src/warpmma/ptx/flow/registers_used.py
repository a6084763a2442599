"""The registers that a statement writes and reads, by the signature of its instruction.

A statement without a row (refused later), except control flow, writes its first operand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import overload

import numpy as np

from ...errors import WarpmmaError
from ...isa import PtxInstruction, parse_any
from ...operations import Access, Operation, row
from ..text import Element, Negation, Operand, Place, Selection, Statement, Symbol, VectorOf, words_of

Register = tuple[str, int]


class RegisterSets(Sequence[set[Register]]):
    """A sequence of sets of registers, stored as bits; each lookup builds a new set.

    Examples
    --------
    >>> sets = RegisterSets([("%a", 0), ("%b", 0)])
    >>> sets.append({("%b", 0)})
    >>> sets[0], len(sets)
    ({('%b', 0)}, 1)
    """

    def __init__(self, registers: Iterable[Register]) -> None:
        self._registers = list(dict.fromkeys(registers))
        self._number = {register: i for i, register in enumerate(self._registers)}
        self._packed: list[bytes] = []

    def like(self, number: int) -> RegisterSets:
        """Return `number` empty sets of the same registers."""
        made = RegisterSets(())
        made._registers, made._number = self._registers, self._number
        made._packed = [made._pack(())] * number
        return made

    def __len__(self) -> int:
        return len(self._packed)

    @overload
    def __getitem__(self, at: int) -> set[Register]: ...
    @overload
    def __getitem__(self, at: slice) -> list[set[Register]]: ...
    def __getitem__(self, at: int | slice) -> set[Register] | list[set[Register]]:
        if isinstance(at, slice):
            return [self._unpack(x) for x in self._packed[at]]
        return self._unpack(self._packed[at])

    def append(self, registers: Iterable[Register]) -> None:
        """Add a set."""
        self._packed.append(self._pack(registers))

    def extend_reversed(self, others: RegisterSets) -> None:
        """Add sets of the same registers, the last first."""
        self._packed += reversed(others._packed)

    def put(self, at: int, registers: Iterable[Register]) -> bool:
        """Replace a set; return whether that changes it."""
        new = self._pack(registers)
        changed = new != self._packed[at]
        self._packed[at] = new
        return changed

    def union(self, those: Iterable[int]) -> set[Register]:
        """Join sets."""
        return self._unpack(self._joined(those))

    def joined(self, groups: Sequence[Iterable[int]]) -> RegisterSets:
        """Return the sets that are joined of groups of these."""
        made = self.like(0)
        made._packed = [self._joined(those) for those in groups]
        return made

    def _joined(self, those: Iterable[int]) -> bytes:
        first, *others = [self._packed[i] for i in those] or [self._pack(())]
        for other in others:
            if other is not first and other != first:
                first = (np.frombuffer(first, np.uint8) | np.frombuffer(other, np.uint8)).tobytes()
        return first

    def _pack(self, registers: Iterable[Register]) -> bytes:
        bits = np.zeros(len(self._registers), bool)
        bits[np.fromiter((self._number[x] for x in registers), np.intp)] = True
        return np.packbits(bits).tobytes()

    def _unpack(self, packed: bytes) -> set[Register]:
        bits = np.unpackbits(np.frombuffer(packed, np.uint8), count=len(self._registers))
        return {self._registers[i] for i in np.flatnonzero(bits).tolist()}


_CONTROL_FLOW = frozenset(("bra", "brx", "call", "ret"))


@lru_cache(maxsize=4096)
def _instruction(mnemonic: str) -> PtxInstruction | None:
    """Return the instruction of a mnemonic on any target; None for control flow and what is unknown."""
    if words_of(mnemonic).opcode in _CONTROL_FLOW:
        return None
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
    """Count the leading operands that are results, for a statement that is not in the instruction table."""
    if one.opcode == "call":
        return int(bool(one.operands) and isinstance(one.operands[0], VectorOf))
    return 0 if one.opcode in _CONTROL_FLOW else 1 + one.paired


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
        return one.opcode == "mov"  # of vectors, which have no row of their own
    return isinstance(instruction, Operation) and not instruction.lanes
