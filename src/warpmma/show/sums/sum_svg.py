"""Explanations as pictures: aligned bits in a grid of weights, what was cut hatched, two targets one below the other.

Every row is a group with data of its own: `data-target`, `data-step` (from 0, counted over the chain), `data-row`
(addend, sum or result), `data-value`; of addends `data-addend`, `data-source`, `data-k`, `data-nominal` and
`data-kept`; of numbers with digits `data-bits`, `data-high` (weight of the first), `data-cut` (how many of the last
were cut) and `data-sign`; of results `data-code`.
"""

from __future__ import annotations

from textwrap import wrap

from ...analysis import Explanation
from ..drawing.drawing import Theme, box, document, text, text_width
from .sum_bits import BitGrid, grid_of
from .sum_columns import Columns, columns_of
from .sum_folding import PlacedStep, StepRun, counterparts, folded, placed
from .sum_numbers import code_text, number_of, number_text, short
from .sum_panel import NAME, SIDE, panel, side
from .sum_rows import hatched, said
from .sum_summary import ulps_text
from .sum_words import heading, how, link_of, run_text

_SHORT, _BOTH, _LEAST = 3, 4, 860


def svg(explanation: Explanation, theme: Theme = "auto") -> str:
    """Draw an explanation.

    Parameters
    ----------
    explanation : Explanation
        Of long chains the ends are drawn, and the steps that lost most; with another target, the steps in which the
        two part.
    theme : {"auto", "light", "dark"}
    """
    scenes = _scenes(explanation)
    steps = [(x, item) for x, items in scenes for item in items if isinstance(item, PlacedStep)]
    every = [side(x, item) for x, item in steps] or [(0.0, 0.0, 0.0)]
    widths = (max(w[0] for w in every), max(w[1] for w in every), max(w[2] for w in every))
    left = NAME + max(widths[0] + SIDE + widths[1], text_width("weight: 2 to the", 9)) + 22
    columns = columns_of([grid_of(item.step) for _, item in steps], left)
    told = max(
        text_width(_described(explanation), 12, mono=True),
        *(text_width(heading(item, len(x.steps)), 13, bold=True) for x, item in steps),
        0,
    )
    width = max(_LEAST, columns.right + 3 * SIDE + widths[2] + 110, told + 2 * NAME)
    body, y = _title(explanation, [grid_of(item.step) for _, item in steps], columns)
    for x, items in scenes:
        drawn, y = _scene(x, items, columns, y, widths, width)
        body += drawn
    data = {
        "instruction": explanation.instruction, "target": explanation.target, "row": explanation.row,
        "column": explanation.column, "code": code_text(explanation.result, explanation.format),
    }  # fmt: skip
    title = (
        f"D[{explanation.row}, {explanation.column}] of {explanation.instruction} on {explanation.target}, bit by bit"
    )
    return document(body, width, y + 8, title, theme=theme, data=data)


def _scenes(explanation: Explanation) -> list[tuple[Explanation, list[PlacedStep | StepRun]]]:
    """Choose what is drawn of each target."""
    others = explanation.others
    if not others:
        return [(explanation, list(folded(explanation, short=_SHORT, worst=1)))]
    steps = placed(explanation)
    where = [
        next((x for x in steps if parting and (x.link, x.place) == (parting.link, parting.step)), None)
        for parting in explanation.partings
    ]
    mine = sorted({x.number for x in where if x is not None})
    if not mine or all(len(steps) + len(other.steps) <= _BOTH for other in others):
        return [(x, list(folded(x, short=_BOTH))) for x in (explanation, *others)]
    theirs: list[tuple[Explanation, list[PlacedStep | StepRun]]] = [
        (other, list(counterparts(explanation, each or steps[mine[0]], other)))
        for other, each in zip(others, where, strict=True)
    ]
    return [(explanation, [steps[i] for i in mine]), *theirs]


def _title(explanation: Explanation, grids: list[BitGrid], columns: Columns) -> tuple[list[str], float]:
    place = f"D[{explanation.row}, {explanation.column}]"
    if explanation.matrix:
        place += f" of matrix {explanation.matrix}"
    body = [
        said(NAME, 28, f"{place}, bit by bit", size=17, weight="bold"),
        text(NAME, 48, _described(explanation), size=12, mono=True),
    ]
    x = float(NAME)
    cut, off = any(row.cut for grid in grids for row in grid.addends if row), any(g.sum.cut for g in grids if g.sum)
    for fill, words in (("fraction", "kept"), *[("lost", "cut: truncated")] * cut, *[("mark", "rounded off")] * off):
        body.append(box(x, 60, 30, 15, fill))
        if fill != "fraction":
            body.append(hatched(x, 60, 30, 15, fill == "lost"))
        body.append(said(x + 36, 72, words, size=11))
        x += 36 + text_width(words, 11) + 22
    notes = ["Digits of a product begin at its nominal exponent."] * any(g.quantum is not None for g in grids)
    notes += ["~ stands for columns of zeros."] * (None in columns.weights)
    for note in notes:
        body.append(said(x, 72, note, size=11, fill="pale"))
        x += text_width(note, 11) + 14
    return body, 88.0


def _described(explanation: Explanation) -> str:
    where = f"  {explanation.site}" if explanation.site else ""
    return f"{explanation.instruction}{where}"


def _scene(
    explanation: Explanation, items: list[PlacedStep | StepRun], columns: Columns, y: float,
    widths: tuple[float, float, float], width: float,
) -> tuple[list[str], float]:  # fmt: skip
    """Draw what is shown of one target."""
    body = [said(NAME, y + 18, explanation.target, size=14, weight="bold")]
    after = NAME + text_width(explanation.target, 14, bold=True) + 14
    lines = wrap(how(explanation.recipe), max(20, int((width - after - NAME) / 6.1)))
    body.insert(0, box(0, y, width, 12 + 14 * len(lines), "panel", stroke="none"))
    body.append(said(after, y + 18, lines[0], size=11))
    y += 30
    for more in lines[1:]:
        body.append(said(after, y + 8, more, size=11))
        y += 14
    link = -1
    for item in items:
        if isinstance(item, StepRun):
            body.append(said(NAME, y + 16, run_text(item), size=11, fill="pale"))
            y += 28
            continue
        if len(explanation.links) > 1 and item.link != link:
            link = item.link
            words = f"link {link + 1} of {len(explanation.links)}: {link_of(item)}"
            body.append(said(NAME, y + 14, words, size=11, fill="pale"))
            y += 18
        drawn, y = panel(explanation, item, columns, y + 4, widths)
        body += drawn
    if not items:
        body.append(said(NAME, y + 10, "Nothing is multiplied: the result is C.", size=11, fill="pale"))
        y += 22
    part = sum(isinstance(item, PlacedStep) for item in items) < len(explanation.steps)
    words = f"after all {len(explanation.steps)} steps: {_outcome(explanation)}" if part else _outcome(explanation)
    body.append(said(NAME, y + 10, words, size=12, weight="bold"))
    y += 30
    for words in _differences(explanation):
        for row in wrap(words, max(40, int((width - 2 * NAME) / 7.6))):
            body.append(said(NAME, y + 6, row, size=12, fill="series1", weight="bold"))
            y += 18
    return body, y + 8 * bool(_differences(explanation))


def _differences(explanation: Explanation) -> list[str]:
    """Say where other targets first differ, and why."""
    if len(explanation.others) == 1:
        return [f"They part here: {x.reason}" for x in explanation.partings if x is not None]
    return [
        f"{other.target}: {parting.reason}" if parting else f"{other.target}: every step is the same"
        for other, parting in zip(explanation.others, explanation.partings, strict=True)
    ]


def _outcome(explanation: Explanation) -> str:
    number = number_of(explanation.result, explanation.format)
    words = f"{number_text(number)} ({code_text(explanation.result, explanation.format)})"
    if explanation.exact is not None:
        words += f"; exact {short(explanation.exact)}"
    if explanation.error is not None:
        words += f"; error {ulps_text(explanation.error, explanation) or short(explanation.error)}"
    return f"result {words}"
