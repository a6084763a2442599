"""Columns of a picture of bits: a column for each power of two, the same for all steps that are drawn.

1. Columns go from the highest weight of any digit to the lowest.
2. Of more than `MANY`, runs of `GAP` and more in which no number has a one are folded to a single column, but for those
   beside E and the quantum of a step.
3. Of more than `MOST` that are left, the lowest are left out; a number that goes on there says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from ..._records import Record
from .sum_bits import BitGrid

MANY, MOST, GAP = 60, 110, 5
_CELLS = ((48, 16), (64, 14), (80, 12), (MOST, 10))


@dataclass(frozen=True, kw_only=True)
class Columns(Record):
    """Which weights have a column, and where it stands.

    Attributes
    ----------
    weights : tuple of (int or None)
        From the highest down; None is a run that is folded.
    left : float
        Where the first begins.
    cell : float
        How wide each is.
    more : bool
        Whether there are lower weights that have none.
    """

    weights: tuple[int | None, ...]
    left: float
    cell: float
    more: bool = False

    @cached_property
    def _places(self) -> dict[int, float]:
        return {w: self.left + i * self.cell for i, w in enumerate(self.weights) if w is not None}

    @property
    def right(self) -> float:
        """Where the last ends."""
        return self.left + len(self.weights) * self.cell

    @property
    def lowest(self) -> int:
        """The lowest weight that has a column."""
        return min(self._places)

    def middle(self, weight: int) -> float | None:
        """Middle of a weight's column, or None where it is folded or left out."""
        place = self._places.get(weight)
        return None if place is None else place + self.cell / 2

    def edge(self, weight: int) -> float:
        """Left edge of a weight's column; of one that is folded, of the fold; of one below all, the right end."""
        if weight in self._places:
            return self._places[weight]
        above = [x for w, x in self._places.items() if w > weight]
        return max(above) + self.cell if above else self.left

    def folds(self) -> Iterable[tuple[float, range]]:
        """Yield the middle of each fold, and its weights."""
        for i, weight in enumerate(self.weights):
            if weight is None:
                above, below = self.weights[i - 1], self.weights[i + 1]
                if above is not None and below is not None:
                    yield self.left + (i + 0.5) * self.cell, range(below + 1, above)


def columns_of(grids: Sequence[BitGrid], left: float) -> Columns:
    """Choose columns for steps that are drawn together."""
    rows = [row for grid in grids for row in grid.rows]
    if not rows:
        return Columns(weights=tuple(range(3, -1, -1)), left=left, cell=_CELLS[0][1])
    top, bottom = max(grid.top for grid in grids), min(grid.bottom for grid in grids)
    weights: list[int | None] = list(range(top, bottom - 1, -1))
    if len(weights) > MANY:
        ones = {row.high - i for row in rows for i, digit in enumerate(row.digits) if digit == "1"}
        for grid in grids:
            if grid.quantum is not None and grid.exponent is not None:
                ones |= {grid.exponent, grid.quantum, grid.quantum - 1}
        ones |= {top, bottom}
        weights = _gaps(top, bottom, ones)
    more = len(weights) > MOST
    weights = weights[:MOST]
    if weights[-1] is None:
        weights.pop()
    cell = next(size for most, size in _CELLS if len(weights) <= most)
    return Columns(weights=tuple(weights), left=left, cell=cell, more=more)


def _gaps(top: int, bottom: int, ones: set[int]) -> list[int | None]:
    weights: list[int | None] = []
    for used, run in groupby(range(top, bottom - 1, -1), lambda w: w in ones):
        found = list(run)
        weights += found if used or len(found) < GAP else [found[0], None, found[-1]]
    return weights
