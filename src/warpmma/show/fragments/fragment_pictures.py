"""Pictures of what registers hold: every element's lane and register, or every register's elements.

Boxes form rows and columns like the matrix, or a line for each lane. All operands, metadata and scales have
pictures; colours are those of lanes. `folding` says which boxes are drawn, and what their `data-...` attributes mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from ..._arguments import check_choice
from ...isa import FragmentHolder, FragmentInstruction, FragmentMove, FragmentTranspose, Instruction, parse_holder
from ...layouts import OPERANDS, Cell, FragmentTable, Layout
from ...lookup import layout_table
from ..drawing.drawing import Theme, box, document, group, text, text_width
from ..drawing.legends import MARGIN, formulas, header, lane_legend, lines, register_strip
from .folding import FoldedLayout, fold

_LEAST = 600  # width that a line of formulas needs
_HEIGHT = 38  # of a box
_LINE = 22  # of a box in a lane's line
_GAP = 8  # where lanes repeat
_BETWEEN = 16  # matrices
_WIDEST = 900  # that matrices beside one another may be
_MORE = 64  # width of the mark for columns that are not shown
_DOTS = "\N{MIDLINE HORIZONTAL ELLIPSIS}"
_AXES = {"A": ("m", "k"), "B": ("k", "n"), "C": ("m", "n"), "D": ("m", "n")}
_IN_MEMORY = (FragmentMove, FragmentTranspose)  # whose rows and columns are those of memory
_DASH = "\N{EN DASH}"
_Drawn = tuple[list[str], float, float]
_PLURALS = {"matrix": "matrices", "copy": "copies"}
_WORDS = {"metadata": "Metadata", "scale_a": "Scales of A", "scale_b": "Scales of B"}


def instruction_svg(
    instruction: FragmentHolder,
    operand: str,
    by: str = "element",
    *,
    selector: int | None = None,
    byte_id: int | None = None,
    thread_id: int | None = None,
    target: str | None = None,
    theme: Theme = "auto",
) -> str:
    """Picture the registers of an operand of an instruction, as `Instruction.svg` says; `by` is "element" or "lane".

    With a selector, byte-id or thread-id, only the parts of metadata and scales that are read with it are shown.
    """
    chosen = {"selector": selector, "byte_id": byte_id, "thread_id": thread_id}
    return table_svg(layout_table(instruction, operand, by=by, target=target, **chosen), theme=theme)


def layout_svg(layout: Layout, by: str = "element", *, operand: str = "", theme: Theme = "auto") -> str:
    """Picture a layout; an operand gives names to elements and coordinates."""
    check_choice("operand", operand, (*OPERANDS, ""))
    return table_svg(FragmentTable(layout=layout, by=by, operand=operand, letter=operand.lower() or "e"), theme=theme)


def table_svg(table: FragmentTable, *, theme: Theme = "auto") -> str:
    """Picture a table of what registers hold; another theme is an `OperandError`."""
    layout, letter = table.layout, table.letter
    folded = fold(layout)
    grid, wide, high = _FragmentGrid(table=table, folded=folded).drawn
    width = max(_LEAST, wide + 2 * MARGIN)
    title, summary = _title(table), _summary(table)
    body, y = header(title, table.instruction, summary, width)
    body += [f"<g transform='translate({MARGIN} {y:g})'>", *grid, "</g>"]
    parts, y = lines(MARGIN, y + high + 14, folded.notes(), width - 2 * MARGIN, weight="bold")
    body += parts
    if layout.packing.per_register > 1 or layout.packing.bits < layout.packing.slot:
        parts, y = register_strip(layout.packing, letter, y + 6, width)
        body += parts
    if table.by == "element":
        parts, y = lane_legend(y + 6, layout.lanes)
        body += parts
    parts, y = formulas(layout, letter, y + 6, width)
    data = {
        "view": "fragment", "by": table.by, "operand": table.operand, "mnemonic": table.instruction,
        "matrices": layout.matrices, "rows": layout.shape[-2], "columns": layout.shape[-1], "lanes": layout.lanes,
        "registers": layout.registers, **folded.law,
    }  # fmt: skip
    said = " ".join([summary, *(f"{note}." for note in folded.notes())])
    return document(
        [*body, *parts], width, y + MARGIN / 2, f"{title} {table.instruction}".strip(),
        theme=theme, description=said, data=data,
    )  # fmt: skip


def size_of(layout: Layout) -> str:
    """Write how many rows and columns there are, and matrices where there are several."""
    size = " \N{MULTIPLICATION SIGN} ".join(map(str, layout.shape[-2:]))
    return f"{layout.matrices} matrices of {size}" if layout.matrix else size


def _title(table: FragmentTable) -> str:
    """Write the title of a picture."""
    layout = table.layout
    if not table.instruction:
        whose = f"Layout of {table.operand}: " if table.operand else "Layout of "
        return f"{whose}{size_of(layout)} elements"
    record = parse_holder(table.instruction)
    if isinstance(record, FragmentInstruction):
        return _fragment_title(table, record)
    if table.operand in OPERANDS:
        stored = " stored" if table.operand == "A" and isinstance(record, Instruction) and record.sparse else ""
        return f"{table.operand} of {record.shape}, {record.type(table.operand)}: {size_of(layout)}{stored} elements"
    (row, column), (rows, columns) = table.coordinates, layout.shape[-2:]
    size = f"{rows} {row}s \N{MULTIPLICATION SIGN} {columns} {column}{'s' * (columns > 1)}"
    kind = f", {record.stype}" if isinstance(record, Instruction) and record.stype and "scale" in table.operand else ""
    return f"{_WORDS.get(table.operand, table.operand)} of {record.shape}{kind}: {size}"


def _fragment_title(table: FragmentTable, record: FragmentInstruction) -> str:
    opcode, on = record.mnemonic.partition(".")[0], f" on {table.target}" * bool(table.target)
    if table.operand == "address":
        return f"Addresses of {opcode} {record.shape_name}: {len(table.matrices) * table.layout.shape[-2]} rows{on}"
    size = " \N{MULTIPLICATION SIGN} ".join(map(str, table.layout.shape[-2:]))
    several = f", {table.layout.matrices} {_PLURALS[record.variant(table.operand)]}" * bool(table.layout.matrix)
    type_ = record.element_type(table.operand)
    return f"{table.operand} of {opcode} {record.shape_name}, {type_}: {size} elements{several}{on}"


def _summary(table: FragmentTable) -> str:
    """Describe in a sentence or two how registers are used."""
    layout = table.layout
    packing = layout.packing
    who = "lanes of a warp" if layout.lanes == 32 else "threads of a warpgroup"
    many = f"{layout.registers} register{'s' * (layout.registers > 1)} of {packing.width} bits"
    noun = f"{table.letter}s" if len(table.letter) > 1 else "elements"
    holds = "one element" if packing.per_register == 1 else f"{packing.per_register} {noun}"
    said = f"{many} in each of {layout.lanes} {who}, {holds} in a register."
    if table.known:
        lanes = len(table.matrices) * layout.shape[-2]
        pointing = f" Lanes 0 to {lanes - 1} point to rows of 16 bytes." * (table.operand == "address")
        return f"{said}{pointing} {table.known[0].upper()}{table.known[1:]}."
    if not layout.matrix:
        return said
    if table.operand == "metadata":
        return f"{said} A nibble has the two indices of a group. The selector chooses what is read."
    if table.operand.startswith("scale"):
        return f"{said} Byte-id and thread-id choose what is read."
    return f"{said} {layout.matrices} matrices, each of 8 lanes."


# The grid


def _span(first: int, count: int) -> str:
    return str(first) if count == 1 else f"{first}{_DASH}{first + count - 1}"


@dataclass(frozen=True, kw_only=True)
class _FragmentGrid:
    """The boxes of a table; those of its folded layout are drawn."""

    table: FragmentTable
    folded: FoldedLayout

    @property
    def layout(self) -> Layout:
        """The table's."""
        return self.table.layout

    @property
    def shown(self) -> tuple[int, ...]:
        """Matrices that are drawn."""
        return tuple(range(self.layout.matrices)) if self.table.shown is None else self.table.shown

    @property
    def drawn(self) -> _Drawn:
        """The grid, its width and its height."""
        return self._by_element() if self.table.by == "element" else self._by_lane()

    @property
    def _worded(self) -> bool:
        """True where elements have no letter: boxes name their bits instead."""
        return len(self.table.letter) > 1

    @property
    def _axes(self) -> tuple[str, str]:
        if self.table.instruction and isinstance(parse_holder(self.table.instruction), _IN_MEMORY):
            return self.table.coordinates
        return _AXES.get(self.table.operand, self.table.coordinates)

    def _matrix(self, matrix: int) -> str:
        return self.table.matrices[matrix] if self.table.matrices else f"matrix {matrix}"

    def _bits(self, cell: Cell) -> str:
        return _span(cell.low, cell.high - cell.low + 1 + (self.folded.run - 1) * self.layout.packing.slot)

    def _elements(self, cell: Cell, between: str = "") -> str:
        run, letter = self.folded.run, self.table.letter
        if self._worded:
            return f"{letter}{'s' * (run > 1)} {_span(cell.index, run)}"
        if run == 1:
            return f"{letter}{cell.index}"
        return f"{letter}{cell.index}{between or (' ' if run == 2 else _DASH)}{letter}{cell.index + run - 1}"

    def _label(self, cell: Cell) -> str:
        return f"bits {self._bits(cell)}" if self._worded else self._elements(cell)

    def _note(self, cell: Cell) -> str:
        """Describe a box completely."""
        down, right = self.folded.box
        padded = self.folded.run > 1 and self.layout.packing.bits < self.layout.packing.slot
        matrix = f" of {self._matrix(cell.matrix)}" if self.layout.matrix else ""
        name = self.table.operand or "element"
        return (
            f"{name}[{_span(cell.row, down)}, {_span(cell.column, right)}]{matrix}: {self._elements(cell)} of "
            f"lane {cell.lane}, register {cell.register}, {'of ' * padded}bits {self._bits(cell)}"
        )

    def _group(self, parts: Iterable[str], cell: Cell) -> str:
        return group(parts, note=self._note(cell), data=self.folded.data(cell))

    # By element

    def _width(self) -> float:
        """Width of a box: that of its widest text."""
        widest = 44.0
        for matrix in self.shown:
            for cell in self.folded.boxes(matrix):
                first = text_width(f"T{cell.lane}", 13, bold=True)
                first += 7 + text_width(f"r{cell.register}", 10) if self._numbered else 0
                widest = max(widest, first + 8, text_width(self._label(cell), 12) + 10)
        return round(max(widest, 64 if self._split else 0))

    @property
    def _numbered(self) -> bool:
        """True where boxes name their register: it has several lettered elements."""
        return self.layout.packing.per_register > 1 and not self._worded

    @property
    def _split(self) -> bool:
        """True where each of a box's two elements has its own column."""
        return self.folded.box == (1, 2) and not self._worded

    def _by_element(self) -> _Drawn:
        """Draw the matrices, as many beside one another as fit."""
        layout, folded, (down, right) = self.layout, self.folded, self.folded.box
        xs = _offsets([layout.cell(0, c).lane for c in range(0, folded.columns, right)], self._width())
        ys = _offsets([layout.cell(r, 0).lane for r in range(0, folded.rows, down)], _HEIGHT)
        corner = text_width(" \\ ".join(self._axes), 11)
        left = max(42, text_width(_span(folded.rows - down, down), 11) + 8, corner + 8)
        top = 22.0 + 22 * bool(layout.matrix)
        wide = left + xs[-1] + _MORE * (layout.shape[-1] > folded.columns)
        high = top + ys[-1] + 28 * (layout.shape[-2] > folded.rows)
        if layout.matrix:
            wide = max(wide, *(text_width(self._matrix(matrix), 12, bold=True) for matrix in self.shown))
        number = len(self.shown)
        across = next(n for n in (8, 4, 2, 1) if n <= number and (n == 1 or n * (wide + _BETWEEN) <= _WIDEST))
        body = []
        for place, matrix in enumerate(self.shown):
            x, y = place % across * (wide + _BETWEEN), place // across * (high + _BETWEEN)
            body.append(f"<g transform='translate({x:g} {y:g})'>")
            if layout.matrix:
                named = self._matrix(matrix)
                start = min(left, wide - text_width(named, 12, bold=True))
                body.append(text(start, 12, named, weight="bold", size=12))
            body += [*self._indices(xs, ys, left, top), *self._further(xs[-1], ys[-1], left, top)]
            for cell in folded.boxes(matrix):
                body.append(self._box(cell, left + xs[cell.column // right], top + ys[cell.row // down], xs[1] - xs[0]))
            body.append("</g>")
        rows = -(-number // across)
        return body, across * (wide + _BETWEEN) - _BETWEEN, rows * (high + _BETWEEN) - _BETWEEN

    def _indices(self, xs: list[float], ys: list[float], left: float, top: float) -> Iterator[str]:
        """Write the numbers of columns and rows."""
        down, right = self.folded.box
        width = xs[1] - xs[0]
        yield text(left - 8, top - 6, " \\ ".join(self._axes), size=11, anchor="end", fill="pale")
        for i, x in enumerate(xs[:-1]):
            if self._split:
                for j in range(2):
                    middle = left + x + width * (2 * j + 1) / 4
                    yield text(middle, top - 6, str(2 * i + j), size=11, anchor="middle", fill="pale")
            else:
                said = _span(i * right, right)
                yield text(left + x + width / 2, top - 6, said, size=11, anchor="middle", fill="pale")
        for i, y in enumerate(ys[:-1]):
            yield text(left - 8, top + y + 23, _span(i * down, down), size=11, anchor="end", fill="pale")

    def _further(self, width: float, height: float, left: float, top: float) -> Iterator[str]:
        """Mark further rows and columns, which are not shown."""
        folded, (rows, columns) = self.folded, self.layout.shape[-2:]
        if columns > folded.columns:
            x = left + width + _GAP
            said = _span(folded.columns, columns - folded.columns)
            yield text(x + 28, top - 6, said, size=11, anchor="middle", fill="pale")
            yield box(x, top, 56, height, "panel", stroke="faint", dashed=True)
            yield text(x + 28, top + height / 2 + 4, _DOTS, size=16, anchor="middle", fill="pale")
        if rows > folded.rows:
            y = top + height + _GAP
            said = _span(folded.rows, rows - folded.rows)
            yield text(left - 8, y + 14, said, size=11, anchor="end", fill="pale")
            yield box(left, y, width, 20, "panel", stroke="faint", dashed=True)
            yield text(left + width / 2, y + 15, _DOTS, size=16, anchor="middle", fill="pale")

    def _box(self, cell: Cell, x: float, y: float, width: float) -> str:
        parts = [
            box(x, y, width, _HEIGHT, f"lane{cell.lane % 32}", stroke="paper", weight=1.5),
            text(x + 5, y + 16, f"T{cell.lane}", size=13, weight="bold"),
        ]
        if self._numbered:
            parts.append(text(x + width - 5, y + 16, f"r{cell.register}", size=10, anchor="end"))
        labels = [f"{self.table.letter}{cell.index + j}" for j in range(2)] if self._split else [self._label(cell)]
        for j, label in enumerate(labels):
            parts.append(text(x + width * (2 * j + 1) / (2 * len(labels)), y + 32, label, size=12, anchor="middle"))
        return self._group(parts, cell)

    # By lane

    def _by_lane(self) -> _Drawn:
        """Draw a table: lanes below one another, their registers side by side."""
        table, (down, right) = self.table, self.folded.box
        found: dict[tuple[int, int], list[Cell]] = {}
        for matrix in self.shown:
            for cell in self.folded.boxes(matrix):
                found.setdefault((cell.lane, cell.register), []).append(cell)
        lanes, registers = (sorted(set(numbers)) for numbers in zip(*found, strict=True))

        def label(cell: Cell) -> str:
            named = self._matrix(cell.matrix) if table.matrices else str(cell.matrix)
            matrix = f"{named}: " if self.layout.matrix else ""
            return f"{matrix}{_span(cell.row, down)}, {_span(cell.column, right)}"

        most = max(len(cells) for cells in found.values())
        heads = {register: self._held(register) for register in registers}
        width = max(text_width(label(cell), 11) for cells in found.values() for cell in cells) + 14
        width = max(
            min(110, 516 / len(registers) / most), width, *(text_width(x, 10) / most + 8 for x in heads.values())
        )
        left, top = 44.0, 50.0
        coordinates = ", ".join(table.coordinates)
        heading = f"{table.operand or 'element'}[{'matrix: ' * bool(self.layout.matrix)}{coordinates}]"
        body = [text(left, 12, heading, size=11, fill="pale")]
        for i, register in enumerate(registers):
            middle = left + (i + 0.5) * width * most
            body.append(text(middle, top - 18, f"r{register}", size=12, weight="bold", anchor="middle"))
            body.append(text(middle, top - 5, heads[register], size=10, fill="pale", anchor="middle"))
        at = {lane: top + i * _LINE + i // 4 * 4 for i, lane in enumerate(lanes)}
        body += [text(left - 8, y + 15, f"T{lane}", size=12, weight="bold", anchor="end") for lane, y in at.items()]
        for lane, (i, register) in product(lanes, enumerate(registers)):
            for j, cell in enumerate(sorted(found.get((lane, register), []), key=lambda cell: cell.low)):
                x, y = left + (i * most + j) * width, at[lane]
                parts = [
                    box(x, y, width, _LINE, f"lane{lane % 32}", stroke="paper", weight=1.5),
                    text(x + width / 2, y + 15, label(cell), size=11, anchor="middle"),
                ]
                body.append(self._group(parts, cell))
        return body, left + len(registers) * most * width, at[lanes[-1]] + _LINE

    def _held(self, register: int) -> str:
        """Name the elements of a register."""
        per, letter = self.layout.packing.per_register, self.table.letter
        first = register * per
        if self._worded:
            return f"{letter}s {_span(first, per)}, from left to right"
        return f"{letter}{first}" + (f"{_DASH}{letter}{first + per - 1}" if per > 1 else "")


def _offsets(lanes: list[int], size: float) -> list[float]:
    """Return where the boxes of a row or column begin, with a gap wherever the whole sequence of lanes repeats."""
    turns = [i for i in range(1, len(lanes)) if lanes[i] == lanes[0] != lanes[i - 1]]
    period = turns[0] if turns else len(lanes)
    regular = all(lane == lanes[i % period] for i, lane in enumerate(lanes))
    offsets = [size * i + _GAP * (i // period * regular) for i in range(len(lanes))]
    return [*offsets, offsets[-1] + size]
