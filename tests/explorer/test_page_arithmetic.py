"""The page's arithmetic, in a browser, gives what Python's reference gives: every recipe, every style of operands."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from explorer_page import opened
from oracles import needs

from warpmma.arithmetic import Recipe, recipe, reference_dot
from warpmma.isa import warpgroup_instructions
from warpmma.show.explorer import explorer_data
from warpmma.testing.generators import operands, recipe_cases, styles

pytestmark = needs("browser")

ROWS = 4

COMPUTE = """rows => rows.map(([number, a, b, c, x, y]) => {
  const codes = (list) => list.map(BigInt);
  const recipe = warpmma.data.recipes[number];
  const steps = warpmma.sumSteps(warpmma.formats, recipe, codes(a), codes(b), BigInt(c), codes(x), codes(y));
  return steps[steps.length - 1].result.toString();
})"""


@cache
def cases() -> dict[Recipe, tuple[int, int]]:
    """Every recipe with the most products and blocks that it is used with."""
    found: dict[Recipe, tuple[int, int]] = {}
    for case in recipe_cases():
        found[case.recipe] = max(found.get(case.recipe, (0, 0)), (case.k, case.blocks))
    for record in warpgroup_instructions("sm_90a"):
        if record.n == 8:
            found.setdefault(recipe(record, "sm_90a"), (record.k, 0))
    return found


def number_of(how: Recipe) -> int:
    """Which row of the page's recipes it is."""
    unit = {"name": type(how.unit).__name__, **vars(how.unit)}
    fields = {name: value for name, value in vars(how).items() if name != "unit"}
    return explorer_data()["recipes"].index({**fields, "unit": unit})  # type: ignore[no-any-return]


def columns_of(drawn: dict[str, Any], column: int) -> list[Any]:
    """Operands of one sum, as JSON can have them: codes of f64 are more than a number of JavaScript holds."""
    named = [drawn[name][..., column] if name in drawn else np.empty(0, int) for name in ("a", "b", "c", "scale_a")]
    named.append(drawn["scale_b"][:, column] if "scale_b" in drawn else np.empty(0, int))
    return [[str(x) for x in each.tolist()] if each.ndim else str(each.item()) for each in named]


def test_every_recipe_is_on_the_page() -> None:
    assert {number_of(how) for how in cases()} == set(range(len(explorer_data()["recipes"])))


def test_results_are_those_of_the_reference(browser: Any) -> None:
    rng = np.random.default_rng(0)
    rows, expected = [], []
    for how, (k, blocks) in cases().items():
        for style in styles(how):
            drawn = operands(how, k, ROWS, style, rng, blocks)
            for column in range(ROWS):
                row = columns_of(drawn, column)
                rows.append([number_of(how), *row])
                a, b, c, x, y = ([*map(int, each)] if isinstance(each, list) else int(each) for each in row)
                expected.append(reference_dot(how, a, b, c, x, y))
    assert len(rows) > 4000
    with opened(browser) as page:
        results = [int(text) for text in page.evaluate(COMPUTE, rows)]
    wrong = [
        (row, result, right) for row, result, right in zip(rows, results, expected, strict=True) if result != right
    ]
    assert not wrong, f"{len(wrong)} of {len(rows)}; the first: {wrong[0]}"
