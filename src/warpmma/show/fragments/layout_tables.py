"""Layouts as tables: text, CSV, Markdown, JSON and HTML, all from the cells and grids of a `FragmentTable`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from json import dumps
from types import MappingProxyType

from ..._arguments import check_choice
from ..._text import table
from ...layouts import FragmentTable, Layout, TableGrid
from ..drawing.cards import page as in_page
from .fragment_pictures import table_svg

_STYLE = """\
body { background: var(--warpmma-paper); color: var(--warpmma-ink); font: 14px sans-serif; margin: 2em; }
table { border-collapse: collapse; margin-bottom: 2em; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: 0.5em; }
th, td { border: 1px solid var(--warpmma-line); padding: 2px 8px; text-align: left; white-space: nowrap; }"""
_WIDTH = 119  # of text: columns that do not fit go below
_FIELDS = ("row", "column", "matrix", "lane", "register", "low", "high", "index")


def layout_as(layout: Layout, by: str = "element", form: str = "text") -> str:
    """Write a layout, of an unknown operand, as a table in one of the formats."""
    check_choice("format", form, _WRITERS)
    return _WRITERS[form](FragmentTable(layout=layout, by=by))


def text(of: FragmentTable) -> str:
    """Write it in columns, no line longer than 119 where an entry leaves the choice."""
    blocks = [f"{of.title}\n{_key(of)}"]
    for grid in of.grids:
        heading = f"{grid.title}:\n" if grid.title and of.by == "element" else ""
        bands = ["\n".join(lines) for lines in _bands(grid)]
        blocks.append(heading + "\n\n".join(bands))
    if of.known:
        blocks.append(of.known)
    return "\n\n".join(blocks)


def _key(of: FragmentTable) -> str:
    """Describe the entries."""
    if of.by == "element":
        thread = "thread of the warpgroup" if of.layout.lanes > 32 else "lane"
        return f"{thread}: " + (f"{of.letter}s of its register" if len(of.letter) > 1 else "elements of its fragment")
    row, column = of.coordinates
    return f"[{row}, {column}]" + " after the number of its matrix" * bool(of.matrices)


def _bands(grid: TableGrid) -> Iterator[list[str]]:
    """Lay out a grid, as many columns at a time as fit the width."""
    columns = [[head, *(entries[i] for _, entries in grid.lines)] for i, head in enumerate(grid.across)]
    first = [grid.corner, *(head for head, _ in grid.lines)]
    used, band = 0, [first]
    for column in columns:
        width = max(map(len, column)) + 2
        if len(band) > 1 and used + width > _WIDTH:
            yield _laid_out(band)
            band = [first]
        if len(band) == 1:
            used = max(map(len, first))
        band.append(column)
        used += width
    yield _laid_out(band)


def _laid_out(columns: Sequence[Sequence[str]]) -> list[str]:
    return table(list(zip(*columns, strict=True)), left=range(len(columns)))


def markdown(of: FragmentTable) -> str:
    """Write a table of Markdown for each grid."""
    blocks = [f"{of.title}: {_key(of)}"]
    for grid in of.grids:
        if grid.title and of.by == "element":
            blocks.append(f"{grid.title}:")
        heads = [grid.corner.replace("\\", " \\\\ "), *grid.across]
        lines = [heads, ["---"] * len(heads), *([head, *entries] for head, entries in grid.lines)]
        blocks.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join(blocks)


def html(of: FragmentTable) -> str:
    """Write a `<table>` for each grid."""
    blocks = []
    for grid in of.grids:
        named = f", {grid.title}" * bool(grid.title and of.by == "element")
        heads = "".join(f"<th scope='col'>{escape(head)}</th>" for head in (grid.corner, *grid.across))
        lines = [
            f"<tr><th scope='row'>{escape(head)}</th>{''.join(f'<td>{escape(entry)}</td>' for entry in entries)}</tr>"
            for head, entries in grid.lines
        ]
        blocks += [
            "<table class='warpmma-layout'>", f"<caption>{escape(of.title + named)}: {escape(_key(of))}</caption>",
            f"<thead><tr>{heads}</tr></thead>", "<tbody>", *lines, "</tbody>", "</table>",
        ]  # fmt: skip
    return "\n".join(blocks)


def page(of: FragmentTable) -> str:
    """Write a page of HTML: the tables, light or dark as the reader has it."""
    return in_page(of.title, html(of), _STYLE)


def csv(of: FragmentTable) -> str:
    """Write a line for each element."""
    names = _names(of)
    return "\n".join([",".join(names), *(",".join(str(getattr(cell, x)) for x in names) for cell in of.cells)])


def json(of: FragmentTable) -> str:
    """Write its properties, and an object for each element."""
    head = {
        "instruction": of.instruction, "operand": of.operand, "by": of.by, "coordinates": list(of.coordinates),
        "matrices": list(of.matrices), "shape": list(of.layout.shape), "lanes": of.layout.lanes,
        "registers": of.layout.registers,
        **({"target": of.target} if of.target else {}), **({"known": of.known} if of.known else {}),
    }  # fmt: skip
    names = _names(of)
    cells = ",\n  ".join(dumps({name: getattr(cell, name) for name in names}) for cell in of.cells)
    return f'{dumps(head)[:-1]}, "cells": [\n  {cells}\n]}}'


def _names(of: FragmentTable) -> list[str]:
    """Fields of a cell that the table has."""
    return [name for name in _FIELDS if name != "matrix" or of.layout.matrix]


_WRITERS: Mapping[str, Callable[[FragmentTable], str]] = MappingProxyType(
    {"text": text, "csv": csv, "markdown": markdown, "json": json, "svg": table_svg, "html": html}
)
