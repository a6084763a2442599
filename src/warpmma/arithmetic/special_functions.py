"""The functions of the special-function unit, one operand at a time, on Python integers.

Specification
-------------
An operand has a sign, an exponent field e and a fraction f of 23 bits; V is what `interpolation` computes (rules 1 and
2) from a table and a position.

3.  A subnormal operand is a zero of its sign, but for tanh. The result is V 2^n, cut toward zero to 24 bits; what is
    below 2^-126 is zero, what is 2^128 or more infinite. Of NaN, and where no number is the result, 0x7FFFFFFF.
4.  rcp: position f, n = 127 - e, the operand's sign. Of zero infinity, of infinity zero, of the operand's sign.
5.  rsqrt and sqrt: with k = floor((e - 127) / 2), table "even" or "odd" by e - 127 - 2 k; position f; n = -k of rsqrt,
    where an even power of two gives an exact power; n = k + 1 of sqrt. Of negative numbers NaN. Of a zero, infinity of
    its sign and the zero; of infinity 0 and infinity.
6.  ex2: the magnitude is cut to a multiple of 2^-23, a, as an integer. Of a negative operand a is complemented bit by
    bit, unless its fraction (the lower 23 bits) is zero: then -a. Position: the lower 23 bits; n: the others, signed.
7.  lg2: position f. The sum of V and e - 127 is cut down to a multiple of 2^-36, as an integer, and complemented bit by
    bit if negative, which makes the sign; then cut to 24 bits. Of 1, +0; of a zero -infinity; of negative numbers NaN.
8.  sin and cos, of turns: four times the magnitude, cut to a multiple of 2^-23, as an integer: the lower 23 bits are
    the position, the others the quadrant, and cos adds one to it. In odd quadrants the position is complemented bit by
    bit; in quadrants 2 and 3 the result is negative. sin takes the operand's sign into it. Of infinity NaN.
9.  tanh: of e up to 118 the operand itself; of e from 130 1, with the operand's sign. Between them a table for each e,
    of 2^m segments; position f, without the last 6 - m bits.
10. 16-bit functions: that of the operand as f32, cut toward zero to the format, its subnormal numbers kept. Of f16 what
    is 65,536 or more is infinite. NaN is 0x7FFF.
11. rcp and rsqrt of f64 take and give the upper word: f is its fraction, with three zero bits below, and e of 11 bits
    counts from 1023; the result is cut to 21 bits.

Rules 1 to 10 were compared with an H200 on all inputs of each function: docs/functions.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from .._arguments import check_choice
from .interpolation import Interpolator, interpolators

__all__ = ["SPECIAL_FUNCTIONS", "TANH_FIELDS", "Law", "SpecialFunction", "find_function", "special_function_reference"]

Law = Literal["rcp", "rsqrt", "sqrt", "ex2", "lg2", "sin", "cos", "tanh"]


@dataclass(frozen=True, kw_only=True)
class SpecialFunction:
    """A function of the special-function unit.

    Attributes
    ----------
    name : str
    machine : str
        The machine instruction.
    law : str
        Which rules it follows.
    fmt : {"f32", "f16", "bf16", "f64"}
        Format of operand and result; of "f64" they are the upper words.
    """

    name: str
    machine: str
    law: Law
    fmt: Literal["f32", "f16", "bf16", "f64"] = "f32"

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of its interpolators, in the order of what chooses one."""
        return _TABLES[self.law]

    @property
    def bits(self) -> int:
        """Bits of an operand and of a result."""
        return 16 if self.fmt in ("f16", "bf16") else 32


TANH_FIELDS = range(119, 130)
"""Exponent fields for which tanh has a table (rule 9)."""

_TABLES: Mapping[Law, tuple[str, ...]] = MappingProxyType({
    "rcp": ("rcp",),
    "rsqrt": ("rsqrt even", "rsqrt odd"),
    "sqrt": ("sqrt even", "sqrt odd"),
    "ex2": ("ex2",),
    "lg2": ("lg2",),
    "sin": ("sin",),
    "cos": ("sin",),
    "tanh": tuple(f"tanh {e}" for e in TANH_FIELDS),
})  # fmt: skip

_FUNCTIONS = (
    SpecialFunction(name="rcp", machine="MUFU.RCP", law="rcp"),
    SpecialFunction(name="rsqrt", machine="MUFU.RSQ", law="rsqrt"),
    SpecialFunction(name="sqrt", machine="MUFU.SQRT", law="sqrt"),
    SpecialFunction(name="ex2", machine="MUFU.EX2", law="ex2"),
    SpecialFunction(name="lg2", machine="MUFU.LG2", law="lg2"),
    SpecialFunction(name="sin", machine="MUFU.SIN", law="sin"),
    SpecialFunction(name="cos", machine="MUFU.COS", law="cos"),
    SpecialFunction(name="tanh", machine="MUFU.TANH", law="tanh"),
    SpecialFunction(name="ex2.f16", machine="MUFU.EX2.F16", law="ex2", fmt="f16"),
    SpecialFunction(name="ex2.bf16", machine="MUFU.EX2.BF16", law="ex2", fmt="bf16"),
    SpecialFunction(name="tanh.f16", machine="MUFU.TANH.F16", law="tanh", fmt="f16"),
    SpecialFunction(name="tanh.bf16", machine="MUFU.TANH.BF16", law="tanh", fmt="bf16"),
    SpecialFunction(name="rcp.f64", machine="MUFU.RCP64H", law="rcp", fmt="f64"),
    SpecialFunction(name="rsqrt.f64", machine="MUFU.RSQ64H", law="rsqrt", fmt="f64"),
)
SPECIAL_FUNCTIONS: Mapping[str, SpecialFunction] = MappingProxyType({f.name: f for f in _FUNCTIONS})
"""Every function of the unit, by its name."""

_NAN, _INFINITY, _ONE, _SIGN = 0x7FFFFFFF, 0x7F800000, 0x3F800000, 0x80000000
_NAN16 = 0x7FFF
_FRACTION = (1 << 23) - 1
_GUARD = 36  # lg2 is cut to a multiple of 2 to the minus this


def find_function(name: str) -> SpecialFunction:
    """Return the function of a name; raise `OperandError` if there is none.

    Examples
    --------
    >>> find_function("ex2.f16").machine
    'MUFU.EX2.F16'
    """
    check_choice("function", name, tuple(SPECIAL_FUNCTIONS))
    return SPECIAL_FUNCTIONS[name]


def special_function_reference(name: str, code: int, tables: Mapping[str, Interpolator] | None = None) -> int:
    """Compute one result: what everything faster must equal.

    Parameters
    ----------
    name : str
        Of `SPECIAL_FUNCTIONS`.
    code : int
        The operand; of "rcp.f64" and "rsqrt.f64" its upper word.
    tables : mapping of str to Interpolator, optional
        Instead of `interpolators()`: to see what another table would give.

    Returns
    -------
    int
        Code of the result.

    Raises
    ------
    OperandError
        There is no such function.

    Examples
    --------
    >>> hex(special_function_reference("ex2", 0x40400000)), hex(special_function_reference("rcp", 0x40400000))
    ('0x41000000', '0x3eaaaaab')
    """
    function = find_function(name)
    known = interpolators() if tables is None else tables
    used = [known[table] for table in function.tables]
    if function.fmt == "f64":
        return _upper_word(function.law, used, code)
    if function.fmt == "f32":
        return _f32(function.law, used, code)
    return _narrowed(function.fmt, _f32(function.law, used, _widened(function.fmt, code)))


def _cut(numerator: int, point: int, n: int) -> int:
    """Return numerator 2^(n - point), not negative, as f32 (rule 3)."""
    if numerator == 0:
        return 0
    lead = numerator.bit_length() - 1
    significand = numerator >> (lead - 23) if lead >= 23 else numerator << (23 - lead)
    field = lead + n - point + 127
    if field < 1:
        return 0
    return _INFINITY if field > 254 else field << 23 | significand & _FRACTION


def _f32(law: Law, tables: Sequence[Interpolator], code: int) -> int:
    sign, e, f = code & _SIGN, code >> 23 & 255, code & _FRACTION
    if e == 255 and f:
        return _NAN
    if law == "tanh":
        return sign | _tanh(tables, code & ~_SIGN, e, f)
    if e == 0:
        f = 0
    special = _special(law, sign, e, f)
    if special is not None:
        return special
    match law:
        case "rcp":
            return sign | _cut(tables[0].sum(f), tables[0].point, 127 - e)
        case "rsqrt" | "sqrt":
            k, odd = divmod(e - 127, 2)
            if law == "rsqrt" and not odd and f == 0:
                return (127 - k) << 23
            return _cut(tables[odd].sum(f), tables[odd].point, -k if law == "rsqrt" else k + 1)
        case "ex2":
            return _ex2(tables[0], sign, e, f)
        case "lg2":
            return _lg2(tables[0], e, f)
        case _:
            return _sine(tables[0], law, sign, e, f)


def _special(law: Law, sign: int, e: int, f: int) -> int | None:
    """Return results that are no sum: of zeros, infinities, negative numbers (rules 4 to 8)."""
    zero, infinite = e == 0, e == 255
    if law in ("sin", "cos"):
        return _NAN if infinite else None
    if law == "ex2":
        return (0 if sign else _INFINITY) if infinite else None
    if law == "rcp":
        return sign | _INFINITY if zero else sign if infinite else None
    if zero:
        return {"rsqrt": sign | _INFINITY, "sqrt": sign, "lg2": _SIGN | _INFINITY}[law]
    if sign:
        return _NAN
    if infinite:
        return 0 if law == "rsqrt" else _INFINITY
    return 0 if law == "lg2" and e == 127 and f == 0 else None


def _fixed(e: int, f: int, point: int) -> int:
    """Return the magnitude of an operand, cut to a multiple of 2^-point, as an integer."""
    if e == 0:
        return 0
    shift = e - 127 - 23 + point
    significand = f | 1 << 23
    return significand << shift if shift >= 0 else significand >> -shift


def _ex2(table: Interpolator, sign: int, e: int, f: int) -> int:
    """Rule 6."""
    a = _fixed(e, f, 23)
    if sign:
        a = ~a if a & _FRACTION else -a
    return _cut(table.sum(a & _FRACTION), table.point, a >> 23)


def _lg2(table: Interpolator, e: int, f: int) -> int:
    """Rule 7."""
    total = table.sum(f) + (e - 127 << table.point) >> table.point - _GUARD
    return _SIGN | _cut(~total, _GUARD, 0) if total < 0 else _cut(total, _GUARD, 0)


def _sine(table: Interpolator, law: Law, sign: int, e: int, f: int) -> int:
    """Rule 8."""
    turns = _fixed(e, f, 23 + 2)
    quadrant, position = turns >> 23, turns & _FRACTION
    if law == "cos":
        quadrant, sign = quadrant + 1, 0
    if quadrant & 1:
        position ^= _FRACTION
    if quadrant & 2:
        sign ^= _SIGN
    return sign | _cut(table.sum(position), table.point, 0)


def _tanh(tables: Sequence[Interpolator], magnitude: int, e: int, f: int) -> int:
    """Rule 9."""
    if e not in TANH_FIELDS:
        return magnitude if e < TANH_FIELDS.start else _ONE
    table = tables[e - TANH_FIELDS.start]
    segment_bits = len(table.rows).bit_length() - 1
    return _cut(table.sum(f >> 23 - table.bits - segment_bits), table.point, 0)


def _widened(fmt: str, code: int) -> int:
    """Return a 16-bit operand as f32 (rule 10)."""
    if fmt == "bf16":
        return code << 16
    sign, magnitude = (code & 0x8000) << 16, code & 0x7FFF
    if magnitude >= 0x7C00:
        return sign | _INFINITY | (magnitude & 0x3FF) << 13
    if magnitude >= 0x400:
        return sign | (magnitude << 13) + (127 - 15 << 23)
    return sign | _cut(magnitude, 24, 0)


def _narrowed(fmt: str, code: int) -> int:
    """Cut an f32 result toward zero to 16 bits (rule 10)."""
    sign, e, f = code >> 31, code >> 23 & 255, code & _FRACTION
    if e == 255 and f:
        return _NAN16
    if fmt == "bf16":
        return code >> 16
    if e - 127 > 15:
        return sign << 15 | 0x7C00
    if e - 127 >= -14:
        return sign << 15 | (e - 127 + 15) << 10 | f >> 13
    return sign << 15 | _fixed(e, f, 24)


def _upper_word(law: Law, tables: Sequence[Interpolator], word: int) -> int:
    """Rule 11."""
    raise NotImplementedError
