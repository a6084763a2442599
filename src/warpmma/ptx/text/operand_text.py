"""Operands of instructions.

operand = name ["." part] | name "+" constant | name "[" constant "]" | "!" name | "-" name | constant
        | "[" (name ["+" constant] | constant) {"," operand} "]" | "{" operand {"," operand} "}"
        | "(" [operand {"," operand}] ")"      (of a call, before a comma or a semicolon)
pair    = name "|" name                        (the first operand only)

Resolution of names in a function's scopes:

1. Scopes are the braces of a function: 0 is the body with parameters and results, larger numbers are inner `{ }` in the
   order of the text. A name refers to the innermost scope that has declared it so far.
2. `%r<5>` declares `%r0` to `%r4`, as a range of any length that is not listed. A name that fits two ranges of a scope,
   as `a11` does `a<100>` and `a1<10>`, belongs to the one with the longest number.
3. Labels have scopes, too, and may be used before they are defined: they are resolved when the body has been read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .expressions import constant, integer_constant
from .syntax import (
    Declaration,
    Element,
    Function,
    Negation,
    Operand,
    Place,
    RegisterRange,
    Selection,
    Symbol,
    Variable,
    VectorOf,
    bytes_of,
)
from .tokens import Cursor, Token

DEEPEST_SCOPE = 500
"""How deep braces of a body may nest."""

_ELEMENTS = {name: index for names in ("xyzw", "rgba") for index, name in enumerate(names)}


class NameScope:
    """What one pair of braces declares."""

    __slots__ = ("declarations", "found", "named", "number", "outer", "ranges")

    def __init__(self, number: int, outer: NameScope | None):
        self.number = number
        self.outer = outer
        self.declarations: list[Declaration] = []
        self.named: dict[str, Declaration] = {}
        self.ranges: dict[str, RegisterRange] = {}
        self.found: dict[str, Operand] = {}  # by their texts

    def of(self, name: str) -> Declaration | None:
        """Find a name's declaration in this scope itself."""
        one = self.named.get(name)
        if one is not None or not self.ranges:
            return one
        return _of_range(self.ranges, name)


def _of_range(ranges: dict[str, RegisterRange], name: str) -> RegisterRange | None:
    stem = name.rstrip("0123456789")
    for cut in range(max(len(stem), len(name) - 20), len(name)):
        if name[cut] == "0" and cut + 1 < len(name):
            continue  # `%r01` is not a `%r1`
        one = ranges.get(name[:cut])
        if one is not None and int(name[cut:]) < (one.count or 0):
            return one
    return None


class Names:
    """The scopes of a body while it is read."""

    def __init__(self, outside: Mapping[str, Variable]) -> None:
        self.outside = outside
        self.scopes = [NameScope(0, None)]
        self.inner = self.scopes[0]
        self._depth = 0

    def open(self, cursor: Cursor) -> None:
        """Begin an inner scope."""
        self._depth += 1
        if self._depth > DEEPEST_SCOPE:
            cursor.fail(f"braces nest deeper than {DEEPEST_SCOPE} levels")
        self.inner = NameScope(len(self.scopes), self.inner)
        self.scopes.append(self.inner)

    def close(self) -> bool:
        """End the innermost scope; False where that is the body."""
        if self.inner.outer is None:
            return False
        self._depth -= 1
        self.inner.found.clear()
        self.inner = self.inner.outer
        return True

    def declare(self, one: Declaration, cursor: Cursor, start: int) -> None:
        """Add a declaration to the innermost scope."""
        scope = self.inner
        ranges = isinstance(one, RegisterRange) and one.count is not None
        if (one.name in scope.ranges) if ranges else (scope.of(one.name) is not None):
            cursor.fail(f"{one.name!r} is declared in this scope already", start)
        if isinstance(one, RegisterRange) and one.count is not None:
            scope.ranges[one.name] = one
        else:
            scope.named[one.name] = one
        scope.declarations.append(one)
        scope.found.clear()

    def find(self, name: str) -> tuple[Declaration, int] | None:
        """Find the declaration that a name means here, and the number of its scope."""
        scope: NameScope | None = self.inner
        while scope is not None:
            one = scope.of(name)
            if one is not None:
                return one, scope.number
            scope = scope.outer
        return None

    def operand(self, name: str, cursor: Cursor, start: int) -> Operand:
        """Return the operand that a name means: a symbol, or a part of a register."""
        found = self.inner.found.get(name)
        if found is None:
            found = self.inner.found[name] = self._resolved(name, cursor, start)
        return found

    def _resolved(self, name: str, cursor: Cursor, start: int) -> Operand:
        whole, dot, part = name.partition(".")
        found = self.find(whole)
        if found is None or not dot:
            return Symbol(name, found[1] if found else -1)
        register = found[0]
        symbol = Symbol(whole, found[1])
        if isinstance(register, RegisterRange) and register.vector > 1:
            index = _ELEMENTS.get(part, 4)
            if index < register.vector:
                return Element(symbol, index)
        elif isinstance(register, RegisterRange) and part[:1] in ("b", "h") and part[1:].isdigit():
            return Selection(symbol, part)
        raise cursor.error(f"{whole!r} has no part {part!r}", start)


def declared(function: Function, symbol: Symbol) -> Declaration | None:
    """Find the declaration that a symbol of a function means.

    Returns
    -------
    RegisterRange or Variable or None
        None of what no scope of the function declares.

    Examples
    --------
    >>> from warpmma.ptx import read
    >>> text = ".version 8.0 .target sm_80 .entry k() { .reg .b32 %r<9>; mov.b32 %r1, 5; }"
    >>> k = read(text).functions["k"]
    >>> declared(k, k.body[0].operands[0]).count
    9
    """
    if not 0 <= symbol.scope < len(function.scopes):
        return None
    ranges: dict[str, RegisterRange] = {}
    for one in function.scopes[symbol.scope]:
        if isinstance(one, RegisterRange) and one.count is not None:
            ranges[one.name] = one
        elif one.name == symbol.name:
            return one
    return _of_range(ranges, symbol.name)


_ENDS = (",", ";", "]", "}", ")", "|")

_NAME = r"%?[A-Za-z_$][\w$]*+(?:\.[\w$]++)*+"
_PIECE = rf"(?:{_NAME}|-?(?:0[xXfFdD][\da-fA-F]++|\d++)|\[{_NAME}(?:\+-?\d++)?\])"
_PLAIN = re.compile(rf"[ \t]++({_PIECE}(?:[ \t]*+,[ \t]*+{_PIECE})*+)[ \t]*+;", re.ASCII)


def plain_operands(cursor: Cursor, names: Names) -> tuple[Operand, ...] | None:
    """Read operands that stand on one line and are names, numbers and plain addresses, and the semicolon behind them.

    None, with the cursor where it was, for others. Texts are read by the grammar at their first use in a scope, and
    looked up at the next: most statements have these alone.
    """
    source = cursor.source
    m = _PLAIN.match(source.text, cursor.end)
    if m is None:
        return None
    known, at, found = names.inner.found, m.start(1), list[Operand]()
    for part in m[1].split(","):
        piece = part.strip()
        one = known.get(piece)
        if one is None:
            start = at + part.index(piece)
            if piece[0] in "-[0123456789" or "." in piece or piece == "WARP_SZ":
                behind = Cursor(source, start)
                one = read_operand(behind, names)
                if behind.token not in (",", ";"):
                    return None
                known[piece] = one
            else:
                one = names.operand(piece, cursor, start)
        found.append(one)
        at += len(part) + 1
    cursor.go(m.end())
    return tuple(found)


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
    """Read an operand, or the parenthesized list of a call."""
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
        cursor.fail(f"{name!r} is not a variable that can be indexed", start)
    cursor.take("[")
    index = integer_constant(cursor, "an index")
    cursor.take("]")
    return Place(base, index * bytes_of(one.type) * one.vector, form="element")
