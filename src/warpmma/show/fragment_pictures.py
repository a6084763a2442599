"""Pictures of fragments: every element's lane and register, and every register's elements.

What is folded, and what stands in `data-...` attributes, says `folding`. Colours are lanes'.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from .._arguments import check_choice
from ..isa import AnyInstruction
from ..layouts import ORDERS, Cell, Layout
from .drawing import Theme, box, document, group, text, text_width
from .folding import FoldedLayout, fold
from .legends import MARGIN, formulas, header, lane_legend, lines, register_strip

__all__ = ["instruction_svg", "layout_svg", "size_of"]

_HEIGHT = 38
_GAP = 8
_MORE = 64  # width of what stands for columns that are not shown
_DOTS = "\N{MIDLINE HORIZONTAL ELLIPSIS}"
_AXES = {"A": ("m", "k"), "B": ("k", "n"), "C": ("m", "n"), "D": ("m", "n")}
_DASH = "\N{EN DASH}"


def instruction_svg(instruction: AnyInstruction, operand: str, by: str = "element", theme: Theme = "auto") -> str:
    """Picture the fragment of an operand of an instruction.

    Parameters
    ----------
    instruction : Instruction or WarpgroupInstruction
    operand : {"A", "B", "C", "D"}
    by : {"element", "lane"}
    theme : {"auto", "light", "dark"}

    Raises
    ------
    OperandError
        Another operand, order or theme.
    """
    layout = instruction.layout(operand)  # type: ignore[arg-type]
    sparse = operand == "A" and getattr(instruction, "sparse", False)
    stored = " stored" if sparse else ""
    title = f"{operand} of {instruction.shape}, {instruction.type(operand)}: {size_of(layout)}{stored} elements"  # type: ignore[arg-type]
    return layout_svg(layout, by, operand=operand, title=title, mnemonic=str(instruction), theme=theme)


def layout_svg(
    layout: Layout,
    by: str = "element",
    *,
    operand: str = "",
    title: str = "",
    mnemonic: str = "",
    theme: Theme = "auto",
) -> str:
    """Picture a layout: which lane and register each element is in, or which elements are in each lane's registers.

    Parameters
    ----------
    layout : Layout
    by : {"element", "lane"}
    operand : {"A", "B", "C", "D", ""}
        Whose layout it is, for the names of elements and coordinates.
    title, mnemonic : str
    theme : {"auto", "light", "dark"}

    Raises
    ------
    OperandError
        Another order, operand or theme.
    """
    check_choice("by", by, ORDERS)
    check_choice("operand", operand, (*_AXES, ""))
    folded = fold(layout)
    title = title or f"Layout of {size_of(layout)} elements"
    letter = operand.lower() or "e"
    draw = _elements if by == "element" else _lanes
    grid, wide, high = draw(folded, operand or "element", letter)
    width = max(600, wide + 2 * MARGIN)
    head, y = header(title, mnemonic, _summary(layout), width)
    body = [*head, f"<g transform='translate({MARGIN} {y:g})'>", *grid, "</g>"]
    y += high + 14
    drawn, y = lines(MARGIN, y, folded.notes(), width - 2 * MARGIN, weight="bold")
    body += drawn
    strip: list[str] = []
    if layout.packing.per_register > 1 or layout.packing.bits < layout.packing.slot:
        strip, y = register_strip(layout.packing, letter, y + 6, width)
    swatches, y = lane_legend(y + 6, layout.lanes) if by == "element" else ([], y)
    written, y = formulas(layout, letter, y + 6, width)
    data = {
        "view": "fragment", "by": by, "operand": operand, "mnemonic": mnemonic, "matrices": layout.matrices,
        "rows": layout.shape[-2], "columns": layout.shape[-1], "lanes": layout.lanes, "registers": layout.registers,
        **folded.law,
    }  # fmt: skip
    said = " ".join([_summary(layout), *(f"{note}." for note in folded.notes())])
    return document(
        [*body, *strip, *swatches, *written], width, y + MARGIN / 2, f"{title} {mnemonic}".strip(),
        theme=theme, description=said, data=data,
    )  # fmt: skip


def size_of(layout: Layout) -> str:
    """Write how many rows and columns there are, and matrices where there are several."""
    size = " \N{MULTIPLICATION SIGN} ".join(map(str, layout.shape[-2:]))
    return f"{layout.matrices} matrices of {size}" if layout.matrix else size


def _summary(layout: Layout) -> str:
    packing = layout.packing
    who = "lanes of a warp" if layout.lanes == 32 else "threads of a warpgroup"
    many = f"{layout.registers} register{'s' * (layout.registers > 1)} of {packing.width} bits"
    holds = "one element" if packing.per_register == 1 else f"{packing.per_register} elements"
    matrices = f" {layout.matrices} matrices, each of 8 lanes." if layout.matrix else ""
    return f"{many} in each of {layout.lanes} {who}, {holds} in a register.{matrices}"


# By element


def _label(cell: Cell, run: int, letter: str) -> str:
    if run == 1:
        return f"{letter}{cell.index}"
    between = " " if run == 2 else _DASH
    return f"{letter}{cell.index}{between}{letter}{cell.index + run - 1}"


def _width(folded: FoldedLayout, letter: str) -> float:
    """Width of a box: of what is widest in one."""
    widest = 44.0
    several = folded.layout.packing.per_register > 1
    for matrix in range(folded.layout.matrices):
        for cell in folded.boxes(matrix):
            first = text_width(f"T{cell.lane}", 13, bold=True)
            first += 7 + text_width(f"r{cell.register}", 10) if several else 0
            widest = max(widest, first + 8, text_width(_label(cell, folded.run, letter), 12) + 10)
    return round(max(widest, 32 * folded.run if folded.run == 2 and folded.along == "column" else 0))


def _offsets(lanes: list[int], size: float) -> list[float]:
    """Where boxes of a row, or a column, begin; there is a gap where its lanes begin anew, all of them."""
    turns = [i for i in range(1, len(lanes)) if lanes[i] == lanes[0] != lanes[i - 1]]
    period = turns[0] if turns else len(lanes)
    regular = all(lane == lanes[i % period] for i, lane in enumerate(lanes))
    return [size * i + _GAP * (i // period * regular) for i in range(len(lanes))] + [
        size * len(lanes) + _GAP * ((len(lanes) - 1) // period * regular)
    ]


def _elements(folded: FoldedLayout, name: str, letter: str) -> tuple[list[str], float, float]:
    """Draw all matrices, as many beside one another as fit; return width and height too."""
    layout, (down, right) = folded.layout, folded.box
    width = _width(folded, letter)
    xs = _offsets([layout.cell(0, c).lane for c in range(0, folded.columns, right)], width)
    ys = _offsets([layout.cell(r, 0).lane for r in range(0, folded.rows, down)], _HEIGHT)
    last = _span(folded.rows - down, down)
    left, top = max(42, text_width(last, 11) + 8), 22 + 22 * bool(layout.matrix)
    more = _further(folded, left, top, xs[-1], ys[-1])
    whole = left + xs[-1] + (_MORE if layout.shape[-1] > folded.columns else 0), top + ys[-1]
    whole = whole[0], whole[1] + (28 if layout.shape[-2] > folded.rows else 0)
    across = next(n for n in (4, 2, 1) if n <= layout.matrices and (n == 1 or n * (whole[0] + 16) <= 900))
    body = []
    for matrix in range(layout.matrices):
        x, y = matrix % across * (whole[0] + 16), matrix // across * (whole[1] + 16)
        body.append(f"<g transform='translate({x:g} {y:g})'>")
        if layout.matrix:
            body.append(text(left, 12, f"matrix {matrix}", weight="bold", size=12))
        body += _indices(folded, letter, xs, ys, left, top)
        for cell in folded.boxes(matrix):
            at = left + xs[cell.column // right], top + ys[cell.row // down]
            body.append(_box(folded, cell, at, width, name, letter))
        body += [*more, "</g>"]
    rows = -(-layout.matrices // across)
    return body, across * (whole[0] + 16) - 16, rows * (whole[1] + 16) - 16


def _further(folded: FoldedLayout, left: float, top: float, width: float, height: float) -> list[str]:
    """Mark where rows and columns go on that are not shown."""
    rows, columns = folded.layout.shape[-2:]
    body = []
    if columns > folded.columns:
        x = left + width + _GAP
        said = _span(folded.columns, columns - folded.columns)
        body += [
            text(x + 28, top - 6, said, size=11, anchor="middle", fill="pale"),
            box(x, top, 56, height, "panel", stroke="faint", dashed=True),
            text(x + 28, top + height / 2 + 4, _DOTS, size=16, anchor="middle", fill="pale"),
        ]
    if rows > folded.rows:
        y = top + height + _GAP
        said = _span(folded.rows, rows - folded.rows)
        body += [
            text(left - 8, y + 14, said, size=11, anchor="end", fill="pale"),
            box(left, y, width, 20, "panel", stroke="faint", dashed=True),
            text(left + width / 2, y + 15, _DOTS, size=16, anchor="middle", fill="pale"),
        ]
    return body


def _indices(
    folded: FoldedLayout, letter: str, xs: list[float], ys: list[float], left: float, top: float
) -> Iterable[str]:
    """Write the numbers of columns and rows."""
    down, right = folded.box
    axes = _AXES.get(letter.upper())
    if axes:
        yield text(left - 8, top - 6, f"{axes[0]} \\ {axes[1]}", size=11, anchor="end", fill="pale")
    width = xs[1] - xs[0] if len(xs) > 1 else 0
    for i, x in enumerate(xs[:-1]):
        if right == 2:
            for j in range(2):
                middle = left + x + width * (2 * j + 1) / 4
                yield text(middle, top - 6, str(2 * i + j), size=11, anchor="middle", fill="pale")
        else:
            yield text(left + x + width / 2, top - 6, _span(i * right, right), size=11, anchor="middle", fill="pale")
    for i, y in enumerate(ys[:-1]):
        yield text(left - 8, top + y + 23, _span(i * down, down), size=11, anchor="end", fill="pale")


def _span(first: int, count: int) -> str:
    return str(first) if count == 1 else f"{first}{_DASH}{first + count - 1}"


def _note(folded: FoldedLayout, cell: Cell, name: str, letter: str) -> str:
    """Say all of a box."""
    down, right = folded.box
    matrix = f" of matrix {cell.matrix}" if folded.layout.matrix else ""
    high = cell.high + (folded.run - 1) * folded.layout.packing.slot
    padded = folded.run > 1 and folded.layout.packing.bits < folded.layout.packing.slot
    bits = f"{cell.low}{_DASH}{high}" if high > cell.low else str(cell.low)
    return (
        f"{name}[{_span(cell.row, down)}, {_span(cell.column, right)}]{matrix}: {_label(cell, folded.run, letter)} of "
        f"lane {cell.lane}, register {cell.register}, {'of ' * padded}bits {bits}"
    )


def _box(folded: FoldedLayout, cell: Cell, at: tuple[float, float], width: float, name: str, letter: str) -> str:
    x, y = at
    parts = [
        box(x, y, width, _HEIGHT, f"lane{cell.lane % 32}", stroke="paper", weight=1.5),
        text(x + 5, y + 16, f"T{cell.lane}", size=13, weight="bold"),
    ]
    if folded.layout.packing.per_register > 1:
        parts.append(text(x + width - 5, y + 16, f"r{cell.register}", size=10, anchor="end"))
    if folded.run == 2 and folded.along == "column":
        for j in range(2):
            label = f"{letter}{cell.index + j}"
            parts.append(text(x + width * (2 * j + 1) / 4, y + 32, label, size=12, anchor="middle"))
    else:
        label = _label(cell, folded.run, letter)
        parts.append(text(x + width / 2, y + 32, label, size=12, anchor="middle"))
    return group(parts, note=_note(folded, cell, name, letter), data=folded.data(cell))


# By lane


def _lanes(folded: FoldedLayout, name: str, letter: str) -> tuple[list[str], float, float]:
    """Draw a table: lanes below one another, their registers side by side."""
    layout, (down, right) = folded.layout, folded.box
    found: dict[tuple[int, int], list[Cell]] = {}
    for matrix in range(layout.matrices):
        for cell in folded.boxes(matrix):
            found.setdefault((cell.lane, cell.register), []).append(cell)
    lanes, registers = (sorted(set(numbers)) for numbers in zip(*found, strict=True))

    def label(cell: Cell) -> str:
        matrix = f"{cell.matrix}: " if layout.matrix else ""
        return f"{matrix}{_span(cell.row, down)}, {_span(cell.column, right)}"

    most = max(len(cells) for cells in found.values())
    width = max(text_width(label(cell), 11) for cells in found.values() for cell in cells) + 14
    heads = {r: _register(folded, r, letter) for r in registers}
    width = max(min(110, 516 / len(registers)), width, *(text_width(head, 10) + 8 for head in heads.values()))
    left, top, height = 44, 50, 22
    body = [text(left, 12, f"{name}[{'matrix: ' * bool(layout.matrix)}row, column]", size=11, fill="pale")]
    for i, register in enumerate(registers):
        x = left + i * width * most + width * most / 2
        body.append(text(x, top - 18, f"r{register}", size=12, weight="bold", anchor="middle"))
        body.append(text(x, top - 5, heads[register], size=10, fill="pale", anchor="middle"))
    for i, lane in enumerate(lanes):
        y = top + i * height + i // 4 * 4
        body.append(text(left - 8, y + 15, f"T{lane}", size=12, weight="bold", anchor="end"))
    for lane, register in product(lanes, registers):
        y = top + lanes.index(lane) * height + lanes.index(lane) // 4 * 4
        for j, cell in enumerate(found[lane, register]):
            x = left + (registers.index(register) * most + j) * width
            parts = [
                box(x, y, width, height, f"lane{lane % 32}", stroke="paper", weight=1.5),
                text(x + width / 2, y + 15, label(cell), size=11, anchor="middle"),
            ]
            body.append(group(parts, note=_note(folded, cell, name, letter), data=folded.data(cell)))
    return body, left + len(registers) * most * width, top + len(lanes) * height + (len(lanes) - 1) // 4 * 4


def _register(folded: FoldedLayout, register: int, letter: str) -> str:
    per = folded.layout.packing.per_register
    return f"{letter}{register * per}" + (f"{_DASH}{letter}{register * per + per - 1}" if per > 1 else "")
