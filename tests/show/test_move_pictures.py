"""Pictures and cards of what moves fragments: each layout once, compared with look-ups, and nothing runs over."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from picture_places import overlaps, place
from svg_cells import FIELDS, SVG, boxes, elements

from warpmma.isa import FragmentInstruction, fragment_instructions, parse_fragments
from warpmma.layouts import Layout
from warpmma.lookup import layout_table
from warpmma.show.fragments.fragment_pictures import instruction_svg

LOAD = "ldmatrix.sync.aligned.m8n8.x4.trans.b16"
WMMA = "wmma.load.a.sync.aligned.row.m16n16k16.f16"

DIFFERENT: dict[tuple[Layout, str, int], tuple[FragmentInstruction, str]] = {
    (layout, operand, i.counted(operand, targets[-1])): (i, targets[-1])
    for i in fragment_instructions()
    for operand in i.operands
    for layout, targets in i.fragments(operand).items()
}


@pytest.mark.parametrize("by", ["element", "lane"])
def test_pictures_agree_with_look_ups(by: str) -> None:
    assert len(DIFFERENT) > 60
    for (_, operand, _), (i, target) in DIFFERENT.items():
        svg = instruction_svg(i, operand, by, target=target)
        cells = layout_table(i, operand, target=target).cells
        expected = sorted(tuple(getattr(cell, name) for name in FIELDS) for cell in cells)
        assert np.array_equal(elements(svg), np.array(expected)), (str(i), operand)
        root = ElementTree.fromstring(svg)
        assert overlaps(root) == [], (str(i), operand)
        for box in boxes(root):
            (rect,), texts = box.findall(f"{SVG}rect"), box.findall(f"{SVG}text")
            left, top, right, bottom = place(rect)
            for words in texts:
                x1, y1, x2, y2 = place(words)
                assert left < x1 and x2 < right and top < y1 and y2 < bottom, (str(i), operand, words.text)


def test_pictures_say_what_they_are_of_and_how_it_is_known() -> None:
    svg = parse_fragments(LOAD).svg("D")
    assert "D of ldmatrix m8n8, b16: 8 \N{MULTIPLICATION SIGN} 8 elements, 4 matrices" in svg
    assert ">row \\ column<" in svg and "measured on an H200" in svg
    assert "Addresses of ldmatrix m8n8: 32 rows" in parse_fragments(LOAD).svg("address")
    svg = parse_fragments(WMMA).svg("A", target="sm_70", theme="dark")
    assert "elements, 2 copies on sm_70" in svg and ">m \\ k<" in svg and "Opaque in PTX" in svg


def test_cards_show_every_layout() -> None:
    card = parse_fragments(WMMA)._repr_html_()
    assert card.count("<svg") == 2 and "on sm_70 to sm_72" in card and "on sm_75 to sm_121a" in card
    assert "All about it" in card and "opaque in PTX" in card
