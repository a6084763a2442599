"""Evaluation of recipes on arrays of codes: one instruction in NumPy, and chains of instructions by any engine."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from ..._arrays import Array
from ...formats import FORMATS
from ..arrays import (
    check_computed,
    check_operands,
    check_sums,
    f32_chains,
    fma_chain,
    fused_dot_add,
    grouped_dot_add,
    ieee_add,
    integer_sum,
    popcount,
)
from ..recipes import FloatChains, FmaChain, FusedDotAdd, GroupedDotAdd, IntegerSum, Popcount, Recipe
from . import native
from .engine import Resolved
from .native_elements import ElementForm, run_elements, runs_elements

_F32 = FORMATS["f32"]


def compute(
    recipe: Recipe, a: Array, b: Array, c: Array, *, chosen: Array | None = None,
    scale_a: Array | None = None, scale_b: Array | None = None,
) -> Array:  # fmt: skip
    """Compute D by the NumPy form of a recipe.

    Parameters
    ----------
    recipe : Recipe
    a, b : ndarray of unsigned int
        Codes, `[k, ...]`; what follows k broadcasts with each other and with `c`.
    c : ndarray of unsigned int
        Codes.
    chosen : ndarray of intp, optional
        Of a sparse A: which row of `b` each row of `a` meets, `[k of a, ...]`; what follows broadcasts likewise.
    scale_a, scale_b : ndarray of unsigned int, optional
        Codes of block scales, `[S, ...]`, for as many equal parts of k; what follows broadcasts likewise.

    Returns
    -------
    ndarray of unsigned int
        Codes of D, of the broadcast shape.

    Raises
    ------
    OperandError
        No codes of the recipe's formats, or shapes that do not go together.
    """
    given = {"A": a, "B": b, "C": c, "chosen": chosen, "scale_a": scale_a, "scale_b": scale_b}
    shape = check_computed(recipe, given)
    a, b = (_aligned(x, shape) for x in (a, b))
    chosen, scale_a, scale_b = (None if x is None else _aligned(x, shape) for x in (chosen, scale_a, scale_b))
    chosen = None if chosen is None else chosen.astype(np.intp, copy=False)
    of_products = np.broadcast_shapes(*(x.shape[1:] for x in (a, b, chosen) if x is not None))
    if of_products != shape:  # the same products for several elements of C, or several scales
        a = np.broadcast_to(a, (len(a), *shape))
    return dot(recipe, a, b, c, chosen=chosen, scale_a=scale_a, scale_b=scale_b)


def dot(
    recipe: Recipe, a: Array, b: Array, c: Array, *, chosen: Array | None = None,
    scale_a: Array | None = None, scale_b: Array | None = None,
) -> Array:  # fmt: skip
    """Compute D as `compute` does, from codes that are known to fit and have as many dimensions as D, beside k."""
    # Infinities and NaN run through the same operations as numbers: ignore their warnings.
    with np.errstate(all="ignore"):
        match recipe.unit:
            case FusedDotAdd():
                return fused_dot_add(recipe, a, b, c, chosen, scale_a, scale_b)
            case GroupedDotAdd():
                return grouped_dot_add(recipe, a, b, c, chosen, scale_a, scale_b)
            case FmaChain():
                return fma_chain(recipe, a, b, c)
            case FloatChains():
                return f32_chains(recipe, a, b, c)
            case IntegerSum():
                return integer_sum(recipe, a, b, c, chosen)
            case Popcount():
                return popcount(recipe, a, b, c)


_FMA32 = ElementForm(op="fma", source="f32", result="f32")


def _native_chain(recipe: Recipe, a: Array, b: Array, c: Array, **_: Array | None) -> Array:
    """Compute D of a chain in f32 as `dot` does, element by element in the native engine."""
    form = replace(_FMA32, rounding=cast(FmaChain, recipe.unit).rounding)
    for x, y in zip(a, b, strict=True):
        (c,) = run_elements(form, np.uint32, x, y, c)
    return c


def _aligned(x: Array, shape: tuple[int, ...]) -> Array:
    """Put dimensions of 1 after k, where D has more."""
    missing = len(shape) + 1 - x.ndim
    return x.reshape(len(x), *(1,) * missing, *x.shape[1:]) if missing else x


def product(
    recipe: Recipe, a: Array, b: Array, c: Array, *, k: int, engine: Resolved,
    chosen: Array | None = None, scale_a: Array | None = None, scale_b: Array | None = None, scales: int = 0,
    ends: native.Ends = (), sums: Array | None = None,
) -> Array:  # fmt: skip
    """Compute chains of one instruction over batches of matrices, by either engine.

    Parameters
    ----------
    engine : {"numpy", "native"}
    recipe, a, b, c, k, chosen, scale_a, scale_b, scales, ends, sums
        As for `native.product`.

    Returns
    -------
    ndarray of unsigned int
        Codes of D, `[batch, m, n]`; with `sums`, of the accumulator of the chain that has not ended.

    Raises
    ------
    OperandError
        Shapes or types that do not fit, a choice beyond its instruction, ends beyond the product, sums in the memory of
        an operand. A batch of 1 is for all of C's.
    """
    given = {"A": a, "B": b, "C": c, "chosen": chosen, "scale_a": scale_a, "scale_b": scale_b}
    check_operands(recipe, given, k, scales, engine)
    check_sums(recipe, given, k, ends, sums)
    return dot_chain(
        recipe, a, b, c, k=k, engine=engine, chosen=chosen, scale_a=scale_a, scale_b=scale_b, scales=scales,
        ends=ends, sums=sums,
    )  # fmt: skip


def dot_chain(
    recipe: Recipe, a: Array, b: Array, c: Array, *, k: int, engine: Resolved,
    chosen: Array | None = None, scale_a: Array | None = None, scale_b: Array | None = None, scales: int = 0,
    ends: native.Ends = (), sums: Array | None = None, out: Array | None = None,
) -> Array:  # fmt: skip
    """Compute `product` from codes that are known to fit together; the native engine may write D to `out`."""
    if a.shape[2] == 0:
        return c.copy()
    of_elements = isinstance(recipe.unit, FmaChain) and recipe.d == "f32"
    if engine == "native" and not of_elements:
        return native.product(
            recipe, a, b, c, k=k, chosen=chosen, scale_a=scale_a, scale_b=scale_b, scales=scales, ends=ends, sums=sums,
            out=out,
        )  # fmt: skip

    def rows(x: Array | None, number: int, each: int) -> Array | None:
        """Part of A (or of what goes with it) for one instruction, as `[k, batch, m, 1]`."""
        return None if x is None else np.moveaxis(x[:, :, number * each : (number + 1) * each], 2, 0)[..., None]

    def columns(x: Array | None, number: int, each: int) -> Array | None:
        return None if x is None else np.moveaxis(x[:, number * each : (number + 1) * each], 1, 0)[:, :, None]

    step = _native_chain if of_elements and engine == "native" and runs_elements() else dot
    b_k = k if chosen is None else 2 * k
    index = None if chosen is None else chosen.astype(np.intp)
    where = dict(ends)
    for i in range(a.shape[2] // k):
        c = step(
            recipe, rows(a, i, k), columns(b, i, b_k), c, chosen=rows(index, i, k),  # type: ignore[arg-type]
            scale_a=rows(scale_a, i, scales), scale_b=columns(scale_b, i, scales),
        )  # fmt: skip
        if sums is not None and i + 1 in where:
            _end_chain(c, sums, where[i + 1])
            c = np.zeros_like(c)
    return c


def _end_chain(accumulator: Array, sums: Array, ends_slice: bool) -> None:
    """Add the result of a chain to the sum of its slice, and at the end of the slice that to the total; in f32."""
    of_slice, total = sums
    nothing = _F32.sign_bit  # -0, which changes no addend's bits
    of_slice[...] = accumulator if (of_slice == nothing).all() else _add(of_slice, accumulator)
    if ends_slice:
        total[...] = _add(total, of_slice)
        of_slice[...] = nothing


def _add(x: Array, y: Array) -> Array:
    """Add codes of f32, to nearest even; NaN is the canonical one."""
    with np.errstate(invalid="ignore"):  # infinities of both signs
        return ieee_add(_F32, _F32.decode(x), _F32.decode(y))
