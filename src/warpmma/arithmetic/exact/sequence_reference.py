"""The approximate functions of PTX, one result at a time, on Python integers: the rules are those of `sequences`.

Of constants ptxas computes them itself: in the same sequence, with the exact function, rounded to nearest even, in the
place of the unit's (`rounded_functions`); sin and cos take their operand as it is. tanh, and those of 16 and 64 bits,
are left to the GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from ..._rounding import Rounding
from ...formats import Number
from ..recipes import ApproximateForm, check_count, find_sequence
from .exact_numbers import exact_product, exact_sum, rounded
from .rounded_functions import ROUNDED_FUNCTIONS, rounded_function
from .special_functions import special_function_reference


def approximate_reference(form: str, *codes: int) -> int:
    """Compute one result: what everything faster must equal.

    Parameters
    ----------
    form : str
        Of `SEQUENCES`.
    *codes : int
        Of the operands; of a division the dividend's first.

    Returns
    -------
    int
        Code of the result.

    Raises
    ------
    OperandError
        There is no such form, or a wrong number of operands.

    Examples
    --------
    >>> hex(approximate_reference("ex2.approx.f32", 0xC3150000))  # of -149
    '0x1'
    >>> hex(approximate_reference("div.full.f32", 0x3F800000, 0x40400000))
    '0x3eaaaaab'
    """
    row = find_sequence(form)
    check_count(row, len(codes))
    for special in row.special:
        if codes[-1] in special.where:
            return codes[-1] & special.keep | special.put
    return cast(int, _computed(row, codes, _of_unit))


def folded_reference(form: str, *codes: int) -> int | None:
    """Compute what ptxas puts in the place of a function of constants; None where it leaves that to the GPU.

    Parameters
    ----------
    form : str
        Of `SEQUENCES`.
    *codes : int
        Of the operands; of a division the dividend's first.

    Returns
    -------
    int or None
        Code of the result.

    Raises
    ------
    OperandError
        There is no such form, or a wrong number of operands.

    Examples
    --------
    >>> hex(folded_reference("rcp.approx.ftz.f32", 0x44840000)), folded_reference("tanh.approx.f32", 0x3F800000)
    ('0x3a783e10', None)
    >>> hex(approximate_reference("rcp.approx.ftz.f32", 0x44840000))  # of 1056
    '0x3a783e0f'
    """
    row = find_sequence(form)
    check_count(row, len(codes))
    if row.function not in ROUNDED_FUNCTIONS:
        return None
    result = _computed(replace(row, factor=None), codes, _of_ptxas)
    return None if result is None or row.fmt.unpack(result).kind == "nan" else result


def folded_divisor(form: str, code: int) -> tuple[float, int] | None:
    """Return what ptxas puts in the place of a division by a constant: two factors of the dividend.

    Parameters
    ----------
    form : str
        A division of `SEQUENCES`.
    code : int
        Of the divisor.

    Returns
    -------
    (float, int) or None
        A power of two, by which the dividend is multiplied first, and the code of the reciprocal. None where ptxas
        leaves the division to the GPU: of NaN.

    Raises
    ------
    OperandError
        There is no such form, or it is not a division.

    Examples
    --------
    >>> before, reciprocal = folded_divisor("div.full.f32", 0x40400000)
    >>> before, hex(reciprocal)
    (1.0, '0x3eaaaaab')
    """
    row = find_sequence(form)
    check_count(row, 2)
    before = next((s.before for s in row.scalings if code in s.where), 1.0)
    reciprocal = _of_ptxas(row, code if before == 1.0 else _product(row, code, _number(before)))
    return None if reciprocal is None else (before, reciprocal)


_Unit = Callable[[ApproximateForm, int], int | None]


def _computed(row: ApproximateForm, codes: Sequence[int], unit: _Unit) -> int | None:
    """Rules 2 to 7, with a function in the place of the unit's; None where that has no result."""
    given = list(codes)
    scaling = next((s for s in row.scalings if given[-1] in s.where), None)
    if scaling is not None:
        given = [_product(row, code, _number(scaling.before)) for code in given]
    *dividend, x = given
    if row.factor is not None:
        x = _product(row, x, row.fmt.unpack(row.factor), "rz")
    if (y := unit(row, x)) is None:
        return None
    result = _refined(row, x, y)
    if dividend:
        result = _product(row, result, _flushed(row, dividend[0]))
    if scaling is None or scaling.after == "nothing":
        return result
    if scaling.after == "add":
        return rounded(exact_sum(row.fmt.unpack(result), _number(scaling.number)), row.fmt, "rn")
    return _product(row, result, row.fmt.unpack(result) if scaling.after == "square" else _number(scaling.number))


def _number(value: float) -> Number:
    """Return a number, exactly."""
    numerator, denominator = abs(value).as_integer_ratio()
    return Number("finite", int(value < 0), numerator, 1 - denominator.bit_length())


def _flushed(row: ApproximateForm, code: int) -> Number:
    """Return the number that a multiplication takes for a code (rule 2)."""
    number = row.fmt.unpack(code)
    normal = number.kind != "finite" or code & row.fmt.sign_bit - 1 >= 1 << row.fmt.fraction_bits
    return number if normal or not row.ftz else Number("finite", number.sign, 0, number.exponent)


def _product(row: ApproximateForm, code: int, factor: Number, rounding: Rounding = "rn") -> int:
    """Multiply (rule 2)."""
    exact = exact_product(_flushed(row, code), factor)
    result = rounded(exact, row.fmt, rounding)
    # The double of what lies just below the least normal number is normal, so no lower bound affects its rounding.
    double = rounded(replace(exact, exponent=exact.exponent + 1), row.fmt, rounding)
    if row.ftz and double & row.fmt.sign_bit - 1 < 2 << row.fmt.fraction_bits:
        result &= row.fmt.sign_bit
    return result


def _of_unit(row: ApproximateForm, x: int) -> int:
    """Return the result of the unit (rule 6)."""
    half = row.fmt.bits - 32 if row.fmt.bits == 64 else 0
    return special_function_reference(row.function, x >> half) << half


def _of_ptxas(row: ApproximateForm, x: int) -> int | None:
    """Return the exact result, rounded."""
    return rounded_function(row.function, x)


def _refined(row: ApproximateForm, x: int, y: int) -> int:
    """Refine a result (rule 7)."""
    known, result = {"x": row.fmt.unpack(x), "y": row.fmt.unpack(y)}, y
    for step in row.refinement:
        a, b, c = (_term(known, term) for term in (step.a, step.b, step.c))
        exact = exact_product(a, b)
        result = rounded(exact if step.c is None else exact_sum(exact, c), row.fmt, "rn")
        known[step.to] = row.fmt.unpack(result)
    return result


def _term(known: Mapping[str, Number], term: str | float | None) -> Number:
    """Return the value that a step names."""
    if not isinstance(term, str):
        return _number(term or 0.0)
    number = known[term.removeprefix("-")]
    return replace(number, sign=1 - number.sign) if term.startswith("-") else number
