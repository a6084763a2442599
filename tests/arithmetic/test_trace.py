"""The reference's trace of its steps: their losses sum to the exact error, and steps report only what they did."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lab.generators import RecipeCase, operands, recipe_cases, styles
from warpmma.arithmetic import Recipe, SumStep, reference_dot, reference_trace
from warpmma.arithmetic.recipes.units import FloatChains, FmaChain, FusedDotAdd, IntegerSum
from warpmma.formats import FORMATS, FloatFormat

HALF = FusedDotAdd(fraction_bits=24, products=8, floor=-132, result_bits=23, rounding="rz")


def value(name: str, code: int) -> Fraction | None:
    """Return the value of a code, by its format's table of float64."""
    fmt = FORMATS[name]
    decoded = fmt.decode(np.array([code], fmt.code_dtype))[0]
    if isinstance(fmt, FloatFormat) and not np.isfinite(decoded):
        return None
    return Fraction(int(decoded)) if decoded == int(decoded) else Fraction(float(decoded))


def exact(recipe: Recipe, column: dict[str, list[int]], c: int) -> Fraction | None:
    """Return the exact sum of the products and C; None where an operand is not finite."""
    k = len(column["a"])
    total = value(recipe.c, c)
    for i in range(k):
        factors = [value(recipe.a, column["a"][i]), value(recipe.b, column["b"][i])]
        if recipe.scale:
            block = i * len(column["scale_a"]) // k
            factors += [value(recipe.scale, column[scales][block]) for scales in ("scale_a", "scale_b")]
        if total is None or None in factors:
            return None
        total += np.prod(np.array(factors, object))
    return total


@pytest.mark.parametrize("case", [x for x in recipe_cases() if x.recipe.a != "b1"], ids=str)
@pytest.mark.alike(3)
def test_losses_are_the_error(case: RecipeCase) -> None:
    finite = 0
    for style in styles(case.recipe):
        given = operands(case.recipe, case.k, 1, style, np.random.default_rng(5), case.blocks)
        column = {name: x[..., 0].tolist() for name, x in given.items()}
        c = column.pop("c")
        steps = reference_trace(case.recipe, c=c, **column)
        assert steps[-1].result == reference_dot(case.recipe, c=c, **column)
        assert steps[-1].format == case.recipe.d
        ideal, losses = exact(case.recipe, column, c), [step.lost for step in steps]
        if ideal is not None and None not in losses:
            finite += 1
            assert steps[-1].value == ideal - sum(loss for loss in losses if loss is not None)
    assert finite > len(styles(case.recipe)) / 3


def trace(**changed: object) -> tuple[SumStep, ...]:
    """Return the steps of 1 x 1 + 2^-24 x 1 + ... + C = 2^-24, with something changed."""
    given: dict[str, Any] = {
        "recipe": Recipe(d="f32", a="f16", b="f16", c="f32", unit=HALF), "a": [0x3C00, *[0x0001] * 8],
        "b": [0x3C00] * 9, "c": 0x33800000,
    }  # fmt: skip
    return reference_trace(**(given | changed))


def test_a_fused_step_tells_what_was_cut() -> None:
    first, second = trace(c=0x33000000)  # C = 2^-25, below the last bit that is kept
    assert (first.operation, first.exponent, first.quantum) == ("fused", 0, -24)
    assert [x.source for x in first.addends] == ["product"] * 8 + ["C"]
    assert [x.lost for x in first.addends] == [0] * 8 + [Fraction(1, 1 << 25)]
    assert (first.addends[1].nominal, first.addends[1].products) == (-14, (1,))  # subnormal: not normalised
    assert first.rounded_off == Fraction(1, 1 << 24)  # seven of 2^-24, of which an odd one is cut
    assert [x.source for x in second.addends] == ["product", "accumulator"]
    assert second.addends[0].products == (8,)


def test_infinity_and_nan_lose_nothing_known() -> None:
    step = trace(c=0x7F800000)[0]
    assert (step.rules, step.exponent, step.sum.kind, step.result) == ((1, 2, 3, 8), None, "infinity", 0x7F800000)
    assert step.lost is None and step.rounded_off is None and step.addends[-1].lost is None
    step = trace(a=[0x7C00] * 9, b=[0x3C00, 0xBC00] + [0x3C00] * 7)[0]
    assert (step.sum.kind, step.result, step.value) == ("nan", 0x7FFFFFFF, None)


def test_overflow_loses_nothing_known() -> None:
    recipe = Recipe(d="f32", a="bf16", b="bf16", c="f32", unit=HALF)
    step = trace(recipe=recipe, a=[0x7F7F] * 2, b=[0x7F7F] * 2, c=0)[0]
    assert (step.sum.kind, step.result, step.lost) == ("finite", 0x7F800000, None)


def test_a_zero_is_told() -> None:
    assert 9 in trace(a=[0x3C00, 0xBC00], b=[0x3C00] * 2, c=0)[0].rules
    assert 9 not in trace()[0].rules


def test_conversion_and_addition_after_are_told() -> None:
    recipe = Recipe(d="f32", a="e4m3", b="e4m3", c="f32", unit=HALF, convert="f16", order="halves", accumulate="after")
    steps = trace(recipe=recipe, a=[0x38] * 16, b=[0x38] * 16, c=0x33800000)
    assert [x.operation for x in steps] == ["fused", "fused", "add"]
    assert [x.products for x in steps[1].addends] == [(2,), (3,), (6,), (7,), (10,), (11,), (14,), (15,), ()]
    assert [x.source for x in steps[0].addends][-1] == "accumulator"
    assert ([x.source for x in steps[2].addends], steps[2].rounding) == (["C", "accumulator"], "rn")
    assert {10, 11} <= set(steps[0].rules)


def test_chains_are_told() -> None:
    chains = Recipe(d="f16", a="f16", b="f16", c="f16", unit=FloatChains(length=2, seed="product"))
    steps = trace(recipe=chains, a=[0x3C00] * 4, b=[0x3C00] * 4, c=0)
    assert [x.operation for x in steps] == ["multiply", "fma", "add"] * 2 + ["convert"]
    assert [x.source for x in steps[-2].addends] == ["accumulator", "chain"]
    assert steps[-2].addends[1].products == (2, 3)
    f64 = Recipe(d="f64", a="f64", b="f64", c="f64", unit=FmaChain())
    nan = trace(recipe=f64, a=[0x3FF0 << 48] * 2, b=[0x7FF0 << 48 | 5, 0], c=0)[-1]
    assert (nan.operation, nan.result) == ("fma", 0x7FF8 << 48 | 5)  # payload kept


def test_wrapping_and_clamping_are_told() -> None:
    for saturate, rounding, result in ((False, "wrap", 0x80000000), (True, "clamp", 0x7FFFFFFF)):
        recipe = Recipe(d="s32", a="s8", b="s8", c="s32", unit=IntegerSum(saturate=saturate))
        (step,) = trace(recipe=recipe, a=[1], b=[1], c=0x7FFFFFFF)
        assert step.value is not None
        assert (step.rounding, step.result, step.lost) == (rounding, result, 2**31 - step.value)


def test_no_products_leave_c_as_it_is() -> None:
    assert trace(a=[], b=[]) == ()
    assert reference_dot(Recipe(d="f32", a="f16", b="f16", c="f32", unit=HALF), [], [], 0x80000000) == 0x80000000
