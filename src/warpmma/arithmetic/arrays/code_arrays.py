"""Checks of the arguments of `compute` and `product`, for both engines: arrays of codes that fit together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import cast

import numpy as np

from ..._arguments import check_choice, is_integer
from ..._arrays import MOST_DIMENSIONS, MOST_ELEMENTS, Array
from ...errors import OperandError, shown
from ...formats import FORMATS
from ..recipes import Popcount, Recipe

Given = Mapping[str, Array | None]


def check_computed(recipe: Recipe, given: Given) -> tuple[int, ...]:
    """Return D's shape; raise `OperandError` unless arrays fit together as `compute` takes them."""
    _check_codes("compute", recipe, given, range(MOST_DIMENSIONS))
    there = {name: x for name, x in given.items() if x is not None}
    listed = ", ".join(f"{name} {list(x.shape)}" for name, x in there.items())
    along = {name: len(x) if x.ndim else 0 for name, x in there.items() if name != "C"}
    parts = {along[name] for name in ("scale_a", "scale_b") if name in along}
    whole = len(parts) < 2 and all(n and not along["A"] % n for n in parts)
    if along["A"] != along.get("chosen", along["B"]) or not whole:
        raise OperandError(f"compute: first dimensions do not go together: {listed}")
    if sum(name.startswith("scale") for name in there) != (2 if recipe.scale else 0):
        raise OperandError(f"compute: scales of A and B go with recipes of scales, this is of {recipe.scale}: {listed}")
    try:
        shape = np.broadcast_shapes(*(x.shape[name != "C" :] for name, x in there.items()))
    except ValueError:
        raise OperandError(f"compute: what follows k does not broadcast: {listed}") from None
    if along["A"] * math.prod(shape) > MOST_ELEMENTS:
        raise OperandError(f"compute: {along['A']} products for each of {list(shape)} outputs: no memory holds them")
    if "chosen" in there:
        _check_choices("compute", there["chosen"], along["B"])
    return shape


def _check_codes(what: str, recipe: Recipe, given: Given, dimensions: Sequence[int]) -> None:
    """Raise `OperandError` unless each operand is an array of codes of its format."""
    if not isinstance(recipe, Recipe):
        raise OperandError(
            f"{what}: a recipe is a record, as warpmma.arithmetic.recipes.recipe returns; got {shown(recipe)}"
        )
    of_scales = {"scale_a": recipe.scale, "scale_b": recipe.scale} if recipe.scale else {}
    formats = {"A": recipe.a, "B": recipe.b, "C": recipe.c, **of_scales}
    for name, x in given.items():
        if x is None and name not in "ABC":
            continue
        kinds = "iu" if name == "chosen" and what == "compute" else "u"
        if type(x) is not np.ndarray or x.ndim not in dimensions or x.dtype.kind not in kinds or not x.dtype.isnative:
            came = f"{x.dtype}, {x.ndim} dimensions" if type(x) is np.ndarray else type(x).__name__
            many = f"in {dimensions[0]}" if len(dimensions) == 1 else f"of at most {MOST_DIMENSIONS}"
            raise OperandError(f"{what}: {name} is an array of unsigned integers {many} dimensions; got {came}")
        if x.size > MOST_ELEMENTS:
            raise OperandError(f"{what}: {name} has {x.size:,} elements: more than any memory holds")
        if name not in formats or (isinstance(recipe.unit, Popcount) and name != "C"):  # words of as many bits as any
            continue
        fmt = FORMATS[formats[name]]
        if x.dtype != fmt.code_dtype:
            raise OperandError(f"{what}: {name} holds codes of {fmt.name}, {fmt.code_dtype}; got {x.dtype}")
        if fmt.bits < 8 * x.itemsize and x.size and int(x.max()) > fmt.mask:
            raise OperandError(f"{what}: {name} holds codes of {fmt.name}, up to {fmt.mask:#x}; got {int(x.max()):#x}")


def _check_choices(what: str, chosen: Array, rows: int) -> None:
    """Raise `OperandError` unless every stored element is multiplied by one of `rows` rows of B."""
    if chosen.size and not 0 <= int(chosen.min()) <= int(chosen.max()) < rows:
        beyond = chosen.max() if chosen.max() >= rows else chosen.min()
        raise OperandError(f"{what}: chosen is below {rows}, the rows of one instruction; got {beyond}")


def check_operands(recipe: Recipe, given: Given, k: int, scales: int, engine: str) -> None:
    """Raise `OperandError` unless arrays fit together as `product` takes them."""
    check_choice("engine", engine, ("numpy", "native"))
    for name, number in (("k", k), ("scales", scales)):
        if not is_integer(number) or not 0 <= number < 1 << 31:
            raise OperandError(f"product: {name} is a number that is not negative; got {shown(number)}")
    _check_codes("product", recipe, given, (3,))
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
    if chosen is not None:
        _check_choices("product", chosen, b_k)


def check_sums(recipe: Recipe, given: Given, k: int, ends: Sequence[tuple[int, bool]], sums: Array | None) -> None:
    """Raise `OperandError` unless partial sums are of f32, for this C, and chains end within the product.

    Overlapping bounds count as shared memory: `may_share_memory` compares the bounds, as the C++ does.
    """
    a, c = (cast(Array, given[name]) for name in "AC")
    pairs = isinstance(ends, list | tuple) and all(isinstance(x, list | tuple) and len(x) == 2 for x in ends)
    if not pairs or not all(is_integer(after) for after, _ in ends):
        raise OperandError(
            f"product: ends are pairs, after which instruction and whether a slice does; got {shown(ends)}"
        )
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
    for name, x in given.items():
        if x is not None and np.may_share_memory(sums, x):
            raise OperandError(
                f"product: sums are written and share memory with {name}; expected an array of their own"
            )
    after = [0, *(end for end, _ in ends)]
    if any(x >= y for x, y in pairwise(after)) or after[-1] > a.shape[2] // k:
        raise OperandError(f"product: ends ascend from 1 to {a.shape[2] // k}, the instructions; got {after[1:]}")
