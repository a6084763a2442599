"""What `product` takes: arrays that fit together, checked once for both engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..errors import OperandError
from .units import Recipe

__all__ = ["check_operands", "check_sums"]

Array = npt.NDArray[Any]
Given = Mapping[str, Array | None]


def check_operands(recipe: Recipe, given: Given, k: int, scales: int) -> None:
    """Raise `OperandError` unless arrays fit together as `product` takes them."""
    for name, x in given.items():
        if x is not None and not (isinstance(x, np.ndarray) and x.ndim == 3 and x.dtype.kind == "u"):
            came = f"{x.dtype}, {x.ndim} dimensions" if isinstance(x, np.ndarray) else type(x).__name__
            raise OperandError(f"product: {name} is an array of unsigned integers in 3 dimensions; got {came}")
    a, c, chosen = (cast(Array, given[name]) for name in ("A", "C", "chosen"))
    if k < 1 or a.shape[2] % k:
        raise OperandError(f"product: A is {list(a.shape)}; its last dimension is a multiple of k = {k}")
    count, b_k = a.shape[2] // k, k if chosen is None else 2 * k
    if count != 1 and recipe.c != recipe.d:
        raise OperandError(f"product: a chain of {count} instructions with C of {recipe.c} and D of {recipe.d}")
    batch, m, n = c.shape
    rows = {"A": a.shape[2], "scale_a": count * scales} | ({} if chosen is None else {"chosen": a.shape[2]})
    expected = {name: (m, length) for name, length in rows.items()}
    expected |= {"B": (count * b_k, n), "scale_b": (count * scales, n), "C": (m, n)}
    for name, x in given.items():
        fits = expected.get(name) if scales or not name.startswith("scale") else None
        if (x is None) != (fits is None) or (x is not None and (x.shape[1:] != fits or len(x) not in (1, batch))):
            came = "nothing" if x is None else str(list(x.shape))
            wanted = "nothing" if fits is None else str([batch, *fits])
            raise OperandError(
                f"product: {name} is {came}, not {wanted}, beside A {list(a.shape)} and C {list(c.shape)} by k = {k}"
            )
    if chosen is not None and chosen.size and chosen.max() >= b_k:
        raise OperandError(f"product: chosen is below {b_k}, the rows of one instruction; got {chosen.max()}")


def check_sums(recipe: Recipe, given: Given, k: int, ends: Sequence[tuple[int, bool]], sums: Array | None) -> None:
    """Raise `OperandError` unless partial sums are of f32, for this C, and chains end within the product."""
    a, c = (cast(Array, given[name]) for name in "AC")
    if sums is None:
        if ends:
            raise OperandError("product: chains that end have sums to be added to; got none")
        return
    if (recipe.c, recipe.d) != ("f32", "f32"):
        raise OperandError(f"product: sums are of chains with C and D of f32; got {recipe.c} and {recipe.d}")
    shape, whole = (2, *c.shape), isinstance(sums, np.ndarray) and sums.dtype == np.uint32
    if not whole or sums.shape != shape or not sums.flags.carray:
        came = f"{sums.dtype} {list(sums.shape)}" if isinstance(sums, np.ndarray) else type(sums).__name__
        raise OperandError(f"product: sums are uint32 {list(shape)}, contiguous and writable; got {came}")
    after = [0, *(end for end, _ in ends)]
    if any(x >= y for x, y in pairwise(after)) or after[-1] > a.shape[2] // k:
        raise OperandError(f"product: ends ascend from 1 to {a.shape[2] // k}, the instructions; got {after[1:]}")
