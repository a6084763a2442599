"""Initial values of variables in memory.

    value   = "{" [value {"," value}] "}" | constant | address | mask "(" address ")"
    address = name ["+" integer] | "generic" "(" name ")" ["+" integer]
    mask    = 0xFF | 0xFF00 | ...

1. Braces follow the dimensions, a vector's elements innermost; what a brace does not say is zero.
2. An integer is cut to its element; a float stands in `.f32` and `.f64`, and, as the f32 or the f64 that it is written
   as, in untyped elements.
3. Zeros between values are listed: at most `MOST` elements. Those behind the last value are not.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from .expressions import constant, integer_constant
from .syntax import AddressOf, Immediate, bytes_of
from .tokens import Cursor, Token

MOST = 1 << 24
"""Elements of a variable up to the last that is not zero."""

Element = int | AddressOf


def read_values(cursor: Cursor, type: str, dimensions: Sequence[int], vector: int) -> tuple[list[Element], int]:
    """Read what stands behind `=`.

    Parameters
    ----------
    cursor : Cursor
    type : str
    dimensions : sequence of int
        0 where `[]` is written.
    vector : int

    Returns
    -------
    (list of int or AddressOf, int)
        Elements, and how many the outermost braces hold.
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
            cursor.fail(f"an integer is no initial value of .{type}", start)
        return number.value % (1 << bits)
    if number.kind == f"f{bits}":
        return number.value
    if number.kind == "f64" and type in ("f32", "b32"):
        value = struct.unpack("<d", number.value.to_bytes(8, "little"))[0]
        return rounded_to_f32(value)
    if number.kind == "f32" and type == "f64":
        widened = struct.unpack("<f", number.value.to_bytes(4, "little"))[0]
        return int.from_bytes(struct.pack("<d", widened), "little")
    raise cursor.error(f"a float is no initial value of .{type}", start)


def rounded_to_f32(value: float) -> int:
    """Give the f32 code that is nearest to a float."""
    try:
        return int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:  # Python refuses what rounds to infinity
        return 0x7F800000 if value > 0 else 0xFF800000
