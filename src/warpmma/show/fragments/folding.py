"""Folding: the boxes of a layout that a picture shows, and the laws by which the others follow.

1. A *box* has the elements of a register that are side by side along one coordinate. Their law is a *repeat*: a count,
   and how much some fields of a cell grow each time.
2. Of more than 16 boxes across, 8 are shown, and of more than 16 rows of them, 16; further ones follow by repeats of
   the whole picture.
3. A repeat is written "8 column+1 low+4 high+4 index+1", several with "; " between. Its first copy is unchanged.
   Several apply one after the other. So every element of a layout is in its picture, once: for programs, in attributes
   `data-row`, `data-column`, `data-matrix`, `data-lane`, `data-register`, `data-low`, `data-high` and `data-index` of a
   box, for its first element, with `data-repeat` of the box, and of the picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ...layouts import Cell, Layout
from ...registers import LANES

_MOST = 16
_FIELDS = ("matrix", "row", "column", "lane", "register", "low", "high", "index")


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """A number of repetitions, and how much some fields of a cell grow with each."""

    count: int
    steps: Mapping[str, int]

    def __str__(self) -> str:
        return " ".join([str(self.count), *(f"{name}{step:+d}" for name, step in self.steps.items())])


@dataclass(frozen=True, kw_only=True)
class FoldedLayout:
    """The part of a layout that is shown: `rows` by `columns` elements, and `repeats` by which the rest follows.

    A box has `run` elements of a register, side by side along `along`, "row" or "column".
    """

    layout: Layout
    along: str
    run: int
    rows: int
    columns: int
    repeats: tuple[Repeat, ...]

    @property
    def box(self) -> tuple[int, int]:
        """Rows and columns of a box, in elements."""
        return (self.run, 1) if self.along == "row" else (1, self.run)

    @cached_property
    def inside(self) -> Repeat | None:
        """The law of a box."""
        if self.run == 1:
            return None
        slot = self.layout.packing.slot
        return Repeat(count=self.run, steps={self.along: 1, "low": slot, "high": slot, "index": 1})

    def boxes(self, matrix: int = 0) -> Iterator[Cell]:
        """Yield the first element of each box that is shown, row by row."""
        down, right = self.box
        for row in range(0, self.rows, down):
            for column in range(0, self.columns, right):
                yield self.layout.cell(row, column, matrix)

    def data(self, cell: Cell) -> dict[str, object]:
        """Return the attributes of a box."""
        names = [name for name in _FIELDS if name != "matrix" or self.layout.matrix]
        found: dict[str, object] = {name: getattr(cell, name) for name in names}
        return found if self.inside is None else {**found, "repeat": self.inside}

    @property
    def law(self) -> dict[str, object]:
        """Return the attributes of the picture."""
        return {"repeat": "; ".join(map(str, self.repeats))} if self.repeats else {}

    def notes(self) -> list[str]:
        """Describe how the rest follows."""
        return [_said(repeat, self.layout) for repeat in self.repeats]


def fold(layout: Layout) -> FoldedLayout:
    """Fold a layout, by the rules above."""
    together = min(layout.packing.per_register.bit_length() - 1, layout.elements.bit_length() - 1)
    lengths = {name: _leading(bits, together) for name, bits in (("row", layout.row), ("column", layout.column))}
    along = "row" if lengths["row"] else "column"
    run = 1 << lengths[along]
    extents = {"row": len(layout.row), "column": len(layout.column)}
    kept = {}
    for name, bits in extents.items():
        unit = run.bit_length() - 1 if name == along else 0
        times = layout.repeats if name == "column" else 1
        kept[name] = bits if times << (bits - unit) <= _MOST else min(bits, unit + 3 + (name == "row"))
    whole = kept["column"] == extents["column"] and layout.repeats << (kept["column"]) <= _MOST * run
    repeats = [*_further(layout, "row", kept["row"]), *_further(layout, "column", kept["column"])]
    if layout.repeats > 1 and not whole:
        steps = {"column": 1 << len(layout.column), **_places(layout, layout.elements // layout.repeats)}
        repeats.append(Repeat(count=layout.repeats, steps=steps))
    columns = layout.shape[-1] if whole else 1 << kept["column"]
    return FoldedLayout(
        layout=layout, along=along, run=run, rows=1 << kept["row"], columns=columns, repeats=tuple(repeats)
    )


def _leading(bits: tuple[str, ...], most: int) -> int:
    """Return how many of a coordinate's lowest bits are the lowest ones of a fragment's index."""
    return next((i for i in range(most) if i >= len(bits) or bits[i] != f"e{i}"), most)


def _places(layout: Layout, index: int) -> dict[str, int]:
    """Return how far in the fragment an element is that comes so many elements later."""
    registers, position = divmod(index, layout.packing.per_register)
    slots = position * layout.packing.slot
    steps = {"register": registers, "low": slots, "high": slots, "index": index}
    return {name: step for name, step in steps.items() if step}


def _further(layout: Layout, axis: str, kept: int) -> Iterator[Repeat]:
    """Yield the laws of the bits of a coordinate that are not shown; bits that follow one another make one law."""
    laws: list[tuple[int, dict[str, int]]] = []
    for weight, bit in list(enumerate(getattr(layout, axis)))[kept:]:
        place = 1 << int(bit[1:])
        steps = {axis: 1 << weight, **({"lane": place} if bit[0] == "l" else _places(layout, place))}
        if laws and {name: step * laws[-1][0] for name, step in laws[-1][1].items()} == steps:
            laws[-1] = (laws[-1][0] * 2, laws[-1][1])
        else:
            laws.append((2, steps))
    return (Repeat(count=count, steps=steps) for count, steps in laws)


def _said(repeat: Repeat, layout: Layout) -> str:
    """Describe a repeat."""
    axis, step = next(iter(repeat.steps.items()))
    names = {"lane": "thread"} if layout.lanes > LANES else {}
    shown = [name for name in repeat.steps if name not in (axis, "low", "high")]
    more = ", ".join(f"{names.get(name, name)} +{repeat.steps[name]}" for name in shown)
    low = repeat.steps.get("low")
    more += f", bits +{low}" if low else ""
    last = step * repeat.count - 1
    further = f"; for each further {step} {axis}s" if repeat.count > 2 else ""
    return f"{axis.capitalize()}s {step}\N{EN DASH}{last}: as {axis}s 0\N{EN DASH}{step - 1}{further}, {more}"
