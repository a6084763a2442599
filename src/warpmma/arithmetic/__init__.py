"""The units of arithmetic that recipes are made of, each as a slow reference and as a fast form with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .chain import f32_chains, f64_chain
from .fused import fused_dot_add
from .integer import integer_sum, popcount
from .units import FloatChains, FmaChain, FusedDotAdd, IntegerSum, Popcount, Recipe

__all__ = ["compute"]

Array = npt.NDArray[Any]


def compute(recipe: Recipe, a: Array, b: Array, c: Array) -> Array:
    """Compute D by the NumPy form of a recipe.

    Parameters
    ----------
    recipe : Recipe
    a, b : ndarray of unsigned int
        Codes, `[k, ...]`; what follows k broadcasts with each other and with `c`.
    c : ndarray of unsigned int
        Codes.

    Returns
    -------
    ndarray of unsigned int
        Codes of D, of the broadcast shape.
    """
    # Infinities and NaN run through the same operations as numbers; what they raise on the way is no news.
    with np.errstate(all="ignore"):
        match recipe.unit:
            case FusedDotAdd():
                return fused_dot_add(recipe, a, b, c)
            case FmaChain():
                return f64_chain(recipe, a, b, c)
            case FloatChains():
                return f32_chains(recipe, a, b, c)
            case IntegerSum():
                return integer_sum(recipe, a, b, c)
            case Popcount():
                return popcount(recipe, a, b, c)
