"""Functions of f32 numbers, rounded once to nearest even: what ptxas computes where the operand is a constant.

Specification
-------------
1.  A subnormal operand is a zero of its sign. The result is the function's exact value, rounded to nearest even; below
    2^-126 it is a zero of its sign, from 2^128 on infinite. sin and cos take radians.
2.  There is no result where the function has none, or ptxas leaves it to the GPU: of NaN; of sqrt, rsqrt and lg2 of
    negative numbers; of lg2 of zeros; of sin and cos of infinity.
3.  rcp and rsqrt of a zero are infinite, of its sign; sqrt and sin of a zero are that zero.

Exactness: rcp, sqrt and rsqrt are quotients and roots of integers, cut, with a last bit that says whether anything was
cut off. The others are enclosed between two numbers, with twice the bits until both round alike. That ends: integers in
ex2 and powers of two in lg2 have a rule of their own, and of all other rational numbers but 0 the results are
irrational, so they are never halfway between two f32 numbers.

Source: 51,366 constants of 14 forms and 16,368 divisions, compared with machine code of ptxas 13.0.88
(docs/specification/folding.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import isqrt
from types import MappingProxyType

from ...formats import FORMATS, FloatFormat, Number
from .exact_numbers import rounded

_F32: FloatFormat = FORMATS["f32"]
_INFINITY = 0x7F800000
_BITS = 256
"""Bits behind the point of the first enclosure: 2^-126, the least operand, has 130 of them."""

_Enclosure = tuple[int, int]
"""A value in units of 2^-bits, and by how many units it may be off."""


def rounded_function(name: str, code: int) -> int | None:
    """Compute one result; None where there is none (rule 2).

    Parameters
    ----------
    name : str
        Of `ROUNDED_FUNCTIONS`.
    code : int
        Of an f32.

    Returns
    -------
    int or None
        Code of an f32.

    Examples
    --------
    >>> hex(rounded_function("rcp", 0x40400000)), hex(rounded_function("sin", 0x40490FDB))
    ('0x3eaaaaab', '0xb3bbbd2e')
    """
    sign, magnitude = code & _F32.sign_bit, code & ~_F32.sign_bit
    if magnitude > _INFINITY:
        return None
    if magnitude < 1 << _F32.fraction_bits:
        return {"rcp": sign | _INFINITY, "rsqrt": sign | _INFINITY, "sqrt": sign, "sin": sign, "lg2": None}.get(
            name, 0x3F800000
        )
    if sign and name in ("sqrt", "rsqrt", "lg2"):
        return None
    if magnitude == _INFINITY:
        least = 0 if sign else _INFINITY
        return {"rcp": sign, "rsqrt": 0, "sqrt": _INFINITY, "lg2": _INFINITY, "ex2": least}.get(name)
    result = ROUNDED_FUNCTIONS[name](_F32.unpack(code))
    return result & _F32.sign_bit if result & ~_F32.sign_bit < 1 << _F32.fraction_bits else result


def _with_rest(value: int, rest: int, exponent: int, sign: int = 0) -> int:
    """Round value 2^exponent, from which a positive rest was cut off."""
    return rounded(Number("finite", sign, value << 1 | bool(rest), exponent - 1), _F32, "rn")


def _rcp(x: Number) -> int:
    value, rest = divmod(1 << 64, x.significand)
    return _with_rest(value, rest, -x.exponent - 64, x.sign)


def _sqrt(x: Number) -> int:
    odd = x.exponent % 2
    square = x.significand << 64 + odd
    value = isqrt(square)
    return _with_rest(value, square - value * value, (x.exponent - odd) // 2 - 32)


def _rsqrt(x: Number) -> int:
    odd = x.exponent % 2
    value = isqrt((1 << 128) // (x.significand << odd))
    return _with_rest(value, (1 << 128) - value * value * (x.significand << odd), -(x.exponent - odd) // 2 - 64)


def _enclosed(approximation: Callable[[int], _Enclosure], exponent: int = 0) -> int:
    """Round a value times 2^exponent, with as many bits as that takes."""
    bits = _BITS
    while True:
        value, error = approximation(bits)
        ends = {
            rounded(Number("finite", int(end < 0), abs(end), exponent - bits), _F32, "rn")
            for end in (value - error, value + error)
        }
        if len(ends) == 1:
            return ends.pop()
        bits *= 2


def _ex2(x: Number) -> int:
    value = -x.significand if x.sign else x.significand
    if x.exponent >= 0 or not value % (1 << -x.exponent):
        power = min(max(value << x.exponent if x.exponent >= 0 else value >> -x.exponent, -1024), 1024)
        return rounded(Number("finite", 0, 1, power), _F32, "rn")
    whole, fraction = divmod(value, 1 << -x.exponent)

    def power_of_fraction(bits: int) -> _Enclosure:
        """Sum y^n / n! of y = fraction ln 2, which is below 1."""
        y = (fraction * _ln2(bits) >> -x.exponent) + 1
        total = term = 1 << bits
        n = 0
        while term:
            n += 1
            term = (term * y >> bits) // n
            total += term
        return total, 16 * n + 16

    return _enclosed(power_of_fraction, min(max(whole, -1024), 1024))


def _lg2(x: Number) -> int:
    whole = x.significand.bit_length() - 1
    if x.significand == 1 << whole:
        power = whole + x.exponent
        return rounded(Number("finite", int(power < 0), abs(power), 0), _F32, "rn")

    def logarithm(bits: int) -> _Enclosure:
        """Return the exponent plus 2 atanh((m - 1) / (m + 1)) / ln 2 of the significand m, from 1 to 2."""
        one = 1 << whole
        natural, error = _atanh(x.significand - one, x.significand + one, bits)
        return (whole + x.exponent << bits) + (2 * natural << bits) // _ln2(bits), 8 * error + 16

    return _enclosed(logarithm)


def _sine(x: Number, quadrants: int) -> int:
    """Return the sine of x plus quarter turns."""

    def sine(bits: int) -> _Enclosure:
        value = x.significand << x.exponent + bits if x.exponent + bits >= 0 else x.significand >> -x.exponent - bits
        more = max(value.bit_length() - bits, 0) + 8  # bits of pi that its multiple needs
        half_pi = _pi(bits + more) >> 1
        quadrant, rest = divmod(value << more, half_pi)
        turned = rest >> more
        # Of an odd number of quarter turns the cosine.
        first = quadrant * (-1 if x.sign else 1) + quadrants
        return _quarter(turned, -1 if x.sign else 1, first % 4, bits)

    return _enclosed(sine)


def _quarter(rest: int, sign: int, quadrant: int, bits: int) -> _Enclosure:
    """Return sin(quadrant pi / 2 + sign rest), by its series."""
    square = rest * rest >> bits
    term, n, total = (1 << bits, 0, 0) if quadrant % 2 else (rest, 1, 0)
    while term:
        total += -term if n & 2 else term
        n += 2
        term = (term * square >> bits) // (n * (n - 1))
    turned = (quadrant >= 2) != (sign < 0 and quadrant % 2 == 0)
    return (-total if turned else total), 16 * n + 64


def _atanh(numerator: int, denominator: int, bits: int) -> _Enclosure:
    """Return atanh(numerator / denominator), at most 1/3, by its series."""
    power = (numerator << bits) // denominator
    square, total, n = power * power >> bits, 0, 1
    while power:
        total += power // n
        power = power * square >> bits
        n += 2
    return total, 4 * n


@lru_cache
def _ln2(bits: int) -> int:
    """Return ln 2 = 2 atanh(1/3) in units of 2^-bits, off by less than one."""
    return 2 * _atanh(1, 3, bits + 32)[0] >> 32


@lru_cache
def _pi(bits: int) -> int:
    """Return pi = 16 atan(1/5) - 4 atan(1/239) in units of 2^-bits, off by less than one (Machin)."""

    def arctangent(of: int) -> int:
        power, total, n = (1 << bits + 32) // of, 0, 1
        while power:
            total += power // n if n % 4 == 1 else -(power // n)
            power //= of * of
            n += 2
        return total

    return 16 * arctangent(5) - 4 * arctangent(239) >> 32


ROUNDED_FUNCTIONS: Mapping[str, Callable[[Number], int]] = MappingProxyType({
    "rcp": _rcp, "sqrt": _sqrt, "rsqrt": _rsqrt, "ex2": _ex2, "lg2": _lg2,
    "sin": lambda x: _sine(x, 0), "cos": lambda x: _sine(x, 1),
})  # fmt: skip
"""Functions that ptxas computes of constants, by their names in `SPECIAL_FUNCTIONS`: of normal numbers."""
