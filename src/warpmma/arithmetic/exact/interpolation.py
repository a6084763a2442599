"""The interpolator of the special-function unit: tables, a squarer without its low partial products, one sum.

Specification
-------------
1. Squarer. x has B bits after the point: x = b_1 2^-1 + ... + b_B 2^-B. Its square is the sum of the partial products
   b_i 2^-2i and, of i < j, b_i b_j 2^-(i + j - 1). Those of a weight below 2^-15 are omitted; q(x) is the sum of the
   others, in units of 2^-15.
2. Sum. The upper bits of a position choose a segment, whose row of the table is (C0, C1, C2); its lower B bits are x,
   as an integer. With the table's shifts s0 and s1, constant K and point p,

       V = (C0 2^s0 + K + C1 x 2^s1 + 2 C2 q(x)) 2^-p.

   Nothing is cut before the result is.

This is the multifunction interpolator of Oberman and Siu ("A High-Performance Area-Efficient Multifunction
Interpolator", ARITH 2005); which partial products are left out, and the integers, were found from the results of an
H200 (docs/functions.md), without a difference over all inputs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._arrays import frozen
from ..._records import Shown

LEAST_WEIGHT = 15
"""No partial product of the squarer is of a weight below 2 to the minus this."""


@dataclass(frozen=True, kw_only=True)
class Squarer(Shown):
    """The partial products of a square (rule 1): pairs i <= j, counted from 1 at the highest of `bits` bits, B of x."""

    bits: int
    products: tuple[tuple[int, int], ...]

    def square(self, x: int) -> int:
        """Return q(x), one partial product after the other."""
        total = 0
        for i, j in self.products:
            if x >> (self.bits - i) & x >> (self.bits - j) & 1:
                total += 1 << (LEAST_WEIGHT - _weight(i, j))
        return total

    @property
    def table(self) -> npt.NDArray[np.uint16]:
        """Q of every x: below 2^15, for x is below 1."""
        return _squares(self)


def _weight(i: int, j: int) -> int:
    """Return w of a partial product's 2^-w."""
    return 2 * i if i == j else i + j - 1


@cache
def _squares(squarer: Squarer) -> npt.NDArray[np.uint16]:
    x = np.arange(1 << squarer.bits, dtype=np.int32)
    bit = [x >> (squarer.bits - i) & 1 for i in range(squarer.bits + 1)]
    total = np.zeros_like(x)
    for i, j in squarer.products:
        total += (bit[i] & bit[j]) << (LEAST_WEIGHT - _weight(i, j))
    return frozen(total.astype(np.uint16))


@cache
def squarer(bits: int) -> Squarer:
    """Return the squarer of so many bits, as it is in hardware.

    Examples
    --------
    >>> half_and_eighth = 0b1010 << 13
    >>> squarer(17).square(half_and_eighth) / 2**15, (1 / 2 + 1 / 8) ** 2
    (0.390625, 0.390625)
    >>> squarer(17).square(1), len(squarer(17).products)  # no partial product of the lowest bits is left
    (0, 63)
    """
    pairs = ((i, j) for i in range(1, bits + 1) for j in range(i, bits + 1))
    return Squarer(bits=bits, products=tuple(pair for pair in pairs if _weight(*pair) <= LEAST_WEIGHT))


@dataclass(frozen=True, kw_only=True)
class Interpolator(Shown):
    """A table of the interpolator, with its shifts and constant (rule 2).

    Attributes
    ----------
    name : str
    bits : int
        B, of x.
    point : int
        p.
    shifts : (int, int)
        s0 and s1.
    constant : int
        K.
    rows : tuple of (int, int, int)
        C0, C1 and C2 of each segment.
    squarer : Squarer
    """

    name: str
    bits: int
    point: int
    shifts: tuple[int, int]
    constant: int
    rows: tuple[tuple[int, int, int], ...] = field(repr=False)
    squarer: Squarer = field(repr=False)

    def sum(self, position: int) -> int:
        """Return V of a position, in units of 2^-point."""
        c0, c1, c2 = self.rows[position >> self.bits]
        x = position & (1 << self.bits) - 1
        s0, s1 = self.shifts
        return (c0 << s0) + self.constant + (c1 * x << s1) + 2 * c2 * self.squarer.square(x)

    def scaled_rows(self, point: int) -> npt.NDArray[np.int64]:
        """Return `[segment, 3]`: what 1, x and q(x) are multiplied by, in units of 2^-point.

        Exact: with a point of at most 41, C0 2^s0 is below 2^43, C1 2^s1 below 2^22 and x below 2^17, 2 C2 below 2^20
        and q below 2^15.
        """
        s0, s1 = self.shifts
        rows = [((c0 << s0) + self.constant, c1 << s1, 2 * c2) for c0, c1, c2 in self.rows]
        return np.array(rows, np.int64) << (point - self.point)


@cache
def interpolators() -> Mapping[str, Interpolator]:
    """Return the tables by name: "rcp", "rsqrt even", "tanh 125".

    Those of `rsqrt` and `sqrt` are for even and odd exponents; those of `tanh` for the octave of an exponent field.

    Examples
    --------
    >>> table = interpolators()["ex2"]
    >>> table.rows[0], table.constant, table.sum(0) * 2.0**-table.point
    ((33554435, 22713, 494), 12228, 1.0000001116495696)
    """
    from importlib.resources import files  # as much as all other modules of this package take to import

    text = (files(__package__) / "interpolation.json").read_text("utf-8")
    return MappingProxyType({name: _read(name, fields) for name, fields in json.loads(text).items()})


def _read(name: str, fields: Mapping[str, Any]) -> Interpolator:
    return Interpolator(
        name=name, bits=fields["bits"], point=fields["point"], shifts=tuple(fields["shifts"]),
        constant=fields["constant"], rows=tuple(map(tuple, fields["rows"])), squarer=squarer(fields["bits"]),
    )  # fmt: skip
