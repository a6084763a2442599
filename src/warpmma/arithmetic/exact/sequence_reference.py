"""The approximate functions of PTX, one result at a time, on Python integers: the rules are those of `sequences`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..._rounding import Rounding
from ...formats import Number
from ..recipes import ApproximateForm, check_count, find_sequence
from .exact_numbers import exact_product, exact_sum, rounded
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
    given = list(codes)
    for special in row.special:
        if given[-1] in special.where:
            return given[-1] & special.keep | special.put
    scaling = next((s for s in row.scalings if given[-1] in s.where), None)
    if scaling is not None:
        given = [_product(row, code, _number(scaling.before)) for code in given]
    *dividend, x = given
    if row.factor is not None:
        x = _product(row, x, row.fmt.unpack(row.factor), "rz")
    result = _refined(row, x, _of_unit(row, x))
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
