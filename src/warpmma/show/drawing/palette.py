"""Colours of pictures: one table, for light and dark, that colour-blind eyes tell apart.

1. A colour has a name, a light form and a dark form. Pictures are written in light forms, which no two names share,
   unless they share the dark one too; a style sheet translates.
2. Fills carry text in `ink`, and texts stand on `paper`: contrast is 4.5 at least in both themes (WCAG 2.2, 1.4.3).
   Lines of plots, `series0` to `series3`, have 3 at least on `paper` (1.4.11).
3. `hue0` to `hue7` are the "light" scheme of Paul Tol (Colour Schemes, SRON/EPS/TN/09-002, issue 3.2, 2021), made to
   fill cells with text; their order here is the one of all whose neighbours, 7 and 0 too, are furthest apart for eyes
   without one of the three kinds of cones. A dark form is mixed with the dark `paper`.
4. `series0` to `series3` are of the scheme of Okabe and Ito (Color Universal Design, 2008).
5. `lane0` to `lane31`: the hue is the group (lane // 4), its strength the thread in the group, 0 the strongest.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Colour(NamedTuple):
    """A colour in two themes, as "#rrggbb", and its purpose."""

    light: str
    dark: str
    purpose: str


def _channels(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def mixed(colour: str, other: str, part: float) -> str:
    """Mix two colours, `part` of the second; channel by channel, in sRGB.

    Examples
    --------
    >>> mixed("#000000", "#ffffff", 0.25)
    '#404040'
    """
    pairs = zip(_channels(colour), _channels(other), strict=True)
    return "#" + "".join(f"{round(x + (y - x) * part):02x}" for x, y in pairs)


def _luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (x / 255 for x in _channels(colour))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(colour: str, other: str) -> float:
    """Return the contrast of two colours, 1 to 21, as WCAG 2.2 defines it.

    Examples
    --------
    >>> round(contrast("#ffffff", "#000000"), 2)
    21.0
    """
    low, high = sorted((_luminance(colour), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


_PAPER = Colour("#ffffff", "#14181d", "behind everything")
_TOL = ("#77aadd", "#ee8866", "#99ddff", "#eedd88", "#44bb99", "#bbcc33", "#ffaabb", "#aaaa00")
_LIGHTER = (0, 0.25, 0.48, 0.70)  # how much paper is in the colour of thread 0, 1, 2, 3
_DARKER = (0.58, 0.67, 0.76, 0.85)
_HUES = tuple(Colour(hue, mixed(hue, _PAPER.dark, _DARKER[0]), f"kind {i}") for i, hue in enumerate(_TOL))


def _lane(lane: int) -> Colour:
    hue, thread = _TOL[lane // 4], lane % 4
    light, dark = (mixed(hue, paper, part[thread]) for paper, part in zip(_PAPER, (_LIGHTER, _DARKER), strict=False))
    return Colour(light, dark, f"lane {lane}")


PALETTE: Mapping[str, Colour] = MappingProxyType({
    "paper": _PAPER,
    "panel": Colour("#f7f8f9", "#1c2229", "behind a part of a picture"),
    "ink": Colour("#222222", "#f2f4f6", "text"),
    "pale": Colour("#6e6e6e", "#a3adb8", "text that is read second: indices, axes"),
    "line": Colour("#8a8a8a", "#76808b", "edges of boxes"),
    "strong": Colour("#3c3c3c", "#d0d6dd", "edges that group boxes"),
    "faint": Colour("#e2e2e2", "#333b45", "edges of what is idle, grids"),
    "idle": Colour("#f5f5f5", "#20262d", "empty: nothing is here"),
    "padding": Colour("#dddddd", "#3a424c", "bits that mean nothing"),
    "free": Colour("#cfe8cf", "#1f4a2e", "served at once, right, kept"),
    "lost": Colour("#f4b6a6", "#a34a30", "waits, wrong, cut"),
    "mark": Colour("#ffe27a", "#6b5300", "looked at"),
    "sign": Colour("#dfa8cb", "#6b2f58", "sign of a number"),
    "exponent": Colour("#f7e3b5", "#4d4310", "exponent of a number"),
    "fraction": Colour("#b9d8f6", "#204a78", "significand of a number"),
    "series0": Colour("#0072b2", "#56b4e9", "first line of a plot"),
    "series1": Colour("#d55e00", "#e8833a", "second line of a plot"),
    "series2": Colour("#007f5f", "#2fc39a", "third line of a plot"),
    "series3": Colour("#a8497c", "#cc79a7", "fourth line of a plot"),
    **{f"hue{i}": hue for i, hue in enumerate(_HUES)},
    **{f"lane{lane}": _lane(lane) for lane in range(32)},
})  # fmt: skip
"""Every colour, by its name: the one table, for pictures, pages and the explorer."""
