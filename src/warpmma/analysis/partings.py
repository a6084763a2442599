"""Where two targets part: the first step in which one does what the other does not.

1. Steps are compared in their order. Two are alike if they add the same values of the same products, keep the same of
   each, and come to the same result.
2. The first of `_REASONS` that fits the two steps says why they are not.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import NamedTuple

from ..arithmetic import FusedDotAdd, GroupedDotAdd, IntegerSum, SumStep
from .explanation import Explanation, Parting


class _Place(NamedTuple):
    """A step, and where it stands in an explanation."""

    told: Explanation
    link: int
    number: int
    step: SumStep

    @property
    def products(self) -> tuple[int, ...]:
        """Products of the step, counted in the explanation."""
        start = self.told.links[self.link].k.start
        return tuple(sorted(start + i for addend in self.step.addends for i in addend.products))

    @property
    def addition(self) -> bool:
        """Whether it is in a link of its own, that multiplies nothing."""
        return not self.told.links[self.link].k


def parting_of(told: Explanation, other: Explanation) -> Parting | None:
    """Find the first step in which two explanations of one element part."""
    last = None
    for x, y in zip_longest(_places(told), _places(other)):
        if x is None or y is None:
            more, less = (told, other) if y is None else (other, told)
            where = x or last
            reason = f"{more.target} takes further steps, {less.target} does not"
            return Parting(link=where.link, step=where.number, reason=reason) if where else None
        if not _alike(x, y):
            reason = next(said for reason in _REASONS if (said := reason(x, y)))
            return Parting(link=x.link, step=x.number, reason=reason)
        last = x
    return None


def _places(told: Explanation) -> list[_Place]:
    return [_Place(told, i, j, step) for i, link in enumerate(told.links) for j, step in enumerate(link.steps)]


def _alike(x: _Place, y: _Place) -> bool:
    return x.step.result == y.step.result and x.step.format == y.step.format and _kept(x) == _kept(y)


def _kept(place: _Place) -> list[tuple[object, ...]]:
    """List of every addend that is not zero its products, its value and what is lost of it."""
    start = place.told.links[place.link].k.start
    return sorted(
        ((tuple(start + i for i in x.products), str(x.value), str(x.lost)) for x in place.step.addends
         if x.number.kind != "finite" or x.number.significand),
        key=repr,
    )  # fmt: skip


_MADE = {
    "fused": "adds all products of a step at once", "grouped": "adds groups of scaled products at once",
    "multiply": "adds one product after the other", "fma": "adds one product after the other",
    "add": "adds two sums", "convert": "converts the sum", "integer": "adds integers", "popcount": "counts bits",
}  # fmt: skip


def _operations(x: _Place, y: _Place) -> str | None:
    if _MADE[x.step.operation] == _MADE[y.step.operation]:
        return None
    return f"{x.told.target} {_MADE[x.step.operation]} where {y.told.target} {_MADE[y.step.operation]}"


def _lengths(x: _Place, y: _Place) -> str | None:
    mine, theirs = len(x.products), len(y.products)
    if mine == theirs:
        return None
    return f"a step takes {mine} products on {x.told.target}, and {theirs} on {y.told.target}"


def _orders(x: _Place, y: _Place) -> str | None:
    if x.products == y.products:
        return None
    return (
        f"a step takes products {_listed(x.products)} on {x.told.target}, and {_listed(y.products)} on {y.told.target}"
    )


def _listed(products: tuple[int, ...]) -> str:
    return ", ".join(map(str, products[:4])) + (", ..." if len(products) > 4 else "")


def _conversions(x: _Place, y: _Place) -> str | None:
    mine, theirs = x.told.recipe.accumulate, y.told.recipe.accumulate
    if mine == theirs:
        return None
    after, within = (x, y) if mine == "after" else (y, x)
    return f"{after.told.target} adds C after all products, {within.told.target} with the first of them"


def _fractions(x: _Place, y: _Place) -> str | None:
    mine, theirs = x.told.recipe.unit, y.told.recipe.unit
    units = FusedDotAdd | GroupedDotAdd
    if not isinstance(mine, units) or not isinstance(theirs, units) or _kept(x) == _kept(y):
        return None
    if mine.fraction_bits != theirs.fraction_bits:
        return (
            f"{x.told.target} keeps {mine.fraction_bits} bits of an addend below the largest exponent, "
            f"{y.told.target} {theirs.fraction_bits}"
        )
    if mine.floor != theirs.floor:
        return (
            f"the largest exponent is at least {mine.floor} on {x.told.target}, and {theirs.floor} on {y.told.target}"
        )
    return None


def _addends(x: _Place, y: _Place) -> str | None:
    if _kept(x) == _kept(y):
        return None
    mine, theirs = x.told.instruction, y.told.instruction
    if mine != theirs:
        return f"{x.told.target} computes with {mine}, {y.told.target} with {theirs}"
    return f"{x.told.target} and {y.told.target} add other numbers in this step"


def _roundings(x: _Place, y: _Place) -> str:
    if isinstance(x.told.recipe.unit, IntegerSum) and x.step.rounding != y.step.rounding:
        return f"{x.told.target} {x.step.rounding}s a sum that is too large, {y.told.target} {y.step.rounding}s it"
    said = [
        f"{'to nearest even' if p.step.rounding == 'rn' else 'toward zero'} to {p.step.bits} fraction bits"
        for p in (x, y)
    ]
    return f"{x.told.target} rounds the sum {said[0]}, {y.told.target} {said[1]}"


_REASONS: tuple[Callable[[_Place, _Place], str | None], ...] = (
    _operations, _conversions, _lengths, _orders, _fractions, _addends, _roundings,
)  # fmt: skip
"""Why two steps are not alike, most telling first."""
