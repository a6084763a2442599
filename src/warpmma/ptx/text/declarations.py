"""Declarations: variables, registers, parameters.

variable  = [linkage] space {qualifier} "." type item {"," item} ";"
linkage   = ".extern" | ".visible" | ".weak" | ".common"
space     = ".reg" | ".param" | ".global" | ".const" | ".shared" | ".local"
qualifier = ".align" integer | ".v2" | ".v4" | ".attribute" "(" ... ")"
item      = name ["<" integer ">"] {"[" [integer] "]"} ["=" value]
parameter = (".param" | ".reg") {qualifier} "." type [".align" integer] [".ptr" ["." space] [".align" integer]]
            name ["[" [integer] "]"]

What the grammar leaves open (PTX ISA 9.1, 5; what ptxas 13.0 takes):

1. A predicate is a register, and not a vector. A vector has 128 bits at most; in parameters there are none. Opaque
   types are variables of a module, in .global, or parameters of entries.
2. `[]` and `[0]` leave a size open: of an `.extern` variable, of one with initial values, and of a function's last
   parameter.
3. A parameter of an entry lies in .param. A function that gives more than one result gives them in registers.
4. Variables of a module in .local ended with PTX 2.3.

Initial values of variables in memory.

    value   = "{" [value {"," value}] "}" | constant | address | mask "(" address ")"
    address = name ["+" integer] | "generic" "(" name ")" ["+" integer]
    mask    = 0xFF | 0xFF00 | ...

1. Braces follow the dimensions, a vector's elements innermost; values left out are zero.
2. An integer is truncated to its element; a float initializes `.f32` and `.f64`, and untyped elements by the bits of
   the f32 or f64 that it is written as.
3. Zeros between values are listed: at most `MOST` elements. Those behind the last value are not.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from .directives import attributes
from .expressions import constant, integer_constant
from .syntax import BYTES, AddressOf, Declaration, Immediate, RegisterRange, Space, Variable, bytes_of
from .tokens import Cursor, Token

MOST = 1 << 24
"""Elements of a variable up to the last that is not zero."""

_INTEGERS = re.compile(r"\{((?:\s*+-?(?:0|[1-9][0-9]{0,17})\s*+(?:,|(?=\})))++)(?<!,)\}", re.ASCII)
"""Braces around integers that take no thought: their spelling says that they are decimal, of 64 bits and signed."""

Element = int | AddressOf


def read_values(cursor: Cursor, type: str, dimensions: Sequence[int], vector: int) -> tuple[list[Element], int]:
    """Read what follows `=`, of dimensions that are 0 where `[]` is written.

    Return the elements, and how many the outermost braces hold.
    """
    shape = [*dimensions, *([vector] if vector > 1 else [])]
    values: list[Element] = []
    if not shape:
        values.append(_element(cursor, type))
        return values, 1
    outermost = _braces(cursor, type, shape, 0, values)
    while values and values[-1] == 0:
        values.pop()
    return values, outermost


def _braces(cursor: Cursor, type: str, shape: Sequence[int], level: int, values: list[Element]) -> int:
    start = cursor.start
    cursor.deeper()
    if (
        level + 1 == len(shape)
        and (shape[level] or not level)
        and (plain := _plain_integers(cursor, type, shape[level], len(values)))
    ):
        values += plain
        cursor.depth -= 1
        return len(plain)
    cursor.take("{")
    first, inner = len(values), 1
    for n in shape[level + 1 :]:
        inner *= n
    count = 0
    while cursor.token != "}":
        if count and not cursor.skip(","):
            cursor.expected("',' or '}'")
        if shape[level] and count == shape[level]:
            cursor.fail(f"{shape[level]} values are all that these braces take")
        _fill(cursor, values, first + count * inner)
        if level + 1 < len(shape):
            _braces(cursor, type, shape, level + 1, values)
        else:
            values.append(_element(cursor, type))
        count += 1
    if shape[level] == 0 and level:
        cursor.fail("only the first dimension may be left open", start)
    cursor.advance()
    cursor.depth -= 1
    return count


def _plain_integers(cursor: Cursor, type: str, most: int, before: int) -> list[int]:
    """Read innermost braces with nothing but decimal integers at once, as tables have them; [] of any others.

    They go into `most` elements, 0 for any number, behind `before` others.
    """
    m = None if type in ("f32", "f64") else _INTEGERS.match(cursor.source.text, cursor.start)
    if m is None:
        return []
    mask = (1 << 8 * bytes_of(type)) - 1
    found = [int(x) & mask for x in m[1].split(",")]
    if (most and len(found) > most) or before + len(found) > MOST:
        return []
    cursor.go(m.end())
    return found


def _fill(cursor: Cursor, values: list[Element], length: int) -> None:
    if length > MOST:
        cursor.fail(f"an initial value of more than {MOST} elements")
    values.extend([0] * (length - len(values)))


def _element(cursor: Cursor, type: str) -> Element:
    if cursor.kind == Token.WORD and cursor.token != "WARP_SZ":
        return _address(cursor)
    start = cursor.start
    number = constant(cursor)
    if cursor.skip("("):
        shift = (number.value & -number.value).bit_length() - 1
        if number.kind not in ("s", "u") or shift % 8 or number.value != 0xFF << shift or bytes_of(type) != 1:
            cursor.fail("a mask is one byte, 0xFF, 0xFF00, ..., and goes into an element of one byte", start)
        address = _address(cursor)
        cursor.take(")")
        return AddressOf(address.name, address.offset, address.generic, shift // 8)
    return _code(cursor, number, type, start)


def _address(cursor: Cursor) -> AddressOf:
    name = cursor.name("a name")
    generic = name == "generic" and cursor.token == "("
    if generic:
        cursor.advance()
        name = cursor.name("a name")
        cursor.take(")")
    offset = integer_constant(cursor, "bytes") if cursor.skip("+") else 0
    return AddressOf(name, offset, generic)


def _code(cursor: Cursor, number: Immediate, type: str, start: int) -> int:
    bits = 8 * bytes_of(type)
    if number.kind in ("s", "u"):
        if type in ("f32", "f64") and number.value:
            cursor.fail(f"an integer cannot initialize .{type}", start)
        return number.value % (1 << bits)
    if number.kind == f"f{bits}":
        return number.value
    if number.kind == "f64" and type in ("f32", "b32"):
        value = struct.unpack("<d", number.value.to_bytes(8, "little"))[0]
        return rounded_to_f32(value)
    if number.kind == "f32" and type == "f64":
        widened = struct.unpack("<f", number.value.to_bytes(4, "little"))[0]
        return int.from_bytes(struct.pack("<d", widened), "little")
    raise cursor.error(f"a float cannot initialize .{type}", start)


def rounded_to_f32(value: float) -> int:
    """Give the f32 code that is nearest to a float."""
    try:
        return int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:  # Python refuses what rounds to infinity
        return 0x7F800000 if value > 0 else 0xFF800000


SPACES = (".reg", ".param", ".global", ".const", ".shared", ".local")
LINKAGES = (".extern", ".visible", ".weak", ".common")
MOST_NAMES = 4096
"""Variables in memory that `name<count>` may make."""

_POINTED = ("global", "const", "shared", "local")
_OF_INSTRUCTIONS = frozenset(("bf16", "bf16x2", "tf32", "f32x2"))
"""Types that instructions have, and declarations have not."""
_OPAQUE = frozenset(("texref", "samplerref", "surfref"))
_SINCE = {"f16x2": ((0, 0), 53), "b128": ((8, 3), 70)}
"""First version of PTX and first target of types that not all texts have."""

Owner = Literal["outside", "body", "entry", "func", "result"]
"""Whose a declaration is: a module's, a body's, or a parameter's of an entry or a function, or a result."""


@dataclass(slots=True)
class _Kind:
    """The part of a declaration that all its items share."""

    space: str
    owner: Owner
    linkage: str = ""
    type: str = ""
    vector: int = 1
    alignment: int = 0
    pointer: tuple[str, int] | None = None


def variables(cursor: Cursor, linkage: str = "", *, outside: bool = False) -> list[tuple[Declaration, int]]:
    """Read a declaration of a body, or outside one: what it declares, each with the offset of its name."""
    kind = _kind(cursor, "outside" if outside else "body", linkage)
    found: list[tuple[Declaration, int]] = []
    while True:
        found += _item(cursor, kind)
        if not cursor.skip(","):
            break
    if cursor.token != ";":
        cursor.expected("',' or ';'")
    cursor.advance()
    return found


def parameters(cursor: Cursor, owner: Literal["entry", "func", "result"]) -> list[tuple[Declaration, int]]:
    """Read parameters, or results, in parentheses."""
    cursor.take("(")
    found: list[tuple[Declaration, int]] = []
    while cursor.token != ")":
        if found and not cursor.skip(","):
            cursor.expected("',' or ')'")
        if found and _open(found[-1][0]):
            cursor.fail("only a function's last parameter may leave its size open", found[-1][1])
        if cursor.token not in (".param", ".reg"):
            cursor.expected("'.param', '.reg' or ')'")
        if owner == "entry" and cursor.token == ".reg":
            cursor.fail("parameters of an entry are in .param, not in .reg")
        found += _item(cursor, _kind(cursor, owner, ""))
    cursor.advance()
    if owner == "result" and len(found) > 1 and any(isinstance(one, Variable) for one, _ in found):
        cursor.fail("several results are in .reg; in .param there is one", found[0][1])
    return found


def _open(one: Declaration) -> bool:
    return isinstance(one, Variable) and one.dimensions is not None and 0 in one.dimensions


def _kind(cursor: Cursor, owner: Owner, linkage: str) -> _Kind:
    """Read the space, with the token at it, the qualifiers and the type."""
    kind = _Kind(cursor.token[1:], owner, linkage)
    if linkage == "common" and kind.space != "global":
        cursor.fail(f".common variables are in .global, not in .{kind.space}")
    cursor.advance()
    while cursor.kind == Token.DOTTED and not kind.type:
        word, start = cursor.token[1:], cursor.start
        cursor.advance()
        if word == "align":
            kind.alignment = _alignment(cursor)
        elif word in ("v2", "v4"):
            kind.vector = int(word[1:])
        elif word == "attribute":
            if ".managed" in attributes(cursor) and kind.space != "global":
                cursor.fail(f".managed variables are in .global, not in .{kind.space}", start)
        elif word in BYTES and word not in _OF_INSTRUCTIONS:
            kind.type = word
            _check_type(cursor, kind, start)
        else:
            cursor.fail(f"{'.' + word!r} does not belong into a declaration", start)
    if not kind.type:
        cursor.expected("a type, such as '.b32',")
    if kind.space == "param" and cursor.skip(".align"):
        kind.alignment = _alignment(cursor)
    if owner in ("entry", "func", "result") and cursor.skip(".ptr"):
        kind.pointer = _pointer(cursor)
    return kind


def _check_type(cursor: Cursor, kind: _Kind, start: int) -> None:
    """Refuse a type that does not fit its space, vector, text or owner (rule 1)."""
    type_, vector = kind.type, kind.vector
    cursor.requires(f".{type_}", *_SINCE.get(type_, ((0, 0), 0)))
    if type_ == "pred" and kind.space != "reg":
        cursor.fail(f"a predicate is a register, not a variable in .{kind.space}", start)
    if type_ in _OPAQUE and not (kind.owner == "entry" or (kind.owner == "outside" and kind.space == "global")):
        cursor.fail(f".{type_} is of variables of a module, in .global, and of entries' parameters", start)
    if vector > 1 and (type_ == "pred" or type_ in _OPAQUE or bytes_of(type_) * vector > 16):
        cursor.fail(f"there are no vectors .v{vector} of .{type_}; a vector has 128 bits at most", start)
    if kind.space == "param" and (vector > 1 or type_ == "f16x2"):
        what = f"vectors, as .v{vector}" if vector > 1 else ".f16x2; expected .b32"
        cursor.fail(f".param has no {what}", start)


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
    if cursor.kind == Token.DOTTED and cursor.token[1:] in _POINTED:
        space = cursor.token[1:]
        cursor.advance()
    return space, _alignment(cursor) if cursor.skip(".align") else 4


def _item(cursor: Cursor, kind: _Kind) -> list[tuple[Declaration, int]]:
    start = cursor.start
    name = cursor.name("a name")
    count = None
    of_call = kind.owner in ("entry", "func", "result")
    if not of_call and cursor.skip("<"):
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
    if of_call and dimensions and len(dimensions) > 1:
        cursor.fail("a parameter has one dimension at most", start)
    if dimensions and 0 in dimensions and kind.owner != "func" and kind.linkage != "extern":
        cursor.fail(f"{name!r} has no size; expected one, as {name}[4]", start)
    if kind.owner == "outside" and kind.space == "local" and cursor.source.version >= (3, 0):
        cursor.fail("variables of a module in .local ended with PTX 2.3; declare it in the function", start)
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
                cursor.fail(f"{n} is not a valid dimension", start)
            dimensions.append(n)
        if len(dimensions) > 16:
            cursor.fail("more than 16 dimensions")
        cursor.take("]")
    return tuple(dimensions) if dimensions else None
