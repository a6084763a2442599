"""Operands of whole outer products: of all rows of A with all columns of B, where row i, column i and C[i, i] match."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..._arrays import Array
from ...arithmetic import Recipe
from .adversarial_codes import operands


def outer_codes(
    recipe: Recipe, k: int, side: int, style: str, rng: np.random.Generator, scales: int = 0, *, sparse: bool = False
) -> dict[str, Array]:
    """Draw codes in one style, some of whose products need a row and a column that match.

    Parameters
    ----------
    recipe : Recipe
    k : int
        Products of a row; of a sparse A those that are stored.
    side : int
        Rows of A and columns of B.
    style : str
    rng : Generator
    scales : int
        Block scales of a row.
    sparse : bool
        Whether B has two rows for each product: its partner, and as a rule the same again.

    Returns
    -------
    dict of ndarray
        "a" `[side, k]`, "b" `[k or 2 k, side]`, "c", a sequence: C[i, j] is its element i + j; with scales also
        "scale_a" `[side, scales]` and "scale_b" `[scales, side]`.
    """
    x = operands(recipe, k, side, style, rng, scales)
    c = np.empty(2 * side, x["c"].dtype)
    c[::2], c[1::2] = x["c"], rng.permutation(x["c"])
    given = {"a": x["a"].T, "b": x["b"], "c": c}
    if scales:
        given |= {"scale_a": x["scale_a"].T, "scale_b": x["scale_b"]}
    if sparse:
        b = np.repeat(x["b"], 2, axis=0)
        strangers = np.nonzero(rng.random(b.shape) < 0.05)
        b[strangers] = b[rng.permutation(strangers[0]), strangers[1]]
        given["b"] = b
    return given


def drawn_nibbles(codes: Collection[int], rows: int, groups: int, rng: np.random.Generator) -> Array:
    """Choose nibbles of metadata, `[rows, groups]`: those that meet partners, and in a tenth of the rows any."""
    every = np.array(sorted(codes), np.uint8)
    nearby = np.array([x for x in every if x & 3 < 2 <= x >> 2] or every, np.uint8)
    nibbles = rng.choice(nearby, (rows, groups))
    some = rng.random(rows) < 0.1
    nibbles[some] = rng.choice(every, (int(some.sum()), groups))
    return nibbles
