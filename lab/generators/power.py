"""Which styles a campaign takes in each round, so that it notices every mutant of a recipe in few outputs.

`power.json` says which styles are needed: of every class of recipes, those that together notice each mutant that any
operands can show. `python -m lab.mutate.recipes --choose` measures that and writes the file. The other styles are taken
in one of `ROUNDS` rounds, for errors that no mutant has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from warpmma.arithmetic import Recipe
from warpmma.hardware import styles

__all__ = ["PATH", "ROUNDS", "recipe_class", "styles_in_turn", "styles_of_round"]

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


def styles_of_round(recipe: Recipe, k: int, blocks: int, number: int) -> list[str]:
    """Return the styles of a round of a campaign, one job each.

    Parameters
    ----------
    recipe : Recipe
    k, blocks : int
        As `operands` takes them.
    number : int
        Of the round: 0, 1, 2...

    Returns
    -------
    list of str
        In the order of `styles(recipe)`: those that the recipe needs, as often as it needs them, and of the others each
        in one of `ROUNDS` rounds. Every style once, if the recipe was not measured.

    Examples
    --------
    >>> from warpmma.arithmetic import recipe
    >>> half_sum = recipe("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "sm_90")
    >>> [styles_of_round(half_sum, 16, 0, number).count("floor") for number in range(ROUNDS)]
    [1, 1, 1, 1]
    >>> sum(styles_of_round(half_sum, 16, 0, number).count("full") for number in range(ROUNDS))
    1
    """
    every = styles(recipe)
    needed = _needed().get(recipe_class(recipe, k, blocks))
    if needed is None:
        return every
    others = [style for style in every if style not in needed]
    now = others[number % ROUNDS :: ROUNDS]
    return [style for style in every for _ in range(needed.get(style, 0) or int(style in now))]


def styles_in_turn(recipe: Recipe, k: int, blocks: int, rng: np.random.Generator) -> list[str]:
    """Return the styles of `ROUNDS` rounds, one round after the other and each in random order, to be repeated."""
    return [
        str(style) for number in range(ROUNDS) for style in rng.permutation(styles_of_round(recipe, k, blocks, number))
    ]


@cache
def _needed() -> Mapping[str, Mapping[str, int]]:
    table: Mapping[str, Mapping[str, int]] = json.loads(PATH.read_text()) if PATH.is_file() else {}
    return table
