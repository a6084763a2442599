"""Pictures of fragments: all operands of all instructions, compared with their layouts, and nothing runs over."""

from __future__ import annotations

from functools import cache
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from picture_places import overlaps, place
from svg_cells import FIELDS, SVG, boxes, elements, expected

import warpmma as wm
from warpmma.errors import OperandError
from warpmma.isa import MatrixInstruction, warpgroup_instructions
from warpmma.layouts import Layout, Operand
from warpmma.lookup import layout_table, operand_layout
from warpmma.registers import Packing
from warpmma.show.drawing.drawing import document, text
from warpmma.show.fragments.folding import fold
from warpmma.show.fragments.fragment_pictures import instruction_svg, layout_svg

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
WARPGROUP = "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"
BY = ("element", "lane")


def operands(instruction: MatrixInstruction) -> list[str]:
    if not isinstance(instruction, wm.Instruction):
        return ["A", "C", "D"]
    words = ["metadata"] * instruction.sparse + ["scale_a", "scale_b"] * instruction.block_scale
    return ["A", "B", "C", "D", *words]


@cache
def different() -> dict[tuple[Layout, str], MatrixInstruction]:
    """Every layout that there is and the letter of its operand, with an instruction: all others' pictures are alike."""
    every: tuple[MatrixInstruction, ...] = (*wm.instructions(), *warpgroup_instructions())
    return {
        (operand_layout(instruction, operand), operand): instruction
        for instruction in every
        for operand in operands(instruction)
    }


def test_every_operand_of_every_instruction_has_one_of_these_layouts() -> None:
    assert len(wm.instructions()) == 420 and len(different()) > 100


FEW = (8, 16, 24, 136, 256)  # of the n of wgmma, whose accumulators differ in nothing else


@pytest.mark.parametrize("by", BY)
def test_pictures_agree_with_layouts(by: str, request: pytest.FixtureRequest) -> None:
    """Expanded by what its attributes say, a picture has every element once, where the layout has it.

    All operands of `mma` are looked at, and of `wgmma`'s with `--every-case`.
    """
    whole = request.config.getoption("--every-case")
    for (layout, operand), instruction in different().items():
        if not whole and instruction.m == 64 and instruction.n not in FEW:
            continue
        svg = instruction_svg(instruction, operand, by)
        assert np.array_equal(elements(svg), expected(layout)), instruction
        root = ElementTree.fromstring(svg).attrib
        assert [root[f"data-{name}"] for name in ("mnemonic", "operand", "by")] == [str(instruction), operand, by]
        sizes = (layout.matrices, *layout.shape[-2:], layout.lanes, layout.registers)
        names = ("matrices", "rows", "columns", "lanes", "registers")
        assert tuple(int(root[f"data-{name}"]) for name in names) == sizes


@pytest.mark.parametrize("by", BY)
def test_nothing_runs_over(by: str) -> None:
    """Labels are inside of their boxes, texts inside of the picture, and no two texts overlap."""
    for (_, operand), instruction in different().items():
        if instruction.m == 64 and instruction.n not in FEW:
            continue
        root = ElementTree.fromstring(instruction_svg(instruction, operand, by))
        for box in boxes(root):
            (rect,), texts = box.findall(f"{SVG}rect"), box.findall(f"{SVG}text")
            left, top, right, bottom = place(rect)
            for words in texts:
                x1, y1, x2, y2 = place(words)
                assert left < x1 and x2 < right and top < y1 and y2 < bottom, (str(instruction), operand, words.text)
        assert overlaps(root) == [], (str(instruction), operand)


def test_overlaps_are_found() -> None:
    body = [text(20, 20, "one"), text(35, 24, "two"), text(95, 50, "three"), "<g transform='translate(20 60)'>",
            text(0, 0, "four"), "</g>", text(20, 62, "five")]  # fmt: skip
    found = overlaps(ElementTree.fromstring(document(body, 100, 80, "t")))
    assert set(found) == {"'one' on 'two'", "outside: three", "'four' on 'five'"}


@pytest.mark.parametrize(
    ("mnemonic", "operand", "box", "notes"),
    [
        (F16, "A", (1, 2), []),
        (F16, "B", (2, 1), []),
        ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", "A", (1, 32), []),
        (
            WARPGROUP, "D", (1, 1),
            ["Rows 16–63: as rows 0–15; for each further 16 rows, thread +32",
             "Columns 8–255: as columns 0–7; for each further 8 columns, register +4, index +4"],
        ),
        ("wgmma.mma_async.sync.aligned.m64n24k16.f16.f16.f16", "D", (1, 2),
         ["Rows 16–63: as rows 0–15; for each further 16 rows, thread +32"]),
    ],
)  # fmt: skip
def test_what_is_folded(mnemonic: str, operand: Operand, box: tuple[int, int], notes: list[str]) -> None:
    folded = fold(wm.isa.parse_any(mnemonic).layout(operand))
    assert folded.box == box and folded.notes() == notes
    assert all(note in instruction_svg(wm.isa.parse_any(mnemonic), operand).replace("\n", "") for note in notes[:1])


def test_a_layout_whose_registers_are_scattered() -> None:
    """No instruction has it: elements of a register that do not lie side by side, and further ones in other bits."""
    halves = Packing(slot=16, bits=16)
    layout = Layout(row=("l2", "l3", "l4", "e0"), column=("l0", "l1", "e1", "e2", "e3", "e4"), packing=halves)
    assert fold(layout).run == 1 and fold(layout).columns == 8
    for by in BY:
        assert np.array_equal(elements(layout_svg(layout, by)), expected(layout))
    bits = Layout(row=("l2", "l3", "l4", *(f"e{i}" for i in range(5))), column=("l0", "l1"),
                  packing=Packing(slot=1, bits=1))  # fmt: skip
    assert np.array_equal(elements(layout_svg(bits)), expected(bits))


def test_expected_is_what_layouts_yield() -> None:
    layout = wm.parse(F16).layout("B")
    assert [tuple(x) for x in expected(layout)] == [
        tuple(getattr(cell, name) for name in FIELDS) for cell in layout.cells()
    ]


def test_what_is_said() -> None:
    svg = instruction_svg(wm.parse(F16), "A")
    root = ElementTree.fromstring(svg)
    notes = [title.text for box in boxes(root) for title in box.findall(f"{SVG}title")]
    assert notes[18] == "A[2, 4–5]: a0 a1 of lane 10, register 0, bits 0–31"
    assert "A of m16n8k16, f16: 16 × 16 elements" in svg and "row\xa0\xa0\xa0 = groupID" in svg
    labels = [words.text for words in boxes(root)[18].findall(f"{SVG}text")]
    assert labels == ["T10", "r0", "a0", "a1"]
    padded = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e4m3.e2m1.f16"
    svg = instruction_svg(wm.parse(padded), "B")
    assert "4 elements, of 4 bits in 8" in svg and ">5:2<" in svg and "bits 6 to 7: nothing" in svg
    sparse = "mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16"
    assert "16 × 16 stored elements" in instruction_svg(wm.parse(sparse), "A")


def test_chosen_selectors() -> None:
    """A picture of what some selectors read is the part of the whole that has their matrices."""
    sparse = wm.parse("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    scaled = wm.parse("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0")
    cases: tuple[tuple[wm.Instruction, str, dict[str, Any], set[int]], ...]
    cases = ((sparse, "metadata", {"selector": 2}, {2}), (scaled, "scale_b", {"byte_id": 2}, {1, 3, 5, 7}),
             (scaled, "scale_a", {"byte_id": 0, "thread_id": 1}, {2}))  # fmt: skip
    for instruction, operand, chosen, matrices in cases:
        for by in BY:
            svg = instruction_svg(instruction, operand, by, **chosen)
            whole = expected(operand_layout(instruction, operand))
            assert np.array_equal(elements(svg), whole[np.isin(whole[:, 0], list(matrices))])
            assert svg == layout_table(instruction, operand, by=by, **chosen).svg()
    for matrix in range(4):
        assert f">selector {matrix}<" in instruction_svg(sparse, "metadata")
    assert ">byte-id 2, thread-id 3<" in instruction_svg(scaled, "scale_b")
    assert "Scales of B of m16n8k64, ue8m0: 8 columns × 2 blocks" in instruction_svg(scaled, "scale_b")
    assert "metadata[2, 0–3] of selector 2: nibbles 0–3 of lane 10, register 0, bits 0–15" in instruction_svg(
        sparse, "metadata"
    )


def test_what_cannot_be_drawn() -> None:
    layout = wm.parse(F16).layout("A")
    cases: tuple[tuple[str, Any], ...]
    cases = (("by is 'row'", {"by": "row"}), ("operand is 'E'", {"operand": "E"}))
    for wrong, options in cases:
        with pytest.raises(OperandError, match=wrong):
            layout_svg(layout, **options)
    with pytest.raises(OperandError, match="operand is 'X'"):
        instruction_svg(wm.parse(F16), "X")
    with pytest.raises(OperandError, match="theme is 'pink'"):
        layout_svg(layout, theme="pink")  # type: ignore[arg-type]
