"""The approximate functions of PTX on arrays: the rules are those of `sequences`.

Why float64 is exact here. A product of two f32 numbers has 48 bits and lies in 2^-298 to 2^256. -24 is added to
logarithms of subnormal numbers times 2^24: from -125 to -102, of 24 bits, so the sum has 25. The code is rounded from
it once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..._arrays import Array, by_parts
from ..._rounding import Float64, Rounding
from ...formats import FORMATS
from ..arrays import fma64
from ..recipes import ApproximateForm, CodeRange, OperandScaling, check_count, find_sequence
from .engine import Engine, resolve
from .functions import check_codes, in_parts, run_sequence, runs_sequence, special_function

Code = npt.NDArray[np.uint32]
Code64 = npt.NDArray[np.uint64]

_F32, _F64 = FORMATS["f32"], FORMATS["f64"]
_SIGN, _MAGNITUDE, _NORMAL = np.uint32(1 << 31), np.uint32((1 << 31) - 1), np.uint32(1 << 23)
_SIGN64, _HALF = np.uint64(1 << 63), np.uint64(32)
_FLUSHED = 2.0**-126 - 2.0**-151
"""Magnitudes below this are flushed (rule 2): it is the middle between the least normal number, which is even, and the
number of 24 bits before it."""


def approximate(form: str, *codes: Array, engine: Engine = "auto", threads: int | None = None) -> Array:
    """Compute an approximate function of PTX, element by element.

    Parameters
    ----------
    form : str
        Of `SEQUENCES`: "ex2.approx.f32", "div.full.ftz.f32", "tanh.approx.f16". Packed operands are given unpacked.
    *codes : ndarray of uint16, uint32 or uint64
        The operands, of the form's width; of a division the dividend first. They broadcast.
    engine : {"auto", "numpy", "native"}
        "native" has all but those of 16 bits, which are looked up.
    threads : int, optional
        One by default.

    Returns
    -------
    ndarray of the same dtype
        The bits do not depend on the engine.

    Raises
    ------
    OperandError
        There is no such form or engine; a wrong number of operands, a dtype of another width, or shapes that do not
        broadcast to what memory can hold; no threads.
    UnsupportedError
        The native engine is not built.

    Examples
    --------
    >>> approximate("ex2.approx.f32", np.array([0x3F800000, 0xC3150000], np.uint32))
    array([1073741824, 1], dtype=uint32)
    """
    row, engine = find_sequence(form), resolve(engine)
    check_count(row, len(codes))
    given = check_codes(form, row.fmt.code_dtype, codes)
    by_width = {16: _narrow, 32: _f32, 64: _f64}[row.fmt.bits]

    def compute(*arrays: Array) -> None:
        *operands, out = arrays
        if engine == "native" and runs_sequence(row):
            return run_sequence(row, operands, out)
        out[...] = by_parts(lambda *x: by_width(row, list(x)), *operands)
        return None

    return in_parts(compute, given, threads)


def _within(codes: Array, where: CodeRange) -> npt.NDArray[np.intp]:
    """Return which codes lie in a range: one comparison, of differences that wrap."""
    mask, first, width = (codes.dtype.type(x) for x in (where.mask, where.first, where.last - where.first))
    return np.flatnonzero((codes & mask) - first <= width)


def _narrow(row: ApproximateForm, given: list[Array]) -> Array:
    return special_function(row.function, given[0])


def _f32(row: ApproximateForm, given: list[Code]) -> Code:
    """Rules 2 to 5; the ranges of a form share no code, so the order of its scalings does not matter."""
    given, scaled = _scaled(row, given)
    *dividend, x = given
    if row.factor is not None:
        x = _product(row, x, float(_F32.decode(row.factor)), "rz")
    result = special_function(row.function, x, engine="numpy")
    if dividend:
        return _product(row, result, _F32.decode(_flushed(row, dividend[0])))
    for scaling, places in scaled:
        result[places] = _after(row, scaling, result[places])
    return result


def _scaled(
    row: ApproximateForm, given: list[Code]
) -> tuple[list[Code], list[tuple[OperandScaling, npt.NDArray[np.intp]]]]:
    """Scale operands (rule 3), and return which."""
    scaled = [(s, places) for s in row.scalings if (places := _within(given[-1], s.where)).size]
    if scaled:
        given = [x.copy() for x in given]
    for scaling, places in scaled:
        for x in given:
            x[places] = _product(row, x[places], scaling.before)
    return given, scaled


def quotient_factors(form: str, dividend: Array, divisor: Array) -> tuple[Array, Array]:
    """Return the last two factors of an approximate division (rule 5): the quotient is their product, rounded.

    Parameters
    ----------
    form : str
        "div.full.f32", "div.approx.ftz.f32", ...
    dividend, divisor : ndarray of uint32

    Returns
    -------
    (ndarray of uint32, ndarray of uint32)
        The reciprocal of the divisor, as the unit gives it, and the dividend, both scaled where they are.

    Raises
    ------
    OperandError
        A form that is not a division, or another dtype.

    Examples
    --------
    >>> two, three = np.array([0x40000000], np.uint32), np.array([0x40400000], np.uint32)
    >>> [hex(x[0]) for x in quotient_factors("div.full.f32", three, two)]
    ['0x3f000000', '0x40400000']
    """
    row = find_sequence(form)
    check_count(row, 2)
    x, y = np.broadcast_arrays(*check_codes(form, row.fmt.code_dtype, (dividend, divisor)))
    (x, y), _ = _scaled(row, [x.reshape(-1), y.reshape(-1)])
    shape = np.broadcast_shapes(dividend.shape, divisor.shape)
    return special_function(row.function, y, engine="numpy").reshape(shape), x.reshape(shape)


def _after(row: ApproximateForm, scaling: OperandScaling, result: Code) -> Code:
    """Correct the results of scaled operands (rule 3)."""
    if scaling.after == "square":
        return _product(row, result, _F32.decode(result))
    if scaling.after == "add":
        return _F32.encode(_F32.decode(result) + scaling.number, "rn", overflow="infinity")
    return _product(row, result, scaling.number)


def _flushed(row: ApproximateForm, codes: Code) -> Code:
    """Return codes as a multiplication reads them (rule 2)."""
    return np.where(codes & _MAGNITUDE < _NORMAL, codes & _SIGN, codes) if row.ftz else codes


def _product(row: ApproximateForm, codes: Code, factor: Float64 | float, rounding: Rounding = "rn") -> Code:
    """Multiply f32 numbers by others (rule 2)."""
    with np.errstate(invalid="ignore"):  # infinity times zero
        exact = _F32.decode(_flushed(row, codes)) * factor
    if row.ftz:
        exact = np.where(np.abs(exact) < _FLUSHED, np.copysign(0.0, exact), exact)
    return _F32.encode(exact, rounding, overflow="infinity")


def _f64(row: ApproximateForm, given: list[Code64]) -> Code64:
    """Rules 6 and 7."""
    (x,) = given
    operand, scaled = x.copy(), [(_within(x, s.where), s) for s in row.scalings]
    for places, scaling in scaled:
        operand[places] = _product64(x[places], _code64(scaling.before))
    upper = special_function(row.function, (operand >> _HALF).astype(np.uint32), engine="numpy")
    result = _refined(row, operand, upper.astype(np.uint64) << _HALF)
    for places, scaling in scaled:
        result[places] = _product64(result[places], _code64(scaling.number))
    for special in row.special:
        places = _within(x, special.where)
        result[places] = x[places] & np.uint64(special.keep) | np.uint64(special.put)
    return result


def _refined(row: ApproximateForm, x: Code64, y: Code64) -> Code64:
    """Refine results (rule 7); those of special operands are ignored."""
    known, result = {"x": x, "y": y}, y

    def term(name: str | float) -> Array:
        if not isinstance(name, str):
            return _code64(name)
        return known[name[1:]] ^ _SIGN64 if name.startswith("-") else known[name]

    for step in row.refinement:
        a, b = term(step.a), term(step.b)
        result = _product64(a, b) if step.c is None else fma64(a, b, term(step.c), "rn")
        known[step.to] = result
    return result


def _product64(a: Code64, b: Code64) -> Code64:
    """Multiply: a product is that plus a zero of its sign."""
    return fma64(a, b, (a ^ b) & _SIGN64, "rn")


def _code64(value: float) -> Code64:
    return np.asarray(_F64.encode(value), np.uint64)
