"""The trace of the reference: the steps of one element of D, each with its addends and what was cut off them.

Every number is exact. A step loses what truncation cuts off its addends (rule 5) and what rounding cuts off their sum
(rule 7); since a step's result is an addend of the next, the exact sum of the products and C is the result plus all
losses of the steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ..._records import Record
from ...formats import FORMATS, FloatFormat, Number
from .exact_numbers import as_fraction


@dataclass(frozen=True, kw_only=True)
class Addend(Record):
    """One addend of a step.

    Attributes
    ----------
    source : {"product", "group", "chain", "accumulator", "C"}
        A product; a group of products, summed exactly; a chain's result; the rounded result of the step before; C.
    products : tuple of int
        The values of k that it contains, counted within the instruction: one for a product, none for C.
    number : Number
        Its value, exact and not normalised.
    nominal : int, optional
        Its nominal exponent (rules 2, 3 and 13); None where nothing is aligned.
    kept : Number
        Its value after truncation; `number` itself if nothing is truncated.
    """

    source: str
    products: tuple[int, ...] = ()
    number: Number
    nominal: int | None = None
    kept: Number

    @property
    def value(self) -> Fraction | None:
        """Value as a rational number; None for NaN and infinity."""
        return as_fraction(self.number)

    @property
    def lost(self) -> Fraction | None:
        """The truncated part: value minus the kept part; None for NaN and infinity."""
        value = self.value
        if value is None or self.kept is self.number:
            return None if value is None else Fraction(0)
        kept = as_fraction(self.kept)
        return None if kept is None else value - kept


@dataclass(frozen=True, kw_only=True)
class SumStep(Record):
    """One rounding: addends, their sum, and the code it became.

    Attributes
    ----------
    operation : {"fused", "grouped", "multiply", "fma", "add", "convert", "integer", "popcount"}
        The unit's step, an IEEE operation, or a whole integer sum.
    rules : tuple of int
        Those of the specification in `reference` that were applied.
    addends : tuple of Addend
    exponent : int, optional
        E, the alignment exponent (rule 4); None where nothing is aligned.
    quantum : int, optional
        Addends are kept to multiples of 2^quantum, which is E - F (rule 5).
    sum : Number
        Exact sum of the kept parts.
    format : str
        Of the result.
    bits : int
        Fraction bits that the result is rounded to; 0 of an integer.
    rounding : {"rn", "rz", "rm", "rp", "wrap", "clamp"}
    result : int
        Code in `format`.
    """

    operation: str
    rules: tuple[int, ...]
    addends: tuple[Addend, ...]
    exponent: int | None = None
    quantum: int | None = None
    sum: Number
    format: str
    bits: int
    rounding: str
    result: int

    @property
    def number(self) -> Number:
        """The result."""
        fmt = FORMATS[self.format]
        if isinstance(fmt, FloatFormat):
            return fmt.unpack(self.result)
        value = fmt.unpack(self.result)
        return Number("finite", int(value < 0), abs(value), 0)

    @property
    def value(self) -> Fraction | None:
        """The result as a rational number; None for NaN and infinity."""
        return as_fraction(self.number)

    @property
    def rounded_off(self) -> Fraction | None:
        """The rounding error: the sum minus the result; None if either is not finite."""
        total, value = as_fraction(self.sum), self.value
        return None if total is None or value is None else total - value

    @property
    def lost(self) -> Fraction | None:
        """All that the step lost, by truncation and by rounding; None where something is not finite."""
        total = self.rounded_off
        for loss in (addend.lost for addend in self.addends):
            if total is None or loss is None:
                return None
            total = total + loss if loss else total
        return total
