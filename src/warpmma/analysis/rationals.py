"""Rational numbers: their exponents, and the distance of neighbours where one lies."""

from __future__ import annotations

from fractions import Fraction

from ..formats import FloatFormat, Format


def exponent_of(value: Fraction) -> int:
    """Exponent of the leading bit of a value that is not zero: the largest power of two within its magnitude."""
    top, bottom = abs(value.numerator), value.denominator
    exponent = top.bit_length() - bottom.bit_length()
    within = top >= bottom << exponent if exponent >= 0 else top << -exponent >= bottom
    return exponent if within else exponent - 1


def ulp_at(fmt: Format, value: Fraction) -> Fraction:
    """Return the ulp of a format at a value: 2^(e - fraction bits), or 1 of integers.

    e is the exponent of the value's leading bit, and at least that of the format's least normal number: of a value
    within the range it is the distance of the two neighbours that enclose it.

    Examples
    --------
    >>> from warpmma.formats import FORMATS
    >>> ulp_at(FORMATS["f16"], Fraction(3, 2)), ulp_at(FORMATS["f16"], Fraction(0))
    (Fraction(1, 1024), Fraction(1, 16777216))
    """
    if not isinstance(fmt, FloatFormat):
        return Fraction(1)
    exponent = max(exponent_of(value), fmt.emin) if value else fmt.emin
    return Fraction(2) ** (exponent - fmt.fraction_bits)
