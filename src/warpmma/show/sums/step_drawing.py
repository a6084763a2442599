"""A step as a picture: addends in columns of weights, the window to which they are kept, the sum, its rounding.

Kept digits stand on `fraction`; what truncation cut stands on `lost`, hatched upwards; what rounding took stands on
`mark`, hatched downwards. Ones are bold, zeros pale. A row is a group whose data are those of the scene. A count of
ones has bits of A, of B and of their combination instead, 64 in a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..._text import counted
from ..drawing.drawing import box, characters, group, line, path, text, text_width
from .aligned_bits import BitGrid, BitRow, Columns
from .exact_text import typeset
from .scene import AddendRow, StepScene, SumRow

LEFT, SIDE = 16, 12  # left edge of row names; space between columns of words
_ROW, _INSET, _STRIPE = 20, 2, 5
_HEAD = 72
_ONES, _ONE, _ONES_LEFT = 64, 10, 120
Widths = tuple[float, float, float]


def said(x: float, y: float, words: str, **options: Any) -> str:
    """Write a text with raised exponents and real signs."""
    return text(x, y, typeset(words), **options)


def hatched(x: float, y: float, width: float, height: float, rising: bool) -> str:
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


def widths_of(steps: Iterable[StepScene]) -> Widths:
    """Return the widths of names, operands and values, over all steps."""
    some = list(steps)
    rows = [row for step in some for row in step.addends]
    values = [row.value.text for row in rows] + [x.value.text for step in some for x in (step.sum, step.result)]
    return (
        max([text_width(_name(row), 11) for row in rows] + [text_width("result", 11, bold=True)] * bool(some) + [0]),
        max([text_width(_operands(row), 11) for row in rows] + [0]),
        max([text_width(value, 11) for value in values] + [0]),
    )


def draw_step(step: StepScene, target: str, columns: Columns, y: float, widths: Widths) -> tuple[list[str], float]:
    """Draw a step; return also where it ends."""
    place: dict[str, object] = {"target": target, "step": step.number}
    if step.ones:
        return _ones(step, place, y)
    grid = step.grid
    parts = [said(LEFT, y + 16, step.heading, weight="bold", data={**place, "panel": step.operation})]
    if step.aligned:
        parts.append(said(LEFT, y + 34, step.aligned, size=11, fill="pale"))
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
    parts.append(line(LEFT, y + 2, columns.right + 2 * SIDE + widths[2], y + 2, "strong", weight=1.2))
    y += 5
    for end in (step.sum, step.result):
        parts.append(_end(end, place, columns, y))
        y += _ROW
    parts.append(said(LEFT, y + 15, step.outcome, size=11, fill="pale"))
    notes = [step.zeros] if step.zeros else []
    if some := step.others:
        verb = "is" if some.number == 1 else "are"
        notes.append(f"{counted(some.number, 'product')} {verb} not shown: k {some.k}")
    for words in notes:
        y += 16
        parts.append(said(LEFT, y + 15, words, size=11, fill="pale"))
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
            parts.append(said(middle, y, str(weight), size=9, anchor="middle", weight=bold, fill=fill, data=data))
            last = middle
    for middle, weights in columns.folds():
        parts.append(said(middle, y, "~", size=9, anchor="middle", data={"folded": f"{weights[0]} {weights[-1]}"}))
    parts.append(said(columns.left - 8, y, "weight: 2 to the", size=9, anchor="end", fill="pale"))
    if grid.quantum is None or grid.exponent is None:
        return parts
    x1, x2 = columns.edge(grid.exponent - 1), columns.edge(grid.quantum) + columns.cell
    top = y - 14
    parts += [line(x1 + 1, top, x2 - 1, top, "strong"), line(x1 + 1, top, x1 + 1, top + 4, "strong")]
    parts.append(line(x2 - 1, top, x2 - 1, top + 4, "strong"))
    bits = f"F = {grid.exponent - grid.quantum}"
    if text_width(longer := f"{bits} bits are kept below E", 10) < x2 - x1:
        bits = longer
    parts.append(said((x1 + x2) / 2, top - 4, bits, size=10, anchor="middle"))
    if (at := columns.middle(grid.exponent)) is not None:
        parts.append(said(at, top - 2, "E", size=11, anchor="middle", weight="bold"))
    if columns.lowest < grid.quantum:
        parts.append(said(x2 + 4, top + 2, "cut", size=10, weight="bold"))
    return parts


# Rows


def _addend(row: AddendRow, place: dict[str, object], columns: Columns, y: float, widths: Widths) -> str:
    data = {
        **place, "row": "addend", "addend": row.index, "source": row.source, "value": row.value.exact,
        "kept": row.kept.exact, **_data(row.bits),
    }  # fmt: skip
    if row.k:
        data["k"] = " ".join(map(str, row.k))
    if row.nominal is not None:
        data["nominal"] = row.nominal
    texts = [
        (LEFT + widths[0], "end", _name(row)), (LEFT + widths[0] + SIDE, "start", _operands(row)),
        (columns.right + 2 * SIDE, "start", row.value.text),
        (columns.right + 3 * SIDE + widths[2], "start", f"cut {row.cut}" * bool(row.cut)),
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
    name = said(LEFT, y + _ROW / 2 + 4, row.name, size=11, weight="bold")
    texts = [(columns.right + 2 * SIDE, "start", row.value.text)]
    return _row(y, texts, [name, *_digits(columns, y, row.bits, rounded=True)], data)


def _row(
    y: float, words: Sequence[tuple[float, str, str]], parts: Sequence[str], data: dict[str, object], note: str = ""
) -> str:
    """Make a row of its digits and of texts: the position, anchor and words of each."""
    texts = [said(x, y + _ROW / 2 + 4, each, size=11, anchor=anchor) for x, anchor, each in words if each]
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
        parts.append(hatched(x, y + _INSET, width, height, not rounded))
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
    parts = [said(LEFT, y + 16, step.heading, weight="bold")]
    y += 32
    for k, name, bits in step.lines_of_ones(_ONES):
        made = name not in ("A", "B")
        words = [said(_ONES_LEFT - 10, y + 14, name, size=11, anchor="end", weight="bold" if made else "normal")]
        if name == "A":
            words.append(said(LEFT, y + 14, f"k {k}-{k + len(bits) - 1}", size=11, fill="pale"))
        if made:
            words.append(box(_ONES_LEFT, y + 2, _ONE * len(bits), _ROW - 4, "fraction", weight=0.7))
            words.append(said(_ONES_LEFT + _ONE * _ONES + 12, y + 14, f"{bits.count('1')} ones", size=11))
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
        parts.append(group([said(x, y + 14, words, size=11, anchor=anchor) for x, anchor, words in ends], data=data))
        y += _ROW
    parts.append(said(LEFT, y + 15, step.outcome, size=11, fill="pale"))
    return parts, y + 28
