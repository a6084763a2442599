"""Exact numbers as text: rational numbers for people and for programs, codes, units of the last place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Context, Decimal
from fractions import Fraction

from ...analysis import ulp_at
from ...arithmetic import as_fraction
from ...formats import FORMATS, FloatFormat, Number

_DIGITS = 9


def rational(value: Fraction | None) -> str | None:
    """Write a value for programs: "-3/8"; None stays None."""
    return None if value is None else str(value)


def rational_of(number: Number) -> str:
    """Write a number for programs: "-3/8", "NaN", "infinity" or "-infinity".

    Examples
    --------
    >>> rational_of(Number("finite", 1, 3, -3)), rational_of(Number("infinity", 1))
    ('-3/8', '-infinity')
    """
    if number.kind == "finite":
        return str(as_fraction(number))
    return "NaN" if number.kind == "nan" else f"{'-' * number.sign}infinity"


def number_text(number: Number, digits: int = _DIGITS) -> str:
    """Write a number for people, as `short` does; -0 has its sign.

    Examples
    --------
    >>> number_text(Number("finite", 1, 0, 0)), number_text(Number("infinity", 1)), number_text(Number("nan"))
    ('-0', '-infinity', 'NaN')
    """
    value = as_fraction(number)
    if value is None:
        return rational_of(number)
    return "-0" if not value and number.sign else short(value, digits)


def short(value: Fraction, digits: int = _DIGITS) -> str:
    """Write a value for people: exactly if that is short, else with 9 digits, which tell all f32 apart.

    Examples
    --------
    >>> short(Fraction(3, 8)), short(Fraction(1, 2**24)), short(Fraction(-5, 2**30)), short(Fraction(1, 3))
    ('0.375', '2^-24', '-5*2^-30', '0.333333333')
    >>> short(Fraction(16777217)), short(Fraction(2**70 + 2**40))
    ('16777217', '1.18059162e+21')
    >>> short(Fraction(10004, 10**7), 6), short(Fraction(1, 10**9))
    ('0.0010004', '1e-9')
    """
    if not value:
        return "0"
    if value.denominator == 1 and abs(value) < 10**10:
        return str(value.numerator)
    if Fraction(1, 1000) < abs(value) < 10**6 and (value * 10**_DIGITS).denominator == 1:
        text = f"{Decimal(value.numerator) / value.denominator:f}"
        if len(text.strip("-").lstrip("0.").replace(".", "")) <= 6:
            return text
    odd, exponent = _odd(value)
    if exponent is not None and (abs(odd) < 10 or (abs(odd) < 1000 and abs(value) < Fraction(1, 1000))):
        return {1: "", -1: "-"}.get(odd, f"{odd}*") + f"2^{exponent}"
    context = Context(prec=digits, Emax=10**6, Emin=-(10**6))
    rounded = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    if Fraction(1, 10**4) <= abs(value) < 10**10:
        return f"{rounded:f}"
    mantissa, _, power = f"{rounded:e}".partition("e")
    return f"{mantissa}e{power}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def typeset(words: str) -> str:
    """Write powers with raised exponents, and real signs of minus and of multiplication: for pictures and pages.

    Examples
    --------
    >>> typeset("-5*2^-30"), typeset("1.5e-07")
    ('−5·2⁻³⁰', '1.5·10⁻⁷')
    """
    words = re.sub(r"(?<=\d)e([-+])0*(\d+)", lambda x: f"*10^{x[1].strip('+')}{x[2]}", words)
    words = re.sub(r"\^(-?\d+)", lambda x: x[1].translate(_RAISED), words)
    words = re.sub(r"(?<=\d)\*(?=\d)", "·", words)
    return re.sub(r"(?<![\w⁰¹²³⁴⁵⁶⁷⁸⁹-])-(?=\d|infinity)", "−", words)


def _odd(value: Fraction) -> tuple[int, int | None]:
    """Write a value as an odd integer times a power of two, if it is one."""
    if value.denominator & (value.denominator - 1):
        return 0, None
    numerator = value.numerator
    twos = (numerator & -numerator).bit_length() - 1
    return numerator >> twos, twos - (value.denominator.bit_length() - 1)


def number_of(code: int, fmt: str) -> Number:
    """Decode a code of any format."""
    kind = FORMATS[fmt]
    if isinstance(kind, FloatFormat):
        return kind.unpack(code)
    value = kind.unpack(code)
    return Number("finite", int(value < 0), abs(value), 0)


def code_text(code: int, fmt: str) -> str:
    """Write a code in hexadecimal digits, as many as its format has.

    Examples
    --------
    >>> code_text(0x3C00, "f16"), code_text(5, "e2m1")
    ('0x3c00', '0x5')
    """
    return f"0x{code:0{(FORMATS[fmt].bits + 3) // 4}x}"


def codes_text(codes: Iterable[int], fmt: str | None) -> list[str]:
    """Write codes of one format; none without a format."""
    return [code_text(code, fmt) for code in codes] if fmt else []


def in_ulps(error: Fraction | None, exact: Fraction | None, fmt: str) -> Fraction | None:
    """Return an error, with its sign, in ulps of a format at the exact result; None without an error.

    Examples
    --------
    >>> in_ulps(Fraction(1, 2**24), Fraction(3, 2), "f32")
    Fraction(1, 2)
    """
    return None if error is None or exact is None else error / ulp_at(FORMATS[fmt], exact)
