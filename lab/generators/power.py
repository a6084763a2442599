"""How often a campaign takes each style of a recipe, so that it notices every mutant of the recipe in few outputs.

`power.json` says which styles are needed: of every class of recipes, those that together notice each mutant that any
operands can show. `python -m lab.mutate.recipes --choose` measures that and writes the file. The other styles are taken
in one of `ROUNDS` rounds, for errors that no mutant has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from warpmma.arithmetic import Recipe

from .adversarial_codes import styles

__all__ = ["PATH", "ROUNDS", "recipe_class", "turns"]

PATH = Path(__file__).with_name("power.json")
ROUNDS = 4


def recipe_class(recipe: Recipe, k: int, blocks: int = 0) -> str:
    """Name the class of a recipe: all of it, and k, but the formats of A and B.

    Examples
    --------
    >>> from warpmma.arithmetic import recipe
    >>> recipe_class(recipe("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", "sm_90"), 16)
    'IntegerSum(saturate=False), s32 + s32, k 16'
    """
    more = [x for x in (recipe.convert, recipe.scale) if x] + [recipe.order] * (recipe.order != "ascending")
    more += ["C after"] * (recipe.accumulate == "after") + [f"{blocks} scales"] * bool(blocks)
    return ", ".join([str(recipe.unit), f"{recipe.d} + {recipe.c}", f"k {k}", *more])


def turns(recipe: Recipe, k: int, blocks: int = 0) -> dict[str, int]:
    """Return how many jobs each style has in `ROUNDS` rounds.

    Parameters
    ----------
    recipe : Recipe
    k, blocks : int
        As `operands` takes them.

    Returns
    -------
    dict of str to int
        In the order of `styles(recipe)`: at least 1 each. Every style has `ROUNDS` for a recipe that was not measured.

    Examples
    --------
    >>> from warpmma.arithmetic import recipe
    >>> half_sum = recipe("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "sm_90")
    >>> turns(half_sum, 16)["floor"], turns(half_sum, 16)["near"]
    (4, 1)
    """
    needed = _needed().get(recipe_class(recipe, k, blocks))
    if needed is None:
        return dict.fromkeys(styles(recipe), ROUNDS)
    return {style: ROUNDS * needed.get(style, 0) or 1 for style in styles(recipe)}


@cache
def _needed() -> Mapping[str, Mapping[str, int]]:
    return json.loads(PATH.read_text()) if PATH.is_file() else {}
