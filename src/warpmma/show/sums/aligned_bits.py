"""Bits of a step, aligned: which digits each number has at which weights, which were cut, and which get a column.

1. A number is drawn as sign and magnitude, because truncation is of magnitudes. Its digits go from its nominal
   exponent, or from its highest one where that is higher, down to the last place of its significand.
2. Of an addend, digits below 2^quantum are cut (rule 5 of the specification in `arithmetic.reference`).
3. Of the sum, digits below the last place of the result are cut: rounding looks at them (rule 7). The result has a row
   of its own, because rounding can carry.
4. Zeros, NaN and infinities have no digits.
5. In a picture each power of two has a column, the same for all steps, from the highest weight of any digit to the
   lowest. Of more than `MANY` columns, runs of `GAP` and more in which no number has a one become a single column,
   except beside E and the quantum of a step. Of more than `MOST` that are left, the lowest are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from ..._records import Record
from ...arithmetic import SumStep
from ...formats import FORMATS, FloatFormat, Number

MANY, MOST, GAP = 60, 110, 5
_CELLS = ((48, 16), (64, 14), (80, 12), (MOST, 10))


@dataclass(frozen=True, kw_only=True)
class BitRow(Record):
    """Digits of one number, from the weight 2^`high` down; the last `cut` of them were cut."""

    high: int
    digits: str
    cut: int = 0
    negative: bool = False

    @property
    def low(self) -> int:
        """Weight of the last digit."""
        return self.high - len(self.digits) + 1

    @property
    def kept(self) -> int:
        """Number of digits that were kept."""
        return len(self.digits) - self.cut

    def digit(self, weight: int) -> str:
        """Digit at a weight; empty where the number has none."""
        return self.digits[self.high - weight] if self.low <= weight <= self.high else ""


@dataclass(frozen=True, kw_only=True)
class BitGrid(Record):
    """All rows of a step, its addends in order; None for a number without digits."""

    addends: tuple[BitRow | None, ...]
    sum: BitRow | None
    result: BitRow | None
    exponent: int | None
    quantum: int | None

    @property
    def rows(self) -> tuple[BitRow, ...]:
        """All rows that have digits."""
        return tuple(row for row in (*self.addends, self.sum, self.result) if row is not None)

    @property
    def top(self) -> int:
        """Highest weight that any number has."""
        return max((row.high for row in self.rows), default=self.exponent or 0)

    @property
    def bottom(self) -> int:
        """Lowest weight that any number has, or to which addends are kept."""
        quantum = () if self.quantum is None else (self.quantum,)
        return min((*quantum, *(row.low for row in self.rows)), default=0)


def grid_of(step: SumStep) -> BitGrid:
    """Align the numbers of a step (rules 1 to 4)."""
    addends = tuple(_row(addend.number, addend.nominal, step.quantum) for addend in step.addends)
    fmt = FORMATS[step.format]
    place = None
    if isinstance(fmt, FloatFormat) and step.sum.kind == "finite" and step.sum.significand:
        # The grid near the sum, as in `reference.rounded`.
        place = max(step.sum.exponent + step.sum.significand.bit_length() - 1, fmt.emin) - step.bits
    total = _row(step.sum, None, place)
    result = _row(step.number, None, None)
    if result is not None and isinstance(fmt, FloatFormat) and (more := fmt.fraction_bits - step.bits) > 0:
        digits = result.digits[:-more] or "0"  # zeros of a result that has fewer bits than its format
        result = BitRow(high=result.high, digits=digits, negative=result.negative)
    return BitGrid(addends=addends, sum=total, result=result, exponent=step.exponent, quantum=step.quantum)


def _row(number: Number, nominal: int | None, quantum: int | None) -> BitRow | None:
    if number.kind != "finite" or not number.significand:
        return None
    high = number.exponent + number.significand.bit_length() - 1
    if nominal is not None:
        high = max(high, nominal)
    digits = f"{number.significand:0{high - number.exponent + 1}b}"
    cut = 0 if quantum is None else min(max(0, quantum - number.exponent), len(digits))
    return BitRow(high=high, digits=digits, cut=cut, negative=bool(number.sign))


@dataclass(frozen=True, kw_only=True)
class Columns(Record):
    """Columns of a picture, each `cell` wide: one weight or a folded run, from the highest down; `left` is the edge."""

    weights: tuple[range, ...]
    left: float
    cell: float

    @cached_property
    def _edges(self) -> dict[int, float]:
        return {w[0]: self.left + i * self.cell for i, w in enumerate(self.weights) if len(w) == 1}

    @property
    def single(self) -> tuple[int, ...]:
        """Weights that have a column of their own."""
        return tuple(self._edges)

    @property
    def right(self) -> float:
        """Right edge of the last."""
        return self.left + len(self.weights) * self.cell

    @property
    def lowest(self) -> int:
        """The lowest weight that has a column."""
        return self.weights[-1][0]

    def middle(self, weight: int) -> float | None:
        """Middle of a weight's column, or None where it is folded or left out."""
        edge = self._edges.get(weight)
        return None if edge is None else edge + self.cell / 2

    def edge(self, weight: int) -> float:
        """Left edge of a weight's column; of a folded one, of the fold; of one below all, the right end."""
        if weight in self._edges:
            return self._edges[weight]
        return self.left + self.cell * sum(w[0] > weight for w in self.weights)

    def folds(self) -> list[tuple[float, range]]:
        """Return the middle of each fold, and its weights."""
        return [(self.left + (i + 0.5) * self.cell, w) for i, w in enumerate(self.weights) if len(w) > 1]


def columns_of(grids: Sequence[BitGrid], left: float) -> Columns:
    """Choose columns for steps that are drawn together (rule 5)."""
    rows = [row for grid in grids for row in grid.rows]
    top, bottom = (max(x.top for x in grids), min(x.bottom for x in grids)) if rows else (3, 0)
    weights = [range(w, w + 1) for w in range(top, bottom - 1, -1)]
    if len(weights) > MANY:
        ones = {row.high - i for row in rows for i, digit in enumerate(row.digits) if digit == "1"} | {top, bottom}
        for grid in grids:
            if grid.quantum is not None and grid.exponent is not None:
                ones |= {grid.exponent, grid.quantum, grid.quantum - 1}
        runs = [(used, list(run)) for used, run in groupby(weights, lambda w: w[0] in ones)]
        weights = [
            w for used, run in runs
            for w in (run if used or len(run) < GAP else [run[0], range(run[-2][0], run[1][-1] + 1), run[-1]])
        ]  # fmt: skip
    weights = weights[:MOST]
    if len(weights[-1]) > 1:
        weights.pop()
    cell = next(size for most, size in _CELLS if len(weights) <= most)
    return Columns(weights=tuple(weights), left=left, cell=cell)
