"""Tables of layouts: text, CSV, Markdown, JSON, HTML and SVG say the same of every element."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from io import StringIO
from itertools import product
from typing import Any

import pytest
from svg_cells import FIELDS, elements

import warpmma as wm
from warpmma.errors import OperandError
from warpmma.isa import MatrixInstruction, instructions, warpgroup_instructions
from warpmma.layouts import ORDERS, TABLE_FORMATS, FragmentTable, Layout
from warpmma.lookup import layout_table, operand_layout
from warpmma.registers import Packing

Place = tuple[int, int, int, int, int]  # matrix, row, column, lane, index
F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SP = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"

EVERY: tuple[MatrixInstruction, ...] = (*instructions(), *(i for i in warpgroup_instructions() if i.n <= 24))


def operands(i: MatrixInstruction) -> list[str]:
    return [*"AC", *["B"] * (i.m < 64), *["metadata"] * i.sparse, *["scale_a", "scale_b"] * i.block_scale]


SOME: dict[tuple[Layout, str], MatrixInstruction] = {
    (operand_layout(i, x), x): i
    for i in EVERY
    for x in operands(i)
    if operand_layout(i, x).elements <= 32 or i.shape == "m16n8k256"
}
"""Every layout but the largest, with an instruction that has it; of the largest one of single bits."""


def places(table: FragmentTable) -> set[Place]:
    return {(x.matrix, x.row, x.column, x.lane, x.index) for x in table.cells}


def numbers(written: str) -> range:
    first, _, last = written.partition("-")
    return range(int(first), int(last or first) + 1)


def of_element_grid(matrix: int, heads: list[str], lines: list[list[str]]) -> Iterator[Place]:
    """Read a grid whose entries are as `14: a0-1`, below heads of columns, beside heads of rows."""
    for head, *entries in lines:
        for across, entry in zip(heads, entries, strict=True):
            lane, index = re.fullmatch(r"(\d+): [a-z]+ ?([\d-]+)", entry).groups()  # type: ignore[union-attr]
            for (row, column), i in zip(product(numbers(head), numbers(across)), numbers(index), strict=True):
                yield matrix, row, column, int(lane), i


def of_lane_grid(layout: Layout, heads: list[str], lines: list[list[str]]) -> Iterator[Place]:
    """Read a grid whose entries are as `[3, 4-5]`, the number of a matrix before them where there are several."""
    for lane, *entries in lines:
        for head, entry in zip(heads, entries, strict=True):
            register, held = int(head.removeprefix("register ")), layout.packing.per_register
            cells = [
                (int(matrix or 0), row, column)
                for matrix, rows, columns in re.findall(r"(\d*)\[([\d-]+), ([\d-]+)\]", entry)
                for row in numbers(rows)
                for column in numbers(columns)
            ]
            for i, x in enumerate(layout.holds(int(lane), register), register * held):
                cells.remove((x.matrix, x.row, x.column))
                yield x.matrix, x.row, x.column, int(lane), i
            assert not cells


def read(table: FragmentTable, grids: list[list[list[str]]]) -> set[Place]:
    """Read grids, each of them lines of entries, the first of which has the heads."""
    several = table.layout.matrices
    found: list[Place] = []
    for number, (head, *lines) in enumerate(grids):
        if table.by == "lane":
            found += of_lane_grid(table.layout, head[1:], lines)
        else:
            found += of_element_grid(number * several // len(grids), head[1:], lines)
    assert len(found) == len(set(found))
    return set(found)


def text_grids(text: str) -> list[list[list[str]]]:
    """Take text apart: a grid may stand in several bands, one below the other."""
    bands = [block.splitlines() for block in text.split("\n\n")[1:]]
    return [[re.split(r" {2,}", line) for line in band if not line.endswith(":")] for band in bands]


def markdown_grids(text: str) -> list[list[list[str]]]:
    grids = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    return [[line.strip("| ").split(" | ") for i, line in enumerate(grid) if i != 1] for grid in grids]


def html_grids(text: str) -> list[list[list[str]]]:
    tables = re.findall(r"<table.*?</table>", text, re.S)
    return [[re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", x)] for x in tables]


@pytest.mark.parametrize("by", ORDERS)
def test_all_formats_say_the_same(by: str) -> None:
    for (layout, operand), instruction in SOME.items():
        table = layout_table(instruction, operand, by=by)
        expected = places(table)
        assert len(expected) == layout.matrices * layout.shape[-2] * layout.shape[-1]
        for grids in (text_grids(table.text()), markdown_grids(table.markdown()), html_grids(table.html())):
            assert read(table, grids) == expected, (instruction, operand)
        rows = [{name: int(x) for name, x in row.items()} for row in csv.DictReader(StringIO(table.csv()))]
        assert rows == json.loads(table.json())["cells"]
        assert rows == [{name: getattr(cell, name) for name in rows[0]} for cell in table.cells]
        assert set(rows[0]) == {*FIELDS} - ({"matrix"} if not layout.matrix else set())


def test_pictures_say_the_same() -> None:
    for (_, operand), instruction in SOME.items():
        for by in ORDERS if operand == "A" else ORDERS[:1]:
            table = layout_table(instruction, operand, by=by)
            drawn = {tuple(map(int, cell)) for cell in elements(table.svg())}
            assert drawn == {tuple(getattr(cell, name) for name in FIELDS) for cell in table.cells}


def test_the_widest_say_the_same() -> None:
    table = layout_table("wgmma.mma_async.sync.aligned.m64n256k16.f16.f16.f16", "D")
    bands = text_grids(table.text())
    assert len(bands) > 5 and max(map(len, table.text().splitlines())) < 120
    assert {place for band in bands for place in read(table, [band])} == places(table)


def test_only_what_a_selector_reads() -> None:
    table = layout_table(SP, "metadata", selector=1)
    assert {x.matrix for x in table.cells} == {1} and len(table.cells) == 16 * 8
    assert table.text().splitlines()[1] == "lane: nibbles of its register"
    assert "selector 1:" in table.text() and "selector 0" not in table.text()
    assert json.loads(table.json())["matrices"] == ["selector 0", "selector 1"]
    assert {cell[0] for cell in elements(table.svg()).tolist()} == {1} and len(elements(table.svg())) == 16 * 8
    by_lane = layout_table(SP, "metadata", selector=1, by="lane").text().splitlines()
    assert by_lane[4] == "0" and by_lane[6] == "2     1[0, 0-3] 1[8, 0-3]"


def test_a_layout_by_itself_is_a_table_too() -> None:
    layout = wm.parse(F16).layout("A")
    assert layout.table().splitlines()[:2] == ["layout", "lane: elements of its fragment"]
    assert layout.table().splitlines()[4].startswith("0           0: e0-1   1: e0-1")
    assert layout.table("lane", "csv") == layout_table(F16, "A", by="lane").csv()
    assert {tuple(map(int, cell)) for cell in elements(layout.svg())} == {
        tuple(getattr(cell, name) for name in FIELDS) for cell in layout.cells()
    }
    for form in TABLE_FORMATS:
        assert layout.table(format=form)
    with pytest.raises(OperandError, match=r"^format is 'pdf'; expected 'text', 'csv', "):
        layout.table(format="pdf")
    with pytest.raises(OperandError, match=r"^by is 'row'; expected 'element' or 'lane'"):
        layout.table("row")


def test_html_is_escaped() -> None:
    layout = Layout(row=("l2", "l3", "l4"), column=("l0", "l1"), packing=Packing(slot=32, bits=32))
    given: dict[str, Any] = {"instruction": "<b>", "operand": "&", "coordinates": ("<i>", "<u>")}
    for by in ORDERS:
        text = FragmentTable(layout=layout, by=by, **given).html()
        assert not re.search(r"<[biu]>", text) and "&lt;b&gt;" in text and "&amp; of" in text
