"""The functions of the special-function unit on arrays, with NumPy: the rules are those of `special_functions`.

A function is three steps: where in which table, and times which power of two (rules 4 to 9); the sum V (rule 2), of all
tables in units of 2^-41; the cut (rule 3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._arrays import frozen
from .interpolation import Interpolator, interpolators
from .special_functions import (
    SPECIAL_FUNCTIONS,
    TANH_FIELDS,
    Law,
    SpecialFunction,
)

__all__ = ["POINT", "FunctionRows", "function_on_arrays", "function_rows"]

Array = npt.NDArray[Any]
Int = npt.NDArray[np.int64]
Code = npt.NDArray[np.uint32]

POINT = 41
"""V is in units of 2 to the minus this: below 2^42, so an int64 holds every sum of rule 2, and a float64 V."""

_CHUNK = 1 << 14  # elements whose intermediate arrays stay in a cache
_U = np.uint32
_NAN, _INFINITY, _ONE, _SIGN = _U(0x7FFFFFFF), _U(0x7F800000), _U(0x3F800000), _U(0x80000000)
_FRACTION = _U((1 << 23) - 1)
_GUARD = 36


class FunctionRows(NamedTuple):
    """The tables of a function, one after the other.

    Attributes
    ----------
    rows : ndarray of int64
        `[row, 3]`, what 1, x and q(x) are multiplied by, in units of 2^-41.
    first : ndarray of int64
        The first row of each table.
    drop : ndarray of int64
        Bits of a fraction of 23 that lie below x.
    bits : int
        B.
    squares : ndarray of uint16
        q(x).
    """

    rows: Int
    first: Int
    drop: Int
    bits: int
    squares: npt.NDArray[np.uint16]


@cache
def function_rows(law: Law) -> FunctionRows:
    """Return the rows of a function's tables."""
    name = next(f for f in SPECIAL_FUNCTIONS.values() if f.law == law)
    return _joined([interpolators()[table] for table in name.tables])


def _joined(tables: Sequence[Interpolator]) -> FunctionRows:
    counts = [len(table.rows) for table in tables]
    bits = tables[0].bits
    return FunctionRows(
        rows=frozen(np.concatenate([table.scaled_rows(POINT) for table in tables])),
        first=frozen(np.cumsum([0, *counts[:-1]], dtype=np.int64)),
        drop=frozen(np.array([23 - bits - (count.bit_length() - 1) for count in counts], np.int64)),
        bits=bits,
        squares=tables[0].squarer.table,
    )


def function_on_arrays(function: SpecialFunction, codes: Array) -> Array:
    """Compute a function of f32 or of upper words of f64, element by element.

    Parameters
    ----------
    function : SpecialFunction
    codes : ndarray of uint32

    Returns
    -------
    ndarray of uint32
    """
    given = np.ascontiguousarray(codes).reshape(-1)
    result = np.empty_like(given)
    compute = _upper_words if function.fmt == "f64" else _f32
    for start in range(0, len(given), _CHUNK):
        part = slice(start, start + _CHUNK)
        result[part] = compute(function.law, given[part])
    return result.reshape(codes.shape)


def _f32(law: Law, codes: Code) -> Code:
    sign, magnitude = codes & _SIGN, codes & ~_SIGN
    if law != "tanh":
        magnitude = np.where(magnitude < _U(1 << 23), _U(0), magnitude)
    result = _LAWS[law](law, sign, magnitude)
    return np.where(magnitude > _INFINITY, _NAN, result)


def _sums(law: Law, table: Int | int, fraction: Int) -> Int:
    """Return V of positions that are fractions of 23 bits (rule 2)."""
    rows, first, drop, bits, squares = function_rows(law)
    position = fraction >> drop[table]
    row, x = first[table] + (position >> bits), position & (1 << bits) - 1
    total: Int = rows[row, 0] + rows[row, 1] * x + rows[row, 2] * squares[x]
    return total


def _cut(total: Int, n: Int | int) -> Code:
    """Return total 2^(n - 41), not negative, as f32 (rule 3).

    As a float64, total is exact; its upper bits are the number, cut to 24 bits, with another bias of the exponent. n
    lies so that the difference of codes, with 8 bits of exponent and 3 more, never leaves an int64.
    """
    cut = (total.astype(np.float64).view(np.int64) >> 29) + ((n - POINT - 1023 + 127) << 23)
    cut = np.where((total == 0) | (cut < 1 << 23), 0, np.minimum(cut, int(_INFINITY)))
    return cut.astype(np.uint32)


def _parts(magnitude: Code) -> tuple[Int, Int]:
    """Return exponent field and fraction."""
    wide = magnitude.astype(np.int64)
    return wide >> 23, wide & int(_FRACTION)


def _fixed(magnitude: Code, point: int) -> Int:
    """Return magnitudes, cut to a multiple of 2^-point, as integers; of what has 25 zero bits below, the lower 25."""
    e, f = _parts(magnitude)
    shift = e - (127 + 23 - point)
    significand = np.where(e == 0, 0, f | 1 << 23)
    return np.where(shift < 0, significand >> np.minimum(-shift, 63), significand << np.clip(shift, 0, 25))


def _rcp(law: Law, sign: Code, magnitude: Code) -> Code:
    e, f = _parts(magnitude)
    result = np.where(e == 0, _INFINITY, _cut(_sums(law, 0, f), 127 - e))
    return sign | np.where(magnitude == _INFINITY, _U(0), result)


def _roots(law: Law, sign: Code, magnitude: Code) -> Code:
    e, f = _parts(magnitude)
    k, odd = (e - 127) >> 1, (e - 127) & 1
    total = _sums(law, odd, f)
    if law == "rsqrt":
        result = np.where((odd == 0) & (f == 0), ((127 - k) << 23).astype(np.uint32), _cut(total, -k))
        zero, infinite = sign | _INFINITY, _U(0)
    else:
        result, zero, infinite = _cut(total, k + 1), sign, _INFINITY
    result = np.where(magnitude == _INFINITY, infinite, result)
    return np.where(magnitude == 0, zero, np.where(sign != 0, _NAN, result))


def _ex2(law: Law, sign: Code, magnitude: Code) -> Code:
    a = _fixed(np.minimum(magnitude, _U(0x44800000)), 23)  # from 2^10 on all give what 2^10 does
    a = np.where(sign != 0, np.where(a & int(_FRACTION), ~a, -a), a)
    return _cut(_sums(law, 0, a & int(_FRACTION)), a >> 23)


def _lg2(law: Law, sign: Code, magnitude: Code) -> Code:
    e, f = _parts(magnitude)
    total = (_sums(law, 0, f) + ((e - 127) << POINT)) >> (POINT - _GUARD)
    result = np.where(total < 0, _SIGN, _U(0)) | _cut(np.where(total < 0, ~total, total), POINT - _GUARD)
    result = np.where(magnitude == _ONE, _U(0), np.where(magnitude == _INFINITY, _INFINITY, result))
    return np.where(magnitude == 0, _SIGN | _INFINITY, np.where(sign != 0, _NAN, result))


def _sine(law: Law, sign: Code, magnitude: Code) -> Code:
    turns = _fixed(magnitude, 25)
    quadrant, position = turns >> 23, turns & int(_FRACTION)
    if law == "cos":
        quadrant, sign = quadrant + 1, np.zeros_like(sign)
    position = np.where(quadrant & 1, position ^ int(_FRACTION), position)
    result = _cut(_sums(law, 0, position), 0) | sign ^ np.where(quadrant & 2, _SIGN, _U(0))
    return np.where(magnitude == _INFINITY, _NAN, result)


def _tanh(law: Law, sign: Code, magnitude: Code) -> Code:
    e, f = _parts(magnitude)
    inside = np.clip(e - TANH_FIELDS.start, 0, len(TANH_FIELDS) - 1)
    result = _cut(_sums(law, inside, f), 0)
    result = np.where(e < TANH_FIELDS.start, magnitude, np.where(e >= TANH_FIELDS.stop, _ONE, result))
    return sign | result


def _upper_words(law: Law, words: Code) -> Code:
    """Rule 11."""
    raise NotImplementedError


_LAWS: Mapping[Law, Callable[[Law, Code, Code], Code]] = MappingProxyType({
    "rcp": _rcp,
    "rsqrt": _roots,
    "sqrt": _roots,
    "ex2": _ex2,
    "lg2": _lg2,
    "sin": _sine,
    "cos": _sine,
    "tanh": _tanh,
})  # fmt: skip
