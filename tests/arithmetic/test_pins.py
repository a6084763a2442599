"""Every parameter of every recipe is pinned: change one by one step, and a recorded vector notices.

The vectors were chosen by `make_pins.py`. Their results are the reference's; where mmasim has the instruction,
`test_mmasim.py` compares the same recipes with it, and on sm_90 `test_hardware.py` with the GPU.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from make_pins import PINS
from recipe_mutations import mutations

from lab.generators import RecipeCase, recipe_cases
from warpmma.arithmetic import compute
from warpmma.arithmetic.recipes.units import FusedDotAdd, steps
from warpmma.formats import FORMATS, FloatFormat

pytestmark = pytest.mark.quick


def unnoticeable(case: RecipeCase, name: str) -> str:
    """Say why no operands can tell a change, or return an empty string.

    * Z: every product is a multiple of the product of the two least subnormals, and of the two least scales. Where that
      is no finer than the quantum 2^(Z - F) (for Z + 1 too), the floor truncates no product; C's exponents lie above Z.
    * L, doubled: where one step takes all of k already, it can take no more.
    * clamp twice, unsigned with unsigned: no product is negative, so a sum that was clamped stays so.
    * convert, e5m2 with e5m2: f16 has the same least exponent, so every nominal exponent is the same.
    * convert, e4m3 with e4m3: products are multiples of 2^-18. An exponent that differs belongs to a subnormal, so the
      alignment exponent it could raise is at most -6 + 8 = 2, and 2^(2 - 25) still divides 2^-18: nothing is truncated
      either way. The first step's result is a multiple of 2^-18 too, and C comes later.
    """
    if name.startswith("Z"):
        unit = cast(FusedDotAdd, case.recipe.unit)
        names = [case.recipe.a, case.recipe.b] + [case.recipe.scale] * 2 * bool(case.recipe.scale)
        formats = (cast(FloatFormat, FORMATS[str(name)]) for name in names)
        least = [fmt.emin - fmt.fraction_bits for fmt in formats]
        return "no product is truncated" if sum(least) >= unit.floor + 1 - unit.fraction_bits else ""
    if name.startswith("L"):
        before, after = (steps(case.recipe.order, n, case.k) for n in (_products(case), int(name.split()[1])))
        return "the same steps" if before == after else ""
    if name == "clamp twice" and {case.recipe.a[0], case.recipe.b[0]} == {"u"}:
        return "no product is negative"
    if name == "convert" and case.recipe.a == case.recipe.b:
        return {"e5m2": "same exponents", "e4m3": "nothing is truncated"}.get(case.recipe.a, "")
    return ""


def _products(case: RecipeCase) -> int:
    return cast(FusedDotAdd, case.recipe.unit).products


@lru_cache(maxsize=1)
def _pins() -> dict[str, npt.NDArray[Any]]:
    with np.load(PINS, allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


@pytest.mark.parametrize("case", recipe_cases(), ids=str)
def test_pinned(case: RecipeCase) -> None:
    given = {key.rpartition("|")[2]: x for key, x in _pins().items() if key.rpartition("|")[0] == str(case)}
    d = given.pop("d")
    assert np.array_equal(compute(case.recipe, **given), d)
    for name, changed in mutations(case):
        noticed = bool((changed(**given) != d).any())
        assert noticed == (not unnoticeable(case, name)), f"{case}: {name}"


def test_pins_are_those_of_the_recipes() -> None:
    assert {key.rpartition("|")[0] for key in _pins()} == {str(case) for case in recipe_cases()}
