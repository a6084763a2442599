"""Operands of instructions.

operand = name ["." part] | name "+" constant | name "[" constant "]" | "!" name | "-" name | constant
        | "[" (name ["+" constant] | constant) {"," operand} "]" | "{" operand {"," operand} "}"
        | "(" [operand {"," operand}] ")"      (of a call, before a comma or a semicolon)
pair    = name "|" name                        (the first operand only)
"""

from __future__ import annotations

from .expressions import constant, integer_constant
from .name_scopes import Names
from .syntax import Negation, Operand, Place, Selection, Symbol, Variable, VectorOf, bytes_of
from .tokens import Cursor, Token

_ENDS = (",", ";", "]", "}", ")", "|")


def read_operands(cursor: Cursor, names: Names, *, call: bool) -> tuple[tuple[Operand, ...], bool]:
    """Read the operands of an instruction, a `call` or another, and whether the first two were written `d|p`."""
    read = _argument if call else read_operand
    found = [read(cursor, names)]
    paired = cursor.token == "|"
    if paired:
        cursor.advance()
        found.append(read_operand(cursor, names))
    while cursor.token == ",":
        cursor.advance()
        found.append(read(cursor, names))
    return tuple(found), paired


def _argument(cursor: Cursor, names: Names) -> Operand:
    """Read an operand, or what a call has in parentheses."""
    if cursor.token != "(":
        return read_operand(cursor, names)
    behind = Cursor(cursor.source, cursor.end)
    if behind.kind == Token.NUMBER or behind.token in ("(", "-", "+", "~", "!", ".s64", ".u64", "WARP_SZ"):
        closing = _closing(behind)
        if closing not in (",", ";"):
            return constant(cursor)
    return _several(cursor, names, ")")


def _closing(cursor: Cursor) -> str:
    """Say what follows the parenthesis that closes the one just read."""
    depth = 1
    while depth and cursor.kind and cursor.token != ";":
        depth += {"(": 1, ")": -1}.get(cursor.token, 0)
        cursor.advance()
    return cursor.token


def read_operand(cursor: Cursor, names: Names) -> Operand:
    """Read an operand."""
    kind, token = cursor.kind, cursor.token
    if kind == Token.WORD and token != "WARP_SZ":
        start = cursor.start
        cursor.advance()
        if cursor.token in _ENDS:
            return names.operand(token, cursor, start)
        if cursor.token in ("+", "["):
            return _moved(cursor, names, token, start)
        return names.operand(token, cursor, start)
    if token == "[":
        return _place(cursor, names)
    if token == "{":
        return _several(cursor, names, "}")
    if token in ("!", "-"):
        behind = Cursor(cursor.source, cursor.end)
        if behind.kind == Token.WORD and behind.token != "WARP_SZ":
            return _negation(cursor, names)
    return constant(cursor)


def _negation(cursor: Cursor, names: Names) -> Negation:
    sign = cursor.token
    cursor.advance()
    found = read_operand(cursor, names)
    if not isinstance(found, Symbol | Selection):
        cursor.expected(f"a register behind {sign!r}")
    return Negation(found, sign)


def _several(cursor: Cursor, names: Names, end: str) -> VectorOf:
    cursor.deeper()
    cursor.advance()
    found: list[Operand] = []
    while cursor.token != end:
        if found and not cursor.skip(","):
            cursor.expected(f"',' or {end!r}")
        found.append(read_operand(cursor, names))
    cursor.advance()
    cursor.depth -= 1
    return VectorOf(tuple(found))


def _place(cursor: Cursor, names: Names) -> Place:
    cursor.deeper()
    cursor.advance()
    base: Symbol | None = None
    offset = 0
    if cursor.kind == Token.WORD and cursor.token != "WARP_SZ":
        start = cursor.start
        found = read_operand(cursor, names)
        if isinstance(found, Place) and found.form == "sum":
            base, offset = found.base, found.offset
        elif isinstance(found, Symbol):
            base = found
        else:
            cursor.fail("expected a register, a variable or a number as an address", start)
    else:
        offset = integer_constant(cursor, "an address")
    more: list[Operand] = []
    while cursor.skip(","):
        more.append(read_operand(cursor, names))
    if cursor.token != "]":
        cursor.expected("'+', ',' or ']'")
    cursor.advance()
    cursor.depth -= 1
    return Place(base, offset, tuple(more))


def _moved(cursor: Cursor, names: Names, name: str, start: int) -> Place:
    """Read what follows a name: bytes, or an index of a variable's elements."""
    base = names.operand(name, cursor, start)
    if not isinstance(base, Symbol):
        cursor.fail(f"{name!r} is a part of a register, which has no address", start)
    if cursor.skip("+"):
        return Place(base, integer_constant(cursor, "an offset in bytes"), form="sum")
    found = names.find(name)
    one = found[0] if found else names.outside.get(name)
    if not isinstance(one, Variable):
        cursor.fail(f"{name!r} is no variable that an index could go into", start)
    cursor.take("[")
    index = integer_constant(cursor, "an index")
    cursor.take("]")
    return Place(base, index * bytes_of(one.type) * one.vector, form="element")
