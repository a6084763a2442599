"""Recipes that differ in one step of one parameter: what tests of arithmetic must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy.typing as npt

from lab.generators import RecipeCase
from warpmma.arithmetic import compute
from warpmma.arithmetic.recipes.units import (
    FloatChains,
    FmaChain,
    FusedDotAdd,
    GroupedDotAdd,
    IntegerSum,
    Popcount,
    Recipe,
    steps,
)

Codes = npt.NDArray[Any]


def mutations(case: RecipeCase) -> Iterator[tuple[str, Callable[..., Codes]]]:
    """Every computation that differs by one step in one parameter of the recipe, or in the order of its sums."""
    for name, changed in _changed_recipes(case):
        yield name, partial(compute, changed)
    match case.recipe.unit:
        case FmaChain() | FloatChains():
            yield "k descending", partial(_descending, case.recipe)
        case IntegerSum(saturate=True):
            yield "clamp twice", partial(_in_halves, case.recipe)


def _descending(recipe: Recipe, a: Codes, b: Codes, c: Codes) -> Codes:
    return compute(recipe, a[::-1], b[::-1], c)


def _in_halves(recipe: Recipe, a: Codes, b: Codes, c: Codes) -> Codes:
    half = len(a) // 2
    return compute(recipe, a[half:], b[half:], compute(recipe, a[:half], b[:half], c))


def _changed_recipes(case: RecipeCase) -> Iterator[tuple[str, Recipe]]:
    unit, base = case.recipe.unit, case.recipe

    def changed(**change: Any) -> Recipe:
        return replace(base, unit=replace(unit, **change))

    match unit:
        case FusedDotAdd():
            for step in (-1, 1):
                yield f"F {step:+d}", changed(fraction_bits=unit.fraction_bits + step)
                yield f"Z {step:+d}", changed(floor=unit.floor + step)
                if unit.result_bits + step <= (23 if base.d == "f32" else 10):
                    yield f"result bits {step:+d}", changed(result_bits=unit.result_bits + step)
            yield "rounding", changed(rounding="rn" if unit.rounding == "rz" else "rz")
            longest = max(len(step) for step in steps(base.order, unit.products, case.k))
            yield f"L {unit.products * 2}", changed(products=unit.products * 2)
            yield f"L {longest // 2}", changed(products=longest // 2)  # the largest that cuts a step
            if base.order == "halves":
                yield "order", replace(base, order="ascending", unit=replace(unit, products=case.k // 2))
                yield "convert", replace(base, convert=None)
            else:
                yield "order", replace(base, order="halves")
            yield "C", replace(base, accumulate="within" if base.accumulate == "after" else "after")
        case GroupedDotAdd():
            for step in (-1, 1):
                yield f"F {step:+d}", changed(fraction_bits=unit.fraction_bits + step)
                yield f"Z {step:+d}", changed(floor=unit.floor + step)
            yield "result bits", changed(result_bits=22)
            yield "rounding", changed(rounding="rn")
            for group in (8, 32):
                if group * case.blocks <= case.k:
                    yield f"group {group}", changed(group=group)
        case FmaChain():
            for rounding in {"rn", "rz", "rm", "rp"} - {unit.rounding}:
                yield f"rounding {rounding}", changed(rounding=rounding)
        case FloatChains():
            yield "seed", changed(seed="product" if unit.seed == "zero" else "zero")
            yield "length", changed(length=2 if unit.length == 4 else 4)
        case IntegerSum():
            yield "saturate", changed(saturate=not unit.saturate)
        case Popcount():
            yield "operation", changed(operation="and" if unit.operation == "xor" else "xor")
