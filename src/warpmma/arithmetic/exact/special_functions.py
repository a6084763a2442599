"""The functions of the special-function unit, one operand at a time, on Python integers.

Specification
-------------
An operand has a sign, an exponent field e and a fraction f of 23 bits; V is what `interpolation` computes (rules 1 and
2) from a table and a position.

3.  A subnormal operand is a zero of its sign, except for tanh. The result is V 2^n, truncated to 24 bits; below
    2^-126 it is zero, from 2^128 on infinite. For NaN, and where the result is not a number, it is 0x7FFFFFFF.
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
11. rcp and rsqrt of f64 take the upper word alone and give it, and zeros for the lower one: f is its fraction, with
    three zero bits below; e has 11 bits and counts from 1023. The result is cut to 21 bits; what is below 2^-1022 is
    zero. An operand that only its lower word makes NaN, or not zero, is infinite, or zero.

All inputs of each function were compared with an H200: docs/functions.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

from ..._arguments import check_choice
from ..._records import Shown
from .interpolation import Interpolator, interpolators

Law = Literal["rcp", "rsqrt", "sqrt", "ex2", "lg2", "sin", "cos", "tanh"]


@dataclass(frozen=True, kw_only=True)
class SpecialFunction(Shown):
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

LG2_POINT = 36
"""Logarithms are cut to a multiple of 2 to the minus this (rule 7)."""

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

_NAN, _ONE, _SIGN = 0x7FFFFFFF, 0x3F800000, 0x80000000
_NAN16 = 0x7FFF
_FRACTION = (1 << 23) - 1


class _Word(NamedTuple):
    """The exponent field and the fraction of a word of 32 bits."""

    bias: int
    fraction_bits: int

    @property
    def top(self) -> int:
        """The exponent field of infinities and NaN."""
        return 2 * self.bias + 1

    def split(self, code: int) -> tuple[int, int, int]:
        """Return sign bit, exponent field, and the fraction as one of 23 bits."""
        fraction = code & (1 << self.fraction_bits) - 1
        return code & _SIGN, (code & ~_SIGN) >> self.fraction_bits, fraction << 23 - self.fraction_bits

    def power(self, n: int) -> int:
        """Return the code of 2^n; infinity is that of the first power out of the range."""
        return n + self.bias << self.fraction_bits

    def cut(self, numerator: int, point: int, n: int) -> int:
        """Return numerator 2^(n - point), not negative (rule 3)."""
        if numerator == 0:
            return 0
        lead = numerator.bit_length() - 1
        drop = lead - self.fraction_bits
        significand = numerator >> drop if drop >= 0 else numerator << -drop
        field = lead + n - point + self.bias
        if field < 1:
            return 0
        return self.power(self.bias + 1) if field >= self.top else (field - 1 << self.fraction_bits) + significand


_F32, _UPPER = _Word(127, 23), _Word(1023, 20)
_INFINITY = _F32.power(128)


def find_function(name: str) -> SpecialFunction:
    """Return the function of a name; raise `OperandError` for an unknown name.

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
        return _word(function.law, used, _UPPER, code)
    if function.fmt == "f32":
        return _word(function.law, used, _F32, code)
    return _narrowed(function.fmt, _word(function.law, used, _F32, _widened(function.fmt, code)))


def _word(law: Law, tables: Sequence[Interpolator], word: _Word, code: int) -> int:
    sign, e, f = word.split(code)
    if e == word.top and f:
        return _NAN
    if law == "tanh":
        return sign | _tanh(tables, code & ~_SIGN, e, f)
    if e == 0:
        f = 0
    special = _special(law, word, sign, e, f)
    if special is not None:
        return special
    exponent = e - word.bias
    match law:
        case "rcp":
            return sign | word.cut(tables[0].sum(f), tables[0].point, -exponent)
        case "rsqrt" | "sqrt":
            k, odd = divmod(exponent, 2)
            if law == "rsqrt" and not odd and f == 0:
                return word.power(-k)
            return word.cut(tables[odd].sum(f), tables[odd].point, -k if law == "rsqrt" else k + 1)
        case "ex2":
            return _ex2(tables[0], sign, e, f)
        case "lg2":
            return _lg2(tables[0], e, f)
        case _:
            return _sine(tables[0], law, sign, e, f)


def _special(law: Law, word: _Word, sign: int, e: int, f: int) -> int | None:
    """Return results that are not a sum: of zeros, infinities, negative numbers (rules 4 to 8)."""
    infinity, zero, infinite = word.power(word.bias + 1), e == 0, e == word.top
    if law in ("sin", "cos"):
        return _NAN if infinite else None
    if law == "ex2":
        return (0 if sign else infinity) if infinite else None
    if law == "rcp":
        return sign | infinity if zero else sign if infinite else None
    if zero:
        return {"rsqrt": sign | infinity, "sqrt": sign, "lg2": _SIGN | infinity}[law]
    if sign:
        return _NAN
    if infinite:
        return 0 if law == "rsqrt" else infinity
    return 0 if law == "lg2" and e == word.bias and f == 0 else None


def _fixed(e: int, f: int, point: int) -> int:
    """Return the magnitude of an f32 operand, cut to a multiple of 2^-point, as an integer."""
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
    return _F32.cut(table.sum(a & _FRACTION), table.point, a >> 23)


def _lg2(table: Interpolator, e: int, f: int) -> int:
    """Rule 7."""
    total = table.sum(f) + (e - 127 << table.point) >> table.point - LG2_POINT
    return _SIGN | _F32.cut(~total, LG2_POINT, 0) if total < 0 else _F32.cut(total, LG2_POINT, 0)


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
    return sign | _F32.cut(table.sum(position), table.point, 0)


def _tanh(tables: Sequence[Interpolator], magnitude: int, e: int, f: int) -> int:
    """Rule 9."""
    if e not in TANH_FIELDS:
        return magnitude if e < TANH_FIELDS.start else _ONE
    table = tables[e - TANH_FIELDS.start]
    segment_bits = len(table.rows).bit_length() - 1
    return _F32.cut(table.sum(f >> 23 - table.bits - segment_bits), table.point, 0)


def _widened(fmt: str, code: int) -> int:
    """Return a 16-bit operand as f32 (rule 10)."""
    if fmt == "bf16":
        return code << 16
    sign, magnitude = (code & 0x8000) << 16, code & 0x7FFF
    if magnitude >= 0x7C00:
        return sign | _INFINITY | (magnitude & 0x3FF) << 13
    if magnitude >= 0x400:
        return sign | (magnitude << 13) + (127 - 15 << 23)
    return sign | _F32.cut(magnitude, 24, 0)


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
