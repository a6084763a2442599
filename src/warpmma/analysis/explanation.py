"""The record of an explanation: how one element of D is computed, and how far it is from the exact result.

Two targets are compared step by step:

1. Steps are compared in order. Two are equal if they add the same values of the same products, keep the same bits of
   each, and have the same result.
2. The first of `_REASONS` that fits the two steps says why they differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import zip_longest
from typing import NamedTuple

from .. import _views
from .._records import Record, Shown
from ..arithmetic import Evidence, FusedDotAdd, GroupedDotAdd, IntegerSum, Recipe, SumStep, as_fraction, library_note
from ..formats import FORMATS, FloatFormat, Format
from ..products import ChainInstruction, Float32


class _Place(NamedTuple):
    """A step, and its position in an explanation."""

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
        """True in a link of its own, without products."""
        return not self.told.links[self.link].k


def first_difference(told: Explanation, other: Explanation) -> FirstDifference | None:
    """Find the first step in which two explanations of one element differ."""
    last = None
    for x, y in zip_longest(_places(told), _places(other)):
        if x is None or y is None:
            more, less = (told, other) if y is None else (other, told)
            where = x or last
            reason = f"{more.target} takes further steps, {less.target} does not"
            return FirstDifference(link=where.link, step=where.number, reason=reason) if where else None
        if not _alike(x, y):
            reason = next(said for reason in _REASONS if (said := reason(x, y)))
            return FirstDifference(link=x.link, step=x.number, reason=reason)
        last = x
    return None


def _places(told: Explanation) -> list[_Place]:
    return [_Place(told, i, j, step) for i, link in enumerate(told.links) for j, step in enumerate(link.steps)]


def _alike(x: _Place, y: _Place) -> bool:
    return x.step.result == y.step.result and x.step.format == y.step.format and _kept(x) == _kept(y)


def _kept(place: _Place) -> list[tuple[object, ...]]:
    """List products, value and loss of every addend that is not zero."""
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


def exponent_of(value: Fraction) -> int:
    """Exponent of the leading bit of a value that is not zero: the largest power of two within its magnitude."""
    top, bottom = abs(value.numerator), value.denominator
    exponent = top.bit_length() - bottom.bit_length()
    within = top >= bottom << exponent if exponent >= 0 else top << -exponent >= bottom
    return exponent if within else exponent - 1


def ulp_at(fmt: Format, value: Fraction) -> Fraction:
    """Return the ulp of a format at a value: 2^(e - fraction bits), or 1 of integers.

    e is the exponent of the value's leading bit, and at least that of the format's least normal number: of a value
    within the range it is the distance of the two neighbours that enclose it.

    Examples
    --------
    >>> from warpmma.formats import FORMATS
    >>> ulp_at(FORMATS["f16"], Fraction(3, 2)), ulp_at(FORMATS["f16"], Fraction(0))
    (Fraction(1, 1024), Fraction(1, 16777216))
    """
    if not isinstance(fmt, FloatFormat):
        return Fraction(1)
    exponent = max(exponent_of(value), fmt.emin) if value else fmt.emin
    return Fraction(2) ** (exponent - fmt.fraction_bits)


@dataclass(frozen=True, kw_only=True)
class ChainLink(Record):
    """One link of the chain that makes an element: an instruction, or an addition of partial sums.

    Attributes
    ----------
    name : str
        What it does, in a few words: the mnemonic, or such as "promotion: sum + accumulator".
    k : range
        Which members of the explanation's `a` and `b` it multiplies; empty for an addition. Product i of its steps is
        that of `a[k.start + i]` and `b[k.start + i]`.
    steps : tuple of SumStep
    weight : Fraction, optional
        What its losses count for in the result: 1, and before a tensor scale that scale, None if it is not finite.
    """

    name: str
    k: range
    steps: tuple[SumStep, ...]
    weight: Fraction | None = Fraction(1)


@dataclass(frozen=True, kw_only=True)
class FirstDifference(Shown):
    """The first step in which two targets differ.

    Attributes
    ----------
    link, step : int
        Indices into the first explanation: the link, and the step in it.
    reason : str
        One sentence: other products in a step, more bits kept, another rounding.
    """

    link: int
    step: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Explanation(Record):
    """The computation of one element of D on a target.

    Attributes
    ----------
    instruction : Instruction, WarpgroupInstruction or FloatFma
    target : str
    row, column, matrix : int
        Of the element; `matrix` is 0 except for m8n8k4 of f16.
    a, b : tuple of int
        Codes that were multiplied, as many of each: of a sparse A what is stored, and what it meets of B. Where the
        matrices end before an instruction does, the last are padding, +0.
    positions : tuple of int
        The column of A, and row of B, of each: 0, 1, 2, ... except for a sparse A. Padding follows.
    scale_a, scale_b : tuple of int
        Codes of the block scales of the row and the column; empty without.
    c : int
        Code of the element of C.
    recipe : Recipe
    evidence : Evidence
    links : tuple of ChainLink
    format : str
        Of the result.
    result : int
        Its code: what `execute` and `matmul` give.
    exact : Fraction, optional
        The exact result of the same codes; None where it is NaN or infinite.
    bound : Fraction, optional
        What the magnitude of the error cannot exceed, known from the magnitudes of the operands alone:
        docs/specification/bounds.md. None where a result may be infinite, or an integer may wrap.
    others : tuple of Explanation
        The same on other targets.
    partings : tuple of (FirstDifference or None)
        For each of these, where the two first differ; None where they do not.
    float32 : {"ieee", "tf32", "tf32-truncated"} or None
        How float32 was multiplied; None of other types. With "tf32" `a` and `b` are rounded: that is not an error here.
    site : str
        Of an `mma` in a kernel, where that is, which warp executed it, and when; else empty.
    """

    instruction: ChainInstruction
    target: str
    row: int
    column: int
    matrix: int = 0
    a: tuple[int, ...]
    b: tuple[int, ...]
    positions: tuple[int, ...]
    scale_a: tuple[int, ...] = ()
    scale_b: tuple[int, ...] = ()
    c: int
    recipe: Recipe
    evidence: Evidence
    links: tuple[ChainLink, ...]
    format: str
    result: int
    exact: Fraction | None
    bound: Fraction | None
    others: tuple[Explanation, ...] = ()
    partings: tuple[FirstDifference | None, ...] = ()
    float32: Float32 | None = None
    site: str = ""

    @property
    def note(self) -> str:
        """Instructions that libraries use instead on the target, if their sums may have other bits; else empty."""
        return "" if self.site else library_note(self.instruction, self.target)

    @property
    def against(self) -> Explanation | None:
        """The first of `others`, if there is one."""
        return self.others[0] if self.others else None

    @property
    def parting(self) -> FirstDifference | None:
        """The first step in which it and `against` differ."""
        return self.partings[0] if self.partings else None

    @cached_property
    def steps(self) -> tuple[SumStep, ...]:
        """Steps of all links."""
        return tuple(step for link in self.links for step in link.steps)

    @property
    def value(self) -> Fraction | None:
        """The result as a rational number; None for NaN and infinity."""
        fmt = FORMATS[self.format]
        return (
            as_fraction(fmt.unpack(self.result)) if isinstance(fmt, FloatFormat) else Fraction(fmt.unpack(self.result))
        )

    @property
    def error(self) -> Fraction | None:
        """The result less the exact one; None where either is not finite."""
        return None if self.value is None or self.exact is None else self.value - self.exact

    @property
    def lost(self) -> Fraction | None:
        """All that the steps lost: `-error`, by another way."""
        total = Fraction(0)
        for link in self.links:
            for step in link.steps:
                loss = step.lost
                if loss is None or link.weight is None:
                    return None
                total += loss * link.weight
        return total

    @property
    def ulps(self) -> Fraction | None:
        """Magnitude of the error in ulps of the result's format at the exact result; None where there is no error.

        An ulp is 2^(e - fraction bits), where e is the exponent of the exact result's leading bit, and at least that
        of the format's least normal number; of integers it is 1. A result that is the exact one, correctly rounded, is
        at most half an ulp from it.
        """
        if self.error is None or self.exact is None:
            return None
        return abs(self.error) / ulp_at(FORMATS[self.format], self.exact)

    @property
    def ignored(self) -> Fraction:
        """The part of the exact result from bits of f32 that an instruction for tf32 ignores; 0 if not finite."""
        if "tf32" not in (self.recipe.a, self.recipe.b):
            return Fraction(0)
        whole, used = (
            [[as_fraction(FORMATS[name].unpack(code)) for code in codes] for codes in (self.a, self.b)]
            for name in ("f32", "tf32")
        )
        sums = [
            sum((x * y for x, y in zip(*rows, strict=True) if x is not None and y is not None), Fraction(0))
            for rows in (whole, used)
        ]
        return sums[0] - sums[1]

    def __str__(self) -> str:
        return self.text()

    def text(self, *, whole: bool = False, mark: Callable[[str, str], str] | None = None, width: int = 118) -> str:
        """Write it as tables.

        Parameters
        ----------
        whole : bool
            Show all steps and all products; otherwise long chains are folded: the ends are shown, and what lost most.
        mark : callable, optional
            Makes of a kind ("heading", "dim", "kept" bits, "cut" bits) and a text what is written for it: colours.
        width : int
            Columns that there are, at least 60.
        """
        return _views.view(self, "text", whole, mark, width)

    def json(self) -> str:
        """Write it as a JSON document; rational numbers as strings such as "-3/8"."""
        return _views.view(self, "json")

    def svg(self, theme: str = "auto") -> str:
        """Draw its bits, aligned, with what was cut in another colour.

        Parameters
        ----------
        theme : {"auto", "light", "dark"}
        """
        return _views.view(self, "svg", theme)
