"""The registers that a statement writes and reads: the first operand is written, except by some opcodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from ..text import Element, Negation, Operand, Place, Selection, Statement, Symbol, VectorOf

Register = tuple[str, int]


class RegisterSets(Sequence[set[Register]]):
    """Sets of some registers; each is made anew when it is looked up.

    Parameters
    ----------
    registers : iterable of Register
        All that a set can have.

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


_READ_FIRST = """
    st red bra brx bar barrier ret exit trap brkpt prefetch prefetchu membar fence nanosleep stmatrix discard
    applypriority pmevent griddepcontrol setmaxnreg stackrestore call
"""
_WRITES_NONE = frozenset(_READ_FIRST.split())
"""Opcodes whose first operand, if it is a register, is read."""

_ONLY_RESULTS = """
    abs add addc and bfe bfi bfind bmsk brev clz cnot copysign cos cvt cvta div dp2a dp4a ex2 fma fns isspacep lg2 lop3
    mad mad24 madc max min mov mul mul24 neg not or popc prmt rcp rem rsqrt sad selp set setp shf shl shr sin slct sqrt
    sub subc szext tanh testp vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin
    vmin2 vmin4 vset vset2 vset4 vshl vshr vsub vsub2 vsub4 xor
"""
ARITHMETIC = frozenset(_ONLY_RESULTS.split())
"""Opcodes that do nothing but give results, and touch no memory."""

_ORDERED = frozenset(("volatile", "acquire", "relaxed", "mmio"))


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
        Whether the writes replace the registers completely: no guard, and no element of a vector.
    """

    written: tuple[Register, ...]
    read: tuple[Register, ...]
    whole: bool


def uses(one: Statement) -> Uses:
    """Find the registers that a statement reads and writes."""
    opcode, _, rest = one.mnemonic.partition(".")
    operands = one.operands
    first = 0
    if opcode not in _WRITES_NONE or (opcode in ("bar", "barrier") and "red" in rest.split(".")):
        first = 2 if one.paired else 1
    elif opcode == "call" and operands and isinstance(operands[0], VectorOf):
        first = 1
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
    if opcode == "wgmma":
        read += written  # it adds to what is there
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
    words = one.mnemonic.split(".")
    if words[0] in ("ld", "ldu"):
        return _ORDERED.isdisjoint(words)
    return words[0] in ARITHMETIC and "cc" not in words  # the carry is a result, too
