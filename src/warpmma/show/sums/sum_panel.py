"""A step as a picture: its addends in columns of weights, the window to which they are kept, the sum, its rounding."""

from __future__ import annotations

from dataclasses import dataclass

from ..._records import Record
from ..._text import counted
from ...analysis import Explanation
from ...arithmetic import Addend
from ...formats import Number
from ..drawing.drawing import line, text_width
from .sum_bits import BitGrid, BitRow, grid_of
from .sum_columns import Columns
from .sum_folding import PlacedStep, chosen_addends
from .sum_numbers import code_text, number_text, rational_of, short
from .sum_ones import ones_panel
from .sum_rows import ROW, bits_row, labelled, said
from .sum_words import aligned_text, factors, heading, label, listed, outcome_text, unpacked

NAME, SIDE = 16, 12  # where names of rows begin; between columns of words
_HEAD = 72


@dataclass(frozen=True, kw_only=True)
class _RowWords(Record):
    """What stands beside the bits of an addend: its name and operands to the left, values to the right."""

    name: str
    operands: str
    value: str
    lost: str


def row_words(explanation: Explanation, each: PlacedStep, addend: Addend) -> _RowWords:
    """Write what stands beside an addend's bits."""
    recipe, found = explanation.recipe, factors(explanation, each, addend)
    operands = ""
    if len(found) == 1 and addend.source == "product":
        operands = f"{unpacked(found[0].a, recipe.a)} × {unpacked(found[0].b, recipe.b)}"
    if found and found[0].scale_a is not None and found[0].scale_b is not None and recipe.scale:
        scales = f"{unpacked(found[0].scale_a, recipe.scale)} × {unpacked(found[0].scale_b, recipe.scale)}"
        operands = f"{operands} × {scales}" if operands else f"sum × {scales}"
    name = label(each, addend)
    if addend.source == "product":
        name = f"k {name}"
    return _RowWords(
        name=name, operands=operands, value=number_text(addend.number),
        lost=f"cut {short(addend.lost)}" if addend.lost else "",
    )  # fmt: skip


def side(explanation: Explanation, each: PlacedStep) -> tuple[float, float, float]:
    """Return how wide names, operands and values of a step are."""
    step = each.step
    words = [row_words(explanation, each, step.addends[i]) for i in chosen_addends(step).shown]
    values = [*(w.value for w in words), number_text(step.sum), number_text(step.number)]
    return (
        max([text_width(w.name, 11) for w in words] + [text_width("result", 11, bold=True)]),
        max([text_width(w.operands, 11) for w in words] + [0]),
        max(text_width(v, 11) for v in values),
    )


def panel(
    explanation: Explanation, each: PlacedStep, columns: Columns, y: float, widths: tuple[float, float, float]
) -> tuple[list[str], float]:
    """Draw a step.

    Returns
    -------
    list of str
    float
        Where it ends.
    """
    if each.step.operation == "popcount":
        return ones_panel(explanation, each, y)
    step, grid, choice = each.step, grid_of(each.step), chosen_addends(each.step)
    place = {"target": explanation.target, "step": each.number}
    total = len(explanation.steps)
    parts = [said(NAME, y + 16, heading(each, total), weight="bold", data={**place, "panel": step.operation})]
    if words := aligned_text(each):
        parts.append(said(NAME, y + 34, words, size=11, fill="pale"))
    y += _HEAD if grid.quantum is not None else 52 if words else 40
    parts += _header(columns, grid, y)
    first = y = y + 8
    parts += _lines(columns, y - 2, y + (len(choice.shown) + 2) * ROW + 4)
    for i in choice.shown:
        parts.append(_addend(explanation, each, i, columns, grid.addends[i], y, widths))
        y += ROW
    if grid.quantum is not None and grid.addends:
        parts.append(_border(columns, grid.quantum, first - 4, y))
    parts.append(line(NAME, y + 2, columns.right + 2 * SIDE + widths[2], y + 2, "strong", weight=1.2))
    y += 5
    for name, row, number, exact in (
        ("sum", grid.sum, step.sum, rational_of(step.sum)), ("result", grid.result, step.number, None)
    ):  # fmt: skip
        data: dict[str, object] = {**place, "row": name, "value": exact or rational_of(number), **_bits(row)}
        if name == "result":
            data["code"] = code_text(step.result, step.format)
        drawn = bits_row(columns, y, row, rounded=True) if row else []
        parts.append(_of_sum(name, number, columns, y, drawn, data))
        y += ROW
    parts.append(said(NAME, y + 15, outcome_text(each), size=11, fill="pale"))
    for indices, what in ((choice.zeros, "zero: k"), (choice.others, "not shown: k")):
        if indices:
            reach = sorted(each.chain.k.start + p for i in indices for p in step.addends[i].products)
            y += 16
            words = f"{counted(len(indices), 'product')} {'is' if len(indices) == 1 else 'are'} {what} {listed(reach)}"
            parts.append(said(NAME, y + 15, words, size=11, fill="pale"))
    return parts, y + 28


def _header(columns: Columns, grid: BitGrid, y: float) -> list[str]:
    """Name weights; E and the quantum always, of the others each fourth. Above: the window of F bits."""
    marked = {w for w in (grid.exponent, grid.quantum) if w is not None}
    parts, last = [], -1e9
    for weight in columns.weights:
        middle = None if weight is None else columns.middle(weight)
        if weight is None or middle is None:
            continue
        near = any(0 < abs(weight - w) * columns.cell < 22 for w in marked)
        if weight in marked or (weight % 4 == 0 and not near and middle - last > 18):
            bold = "bold" if weight in marked else "normal"
            fill = "ink" if weight in marked else "pale"
            parts.append(
                said(middle, y, str(weight), size=9, anchor="middle", weight=bold, fill=fill, data={"weight": weight})
            )
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
    middle = columns.middle(grid.exponent)
    if middle is not None:
        parts.append(said(middle, top - 2, "E", size=11, anchor="middle", weight="bold"))
    if columns.lowest < grid.quantum:
        parts.append(said(x2 + 4, top + 2, "cut", size=10, weight="bold"))
    return parts


def _lines(columns: Columns, y1: float, y2: float) -> list[str]:
    """Draw a faint line left of each fourth weight, as in ruled paper."""
    return [
        line(x, y1, x, y2, "faint") for w in columns.weights if w is not None and w % 4 == 0 for x in [columns.edge(w)]
    ]


def _border(columns: Columns, quantum: int, y1: float, y2: float) -> str:
    x = columns.edge(quantum) + columns.cell
    return line(x, y1, x, y2, "series1", weight=2)


def _bits(row: BitRow | None) -> dict[str, object]:
    if row is None:
        return {}
    return {"high": row.high, "bits": row.digits, "cut": row.cut, "sign": "-" if row.negative else "+"}


def _addend(
    explanation: Explanation, each: PlacedStep, index: int, columns: Columns, row: BitRow | None, y: float,
    widths: tuple[float, float, float],
) -> str:  # fmt: skip
    addend = each.step.addends[index]
    words = row_words(explanation, each, addend)
    data: dict[str, object] = {
        "target": explanation.target, "step": each.number, "row": "addend", "addend": index, "source": addend.source,
        "value": rational_of(addend.number), "kept": rational_of(addend.kept), **_bits(row),
    }  # fmt: skip
    if addend.products:
        data["k"] = " ".join(str(each.chain.k.start + p) for p in addend.products)
    if addend.nominal is not None:
        data["nominal"] = addend.nominal
    texts = [
        (NAME + widths[0], "end", words.name), (NAME + widths[0] + SIDE, "start", words.operands),
        (columns.right + 2 * SIDE, "start", words.value),
        (columns.right + 3 * SIDE + widths[2], "start", words.lost),
    ]  # fmt: skip
    return labelled(y, texts, bits_row(columns, y, row) if row else [], data, _note(explanation, each, addend))


def _note(explanation: Explanation, each: PlacedStep, addend: Addend) -> str:
    """Say what shows when a row is pointed at: codes, and what was kept."""
    recipe, found = explanation.recipe, factors(explanation, each, addend)
    words = label(each, addend)
    if len(found) == 1 and addend.source == "product":
        [f] = found
        words = f"k {f.k}: {code_text(f.a, recipe.a)} × {code_text(f.b, recipe.b)}"
        if explanation.instruction.sparse:
            words += f", column {f.position} of A"
    words += f" = {number_text(addend.number)}"
    return f"{words}; kept {number_text(addend.kept)}" if addend.lost else words


def _of_sum(name: str, number: Number, columns: Columns, y: float, drawn: list[str], data: dict[str, object]) -> str:
    texts = [(columns.right + 2 * SIDE, "start", number_text(number))]
    return labelled(y, texts, [said(NAME, y + ROW / 2 + 4, name, size=11, weight="bold"), *drawn], data)
