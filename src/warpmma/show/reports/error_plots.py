"""Errors of whole products as a picture: their cumulative distribution.

The errors, in ulps, run to the right, a factor of two to each step; the first place is that of no error. A line for
each product rises from nothing to all of its elements: of two lines, the upper one's errors are smaller. Products of
the same bits share a line. Lines differ by colour, by marks and by dashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from ...analysis import BINS, ErrorReport, ProductError
from ..drawing.cards import card, preformatted
from ..drawing.cards import page as in_page
from ..drawing.drawing import Theme, document, group, line, path, text, text_width
from .error_tables import alike, bin_name, figures_of, headline, share, shortened, shown_bins

_LEFT, _RIGHT, _TOP, _HEIGHT, _ROW = 64.0, 28.0, 72.0, 280.0, 22.0
_COLOURS = 4
_FEWEST = 5  # bins: up to 4 ulps
_MARKS = (
    "M{x0} {y}A{r} {r} 0 1 1 {x1} {y}A{r} {r} 0 1 1 {x0} {y}Z",
    "M{x0} {y0}H{x1}V{y1}H{x0}Z",
    "M{x} {y0}L{x1} {y1}H{x0}Z",
    "M{x} {y0}L{x1} {y}L{x} {y1}L{x0} {y}Z",
)
_COLUMNS = (
    ("ulps: largest", "ulps", 0), ("mean", "mean_ulps", 80), ("relative: largest", "largest_relative", 205),
    ("of |A||B|+|C|", "backward", 315), ("<= 1/2 ulp", "rounded", 405),
)  # fmt: skip


def svg(report: ErrorReport, *, theme: Theme = "auto") -> str:
    """Draw the distribution of errors of all products."""
    same = alike(report.products)
    products = [some[0] for some in same]
    bins = range(max(shown_bins(products).stop, _FEWEST))
    step = max(26.0, 640 / max(1, len(bins) - 1))
    width = max(760.0, _LEFT + step * max(1, len(bins) - 1) + _RIGHT)
    body = [
        text(16, 28, headline(products), size=15, weight="bold"),
        text(16, 50, "Part of the elements whose error is at most so many ulps: the higher a line, the better.",
             size=12, fill="pale"),
        *_axes(bins, step),
    ]  # fmt: skip
    body += [_curve(some, i, bins, step) for i, some in enumerate(same)]
    top = _TOP + _HEIGHT + 66
    body += _legend(same, top)
    height = top + _ROW * (len(products) + 1) + 10
    return document(
        body, width, height, f"{headline(products)}: {', '.join(shortened(x.name, 60) for x in report.products)}",
        theme=theme, description="; ".join(map(_said, same)),
    )  # fmt: skip


def _named(some: Sequence[ProductError]) -> str:
    return ", ".join(x.name for x in some)


def _said(some: Sequence[ProductError]) -> str:
    figures = figures_of(some[0])
    return f"{_named(some)}: largest error {figures['ulps']} ulps, mean {figures['mean_ulps']} ulps"


def _y(part: float) -> float:
    return _TOP + _HEIGHT * (1 - part)


def _axes(bins: Sequence[int], step: float) -> list[str]:
    right = _LEFT + step * max(1, len(bins) - 1)
    parts = []
    for percent in range(0, 101, 25):
        y = _y(percent / 100)
        parts.append(line(_LEFT, y, right, y, "line" if percent == 0 else "faint"))
        parts.append(text(_LEFT - 10, y + 4, f"{percent}%", size=11, anchor="end", fill="pale"))
    every = -(-len(bins) // 20)
    for place, at in enumerate(bins):
        x = _LEFT + step * place
        parts.append(line(x, _y(0), x, _y(0) + (6 if place % every == 0 else 3)))
        if place % every == 0:
            parts.append(text(x, _y(0) + 20, _tick(at), size=11, anchor="middle", fill="pale"))
    parts.append(text((_LEFT + right) / 2, _y(0) + 42, "error, in ulps of the result", size=12, anchor="middle"))
    return parts


def _tick(at: int) -> str:
    """Write the upper end of a bin in few letters."""
    if at == len(BINS):
        return "more"
    if at == 0 or BINS[at] < 1:
        return str(BINS[at])
    end = int(BINS[at])
    for size, letter in ((1 << 20, "M"), (1 << 10, "K")):
        if end >= size:
            return f"{end // size}{letter}"
    return str(end)


def _curve(some: Sequence[ProductError], number: int, bins: Sequence[int], step: float) -> str:
    """Draw one line, with a mark and a note at each bin."""
    product, names = some[0], _named(some)
    whole = max(1, product.compared)
    sums = list(accumulate(product.bins))
    points = [(_LEFT + step * place, _y(sums[at] / whole)) for place, at in enumerate(bins)]
    colour = f"series{number % _COLOURS}"
    drawn = [path("M" + "L".join(f"{x:g} {y:g}" for x, y in points), colour, weight=2, dashed=_dashed(number))]
    for (x, y), at in zip(points, bins, strict=True):
        note = f"{names}: {share(sums[at], whole)} {_within(at)}"
        drawn.append(_mark(x, y, number, note))
    return group(drawn, data={"product": names, "counts": " ".join(map(str, product.bins))})


def _within(at: int) -> str:
    return "have no error" if at == 0 else f"have an error up {bin_name(at)} ulps" if at < len(BINS) else "in all"


def _dashed(number: int) -> bool:
    return number // _COLOURS % 2 == 1


def _mark(x: float, y: float, number: int, note: str = "") -> str:
    r = 4 if number % len(_MARKS) else 3.5
    places = {"x": x, "y": y, "r": r, "x0": x - r, "x1": x + r, "y0": y - r, "y1": y + r}
    d = _MARKS[number % len(_MARKS)].format(**{name: f"{value:g}" for name, value in places.items()})
    return path(d, f"series{number % _COLOURS}", fill="paper", weight=1.6, note=note)


def _legend(same: Sequence[Sequence[ProductError]], top: float) -> list[str]:
    names = [shortened(_named(some), 32) for some in same]
    start = 76 + max(text_width(name, 12) for name in names) + 90
    parts = [text(start + x, top, name, size=11, anchor="end", fill="pale") for name, _, x in _COLUMNS]
    for i, ((product, *_), name) in enumerate(zip(same, names, strict=True)):
        y = top + _ROW * (i + 1)
        parts += [
            line(18, y - 4, 62, y - 4, f"series{i % _COLOURS}", weight=2, dashed=_dashed(i)),
            _mark(40, y - 4, i),
            text(76, y, name, size=12),
        ]
        figures = figures_of(product)
        parts += [text(start + x, y, figures[key], size=12, anchor="end") for _, key, x in _COLUMNS]
    return parts


def html(report: ErrorReport) -> str:
    """Draw a report in a notebook: the picture, and the tables."""
    return card("", parts=[svg(report), preformatted(report.text())])


def page(report: ErrorReport) -> str:
    """Write a page of HTML: the card."""
    return in_page("Errors of a product", html(report))
