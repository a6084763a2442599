"""Integer sums and population counts over arrays: rules 17 and 18 of `reference`."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

from ..._arrays import Array
from ...formats import FORMATS, integer
from ..recipes import IntegerSum, Popcount, Recipe
from .fused import Pairs


def integer_sum(recipe: Recipe, a: Array, b: Array, c: Array, chosen: Array | None = None) -> Array:
    """Compute D for arrays of dot products; parameters and result as for `fused_dot_add`, with an `IntegerSum`.

    A product of 8-bit integers is below 2^16 in magnitude: int32 holds the sum of 2^15 of them, more than any
    instruction has, and int64 a longer one, and the sum and C.
    """
    d = integer(recipe.d)
    pairs = Pairs(len(a), slice(None), (_values(recipe.a, a),), (_values(recipe.b, b),), chosen)
    narrow = np.int32 if len(a) <= 1 << 15 else np.int64
    products = sum((x * y).sum(axis=0, dtype=narrow) for x, y in pairs.runs(0))
    total = products + FORMATS[recipe.c].decode(c).astype(np.int64)
    if cast(IntegerSum, recipe.unit).saturate:
        total = np.clip(total, d.least, d.greatest)
    codes: Array = (total & d.mask).astype(d.code_dtype)
    return codes


def popcount(recipe: Recipe, a: Array, b: Array, c: Array) -> Array:
    """Compute D for arrays of bit vectors; parameters and result as for `fused_dot_add`, with a `Popcount`.

    The k values are single bits, or words of any number of bits: the count is the same.
    """
    d = integer(recipe.d)
    combine = {"xor": np.bitwise_xor, "and": np.bitwise_and}[cast(Popcount, recipe.unit).operation]
    ones = np.bitwise_count(combine(a, b)).sum(axis=0, dtype=np.int64)
    codes: Array = ((ones + c.astype(np.int64)) & d.mask).astype(d.code_dtype)
    return codes


def _values(name: str, codes: Array) -> npt.NDArray[np.int32]:
    """Values of narrow integers; as `IntegerFormat.decode`, without its check and in the width that products need."""
    least = integer(name).least
    return (codes.astype(np.int32) ^ -least) + least
