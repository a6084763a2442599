"""Tables of layouts: the elements in order, and the same folded for readers, from which every format is written.

1. In programs' formats, CSV and JSON, every element has a line of its own: the fields of its `Cell`.
2. For readers, text, Markdown and HTML, the table by element is a grid like the matrix. Neighbouring elements in one
   lane, by the lowest bits of the coordinate, share an entry: `14: a0-1`.
3. The table by lane has a line for each lane and a column for each register; an entry has the coordinates that the
   register holds, runs of them by their ends: `[3, 4-5]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .._arguments import check_choice
from .._records import Record
from .._text import ranges
from .._views import view
from .bit_layout import ORDERS, Cell, Layout

TABLE_FORMATS = ("text", "csv", "markdown", "json", "svg", "html")
"""In which a table can be written."""


@dataclass(frozen=True, kw_only=True)
class TableGrid(Record):
    """One grid of a folded table.

    Attributes
    ----------
    title : str
        Which of several matrices it is; empty where there is one.
    corner : str
        The coordinates down and across.
    across : tuple of str
        Heads of the columns.
    lines : tuple of (str, tuple of str)
        The head of each row, and its entries.
    """

    title: str
    corner: str
    across: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, kw_only=True)
class FragmentTable(Record):
    """A layout as a table, by element or by lane.

    Attributes
    ----------
    layout : Layout
    by : {"element", "lane"}
    instruction, operand : str
        Empty for a plain layout, which knows neither.
    letter : str
        Name of an element in its lane, such as `a` of PTX's `ai`.
    coordinates : (str, str)
        What rows and columns are, where they are not those of the operand.
    matrices : tuple of str
        Names of several matrices.
    shown : tuple of int, optional
        Which of them the table has; all if None.
    target : str
        Whose layout it is, where targets differ; else it may be empty.
    known : str
        How the layout is known, where PTX leaves it open or memory is involved; else it may be empty.
    """

    layout: Layout
    by: str = "element"
    instruction: str = ""
    operand: str = ""
    letter: str = "e"
    coordinates: tuple[str, str] = ("row", "column")
    matrices: tuple[str, ...] = ()
    shown: tuple[int, ...] | None = None
    target: str = ""
    known: str = ""

    def __post_init__(self) -> None:
        check_choice("by", self.by, ORDERS)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every element, in the table's order."""
        cells = (cell for cell in self.layout.cells(self.by) if self.shown is None or cell.matrix in self.shown)
        return tuple(replace(cell, operand=self.operand) if self.operand else cell for cell in cells)

    @property
    def title(self) -> str:
        """The operand and instruction of the layout, as far as they are known."""
        whose = f"{self.operand} of {self.instruction}" if self.instruction else self.operand or "layout"
        return f"{whose} on {self.target}" if self.target else whose

    @cached_property
    def grids(self) -> tuple[TableGrid, ...]:
        """The folded table, a grid for each matrix that is shown; by lane, one grid for all."""
        if self.by == "lane":
            return (self._by_lane(),)
        shown = range(self.layout.matrices) if self.shown is None else self.shown
        return tuple(self._by_element(matrix) for matrix in shown)

    def _by_element(self, matrix: int) -> TableGrid:
        layout = self.layout
        (rows, columns), (down, right) = layout.shape[-2:], (_run(layout.row), _run(layout.column))

        blank = " " * (len(self.letter) > 1)

        def entry(row: int, column: int) -> str:
            first = layout.cell(row, column, matrix)
            return f"{first.lane}: {self.letter}{blank}{_ends(first.index, down * right)}"

        return TableGrid(
            title=self.matrices[matrix] if self.matrices else "", corner="\\".join(self.coordinates),
            across=tuple(_ends(column, right) for column in range(0, columns, right)),
            lines=tuple(
                (_ends(row, down), tuple(entry(row, column) for column in range(0, columns, right)))
                for row in range(0, rows, down)
            ),
        )  # fmt: skip

    def _by_lane(self) -> TableGrid:
        layout = self.layout
        lines = []
        for lane in range(layout.lanes):
            held = ([x for x in layout.holds(lane, y) if self._shows(x)] for y in range(layout.registers))
            lines.append((str(lane), tuple(" ".join(_runs(cells, self.matrices)) for cells in held)))
        heads = tuple(f"register {register}" for register in range(layout.registers))
        return TableGrid(title=f"[{', '.join(self.coordinates)}]", corner="lane", across=heads, lines=tuple(lines))

    def _shows(self, cell: Cell) -> bool:
        return self.shown is None or cell.matrix in self.shown

    def text(self) -> str:
        """Write it for a terminal."""
        return view(self, "text")

    def csv(self) -> str:
        """Write comma-separated values, an element in each line below the heads."""
        return view(self, "csv")

    def markdown(self) -> str:
        """Write tables of Markdown."""
        return view(self, "markdown")

    def json(self) -> str:
        """Write JSON: a description, and `cells`, an object for each element."""
        return view(self, "json")

    def html(self) -> str:
        """Write tables of HTML, without a page around them."""
        return view(self, "html")

    def svg(self, *, theme: str = "auto") -> str:
        """Draw it; `theme` is "auto", "light" or "dark", another is an `OperandError`."""
        return view(self, "svg", theme=theme)


def _run(names: Sequence[str]) -> int:
    """Return how many elements are neighbours in a lane, by the lowest bits of a coordinate."""
    bits = 0
    while bits < len(names) and names[bits] == f"e{bits}":
        bits += 1
    return 1 << bits


def _ends(first: int, count: int) -> str:
    return f"{first}" if count == 1 else f"{first}-{first + count - 1}"


def _runs(cells: Sequence[Cell], matrices: Sequence[str]) -> Iterator[str]:
    """Write the coordinates of cells, with neighbours in a row or a column as a range."""
    lines: dict[tuple[int, int], list[int]] = {}
    along_row = len({cell.row for cell in cells}) <= len({cell.column for cell in cells})
    for cell in cells:
        fixed, moving = (cell.row, cell.column) if along_row else (cell.column, cell.row)
        lines.setdefault((cell.matrix, fixed), []).append(moving)
    for (matrix, fixed), along in lines.items():
        for run in ranges(along, " ").split():
            place = f"[{fixed}, {run}]" if along_row else f"[{run}, {fixed}]"
            yield f"{matrix}{place}" if matrices else place
