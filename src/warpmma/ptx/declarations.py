"""Declarations: variables, registers, parameters.

variable  = {linkage} space {qualifier} item {"," item} ";"
linkage   = ".extern" | ".visible" | ".weak" | ".common"
space     = ".reg" | ".param" | ".global" | ".const" | ".shared" | ".local"
qualifier = ".align" integer | ".v2" | ".v4" | ".v8" | "." type | ".attribute" "(" ... ")"
          | ".ptr" [["." space] [".align" integer]]
item      = name ["<" integer ">"] {"[" [integer] "]"} ["=" value]
parameter = (".param" | ".reg") {qualifier} item
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from .directives import attribute
from .expressions import integer_constant
from .initial_values import read_values
from .syntax import BYTES, AddressOf, Declaration, RegisterRange, Space, Variable, bytes_of
from .tokens import Cursor, Token

__all__ = ["LINKAGES", "SPACES", "parameters", "variables"]

SPACES = (".reg", ".param", ".global", ".const", ".shared", ".local")
LINKAGES = (".extern", ".visible", ".weak", ".common")
MOST_NAMES = 4096
"""Variables in memory that `name<count>` may make."""

_POINTED = ("global", "const", "shared", "local")


@dataclass(slots=True)
class _Kind:
    """What a declaration says of each of its items."""

    space: str
    linkage: str = ""
    type: str = ""
    vector: int = 1
    alignment: int = 0
    pointer: tuple[str, int] | None = None


def variables(cursor: Cursor, linkage: str = "") -> list[tuple[Declaration, int]]:
    """Read a declaration, to its semicolon: what it declares, each with the offset of its name."""
    kind = _kind(cursor, linkage)
    found: list[tuple[Declaration, int]] = []
    while True:
        found += _item(cursor, kind)
        if not cursor.skip(","):
            break
    if cursor.token != ";":
        cursor.expected("',' or ';'")
    cursor.advance()
    return found


def parameters(cursor: Cursor) -> list[tuple[Declaration, int]]:
    """Read parameters in parentheses."""
    cursor.take("(")
    found: list[tuple[Declaration, int]] = []
    while cursor.token != ")":
        if found and not cursor.skip(","):
            cursor.expected("',' or ')'")
        if cursor.token not in (".param", ".reg"):
            cursor.expected("'.param', '.reg' or ')'")
        found += _item(cursor, _kind(cursor, ""))
    cursor.advance()
    return found


def _kind(cursor: Cursor, linkage: str) -> _Kind:
    """Read the space, with the token at it, and the qualifiers."""
    kind = _Kind(cursor.token[1:], linkage)
    cursor.advance()
    while cursor.kind == Token.DOTTED:
        word, start = cursor.token[1:], cursor.start
        cursor.advance()
        if word == "align":
            kind.alignment = _alignment(cursor)
        elif word in ("v2", "v4", "v8"):
            kind.vector = int(word[1:])
        elif word == "ptr":
            kind.pointer = _pointer(cursor)
        elif word == "attribute":
            attribute(cursor)
        elif word in BYTES and not kind.type:
            kind.type = word
        else:
            cursor.fail(f"{'.' + word!r} does not belong into a declaration", start)
    if not kind.type:
        cursor.expected("a type, such as '.b32',")
    return kind


def _alignment(cursor: Cursor) -> int:
    start = cursor.start
    alignment = cursor.integer("an alignment")
    if alignment < 1 or alignment & (alignment - 1):
        cursor.fail(f"an alignment is a power of two, not {alignment}", start)
    if alignment > 1 << 30:
        cursor.fail(f"an alignment of {alignment} bytes; 2^30 is the most", start)
    return alignment


def _pointer(cursor: Cursor) -> tuple[str, int]:
    space = ""
    alignment = 4
    while cursor.token[1:] in (*_POINTED, "align") and cursor.kind == Token.DOTTED:
        word = cursor.token[1:]
        cursor.advance()
        if word == "align":
            alignment = _alignment(cursor)
        else:
            space = word
    return space, alignment


def _item(cursor: Cursor, kind: _Kind) -> list[tuple[Declaration, int]]:
    start = cursor.start
    name = cursor.name("a name")
    count = None
    if cursor.skip("<"):
        count = cursor.integer("how many")
        cursor.take(">")
    position = cursor.source.position(start)
    if kind.space == "reg":
        if cursor.token in ("[", "="):
            cursor.fail("a register has no dimensions and no initial value")
        return [(RegisterRange(name, kind.type, kind.vector, count, position), start)]
    dimensions = _dimensions(cursor)
    initial: list[int | AddressOf] = []
    if cursor.token == "=":
        if kind.space not in ("global", "const"):
            cursor.fail(f"a variable in .{kind.space} has no initial value")
        cursor.advance()
        initial, outermost = read_values(cursor, kind.type, dimensions or (), kind.vector)
        if dimensions and not dimensions[0]:
            dimensions = (outermost, *dimensions[1:])
    if count is not None and count > MOST_NAMES:
        cursor.fail(f"more than {MOST_NAMES} variables by one name", start)
    names = [name] if count is None else [f"{name}{n}" for n in range(count)]
    made = Variable(
        cast(Space, kind.space), kind.type, kind.vector, name, dimensions,
        kind.alignment or bytes_of(kind.type) * kind.vector, tuple(initial), kind.linkage, kind.pointer, position,
    )  # fmt: skip
    return [(made if one == name else replace(made, name=one), start) for one in names]


def _dimensions(cursor: Cursor) -> tuple[int, ...] | None:
    dimensions: list[int] = []
    while cursor.skip("["):
        if cursor.token == "]":
            if dimensions:
                cursor.fail("only the first dimension may be left open")
            dimensions.append(0)
        else:
            start = cursor.start
            n = integer_constant(cursor, "a dimension")
            if not 0 <= n < 1 << 63:
                cursor.fail(f"{n} is no dimension", start)
            dimensions.append(n)
        if len(dimensions) > 16:
            cursor.fail("more than 16 dimensions")
        cursor.take("]")
    return tuple(dimensions) if dimensions else None
