"""Every recipe once, with an instruction and a target that have it; and the reference over arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from warpmma.arithmetic import Recipe, recipe, reference_dot
from warpmma.isa import Instruction, instructions

__all__ = ["RecipeCase", "by_reference", "recipe_cases"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class RecipeCase:
    """A recipe over k products with so many blocks, and the first instruction and oldest target that have it.

    Attributes
    ----------
    recipe : Recipe
    k : int
        Products of a row: of a sparse instruction those that are stored.
    blocks : int
        Scales of a row.
    instruction : Instruction
    target : str
    """

    recipe: Recipe
    k: int
    blocks: int
    instruction: Instruction
    target: str

    def __str__(self) -> str:
        return f"{self.target} {str(self.instruction).removeprefix('mma.sync.aligned.')}"


@cache
def recipe_cases() -> tuple[RecipeCase, ...]:
    """List every recipe of `mma`, with each k and number of blocks that it is used with.

    Returns
    -------
    tuple of RecipeCase
    """
    found: dict[tuple[Recipe, int, int], RecipeCase] = {}
    for instruction in instructions():
        stored = instruction.k // 2 if instruction.sparse else instruction.k
        for target in instruction.targets:
            key = (recipe(instruction, target), stored, instruction.scales_per_row)
            found.setdefault(key, RecipeCase(*key, instruction, target))
    return tuple(found.values())


def by_reference(how: Recipe, **operands: Array) -> Array:
    """Compute D by the reference, row by row.

    Parameters
    ----------
    how : Recipe
    **operands : ndarray of unsigned int
        Codes, as `lab.generators.operands` makes them.

    Returns
    -------
    ndarray of uint64
        Codes of D, `[rows]`.
    """
    columns = ({name: x[..., j].tolist() for name, x in operands.items()} for j in range(len(operands["c"])))
    return np.array([reference_dot(how, **column) for column in columns], np.uint64)
