"""Exact numbers, on Python integers: a `Number` with any number of significand bits.

Rule 14 of `reference`: an operation is computed exactly, and rounded once.
"""

from __future__ import annotations

from fractions import Fraction
from typing import cast

from ..._rounding import Rounding
from ...formats import FloatFormat, Number


def as_fraction(number: Number) -> Fraction | None:
    """Return a number's value; None for NaN and infinity."""
    if number.kind != "finite":
        return None
    value, exponent = (-number.significand if number.sign else number.significand), number.exponent
    return Fraction(value << exponent) if exponent >= 0 else Fraction(value, 1 << -exponent)


def exact_product(x: Number, y: Number) -> Number:
    """Exact product; zero times infinity is NaN."""
    sign = x.sign ^ y.sign
    if "nan" in (x.kind, y.kind):
        return Number("nan")
    if "infinity" in (x.kind, y.kind):
        zero = any(n.kind == "finite" and not n.significand for n in (x, y))
        return Number("nan") if zero else Number("infinity", sign)
    return Number("finite", sign, x.significand * y.significand, x.exponent + y.exponent)


def exact_sum(x: Number, y: Number, rounding: Rounding = "rn") -> Number:
    """Exact sum; rule 14 for its sign when it is zero."""
    if "nan" in (x.kind, y.kind) or (x.kind == y.kind == "infinity" and x.sign != y.sign):
        return Number("nan")
    if "infinity" in (x.kind, y.kind):
        return x if x.kind == "infinity" else y
    exponent = min(x.exponent, y.exponent)
    total = sum((-1) ** n.sign * n.significand << (n.exponent - exponent) for n in (x, y))
    if total:
        return Number("finite", int(total < 0), abs(total), exponent)
    both = x.significand == y.significand == 0 and x.sign == y.sign
    return Number("finite", x.sign if both else int(rounding == "rm"), 0, exponent)


def rounded(
    x: Number, fmt: FloatFormat, rounding: Rounding, *, bits: int | None = None, to_infinity: bool = False
) -> int:
    """Round to a code of `fmt` and `bits` fraction bits; overflow is as in IEEE 754, or infinity."""
    bits = fmt.fraction_bits if bits is None else bits
    sign = x.sign * fmt.sign_bit
    if x.kind == "nan":
        return cast(int, fmt.nan_code)
    infinity = cast(int, fmt.inf_code)
    if x.kind == "infinity":
        return sign | infinity
    if not x.significand:
        return sign
    # The grid near x: multiples of 2^unit.
    unit = max(x.exponent + x.significand.bit_length() - 1, fmt.emin) - bits
    drop = unit - x.exponent
    kept, rest = (x.significand << -drop, 0) if drop <= 0 else divmod(x.significand, 1 << drop)
    half = 1 << (drop - 1) if drop > 0 else 1
    away = {
        "rn": rest > half or (rest == half and kept % 2 == 1),
        "rz": False,
        "rm": x.sign == 1 and rest > 0,
        "rp": x.sign == 0 and rest > 0,
    }[rounding]
    kept += away
    # Exponent and fraction fields ascend as one integer, so a carry out of the fraction needs no care.
    magnitude = ((unit + bits - fmt.emin) << bits) + kept
    magnitude <<= fmt.fraction_bits - bits
    if magnitude >= infinity:
        outward = to_infinity or rounding == "rn" or rounding == ("rm" if x.sign else "rp")
        magnitude = infinity if outward else fmt.max_code
    return sign | magnitude
