"""Bits of a step, aligned: which digits every addend has at which weights, and which of them were cut.

1. A number is drawn as sign and magnitude, for truncation is of magnitudes. Its digits go from its nominal exponent, or
   from its highest one where that is higher, down to the last place of its significand: zeros in it are places that it
   has.
2. Of an addend, digits below 2^quantum are cut (rule 5 of the specification in `arithmetic.reference`).
3. Of the sum, digits below the result's last place are cut: those that rounding looked at (rule 7). The result has a
   row of its own, since rounding can carry.
4. Zeros, NaN and infinities have no digits.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._records import Record
from ...arithmetic import SumStep
from ...formats import FORMATS, FloatFormat, Number


@dataclass(frozen=True, kw_only=True)
class BitRow(Record):
    """Digits of one number.

    Attributes
    ----------
    high : int
        Weight of the first: 2^high.
    digits : str
        From the highest down.
    cut : int
        How many of them, from the end, were cut.
    negative : bool
    """

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
        """How many digits were kept."""
        return len(self.digits) - self.cut

    def digit(self, weight: int) -> str:
        """Digit at a weight; empty where the number has none."""
        return self.digits[self.high - weight] if self.low <= weight <= self.high else ""

    def is_cut(self, weight: int) -> bool:
        """Whether the digit at a weight was cut."""
        return weight < self.low + self.cut

    def magnitude(self, kept: bool = False) -> tuple[int, int]:
        """Digits as an integer, and the weight of its last; of those that were kept, or of all."""
        digits = self.digits[: self.kept] if kept else self.digits
        return int(digits or "0", 2), self.low + (self.cut if kept else 0)


@dataclass(frozen=True, kw_only=True)
class BitGrid(Record):
    """All rows of a step.

    Attributes
    ----------
    addends : tuple of (BitRow or None)
        In the step's order; None for what has no digits.
    sum, result : BitRow, optional
    exponent, quantum : int, optional
        Of the step.
    """

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
        lowest = [row.low for row in self.rows]
        return min([*lowest, *([] if self.quantum is None else [self.quantum])], default=0)


def grid_of(step: SumStep) -> BitGrid:
    """Align the numbers of a step."""
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
