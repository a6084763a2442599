"""Explanations as pictures: aligned bits in a grid of weights, with what was cut hatched; targets below one another.

Every row is a group with data of its own: `data-target`, `data-step` (from 0, counted over the chain), `data-row`
(addend, sum or result), `data-value`; of addends `data-addend`, `data-source`, `data-k`, `data-nominal` and
`data-kept`; of numbers with digits `data-bits`, `data-high` (weight of the first), `data-cut` (how many of the last
were cut) and `data-sign`; of results `data-code`.
"""

from __future__ import annotations

from textwrap import wrap

from ...analysis import Explanation
from ..drawing.drawing import Theme, box, document, text, text_width
from .aligned_bits import BitGrid, Columns, columns_of
from .scene import Scene, scene_of
from .shown_steps import picture_steps
from .step_drawing import LEFT, SIDE, Widths, draw_step, hatched, said, widths_of

_LEAST = 860


def svg(explanation: Explanation, theme: Theme = "auto") -> str:
    """Draw an explanation.

    Parameters
    ----------
    explanation : Explanation
        Of long chains the ends are drawn, and the steps that lost most; with other targets, the steps in which they
        first differ.
    theme : {"auto", "light", "dark"}
    """
    scene = scene_of(explanation, picture_steps(explanation))
    scenes = [scene, *(other for other, _, _ in scene.others)]
    steps = [step for x in scenes for step in x.steps]
    grids, widths = [step.grid for step in steps], widths_of(steps)
    left = LEFT + max(widths[0] + SIDE + widths[1], text_width("weight: 2 to the", 9)) + 22
    columns = columns_of(grids, left)
    told = max(
        text_width(_described(scene), 12, mono=True), *(text_width(step.heading, 13, bold=True) for step in steps), 0
    )
    width = max(_LEAST, columns.right + 3 * SIDE + widths[2] + 110, told + 2 * LEFT)
    body, y = _title(scene, grids, columns)
    for x in scenes:
        drawn, y = _target(x, columns, y, widths, width)
        body += drawn
    data = {
        "instruction": scene.instruction, "target": scene.target, "row": scene.row, "column": scene.column,
        "code": scene.result,
    }  # fmt: skip
    title = f"{scene.place} of {scene.instruction} on {scene.target}, bit by bit"
    return document(body, width, y + 8, title, theme=theme, data=data)


def _title(scene: Scene, grids: list[BitGrid], columns: Columns) -> tuple[list[str], float]:
    body = [
        said(LEFT, 28, f"{scene.whole_place}, bit by bit", size=17, weight="bold"),
        text(LEFT, 48, _described(scene), size=12, mono=True),
    ]
    x = float(LEFT)
    cut, off = any(row.cut for grid in grids for row in grid.addends if row), any(g.sum.cut for g in grids if g.sum)
    for fill, words in (("fraction", "kept"), *[("lost", "cut: truncated")] * cut, *[("mark", "rounded off")] * off):
        body.append(box(x, 60, 30, 15, fill))
        if fill != "fraction":
            body.append(hatched(x, 60, 30, 15, fill == "lost"))
        body.append(said(x + 36, 72, words, size=11))
        x += 36 + text_width(words, 11) + 22
    notes = ["Digits of a product begin at its nominal exponent."] * any(g.quantum is not None for g in grids)
    notes += ["~ stands for columns of zeros."] * bool(columns.folds())
    for note in notes:
        body.append(said(x, 72, note, size=11, fill="pale"))
        x += text_width(note, 11) + 14
    return body, 88.0


def _described(scene: Scene) -> str:
    return f"{scene.instruction}  {scene.site}" if scene.site else scene.instruction


def _target(scene: Scene, columns: Columns, y: float, widths: Widths, width: float) -> tuple[list[str], float]:
    """Draw what is shown of one target."""
    body = [said(LEFT, y + 18, scene.target, size=14, weight="bold")]
    after = LEFT + text_width(scene.target, 14, bold=True) + 14
    lines = wrap(scene.how, max(20, int((width - after - LEFT) / 6.1)))
    body.insert(0, box(0, y, width, 12 + 14 * len(lines), "panel", stroke="none"))
    body.append(said(after, y + 18, lines[0], size=11))
    y += 30
    for more in lines[1:]:
        body.append(said(after, y + 8, more, size=11))
        y += 14
    link = -1
    for item in scene.items:
        if isinstance(item, str):
            body.append(said(LEFT, y + 16, item, size=11, fill="pale"))
            y += 28
            continue
        if item.link_text and item.link != link:
            link = item.link
            body.append(said(LEFT, y + 14, item.link_text, size=11, fill="pale"))
            y += 18
        drawn, y = draw_step(item, scene.target, columns, y + 4, widths)
        body += drawn
    if not scene.items:
        body.append(said(LEFT, y + 10, "Nothing is multiplied: the result is C.", size=11, fill="pale"))
        y += 22
    words = f"after all {scene.total} steps: {scene.outcome}" if len(scene.steps) < scene.total else scene.outcome
    body.append(said(LEFT, y + 10, words, size=12, weight="bold"))
    y += 30
    for words in _differences(scene):
        for row in wrap(words, max(40, int((width - 2 * LEFT) / 7.6))):
            body.append(said(LEFT, y + 6, row, size=12, fill="series1", weight="bold"))
            y += 18
    return body, y + 8 * bool(_differences(scene))


def _differences(scene: Scene) -> list[str]:
    """Say where other targets first differ, and why."""
    if len(scene.others) == 1:
        return [f"They first differ here: {x.reason}" for _, x, _ in scene.others if x is not None]
    return [f"{other.target}: {x.reason if x else 'every step is the same'}" for other, x, _ in scene.others]
