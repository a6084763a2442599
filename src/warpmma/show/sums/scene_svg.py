"""Explanations as pictures: aligned bits in a grid of weights, with what was cut hatched; targets below one another.

1. Of a step the addends are in columns of weights, with the window to which they are kept, the sum and its rounding.
   Kept digits are on `fraction`; what truncation cut is on `lost`, hatched upwards; what rounding removed is on `mark`,
   hatched downwards. Ones are bold, zeros pale. A count of ones has bits of A, of B and of their combination instead.
2. Every row is a group with data of its own: `data-target`, `data-step` (from 0, counted over the chain), `data-row`
   (addend, sum or result), `data-value`; of addends `data-addend`, `data-source`, `data-k`, `data-nominal` and
   `data-kept`; of numbers with digits `data-bits`, `data-high` (weight of the first), `data-cut` (how many of the last
   were cut) and `data-sign`; of results `data-code`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any

from ..._text import counted
from ...analysis import Explanation
from ..drawing.drawing import Theme, box, characters, document, group, line, path, text, text_width
from .aligned_bits import BitGrid, BitRow, Columns, columns_of
from .exact_text import typeset
from .scene import AddendRow, Scene, StepScene, SumRow, scene_of
from .shown_steps import picture_steps

_LEFT, _SIDE = 16, 12  # left edge of row names; space between columns of words
_ROW, _INSET, _STRIPE = 20, 2, 5
_HEAD = 72
_ONES, _ONE, _ONES_LEFT = 64, 10, 120
_LEAST = 860
_Widths = tuple[float, float, float]


def svg(explanation: Explanation, theme: Theme = "auto") -> str:
    """Draw an explanation: of a long chain its ends and largest losses; of several targets, where they differ."""
    scene = scene_of(explanation, picture_steps(explanation))
    scenes = [scene, *(other for other, _, _ in scene.others)]
    steps = [step for x in scenes for step in x.steps]
    grids, widths = [step.grid for step in steps], _widths_of(steps)
    left = _LEFT + max(widths[0] + _SIDE + widths[1], text_width("weight: 2 to the", 9)) + 22
    columns = columns_of(grids, left)
    told = max(
        text_width(_described(scene), 12, mono=True), *(text_width(step.heading, 13, bold=True) for step in steps), 0
    )
    width = max(_LEAST, columns.right + 3 * _SIDE + widths[2] + 110, told + 2 * _LEFT)
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
        _said(_LEFT, 28, f"{scene.whole_place}, bit by bit", size=17, weight="bold"),
        text(_LEFT, 48, _described(scene), size=12, mono=True),
    ]
    x = float(_LEFT)
    cut, off = any(row.cut for grid in grids for row in grid.addends if row), any(g.sum.cut for g in grids if g.sum)
    for fill, words in (("fraction", "kept"), *[("lost", "cut: truncated")] * cut, *[("mark", "rounded off")] * off):
        body.append(box(x, 60, 30, 15, fill))
        if fill != "fraction":
            body.append(_hatched(x, 60, 30, 15, fill == "lost"))
        body.append(_said(x + 36, 72, words, size=11))
        x += 36 + text_width(words, 11) + 22
    notes = ["Digits of a product begin at its nominal exponent."] * any(g.quantum is not None for g in grids)
    notes += ["~ stands for columns of zeros."] * bool(columns.folds())
    for note in notes:
        body.append(_said(x, 72, note, size=11, fill="pale"))
        x += text_width(note, 11) + 14
    return body, 88.0


def _described(scene: Scene) -> str:
    return f"{scene.instruction}  {scene.site}" if scene.site else scene.instruction


def _target(scene: Scene, columns: Columns, y: float, widths: _Widths, width: float) -> tuple[list[str], float]:
    """Draw what is shown of one target."""
    body = [_said(_LEFT, y + 18, scene.target, size=14, weight="bold")]
    after = _LEFT + text_width(scene.target, 14, bold=True) + 14
    lines = wrap(scene.how, max(20, int((width - after - _LEFT) / 6.1)))
    body.insert(0, box(0, y, width, 12 + 14 * len(lines), "panel", stroke="none"))
    body.append(_said(after, y + 18, lines[0], size=11))
    y += 30
    for more in lines[1:]:
        body.append(_said(after, y + 8, more, size=11))
        y += 14
    link = -1
    for item in scene.items:
        if isinstance(item, str):
            body.append(_said(_LEFT, y + 16, item, size=11, fill="pale"))
            y += 28
            continue
        if item.link_text and item.link != link:
            link = item.link
            body.append(_said(_LEFT, y + 14, item.link_text, size=11, fill="pale"))
            y += 18
        drawn, y = _draw_step(item, scene.target, columns, y + 4, widths)
        body += drawn
    if not scene.items:
        body.append(_said(_LEFT, y + 10, "Nothing is multiplied: the result is C.", size=11, fill="pale"))
        y += 22
    words = f"after all {scene.total} steps: {scene.outcome}" if len(scene.steps) < scene.total else scene.outcome
    body.append(_said(_LEFT, y + 10, words, size=12, weight="bold"))
    y += 30
    for words in _differences(scene):
        for row in wrap(words, max(40, int((width - 2 * _LEFT) / 7.6))):
            body.append(_said(_LEFT, y + 6, row, size=12, fill="series1", weight="bold"))
            y += 18
    return body, y + 8 * bool(_differences(scene))


def _differences(scene: Scene) -> list[str]:
    """Say where other targets first differ, and why."""
    if len(scene.others) == 1:
        return [f"They first differ here: {x.reason}" for _, x, _ in scene.others if x is not None]
    return [f"{other.target}: {x.reason if x else 'every step is the same'}" for other, x, _ in scene.others]


# A step


def _said(x: float, y: float, words: str, **options: Any) -> str:
    """Write a text with raised exponents and real signs."""
    return text(x, y, typeset(words), **options)


def _hatched(x: float, y: float, width: float, height: float, rising: bool) -> str:
    """Draw stripes over a box, so that colour is not all that tells it apart."""
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


def _name(row: AddendRow) -> str:
    return f"k {row.label}" if row.source == "product" else row.label


def _operands(row: AddendRow) -> str:
    found = row.product
    factors = (found.a, found.b) if found else ("sum",) * bool(row.scales)
    return " × ".join((*factors, *row.scales))


def _widths_of(steps: Iterable[StepScene]) -> _Widths:
    """Return the widths of names, operands and values, over all steps."""
    some = list(steps)
    rows = [row for step in some for row in step.addends]
    values = [row.value.text for row in rows] + [x.value.text for step in some for x in (step.sum, step.result)]
    return (
        max([text_width(_name(row), 11) for row in rows] + [text_width("result", 11, bold=True)] * bool(some) + [0]),
        max([text_width(_operands(row), 11) for row in rows] + [0]),
        max([text_width(value, 11) for value in values] + [0]),
    )


def _draw_step(step: StepScene, target: str, columns: Columns, y: float, widths: _Widths) -> tuple[list[str], float]:
    """Draw a step; return also where it ends."""
    place: dict[str, object] = {"target": target, "step": step.number}
    if step.ones:
        return _ones(step, place, y)
    grid = step.grid
    parts = [_said(_LEFT, y + 16, step.heading, weight="bold", data={**place, "panel": step.operation})]
    if step.aligned:
        parts.append(_said(_LEFT, y + 34, step.aligned, size=11, fill="pale"))
    y += _HEAD if grid.quantum is not None else 52 if step.aligned else 40
    parts += _header(columns, grid, y)
    first = y = y + 8
    bottom = y + (len(step.addends) + 2) * _ROW + 4
    for x in (columns.edge(w) for w in columns.single if w % 4 == 0):
        parts.append(line(x, y - 2, x, bottom, "faint"))  # as in ruled paper
    for row in step.addends:
        parts.append(_addend(row, place, columns, y, widths))
        y += _ROW
    if grid.quantum is not None and grid.addends:
        x = columns.edge(grid.quantum) + columns.cell
        parts.append(line(x, first - 4, x, y, "series1", weight=2))
    parts.append(line(_LEFT, y + 2, columns.right + 2 * _SIDE + widths[2], y + 2, "strong", weight=1.2))
    y += 5
    for end in (step.sum, step.result):
        parts.append(_end(end, place, columns, y))
        y += _ROW
    parts.append(_said(_LEFT, y + 15, step.outcome, size=11, fill="pale"))
    notes = [step.zeros] if step.zeros else []
    if some := step.others:
        verb = "is" if some.number == 1 else "are"
        notes.append(f"{counted(some.number, 'product')} {verb} not shown: k {some.k}")
    for words in notes:
        y += 16
        parts.append(_said(_LEFT, y + 15, words, size=11, fill="pale"))
    return parts, y + 28


def _header(columns: Columns, grid: BitGrid, y: float) -> list[str]:
    """Name weights: E and the quantum always, of the others each fourth. Above: the window of F bits."""
    marked = {w for w in (grid.exponent, grid.quantum) if w is not None}
    parts, last = [], -1e9
    for weight in columns.single:
        middle = columns.edge(weight) + columns.cell / 2
        near = any(0 < abs(weight - w) * columns.cell < 22 for w in marked)
        if weight in marked or (weight % 4 == 0 and not near and middle - last > 18):
            bold, fill = ("bold", "ink") if weight in marked else ("normal", "pale")
            data = {"weight": weight}
            parts.append(_said(middle, y, str(weight), size=9, anchor="middle", weight=bold, fill=fill, data=data))
            last = middle
    for middle, weights in columns.folds():
        parts.append(_said(middle, y, "~", size=9, anchor="middle", data={"folded": f"{weights[0]} {weights[-1]}"}))
    parts.append(_said(columns.left - 8, y, "weight: 2 to the", size=9, anchor="end", fill="pale"))
    if grid.quantum is None or grid.exponent is None:
        return parts
    x1, x2 = columns.edge(grid.exponent - 1), columns.edge(grid.quantum) + columns.cell
    top = y - 14
    parts += [line(x1 + 1, top, x2 - 1, top, "strong"), line(x1 + 1, top, x1 + 1, top + 4, "strong")]
    parts.append(line(x2 - 1, top, x2 - 1, top + 4, "strong"))
    bits = f"F = {grid.exponent - grid.quantum}"
    if text_width(longer := f"{bits} bits are kept below E", 10) < x2 - x1:
        bits = longer
    parts.append(_said((x1 + x2) / 2, top - 4, bits, size=10, anchor="middle"))
    if (at := columns.middle(grid.exponent)) is not None:
        parts.append(_said(at, top - 2, "E", size=11, anchor="middle", weight="bold"))
    if columns.lowest < grid.quantum:
        parts.append(_said(x2 + 4, top + 2, "cut", size=10, weight="bold"))
    return parts


# Rows


def _addend(row: AddendRow, place: dict[str, object], columns: Columns, y: float, widths: _Widths) -> str:
    data = {
        **place, "row": "addend", "addend": row.index, "source": row.source, "value": row.value.exact,
        "kept": row.kept.exact, **_data(row.bits),
    }  # fmt: skip
    if row.k:
        data["k"] = " ".join(map(str, row.k))
    if row.nominal is not None:
        data["nominal"] = row.nominal
    texts = [
        (_LEFT + widths[0], "end", _name(row)), (_LEFT + widths[0] + _SIDE, "start", _operands(row)),
        (columns.right + 2 * _SIDE, "start", row.value.text),
        (columns.right + 3 * _SIDE + widths[2], "start", f"cut {row.cut}" * bool(row.cut)),
    ]  # fmt: skip
    return _row(y, texts, _digits(columns, y, row.bits), data, _note(row))


def _note(row: AddendRow) -> str:
    """Say what shows when a row is pointed at: codes, and what was kept."""
    words = row.label
    if found := row.product:
        words = f"k {found.k}: {found.a_code} × {found.b_code}"
        if found.column:
            words += f", column {found.column} of A"
    words += f" = {row.value.text}"
    return f"{words}; kept {row.kept.text}" if row.cut else words


def _end(row: SumRow, place: dict[str, object], columns: Columns, y: float) -> str:
    data = {**place, "row": row.name, "value": row.value.exact, **_data(row.bits)}
    if row.code:
        data["code"] = row.code
    name = _said(_LEFT, y + _ROW / 2 + 4, row.name, size=11, weight="bold")
    texts = [(columns.right + 2 * _SIDE, "start", row.value.text)]
    return _row(y, texts, [name, *_digits(columns, y, row.bits, rounded=True)], data)


def _row(
    y: float, words: Sequence[tuple[float, str, str]], parts: Sequence[str], data: dict[str, object], note: str = ""
) -> str:
    """Make a row of its digits and of texts: the position, anchor and words of each."""
    texts = [_said(x, y + _ROW / 2 + 4, each, size=11, anchor=anchor) for x, anchor, each in words if each]
    return group([*texts, *parts], data=data, note=typeset(note))


def _data(row: BitRow | None) -> dict[str, object]:
    if row is None:
        return {}
    return {"high": row.high, "bits": row.digits, "cut": row.cut, "sign": "-" if row.negative else "+"}


def _digits(columns: Columns, y: float, row: BitRow | None, rounded: bool = False) -> list[str]:
    """Draw the digits of a number; `rounded` says that rounding took those that were cut."""
    if row is None:
        return []
    parts = []
    border = row.low + row.cut  # the lowest that is kept
    height = _ROW - 2 * _INSET
    if row.kept:
        x, width = _reach(columns, row.high, border)
        parts.append(box(x, y + _INSET, width, height, "fraction", stroke="line", weight=0.7))
    if row.cut and min(row.high, border - 1) >= columns.lowest:
        x, width = _reach(columns, min(row.high, border - 1), row.low)
        parts.append(box(x, y + _INSET, width, height, "mark" if rounded else "lost", stroke="line", weight=0.7))
        parts.append(_hatched(x, y + _INSET, width, height, not rounded))
    size = 12 if columns.cell >= 12 else 10
    for digit, weight, fill in (("1", "bold", "ink"), ("0", "normal", "pale" if not row.cut else "ink")):
        places = [m for i, d in enumerate(row.digits) if d == digit and (m := columns.middle(row.high - i)) is not None]
        parts.append(characters(places, y + _ROW / 2 + 4, digit * len(places), size=size, weight=weight, fill=fill))
    folds = [middle for middle, weights in columns.folds() if any(row.low <= w <= row.high for w in weights)]
    parts.append(characters(folds, y + _ROW / 2 + 4, "~" * len(folds), size=size))
    if row.low < columns.lowest:
        parts.append(text(columns.right + 2, y + _ROW / 2 + 4, "...", size=10))
    if row.negative:
        parts.append(text(_reach(columns, row.high, row.high)[0] - 9, y + _ROW / 2 + 4, "−", size=14, weight="bold"))
    return [part for part in parts if part]


def _reach(columns: Columns, high: int, low: int) -> tuple[float, float]:
    left, right = columns.edge(high), columns.edge(max(low, columns.lowest)) + columns.cell
    return left, min(right, columns.right) - left


# A count of ones


def _ones(step: StepScene, place: dict[str, object], y: float) -> tuple[list[str], float]:
    parts = [_said(_LEFT, y + 16, step.heading, weight="bold")]
    y += 32
    for k, name, bits in step.lines_of_ones(_ONES):
        made = name not in ("A", "B")
        words = [_said(_ONES_LEFT - 10, y + 14, name, size=11, anchor="end", weight="bold" if made else "normal")]
        if name == "A":
            words.append(_said(_LEFT, y + 14, f"k {k}-{k + len(bits) - 1}", size=11, fill="pale"))
        if made:
            words.append(box(_ONES_LEFT, y + 2, _ONE * len(bits), _ROW - 4, "fraction", weight=0.7))
            words.append(_said(_ONES_LEFT + _ONE * _ONES + 12, y + 14, f"{bits.count('1')} ones", size=11))
        for digit, fill in (("1", "ink"), ("0", "pale")):
            xs = [_ONES_LEFT + (i + 0.5) * _ONE for i, bit in enumerate(bits) if bit == digit]
            weight = "bold" if made and digit == "1" else "normal"
            words.append(characters(xs, y + 14, digit * len(xs), size=11, weight=weight, fill=fill))
        data = {**place, "row": "ones", "operand": name, "k": k, "bits": bits}
        parts.append(group([word for word in words if word], data=data))
        y += _ROW + (8 if made else 0)
    for name, value in step.ends:
        data = {**place, "row": name, "value": value.exact}
        if name == "result":
            data["code"] = step.result.code
        ends = ((_ONES_LEFT - 10, "end", name), (_ONES_LEFT, "start", value.text))
        parts.append(group([_said(x, y + 14, words, size=11, anchor=anchor) for x, anchor, words in ends], data=data))
        y += _ROW
    parts.append(_said(_LEFT, y + 15, step.outcome, size=11, fill="pale"))
    return parts, y + 28
