"""The wrong elements of two arrays, and by how much they are wrong: bits that differ, or values that are not close.

Values are close by these rules; the difference and the tolerance are computed in float64.

1. Equal values are close: zeros of different sign, infinities of the same.
2. NaN is close to NaN if asked for, whatever its sign and payload, and to nothing else.
3. Infinity is close to nothing else.
4. Other values are close if |actual - expected| <= atol + rtol |expected|.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Array
from .compared import Compared
from .reading import Order, Reader, distance, reader_of

Indices = tuple[Array, ...]


@dataclass(frozen=True)
class SameBits:
    """All bits are the same; NaN of different sign and payload may be alike.

    `verbs` are for one element and for several, `said` is what the report's first line adds.
    """

    any_nan: bool
    verbs = ("differs", "differ")
    said = ""

    def compares(self, x: np.dtype[Any], y: np.dtype[Any]) -> bool:
        """Return whether arrays of these dtypes can be compared at all: if they are the same."""
        return x == y

    def wrong(self, found: Compared) -> Indices:
        """Return where bits differ."""
        at = np.nonzero(found.bits[0] != found.bits[1])
        if not self.any_nan:
            return at
        (_, nan_x), (_, nan_y) = found.orders(at)
        keep = ~(nan_x & nan_y)
        return tuple(i[keep] for i in at)

    def columns(self, found: Compared, at: Indices, names: tuple[str, str]) -> list[list[str]]:
        """Return columns of the report's table, each with its head: the bits of both, and their distance."""
        digits = -(-found.width // 4)
        bits = [
            [f"{name} bits", *(f"{int(code):#0{digits + 2}x}" for code in of[at])]
            for name, of in zip(names, found.bits, strict=True)
        ]
        return [*bits, _steps(found.reads[0], found.orders(at))]

    def extent(self, found: Compared, at: Indices, index: Indices) -> list[str]:
        """Describe the size of the differences; `index` is the place of the elements shown to users."""
        (x, nan_x), (y, nan_y) = found.orders(at)
        nan = nan_x | nan_y
        apart = np.where(nan, 0, distance(x, y))
        largest = int(np.argmax(apart))
        lines = []
        if apart[largest]:
            unit = f" ulp{'s' * (int(apart[largest]) > 1)}" if found.reads[0].floating else ""
            lines.append(f"largest difference: {int(apart[largest]):,}{unit}, at {_at(index, largest)}")
        if nan.any():
            lines.append(f"NaN on one side or both: {int(nan.sum()):,}")
        same = int(((x == y) & ~nan).sum())
        if same:
            lines.append(f"equal except for the sign of a zero or for padding: {same:,}")
        return lines


@dataclass(frozen=True)
class Close:
    """Values are close."""

    rtol: float
    atol: float
    equal_nan: bool
    verbs = ("is not close", "are not close")

    @property
    def said(self) -> str:
        """The tolerance."""
        return f"rtol {self.rtol:g}, atol {self.atol:g}"

    def compares(self, x: np.dtype[Any], y: np.dtype[Any]) -> bool:
        """Return whether they are the same, or two floating-point types."""
        return x == y or (reader_of(x).floating and reader_of(y).floating)

    def wrong(self, found: Compared) -> Indices:
        """Return where rules 1 to 4 fail."""
        everywhere: Any = (...,)
        x, y = found.values(everywhere)
        off, allowed = self._off(found, everywhere), self._allowed(y)
        close = (off == 0) | (np.isfinite(x) & np.isfinite(y) & (off <= allowed))
        return np.nonzero(~(close | (np.isnan(x) & np.isnan(y) & self.equal_nan)))

    def columns(self, found: Compared, at: Indices, names: tuple[str, str]) -> list[list[str]]:
        """Return differences, tolerances, and distances in ulps."""
        (x, y), orders = found.values(at), found.orders(at)
        allowed = ["allowed", *(f"{v:.3g}" for v in self._allowed(y))]
        if not found.reads[0].floating:
            return [_steps(found.reads[0], orders), allowed]
        with np.errstate(all="ignore"):
            apart = ["difference", *(f"{v:+.3g}" for v in x - y)]
        return [apart, allowed, _steps(found.reads[0], orders)]

    def extent(self, found: Compared, at: Indices, index: Indices) -> list[str]:
        """Name the worst element, and count NaN."""
        x, y = found.values(at)
        lines, finite = [], np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        if finite.size:
            lines += self._worst(found, tuple(i[finite] for i in at), tuple(i[finite] for i in index))
        nan_x, nan_y = np.isnan(x), np.isnan(y)
        endless = (np.isinf(x) | np.isinf(y)) & ~(nan_x | nan_y)
        for text, which in (
            ("NaN on one side", nan_x ^ nan_y), ("NaN on both sides, and equal_nan is False", nan_x & nan_y),
            ("infinity on one side, or of another sign", endless),
        ):  # fmt: skip
            lines += [f"{text}: {int(which.sum()):,}"] if which.any() else []
        own, other = found.reads
        (steps, _), (steps_y, _) = found.orders(at)
        if other is not own and finite.size == len(x) and (steps == steps_y).all():
            lines.append(
                f"each of these is the expected value rounded to {own.name}: the tolerance is too small for it"
            )
        return lines

    def _worst(self, found: Compared, at: Indices, index: Indices) -> list[str]:
        """Describe the element that exceeds its tolerance most, and the largest differences."""
        _, y = found.values(at)
        off, allowed = self._off(found, at), self._allowed(y)
        with np.errstate(all="ignore"):
            times, relative = off / allowed, off / np.abs(y)
        first = np.flatnonzero(times == times.max())
        worst = int(first[np.argmax(off[first])])
        said = [f"off by {off[worst]:.3g} where {allowed[worst]:.3g} is allowed"]
        said += [f"{times[worst]:.3g} times as much"] if allowed[worst] else []
        if found.reads[0].floating:
            (steps, _), (steps_y, _) = found.orders(tuple(i[worst : worst + 1] for i in at))
            apart = int(distance(steps, steps_y)[0])
            said += [f"{apart:,} ulp{'s' * (apart != 1)} of {found.reads[0].name}"]
        far, much = int(np.argmax(off)), int(np.argmax(relative))
        return [
            f"worst: {_at(index, worst)}, {', '.join(said)}",
            f"largest difference: {off[far]:.3g}, at {_at(index, far)}; "
            f"largest relative difference: {relative[much]:.3g}, at {_at(index, much)}",
        ]

    def _off(self, found: Compared, at: Indices) -> Array:
        """Return |actual - expected|; 0 of equal values, infinities too."""
        if not found.reads[0].floating:
            (x, _), (y, _) = found.orders(at)
            return distance(x, y).astype(np.float64)
        a, b = found.values(at)
        with np.errstate(all="ignore"):
            return np.where(a == b, 0.0, np.abs(a - b))

    def _allowed(self, expected: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(self.atol + self.rtol * np.abs(expected))


Rule = SameBits | Close
"""How elements are compared, and how wrong ones are reported."""


def _at(index: Indices, number: int) -> list[int]:
    return [int(i[number]) for i in index]


def _steps(read: Reader, orders: tuple[Order, Order]) -> list[str]:
    """Return a column of distances."""
    (x, nan_x), (y, nan_y) = orders
    cells = ["ulps" if read.floating else "difference"]
    for n in range(len(x)):
        apart = int(x[n]) - int(y[n])
        cells.append("NaN" if nan_x[n] or nan_y[n] else f"{apart:+,}" if apart else "0")
    return cells
