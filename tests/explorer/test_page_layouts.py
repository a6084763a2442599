"""The page finds every element of every instruction where Python finds it, and decodes words as Python does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from explorer_page import opened
from oracles import needs

import warpmma as wm
from warpmma import scaling, sparsity
from warpmma.isa import Instruction, MatrixInstruction, fragment_instructions, warpgroup_instructions
from warpmma.layouts import OPERANDS, Layout
from warpmma.lookup import ids_of, layout_known
from warpmma.show import explorer_data

pytestmark = needs("browser")

EVERY: tuple[MatrixInstruction, ...] = (*wm.instructions(), *warpgroup_instructions())
MOVES = [i for i in fragment_instructions() if not {"global", "shared", "shared::cta"} & {*str(i).split(".")}]


def rows_of(record: MatrixInstruction) -> dict[str, Any]:
    data = explorer_data()
    return dict(zip(data["columns"], data["instructions"][EVERY.index(record)], strict=True))


def layouts_of(record: MatrixInstruction) -> list[Layout | None]:
    shared = {"B"} if not isinstance(record, Instruction) else set()
    return [None if operand in shared else record.layout(operand) for operand in OPERANDS]


def layouts() -> dict[int, Layout]:
    """Every layout of the page by its number, as Python has it; that each instruction has its own is checked here."""
    found: dict[int, Layout] = {}
    numbers: dict[Layout, int] = {}

    def see(number: int | None, layout: Layout | None) -> None:
        assert (number is None) == (layout is None)
        if number is not None and layout is not None:
            assert found.setdefault(number, layout) == layout and numbers.setdefault(layout, number) == number

    for record, row in zip(EVERY, explorer_data()["instructions"], strict=True):
        named = dict(zip(explorer_data()["columns"], row, strict=True))
        assert named["name"] == str(record)
        for number, layout in zip(named["layouts"], layouts_of(record), strict=True):
            see(number, layout)
        if not isinstance(record, Instruction):
            assert named["metadata"] is named["scales"] is None
            continue
        see(named["metadata"], sparsity.metadata_layout(record) if record.sparse else None)
        for operand, scales in zip(OPERANDS, named["scales"] or (), strict=False):
            see(scales[0], scaling.scale_layout(record, operand))
            assert tuple(map(tuple, explorer_data()["ids"][scales[1]])) == scaling.scale_ids(record, operand)
    for move, row in zip(MOVES, explorer_data()["moves"], strict=True):
        data = dict(zip(explorer_data()["move_columns"], row, strict=True))
        assert data["name"] == str(move)
        held = [explorer_data()["held"][number] for number in data["held"]]
        assert tuple(operand for operand, *_ in held) == move.operands
        for operand, type_, variant, layouts in held:
            assert (type_, variant) == (move.element_type(operand), move.variant(operand))
            for (number, counted, on), (layout, targets) in zip(layouts, move.fragments(operand).items(), strict=True):
                see(number, layout)
                assert explorer_data()["lists"][on] == list(targets)
                assert counted == len(ids_of(move, operand, targets[0]))
        assert explorer_data()["texts"][data["known"]] == layout_known(move)
    assert sorted(found) == list(range(len(explorer_data()["layouts"])))
    return found


# Lanes and indices of all elements in their order; how many are lost on the way back; registers and bits by index.
PLACES = """() => JSON.stringify(warpmma.data.layouts.map((layout) => {
  const [rows, columns] = layout.shape;
  const [lanes, indices] = [[], []];
  let lost = 0;
  for (let matrix = 0; matrix < 1 << layout.matrix.length; matrix += 1)
    for (let row = 0; row < rows; row += 1)
      for (let column = 0; column < columns; column += 1) {
        const { lane, index } = warpmma.locate(layout, row, column, matrix);
        lanes.push(lane);
        indices.push(index);
        const back = warpmma.elementOf(layout, lane, index);
        lost += back.row !== row || back.column !== column || back.matrix !== matrix;
      }
  const slots = Array.from({ length: layout.elements }, (_, index) => warpmma.slotOf(layout, index));
  return [lanes, indices, slots.map(({ register, low, high }) => [register, low, high]), lost];
}))"""


def test_every_element_is_where_python_finds_it(browser: Any) -> None:
    with opened(browser) as page:
        places = json.loads(page.evaluate(PLACES))
    seen = 0
    for number, layout in layouts().items():
        lanes, indices, slots, lost = places[number]
        word, position = (x.ravel() for x in layout.slots)
        register, lane = np.divmod(word, layout.lanes)
        packing = layout.packing
        assert lanes == lane.tolist() and not lost
        assert indices == (register * packing.per_register + position).tolist()
        expected = [
            [i // packing.per_register, low, low + packing.bits - 1]
            for i in range(layout.elements)
            for low in [int(packing.shifts[i % packing.per_register])]
        ]
        assert slots == expected
        seen += len(lanes)
    assert seen > 100_000


DECODE = """(words) => {
  const decode = (record, lane, word) => warpmma.decodedMetadata(record, lane, word);
  return JSON.stringify(Object.entries(JSON.parse(words)).map(([name, lanes]) => lanes.flatMap((word, lane) =>
    decode(warpmma.instructionNamed(name), lane, word).map(
      ({ row, group, selector, indices, columns, legal }) => [selector, row, group, indices, columns, legal]))));
}"""


def test_words_of_metadata_are_decoded_as_python_decodes_them(browser: Any) -> None:
    rng = np.random.default_rng(0)
    records = [i for i in wm.instructions() if i.sparse]
    words = {str(i): rng.integers(0, 1 << 32, 32, np.uint32) for i in records}
    with opened(browser) as page:
        found = json.loads(page.evaluate(DECODE, json.dumps({name: x.tolist() for name, x in words.items()})))
    for record, rows in zip(records, found, strict=True):
        width, legal = sparsity.pattern(record).width, sparsity.legal_codes(record)
        for selector in sparsity.selectors(record):
            indices = sparsity.unpack_metadata(words[str(record)], record, selector=selector)
            mine = sorted(row[1:] for row in rows if row[0] == selector)
            assert [row[:3] for row in mine] == [
                [i, j, indices[i, j].tolist()] for i in range(indices.shape[0]) for j in range(indices.shape[1])
            ]
            nibbles = indices[..., 0] | indices[..., 1] << 2
            assert [row[4] for row in mine] == [int(x) in legal for x in nibbles.ravel()]
            if width > 2:  # of tf32, most nibbles mix halves of elements
                at = sparsity.positions(words[str(record)], record, selector=selector)
                assert [row[3] for row in mine] == at.reshape(-1, width // 2).tolist()


LEFT = {
    "m16n8k16 f16": {"m16n8k16"},
    "mxf4nvf4 4x": {"m16n8k64", "m16n8k128"},
    "sm_70": {"m8n8k4", "m16n16k16", "m8n32k16", "m32n8k16"},
    "ldmatrix x4 trans": {"m8n8"},
    "wmma tf32": {"m16n16k8"},
    "movmatrix": {"m8n8"},
    "wgmma m64n8 tf32": {f"m64n{n}k{k}" for n in (8, 80, 88) for k in (8, 16)},
    "sp::ordered s4": {"m16n8k64", "m16n8k128"},
}


def test_fragments_of_names_leave_what_they_should(browser: Any) -> None:
    with opened(browser) as page:
        for words, left in LEFT.items():
            page.locator("#filter").fill(words)
            shapes = page.locator(".instructions .shape").all_text_contents()  # some are out of sight
            assert set(shapes) == left
            assert page.locator(".count").inner_text().startswith(str(len(shapes)))
