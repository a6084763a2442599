"""Mistakes with tiles of a product, and with the warps of a batch: left out, used twice, late, early, exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..._arrays import Array
from .matrix_mistakes import axis_sources
from .mistakes import COMMON, RARE, USUAL, Mistake, Step

MOST_NAMED = 64
"""Tiles along k that are left out or used twice one by one."""

# Of operands' arrays: the dimension that runs along k, along rows of D, along its columns.
_ALONG_K = {"A": 2, "B": 1, "metadata": 2, "scale_a": 2, "scale_b": 1}
_ROWS = {"A": 1, "C": 1, "D": 1, "metadata": 1, "scale_a": 1}
_COLUMNS = {"B": 2, "C": 2, "D": 2, "scale_b": 2}
_WITH = {"A": ("A", "metadata", "scale_a"), "B": ("B", "scale_b")}


def mistakes_in_tiles(
    operands: tuple[str, ...], warps: int, rows: int, columns: int, along_k: int
) -> Iterator[Mistake]:
    """List what may go wrong between tiles of a product of so many tiles."""
    if along_k > 1:
        yield from _along_k(operands, along_k)
    for count, dims, one, many in (
        (rows, _ROWS, "row of tiles", "rows of tiles"), (columns, _COLUMNS, "column of tiles", "columns of tiles"),
        (warps, dict.fromkeys(("A", "B", "C", "D", "metadata", "scale_a", "scale_b"), 0), "warp", "warps"),
    ):  # fmt: skip
        for text, source, rank in axis_sources(count, one, many):
            for name in ("A", "B", "C", "D", "metadata", "scale_a", "scale_b"):
                if name in dims and name in operands and (source >= 0).all() and rank < RARE:
                    said = text.format(f"of {_said(name)}")
                    yield Mistake(text=said, steps=(_taken(name, source, dims[name]),), rank=USUAL)


def _said(name: str) -> str:
    return {"metadata": "the metadata", "scale_a": "the scales of A", "scale_b": "the scales of B"}.get(name, name)


def _along_k(operands: tuple[str, ...], count: int) -> Iterator[Mistake]:
    x = np.arange(count)
    everything = tuple(name for name in _ALONG_K if name in operands)
    of_a, of_b = (tuple(name for name in _WITH[key] if name in operands) for key in "AB")
    alone = tuple((name,) for name in everything if name not in ("A", "B"))

    def mistake(text: str, names: tuple[str, ...], order: Any, rank: int) -> Mistake:
        steps = tuple(_taken(name, np.asarray(order), _ALONG_K[name]) for name in names)
        return Mistake(text=text, steps=steps, rank=rank)

    for t in range(count)[:MOST_NAMED]:
        left = x[x != t]
        yield mistake(f"k-tile {t} of {count} was left out", everything, left, COMMON)
    last = mistake("accumulators were set back to C at every k-tile: only the last counts", everything, x[-1:], COMMON)
    yield last
    cleared = Step(operand="C", change=np.zeros_like)
    yield replace(
        last, text="accumulators were set back to 0 at every k-tile: only the last counts", steps=(*last.steps, cleared)
    )
    yield mistake("only the first k-tile was used", everything, x[:1], USUAL)
    yield mistake("k-tiles were taken in reverse order", everything, x[::-1], USUAL)
    early, late = np.minimum(x + 1, count - 1), np.maximum(x - 1, 0)
    for names in (everything, of_a, of_b, *alone):
        said = " and ".join(map(_said, names)) if names != everything else "A and B"
        were = "was" if said in ("A", "B") else "were"
        yield mistake(f"{said} {were} one k-tile late, the first used twice", names, late, COMMON)
        yield mistake(f"{said} {were} one k-tile early, the last used twice", names, early, COMMON)
        yield mistake(f"{said} {were} one k-tile early, the first at the end", names, (x + 1) % count, USUAL)
        yield mistake(f"{said} {were} one k-tile late, the last at the beginning", names, (x - 1) % count, USUAL)
        yield mistake(f"every k-tile of {said} was the first", names, x * 0, USUAL)
        yield mistake(f"every k-tile of {said} was the last", names, x * 0 + count - 1, USUAL)
        yield mistake(f"k-tiles of {said} were used twice each: 0, 0, 2, 2, ...", names, x & ~1, USUAL)
        if count % 2 == 0:
            yield mistake(f"k-tiles of {said} were overwritten before use: 1, 1, 3, 3, ...", names, x | 1, USUAL)
            yield mistake(f"k-tiles of {said} were exchanged in pairs", names, x ^ 1, USUAL)
        for t in range(count - 1)[:MOST_NAMED]:
            twice = np.where(x == t + 1, t, x)
            yield mistake(f"k-tile {t} of {said} was used again in place of k-tile {t + 1}", names, twice, COMMON)
            before = np.where(x == t, t + 1, x)
            yield mistake(f"k-tile {t + 1} of {said} was used in place of k-tile {t}, too", names, before, USUAL)


def _taken(name: str, source: Array, axis: int) -> Step:
    return Step(operand=name, change=lambda array: array.take(source, axis=axis), whole=True)
