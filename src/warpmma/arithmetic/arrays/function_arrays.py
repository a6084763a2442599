"""The functions of the special-function unit on arrays, with NumPy: the rules are those of `special_functions`.

A function has three steps: table, position and power of two (rules 4 to 9); the sum V (rule 2), of all tables in units
of 2^-41; truncation (rule 3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..._arrays import Array, by_parts, frozen
from ..exact import LG2_POINT, SPECIAL_FUNCTIONS, TANH_FIELDS, Interpolator, Law, SpecialFunction, interpolators

Int = npt.NDArray[np.int64]
Code = npt.NDArray[np.uint32]

POINT = 41
"""V is in units of 2 to the minus this: below 2^42, so an int64 holds every sum of rule 2, and a float64 V."""

_U = np.uint32
_NAN, _ONE, _SIGN = _U(0x7FFFFFFF), _U(0x3F800000), _U(0x80000000)
_FRACTION = (1 << 23) - 1


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


class _Word(NamedTuple):
    """The exponent field and the fraction of a word of 32 bits."""

    bias: int
    fraction_bits: int

    @property
    def infinity(self) -> np.uint32:
        return _U(2 * self.bias + 1 << self.fraction_bits)

    def parts(self, magnitude: Code) -> tuple[Int, Int]:
        """Return the exponent, and the fraction as one of 23 bits."""
        wide = magnitude.astype(np.int64)
        fraction = (wide & (1 << self.fraction_bits) - 1) << 23 - self.fraction_bits
        return (wide >> self.fraction_bits) - self.bias, fraction

    def cut(self, total: Int, n: Int | int) -> Code:
        """Return total 2^(n - 41), not negative (rule 3).

        As a float64, total is exact; its upper bits are the number, cut, with another bias of the exponent. The
        exponent counts to 2^11 and n to 2^10: differences of codes never leave an int64.
        """
        bits = total.astype(np.float64).view(np.int64) >> 52 - self.fraction_bits
        code = bits + ((n - POINT - 1023 + self.bias) << self.fraction_bits)
        code = np.where((total == 0) | (code < 1 << self.fraction_bits), 0, np.minimum(code, int(self.infinity)))
        return code.astype(np.uint32)


_F32, _UPPER = _Word(127, 23), _Word(1023, 20)


def function_on_arrays(function: SpecialFunction, codes: Array) -> Array:
    """Compute a function of f32, or of upper words of f64, of uint32 codes, element by element."""
    return by_parts(partial(_computed, function.law, _UPPER if function.fmt == "f64" else _F32), codes)


def _computed(law: Law, word: _Word, codes: Code) -> Code:
    sign, magnitude = codes & _SIGN, codes & ~_SIGN
    if law != "tanh":
        magnitude = np.where(magnitude < _U(1 << word.fraction_bits), _U(0), magnitude)
    result = _LAWS[law](law, word, sign, magnitude)
    return np.where(magnitude > word.infinity, _NAN, result)


def _sums(law: Law, table: Int | int, fraction: Int) -> Int:
    """Return V of positions that are fractions of 23 bits (rule 2)."""
    rows, first, drop, bits, squares = function_rows(law)
    position = fraction >> drop[table]
    row, x = first[table] + (position >> bits), position & (1 << bits) - 1
    total: Int = rows[row, 0] + rows[row, 1] * x + rows[row, 2] * squares[x]
    return total


def _fixed(magnitude: Code, point: int) -> Int:
    """Return magnitudes, cut to a multiple of 2^-point, as integers; of what has 25 zero bits below, the lower 25."""
    exponent, fraction = _F32.parts(magnitude)
    shift = exponent - (23 - point)
    significand = np.where(magnitude == 0, 0, fraction | 1 << 23)
    return np.where(shift < 0, significand >> np.minimum(-shift, 63), significand << np.clip(shift, 0, 25))


def _rcp(law: Law, word: _Word, sign: Code, magnitude: Code) -> Code:
    exponent, fraction = word.parts(magnitude)
    result = np.where(magnitude == 0, word.infinity, word.cut(_sums(law, 0, fraction), -exponent))
    return sign | np.where(magnitude == word.infinity, _U(0), result)


def _roots(law: Law, word: _Word, sign: Code, magnitude: Code) -> Code:
    exponent, fraction = word.parts(magnitude)
    k, odd = exponent >> 1, exponent & 1
    total = _sums(law, odd, fraction)
    if law == "rsqrt":
        power = ((word.bias - k) << word.fraction_bits).astype(np.uint32)
        result = np.where((odd == 0) & (fraction == 0), power, word.cut(total, -k))
        zero, infinite = sign | word.infinity, _U(0)
    else:
        result, zero, infinite = word.cut(total, k + 1), sign, word.infinity
    result = np.where(magnitude == word.infinity, infinite, result)
    return np.where(magnitude == 0, zero, np.where(sign != 0, _NAN, result))


def _ex2(law: Law, word: _Word, sign: Code, magnitude: Code) -> Code:
    a = _fixed(np.minimum(magnitude, _U(0x44800000)), 23)  # from 2^10 on all give what 2^10 does
    a = np.where(sign != 0, np.where(a & _FRACTION, ~a, -a), a)
    return word.cut(_sums(law, 0, a & _FRACTION), a >> 23)


def _lg2(law: Law, word: _Word, sign: Code, magnitude: Code) -> Code:
    exponent, fraction = word.parts(magnitude)
    total = (_sums(law, 0, fraction) + (exponent << POINT)) >> (POINT - LG2_POINT)
    negative = total < 0
    result = np.where(negative, _SIGN, _U(0)) | word.cut(np.where(negative, ~total, total), POINT - LG2_POINT)
    result = np.where(magnitude == _ONE, _U(0), np.where(magnitude == word.infinity, word.infinity, result))
    return np.where(magnitude == 0, _SIGN | word.infinity, np.where(sign != 0, _NAN, result))


def _sine(law: Law, word: _Word, sign: Code, magnitude: Code) -> Code:
    turns = _fixed(magnitude, 25)
    quadrant, position = turns >> 23, turns & _FRACTION
    if law == "cos":
        quadrant, sign = quadrant + 1, np.zeros_like(sign)
    position = np.where(quadrant & 1, position ^ _FRACTION, position)
    result = word.cut(_sums(law, 0, position), 0) | sign ^ np.where(quadrant & 2, _SIGN, _U(0))
    return np.where(magnitude == word.infinity, _NAN, result)


def _tanh(law: Law, word: _Word, sign: Code, magnitude: Code) -> Code:
    exponent, fraction = word.parts(magnitude)
    table = exponent + word.bias - TANH_FIELDS.start
    inside = np.clip(table, 0, len(TANH_FIELDS) - 1)
    result = word.cut(_sums(law, inside, fraction), 0)
    result = np.where(table < 0, magnitude, np.where(table >= len(TANH_FIELDS), _ONE, result))
    return sign | result


_LAWS: Mapping[Law, Callable[[Law, _Word, Code, Code], Code]] = MappingProxyType(
    {"rcp": _rcp, "rsqrt": _roots, "sqrt": _roots, "ex2": _ex2, "lg2": _lg2, "sin": _sine, "cos": _sine, "tanh": _tanh}
)
