"""Directives of functions: what they say of registers, threads and clusters, as numbers."""

from __future__ import annotations

from collections.abc import Collection

from .tokens import Cursor, Token

__all__ = ["OF_FUNCTIONS", "attribute", "pragmas", "read_directives"]

_NUMBERS = {
    "maxntid": (1, 3),
    "reqntid": (1, 3),
    "minnctapersm": (1, 1),
    "maxnctapersm": (1, 1),
    "maxnreg": (1, 1),
    "reqnctapercluster": (1, 3),
    "maxclusterrank": (1, 1),
    "abi_preserve": (1, 1),
    "abi_preserve_control": (1, 1),
    "explicitcluster": (0, 0),
    "blocksareclusters": (0, 0),
    "noreturn": (0, 0),
}
"""How few and how many numbers follow each directive."""

OF_FUNCTIONS = (*(f".{name}" for name in _NUMBERS), ".pragma", ".attribute")


def read_directives(cursor: Cursor, allowed: Collection[str]) -> dict[str, tuple[int, ...]]:
    """Read directives one after the other; what `.pragma` and `.attribute` say changes no bits and is dropped."""
    found: dict[str, tuple[int, ...]] = {}
    while cursor.kind == Token.DOTTED and cursor.token in allowed:
        name = cursor.token[1:]
        cursor.advance()
        if name == "pragma":
            pragmas(cursor)
        elif name == "attribute":
            attribute(cursor)
        else:
            found[name] = _numbers(cursor, *_NUMBERS[name])
    return found


def pragmas(cursor: Cursor) -> tuple[str, ...]:
    """Read what stands behind `.pragma`."""
    found = [cursor.string("a string")]
    while cursor.skip(","):
        found.append(cursor.string("a string"))
    cursor.take(";")
    return tuple(found)


def _numbers(cursor: Cursor, least: int, most: int) -> tuple[int, ...]:
    found: list[int] = []
    while len(found) < most and (cursor.token == "," if found else least):
        if found:
            cursor.advance()
        found.append(cursor.integer("a number"))
    return tuple(found)


def attribute(cursor: Cursor) -> None:
    """Skip what an attribute says: where a driver may move a variable, or what identity it has, changes no bits."""
    cursor.take("(")
    depth = 1
    while depth:
        if not cursor.kind:
            cursor.expected("')'")
        depth += {"(": 1, ")": -1}.get(cursor.token, 0)
        cursor.advance()
