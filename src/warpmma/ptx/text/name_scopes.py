"""Names of a function's scopes: which declaration a name means where it stands.

1. A scope is what a function's braces hold: 0 the body with parameters and results, larger numbers inner `{ }` in the
   order of the text. A name means what the innermost scope that has declared it before declares.
2. `%r<5>` declares `%r0` to `%r4`. Nothing is listed, so that a range may be as long as it likes. A name that fits two
   ranges of a scope, as `a11` does `a<100>` and `a1<10>`, is of the one whose number is longest.
3. Labels have scopes, too, and are meant before they stand: they are settled when the body has been read.
"""

from __future__ import annotations

from collections.abc import Mapping

from .syntax import Declaration, Element, Function, Operand, RegisterRange, Selection, Symbol, Variable
from .tokens import Cursor

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
        self.found: dict[str, Operand] = {}

    def of(self, name: str) -> Declaration | None:
        """Find what this scope itself says of a name."""
        one = self.named.get(name)
        if one is not None or not self.ranges:
            return one
        return _of_range(self.ranges, name)


def _of_range(ranges: dict[str, RegisterRange], name: str) -> RegisterRange | None:
    stem = name.rstrip("0123456789")
    for cut in range(max(len(stem), len(name) - 20), len(name)):
        if name[cut] == "0" and cut + 1 < len(name):
            continue  # `%r01` is no `%r1`
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
        """Give what a name as an operand means: a symbol, or a part of a register."""
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
