"""A sample of what `python -m lab.check.explanations` draws: bits, losses and bounds of every recipe, and of chains."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lab.check import explanations as tool
from lab.check.chains import product_faults
from lab.check.recipes import Case, cases, recipe_faults
from warpmma.arithmetic import FusedDotAdd, GroupedDotAdd, Recipe
from warpmma.formats import floating


@pytest.mark.parametrize("case", cases(), ids=str)
def test_every_recipe(case: Case) -> None:
    found = recipe_faults(case, rows=12, seed=1)
    assert found.faults == []
    assert found.bounded > 3


@pytest.mark.parametrize("number", range(30))
def test_products(number: int) -> None:
    every = cases()
    assert product_faults(every[number * 9 % len(every)], np.random.default_rng([7, number])).faults == []


@pytest.mark.parametrize("case", cases(), ids=str)
def test_what_the_lemmas_ask_of_recipes(case: Case) -> None:
    unit = case.recipe.unit
    if isinstance(unit, FusedDotAdd | GroupedDotAdd):
        d = floating(case.recipe.d)
        assert unit.result_bits <= min(unit.fraction_bits, d.fraction_bits)
        assert unit.floor - unit.fraction_bits <= d.emin - unit.result_bits  # a result is not cut at the floor


def test_a_fault_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another recipe is noticed; and the table that is printed counts it."""
    case = next(x for x in cases() if isinstance(x.recipe.unit, FusedDotAdd))
    whole = case.recipe.unit
    assert isinstance(whole, FusedDotAdd)
    unit = replace(whole, fraction_bits=whole.fraction_bits - 3)
    monkeypatch.setattr("lab.check.recipes.compute", lambda how, **given: _computed(replace(how, unit=unit), given))
    found = recipe_faults(case, 60, 0)
    assert found.faults and "the engines give" in found.faults[0]
    monkeypatch.setattr(tool, "cases", lambda: [case])
    assert tool.main(["--rows", "60", "--chains", "0"]) == 1
    assert "the engines give" in capsys.readouterr().out


def _computed(how: Recipe, given: dict[str, Any]) -> Any:
    from warpmma.arithmetic import compute

    return compute(how, **given)


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["--rows", "3", "--only", "f64.f64.f64.f64", "--part", "1:2", "--chains", "0"]) == 0
    assert "   1 of" not in (said := capsys.readouterr().out) and "FmaChain" in said


def test_a_bound_that_is_too_low_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(x for x in cases() if "m16n8k8" in str(x))
    monkeypatch.setattr("lab.check.recipes.element_bound", lambda element: Fraction(1, 1 << 200))
    found = recipe_faults(case, 40, 0)
    assert any("exceeds its bound" in fault for fault in found.faults)
