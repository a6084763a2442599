"""Rows of a picture of bits: one number each, its digits in the columns of their weights.

Kept digits stand on `fraction`; what truncation cut stands on `lost`, hatched upwards; what rounding took stands on
`mark`, hatched downwards. Ones are bold, zeros pale. A row is a group whose data are those of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..drawing.drawing import box, characters, group, path, text
from .sum_bits import BitRow
from .sum_columns import Columns
from .sum_numbers import typeset

ROW = 20
_INSET, _STRIPE = 2, 5


def said(x: float, y: float, words: str, **options: Any) -> str:
    """Write a text with raised exponents and real signs."""
    return text(x, y, typeset(words), **options)


def hatched(x: float, y: float, width: float, height: float, rising: bool) -> str:
    """Draw stripes over a box: what is not to be told by its colour alone."""
    parts = []
    t = float(_STRIPE)
    while t < width + height:
        ends = [(max(0.0, t - height), min(t, height)), (min(t, width), max(0.0, t - width))]
        if not rising:
            ends = [(a, height - b) for a, b in ends]
        (x1, y1), (x2, y2) = ends
        parts.append(f"M{x + x1:g} {y + y1:g}L{x + x2:g} {y + y2:g}")
        t += _STRIPE
    return path("".join(parts), "series1" if rising else "strong", weight=0.7)


def bits_row(columns: Columns, y: float, row: BitRow, rounded: bool = False) -> list[str]:
    """Draw the digits of a number; `rounded` says that those that were cut were taken by rounding."""
    parts = []
    border = row.low + row.cut  # the lowest that is kept
    height = ROW - 2 * _INSET
    if row.kept:
        x, width = _reach(columns, row.high, border)
        parts.append(box(x, y + _INSET, width, height, "fraction", stroke="line", weight=0.7))
    if row.cut and min(row.high, border - 1) >= columns.lowest:
        x, width = _reach(columns, min(row.high, border - 1), row.low)
        parts.append(box(x, y + _INSET, width, height, "mark" if rounded else "lost", stroke="line", weight=0.7))
        parts.append(hatched(x, y + _INSET, width, height, not rounded))
    size = 12 if columns.cell >= 12 else 10
    for digit, weight, fill in (("1", "bold", "ink"), ("0", "normal", "pale" if not row.cut else "ink")):
        places = [m for i, d in enumerate(row.digits) if d == digit and (m := columns.middle(row.high - i)) is not None]
        parts.append(characters(places, y + ROW / 2 + 4, digit * len(places), size=size, weight=weight, fill=fill))
    folds = [middle for middle, weights in columns.folds() if any(row.low <= w <= row.high for w in weights)]
    parts.append(characters(folds, y + ROW / 2 + 4, "~" * len(folds), size=size))
    if row.low < columns.lowest:
        parts.append(text(columns.right + 2, y + ROW / 2 + 4, "...", size=10))
    if row.negative:
        parts.append(text(_reach(columns, row.high, row.high)[0] - 9, y + ROW / 2 + 4, "−", size=14, weight="bold"))
    return [part for part in parts if part]


def _reach(columns: Columns, high: int, low: int) -> tuple[float, float]:
    left, right = columns.edge(high), columns.edge(max(low, columns.lowest)) + columns.cell
    return left, min(right, columns.right) - left


def labelled(
    y: float, words: Sequence[tuple[float, str, str]], parts: Sequence[str], data: dict[str, object], note: str = ""
) -> str:
    """Make a row of its digits and of texts: of each where it stands, how it is anchored, and what it says."""
    texts = [said(x, y + ROW / 2 + 4, each, size=11, anchor=anchor) for x, anchor, each in words if each]
    return group([*texts, *parts], data=data, note=typeset(note))
