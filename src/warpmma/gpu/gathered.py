"""Gathered factors, as `kernels/gathered.cuh` reads them: axes of digits, and coordinates that they move.

The rules are that module's. All are numbers of elements; nothing here knows what a product is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._records import Shown

DIGITS, COORDINATES = 4, 3
_MOST_PHASES = 1 << 31

_AXIS = np.dtype([("stride", "<i8", DIGITS), ("size", "<i4", DIGITS), ("step", "<i4", (DIGITS, COORDINATES))])
GATHERED = np.dtype(
    [
        ("batch", "<i8"), ("stride", "<i8", COORDINATES), ("lane", _AXIS), ("k", _AXIS),
        *((name, "<i4", COORDINATES) for name in ("size", "apart", "first")), ("across", "<i4"),
    ],
    align=True,
)  # fmt: skip
"""`struct Gathered` of `kernels/gathered.cuh`."""

TARGET = np.dtype([*((x, "<i8") for x in ("batch", "outer", "along", "column")), ("run", "<i4")], align=True)
"""`struct Target` of `kernels/gathered.cuh`."""


@dataclass(frozen=True, kw_only=True)
class Digit(Shown):
    """A digit of a number of lanes or of k: how many values it has, and what each moves.

    Attributes
    ----------
    size : int
    stride : int
        Elements of memory.
    steps : sequence of int
        Of each coordinate of the factor.
    """

    size: int
    stride: int = 0
    steps: Sequence[int] = ()


@dataclass(frozen=True, kw_only=True)
class Coordinate(Shown):
    """A coordinate: how many values it has in memory and their stride; it is (first + steps) / apart."""

    size: int
    stride: int
    apart: int = 1
    first: int = 0


@dataclass(frozen=True, kw_only=True)
class GatheredFactor(Shown):
    """A factor on a device.

    Attributes
    ----------
    address : int
        Of the element where all digits and coordinates are 0.
    batch : int
        Stride of the batch.
    lanes, k : sequence of Digit
        The last is the fastest; `DIGITS` at most.
    coordinates : sequence of Coordinate
        `COORDINATES` at most.
    """

    address: int
    batch: int
    lanes: Sequence[Digit]
    k: Sequence[Digit]
    coordinates: Sequence[Coordinate] = ()

    @property
    def is_small(self) -> bool:
        """Whether the kernel's integers hold the phases of coordinates."""
        return int(np.prod([x.apart for x in self.coordinates], dtype=object)) < _MOST_PHASES

    def argument(self) -> np.ndarray[tuple[int, ...], np.dtype[np.void]]:
        """Return the structure that the kernel takes."""
        given = np.zeros((), GATHERED)
        given["batch"] = self.batch
        given["apart"] = 1
        for c, coordinate in enumerate(self.coordinates):
            for name in ("size", "stride", "apart", "first"):
                given[name][c] = getattr(coordinate, name)
        for name, digits in (("lane", self.lanes), ("k", self.k)):
            given[name]["size"] = 1
            for place, digit in enumerate(digits, DIGITS - len(digits)):
                given[name]["size"][place], given[name]["stride"][place] = digit.size, digit.stride
                given[name]["step"][place][: len(digit.steps)] = digit.steps
        given["across"] = _moves(self.lanes[-1], self.coordinates) < _moves(self.k[-1], self.coordinates)
        return given


def _moves(digit: Digit, coordinates: Sequence[Coordinate]) -> float:
    """Return by how much a digit moves the address; where it has one value alone, neighbours lie anywhere."""
    if digit.size == 1:
        return float("inf")
    steps = zip(digit.steps, coordinates, strict=False)
    return abs(digit.stride + sum(step * x.stride / x.apart for step, x in steps))


@dataclass(frozen=True, kw_only=True)
class GatheredProduct(Shown):
    """An implicit product: its factors, and where its result lies.

    Attributes
    ----------
    a, b : GatheredFactor
        Lanes are rows of A and columns of B.
    d : (int, int, int, int, int)
        Strides of the batch, of runs of rows, of rows in a run, and of columns; the rows of a run.
    bias : int
        Address of what is added to columns, `[batch, n]`; 0 without.
    """

    a: GatheredFactor
    b: GatheredFactor
    d: tuple[int, int, int, int, int]
    bias: int = 0
