"""Which registers a statement writes and reads, by its shape: what stands first is written, but for some opcodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..text import Element, Negation, Operand, Place, Selection, Statement, Symbol, VectorOf

Register = tuple[str, int]

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
        Whether what is written leaves nothing of what was there: no guard, and no element of a vector.
    """

    written: tuple[Register, ...]
    read: tuple[Register, ...]
    whole: bool


def uses(one: Statement) -> Uses:
    """Find what a statement reads and writes."""
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
