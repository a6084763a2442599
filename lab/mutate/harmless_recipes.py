"""Mutants of recipes that no operands can tell from the recipe, and why.

Each argument is a rule over the fields of the record, with a sentence. What a rule claims about numbers it computes:
from the reference's own steps, from the least numbers of the formats, or from what the reference reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from warpmma.arithmetic import FloatChains, FusedDotAdd, GroupedDotAdd, IntegerSum, Popcount, Recipe, reference_dot
from warpmma.arithmetic.recipes.units import steps
from warpmma.formats import FORMATS, FloatFormat, IntegerFormat

from .recipe_changes import Mutant, Subject

__all__ = ["argument"]


def argument(subject: Subject, mutant: Mutant) -> str:
    """Say why a mutant computes what its recipe does, or return an empty string.

    Parameters
    ----------
    subject : Subject
    mutant : Mutant
        One of `mutants(subject)`.

    Returns
    -------
    str
    """
    base, changed, unit = subject.recipe, mutant.recipe, subject.recipe.unit
    match mutant.parameter:
        case "order" | "accumulate" if mutant.parameter not in read_fields(subject):
            return f"No rule of this unit reads {mutant.parameter}."
        case "products" | "length" if _cut(base, subject.k) == _cut(changed, subject.k):
            return "The steps are the same: one takes all of k, or their number does not change."
        case "order of k" if isinstance(unit, IntegerSum | Popcount):
            return "A sum of integers has no order."
        case "order of k" if isinstance(unit, GroupedDotAdd) or (
            isinstance(unit, FusedDotAdd) and len(_cut(base, subject.k)) == 1
        ):
            return "One step takes all of k, and its sum is exact."
        case "floor" if _coarse(base, changed):
            return "Every product is a multiple of both quanta 2^(Z - F), and C and sums have exponents above Z."
        case "clamp" if not any(_signed(name) for name in (base.a, base.b)):
            return "No product is negative: a sum that was clamped stays so."
        case "signs of zeros" if isinstance(unit, FusedDotAdd | GroupedDotAdd) and "D" not in mutant.change:
            return "A result that is zero is +0, whatever the signs of its addends (rule 9)."
        case "signs of zeros" if isinstance(unit, FloatChains) and unit.seed == "zero" and "D" not in mutant.change:
            return "Every chain begins at +0, and +0 plus a zero of either sign is +0."
        case "subnormals" if mutant.written and _least_sum(base) >= _float(base.d).emin:
            return "Sums are multiples of the least product and the least C: none is a subnormal of D."
        case "convert":
            return _conversion(base)
    return ""


def _conversion(base: Recipe) -> str:
    a, b = _float(base.a), _float(base.b)
    f16 = _float("f16")
    if a.emin == b.emin == f16.emin:
        return "The formats have the least exponent of f16, and so the same nominal exponents."
    # The exponents differ for products with a subnormal alone. Those are at most `most`; so is what they could raise.
    most = max(a.emin + b.emax, a.emax + b.emin)
    if base.accumulate == "after" and isinstance(base.unit, FusedDotAdd):
        quantum = max(most, base.unit.floor) - base.unit.fraction_bits
        if quantum <= _least(a) + _least(b):
            return "Only exponents of products with a subnormal differ: the quantum divides every product either way."
    return ""


@cache
def read_fields(subject: Subject) -> frozenset[str]:
    """Return the fields of a recipe that the reference reads, on operands that are zero."""
    seen: set[str] = set()

    class Watched(Recipe):
        def __getattribute__(self, name: str) -> Any:
            seen.add(name)
            return super().__getattribute__(name)

    watched = Watched(**{name: getattr(subject.recipe, name) for name in subject.recipe.__dataclass_fields__})
    seen.clear()
    scales = [0] * subject.blocks
    reference_dot(watched, [0] * subject.k, [0] * subject.k, 0, scales, scales)
    return frozenset(seen)


def _cut(recipe: Recipe, k: int) -> Sequence[Sequence[int]]:
    """Return which products make up each step."""
    unit = recipe.unit
    if isinstance(unit, FusedDotAdd):
        return steps(recipe.order, unit.products, k)
    return steps("ascending", unit.length if isinstance(unit, FloatChains) else 1, k)


def _coarse(base: Recipe, changed: Recipe) -> bool:
    """Whether the floor truncates nothing, with either Z: no product, and neither C nor what a step begins with."""
    units = [x.unit for x in (base, changed) if isinstance(x.unit, FusedDotAdd | GroupedDotAdd)]
    highest = max(unit.floor for unit in units)
    accumulators = min(_float(base.c).emin, _float(base.d).emin)
    return accumulators >= highest and _least_product(base) >= highest - units[0].fraction_bits


def _least_sum(base: Recipe) -> int:
    return min(_least_product(base), _least(_float(base.c)))


def _least_product(base: Recipe) -> int:
    """Exponent of the product of two least numbers, and of the two least scales."""
    names = [base.a, base.b, *([base.scale] * 2 if base.scale else [])]
    return sum(_least(_float(name)) for name in names)


def _least(fmt: FloatFormat) -> int:
    return fmt.emin - fmt.fraction_bits


def _float(name: str) -> FloatFormat:
    fmt = FORMATS[name]
    assert isinstance(fmt, FloatFormat)
    return fmt


def _signed(name: str) -> bool:
    fmt = FORMATS[name]
    return isinstance(fmt, IntegerFormat) and fmt.signed
