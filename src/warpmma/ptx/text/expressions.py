"""Constant expressions, as PTX evaluates them.

1. Integers are of 64 bits, signed, unless U follows or the value needs the 64th bit. `WARP_SZ` is 32.
2. Operators, from what binds closest: `+ - ! ~` and the casts `(.s64)`, `(.u64)` before; `* / %`; `+ -`; `<< >>`;
   `< > <= >=`; `== !=`; `&`; `^`; `|`; `&&`; `||`; `? :`. They mean what C means; what overflows wraps to 64 bits. A
   result is unsigned if an operand is; of a shift if the left one is; of a comparison and of `! && ||` never.
3. Decimal numbers with a point or an exponent, and `0d` with 16 digits, are f64, and `+ - * /` and comparisons
   join two of them. `0f` with 8 digits is an f32 that stands alone.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

from .syntax import Immediate
from .tokens import Cursor, Token, integer_of

_LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"),
           ("*", "/", "%"))  # fmt: skip
_STRENGTH = {sign: level for level, signs in enumerate(_LEVELS) for sign in signs}
_COMPARISONS = {"==", "!=", "<", ">", "<=", ">="}
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class _Number:
    """A number of a constant expression: an integer, a float, or the code of an f32."""

    value: int | float
    kind: Literal["s", "u", "f32", "f64"]


def constant(cursor: Cursor) -> Immediate:
    """Read a constant expression."""
    start = cursor.start
    if cursor.kind == Token.NUMBER:  # most are one number
        number = _number(cursor)
        if cursor.token in (",", ";", "]", "}", ")"):
            return _immediate(number)
        return _immediate(_chosen(cursor, number, start))
    return _immediate(_chosen(cursor, None, start))


def integer_constant(cursor: Cursor, what: str) -> int:
    """Read a constant expression that is an integer."""
    start = cursor.start
    value = constant(cursor)
    if value.kind not in ("s", "u"):
        cursor.fail(f"expected {what}, found a float", start)
    return value.value


def _immediate(number: _Number) -> Immediate:
    if isinstance(number.value, float):
        return Immediate(int.from_bytes(struct.pack("<d", number.value), "little"), "f64")
    return Immediate(number.value, number.kind)


def _integer(value: int, unsigned: bool) -> _Number:
    value &= _MASK
    if unsigned:
        return _Number(value, "u")
    return _Number(value - (value >> 63 << 64), "s")


def _number(cursor: Cursor) -> _Number:
    text = cursor.token
    lead = text[:2]
    if lead in ("0f", "0F"):
        value: int | float = int(text[2:], 16)
        number = _Number(value, "f32")
    elif lead in ("0d", "0D"):
        number = _Number(struct.unpack("<d", int(text[2:], 16).to_bytes(8, "little"))[0], "f64")
    elif lead not in ("0x", "0X") and ("." in text or "e" in text or "E" in text):
        number = _Number(float(text), "f64")
    else:
        value = 1 << 64 if len(text) > 70 else integer_of(text)
        if value > _MASK:
            cursor.fail(f"{text[:40]} needs more than 64 bits")
        number = _Number(value, "u" if text[-1] == "U" or value >> 63 else "s")
    cursor.advance()
    return number


def _chosen(cursor: Cursor, first: _Number | None, start: int) -> _Number:
    """Read `a ? b : c`, or a sum or what else has two operands; `first` is a number that was read already."""
    condition = _joined(cursor, 0, first, start)
    if not cursor.skip("?"):
        return condition
    cursor.deeper()
    yes = _chosen(cursor, None, cursor.start)
    cursor.take(":")
    no = _chosen(cursor, None, cursor.start)
    cursor.depth -= 1
    return yes if _truth(cursor, condition, start) else no


def _joined(cursor: Cursor, weakest: int, first: _Number | None, start: int) -> _Number:
    """Read operands that are joined by operators of a level or stronger."""
    left = _unary(cursor) if first is None else first
    while True:
        sign = cursor.token
        level = _STRENGTH.get(sign, -1) if cursor.kind == Token.SIGN else -1
        if level < weakest:
            return left
        cursor.advance()
        right = _joined(cursor, level + 1, None, cursor.start)
        left = _join(cursor, sign, left, right, start)


def _unary(cursor: Cursor) -> _Number:
    sign, start = cursor.token, cursor.start
    if cursor.kind == Token.NUMBER:
        return _number(cursor)
    if sign == "WARP_SZ":
        cursor.advance()
        return _Number(32, "s")
    if sign not in ("-", "+", "!", "~", "("):
        cursor.expected("a number")
    cursor.deeper()
    cursor.advance()
    value = _parenthesised(cursor) if sign == "(" else _unary(cursor)
    cursor.depth -= 1
    return value if sign in "(+" else _signed(cursor, sign, value, start)


def _signed(cursor: Cursor, sign: str, value: _Number, start: int) -> _Number:
    if sign == "!":
        return _Number(int(not _truth(cursor, value, start)), "s")
    if value.kind == "f64" and sign == "-":
        return _Number(-value.value, "f64")
    if not isinstance(value.value, int) or value.kind == "f32":
        cursor.fail(f"{sign!r} does not go before this float", start)
    return _integer(-value.value if sign == "-" else ~value.value, value.kind == "u")


def _parenthesised(cursor: Cursor) -> _Number:
    if cursor.token in (".s64", ".u64"):
        unsigned, start = cursor.token == ".u64", cursor.start
        cursor.advance()
        cursor.take(")")
        value = _unary(cursor)
        if not isinstance(value.value, int) or value.kind == "f32":
            cursor.fail("a float is not cast", start)
        return _integer(value.value, unsigned)
    value = _chosen(cursor, None, cursor.start)
    cursor.take(")")
    return value


def _truth(cursor: Cursor, number: _Number, start: int) -> bool:
    if number.kind == "f32":
        cursor.fail("an f32 constant stands alone", start)
    return number.value != 0


def _join(cursor: Cursor, sign: str, a: _Number, b: _Number, start: int) -> _Number:
    if sign in ("&&", "||"):
        both = _truth(cursor, a, start), _truth(cursor, b, start)
        return _Number(int(all(both) if sign == "&&" else any(both)), "s")
    floats = a.kind == "f64" and b.kind == "f64"
    integers = a.kind in ("s", "u") and b.kind in ("s", "u")
    if not integers and not (floats and sign in {"+", "-", "*", "/", *_COMPARISONS}):
        cursor.fail(f"{sign!r} does not join these two constants", start)
    x, y = a.value, b.value
    unsigned = "u" in (a.kind, b.kind)
    if integers and unsigned and sign not in ("<<", ">>"):
        x, y = int(x) & _MASK, int(y) & _MASK
    if sign in _COMPARISONS:
        return _Number(int(_compared(sign, x, y)), "s")
    if floats:
        return _Number(_float(cursor, sign, float(x), float(y), start), "f64")
    return _joined_integers(cursor, sign, int(x), int(y), unsigned, a.kind == "u", start)


def _compared(sign: str, x: float, y: float) -> bool:
    if sign in ("==", "!="):
        return (x == y) == (sign == "==")
    if sign in ("<", "<="):
        return x < y or (sign == "<=" and x == y)
    return x > y or (sign == ">=" and x == y)


def _float(cursor: Cursor, sign: str, x: float, y: float, start: int) -> float:
    if sign == "/":
        if y == 0:
            cursor.fail("a constant is divided by zero", start)
        return x / y
    return x + y if sign == "+" else x - y if sign == "-" else x * y


def _joined_integers(
    cursor: Cursor, sign: str, x: int, y: int, unsigned: bool, left_unsigned: bool, start: int
) -> _Number:
    if sign in ("<<", ">>"):
        if not 0 <= y < 64:
            cursor.fail(f"a constant is shifted by {y} bits", start)
        return _integer(x << y if sign == "<<" else x >> y, left_unsigned)
    if sign in ("/", "%"):
        if y == 0:
            cursor.fail("a constant is divided by zero", start)
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return _integer(quotient if sign == "/" else x - quotient * y, unsigned)
    results = {"+": x + y, "-": x - y, "*": x * y, "&": x & y, "^": x ^ y, "|": x | y}
    return _integer(results[sign], unsigned)
