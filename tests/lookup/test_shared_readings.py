"""What descriptors read: element by element, both ways, in Python and on the command line."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

import warpmma as wm
from warpmma.cli import main
from warpmma.errors import OperandError
from warpmma.isa import warpgroup_instructions
from warpmma.layouts import MAJORS, SWIZZLES, Major, MatrixDescriptor, SharedTile
from warpmma.lookup import layout_table, shared_reading

I = "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16"  # noqa: E741
WORD = 0x4000_0040_0000_0040
KINDS = {
    (i.a_type, i.b_type, i.sparse): i for i in warpgroup_instructions() if i.n == 16
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("operand", "AB")
@pytest.mark.alike(2)
def test_where_and_what_are_inverse(kind: tuple[str, str, bool], operand: str) -> None:
    """Of every type, swizzle and major-ness; the places are those that `wm.store` reads."""
    i, rng = KINDS[kind], np.random.default_rng(5)
    bits = i.format(operand).bits  # type: ignore[arg-type]
    for swizzle, major in product(SWIZZLES, MAJORS if bits == 16 else MAJORS[:1]):
        d = MatrixDescriptor(start=0x440, leading=2048, stride=1024, swizzle=swizzle, base_offset=3)
        reading = shared_reading(i, operand, d, major=major)
        memory = rng.integers(0, 256, int(reading.addresses.max()) + 4 - 64, np.uint8)
        codes, inside = reading.matrix(memory, 64)
        assert inside.all()
        stored = wm.store(i, operand, wm.SharedOperand(memory, d, major == "MN", 64))  # type: ignore[arg-type]
        raw = np.ascontiguousarray(stored).view(codes.dtype) if stored.dtype != bool else stored.astype(np.uint8)
        assert np.array_equal(raw, codes)
        for cell in reading.cells[:: max(1, len(reading.cells) // 61)]:
            found = wm.where(i, operand, cell.row, cell.column, descriptor=d, major=major)
            assert found == cell and cell.address == reading.addresses[cell.row, cell.column]
            assert cell in wm.what(i, operand, descriptor=d, address=cell.address + bits // 16, major=major)
        assert wm.what(i, operand, descriptor=d, address=0) == ()


def test_a_window_is_not_left() -> None:
    b = shared_reading(I, "B", WORD)
    inside = b.inside(0x400, 0x200)
    codes, read = b.matrix(np.arange(512, dtype=np.uint8) | np.uint8(1), 0x400)
    assert np.array_equal(inside, read) and 0 < inside.sum() < inside.size
    assert b.inside(np.uint32(0), 1 << 63).all() and not b.inside(1 << 80, 1).any()  # type: ignore[arg-type]
    with pytest.raises(OperandError, match="major"):
        b.descriptor.steps(np.array([1, "K", None], object))  # type: ignore[arg-type]
    assert codes[inside].all() and not codes[~inside].any()
    none, outside = b.matrix(np.zeros(0, np.uint8))
    assert not none.any() and not outside.any()


@pytest.mark.parametrize(("swizzle", "leading", "waves"), [(128, 0, 1), (64, 0, 1), (32, 0, 1), (0, 128, 1)])
def test_layouts_of_tiles_have_no_conflicts(swizzle: int, leading: int, waves: int) -> None:
    tile = SharedTile(rows=32, columns=64, bits=16, swizzle=swizzle, start=0x400)
    reading = shared_reading(I, "B", tile.descriptor(16))
    assert {reading.wavefronts(x) for x in reading.accesses} == {waves}
    assert [len(x) for x in reading.accesses] == [8] * 8


def test_a_start_of_no_matching_base_offset_has_conflicts() -> None:
    """A layout that repeats lines asks one bank for several words."""
    reading = shared_reading(I, "B", MatrixDescriptor(start=0, leading=0, stride=0, swizzle=0))
    assert {reading.wavefronts(x) for x in reading.accesses} == {1}  # all chunks are the same eight
    far = MatrixDescriptor(start=0, leading=1024, stride=2048, swizzle=128)
    assert {reading.wavefronts(x) for x in shared_reading(I, "B", far).accesses} == {1}
    mn: Major = "MN"
    assert shared_reading(I, "B", WORD, major=mn).accesses[0][1].row == 1


def test_views() -> None:
    reading = layout_table(I, "B", descriptor=WORD)
    facts = json.loads(reading.json())
    assert len(facts["cells"]) == 512 and facts["word"] == WORD
    assert facts["cells"][1] == {
        "operand": "B", "row": 0, "column": 1, "address": 0x490, "linear": 0x480, "bank": 4, "low": 0, "high": 15,
    }  # fmt: skip
    assert reading.csv().splitlines()[2] == "B,0,1,1168,1152,4,0,15"
    assert "B[0, 1]    0x490    4     0-15   0x480" in reading.text().splitlines()
    drawn = reading.svg()
    assert "n 3, k 8-15" in drawn and "touches 32 banks, in 1 wavefront<" in drawn
    assert drawn.count("data-address='0x") == 64
    large = shared_reading(I.replace("n32", "n256"), "B", WORD).svg()
    assert "192 further lines of 128 bytes are not drawn" in large
    twice = shared_reading(I, "B", MatrixDescriptor(start=0, leading=16, stride=1024)).svg()
    assert "n 1, k 0-7 +1" in twice


def test_refusals() -> None:
    for words, message in (
        (("m16n8k16", "A"), "no mnemonic|expected"), ((I, "C"), "expected"),
    ):  # fmt: skip
        with pytest.raises(wm.WarpmmaError, match=message):
            shared_reading(words[0], words[1], WORD)
    f16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    with pytest.raises(OperandError, match="reads no operand by a descriptor; expected a wgmma"):
        shared_reading(f16, "A", WORD)
    with pytest.raises(OperandError, match="B has 16 rows; row is 16, expected 0 to 15"):
        wm.where(I, "B", 16, 0, descriptor=WORD)
    with pytest.raises(OperandError, match="selector is 1; what a descriptor reads lies in no registers"):
        wm.where(I, "B", 0, 0, descriptor=WORD, selector=1)  # type: ignore[call-overload]
    with pytest.raises(OperandError, match="address is None; expected a shared address"):
        wm.what(I, "B", descriptor=WORD)  # type: ignore[call-overload]
    with pytest.raises(OperandError, match="expected 'K', or 16 bits"):
        shared_reading(I.replace("f16.f16", "e4m3.e4m3").replace("k16", "k32"), "B", WORD, major="MN")


def run(capsys: pytest.CaptureFixture[str], words: str) -> tuple[int, str, str]:
    status = main(words.split())
    return status, *capsys.readouterr()


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    it = "m64n32k16 f32 f16 dense"
    where = run(capsys, f"where {it} B 3 5 --descriptor {WORD:#x}")[1]
    assert where == "B[3, 5] at byte 0x6d6, bits 16-31 of bank 21; before the swizzle 0x686\n"
    assert run(capsys, f"what {it} B --address 0x6d7 --descriptor {WORD:#x}")[1] == where
    assert run(capsys, f"what {it} B --address 0 --descriptor {WORD:#x}")[1] == "nothing is read at 0x0\n"
    facts = json.loads(run(capsys, f"where {it} B 3 5 --descriptor {WORD:#x} --json")[1])
    assert facts["address"] == 0x6D6 and facts["bank"] == 21
    (cell,) = json.loads(run(capsys, f"what {it} B --address 0x6d6 --descriptor {WORD:#x} --json")[1])["cells"]
    assert facts == {"instruction": facts["instruction"], **cell}
    assert run(capsys, f"layout {it} B --descriptor {WORD:#x} --format svg")[1].startswith("<svg")


def test_the_command_descriptor(capsys: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run(capsys, f"descriptor {WORD:#x}")
    assert status == 0 and output.splitlines()[4] == "swizzle      128 bytes"
    given = f"descriptor 0x8000004000000040 --instruction {I} --meant {WORD:#x} --window 0x400:0x800"
    status, output, _ = run(capsys, given)
    assert status == 1 and max(map(len, output.splitlines())) < 120
    assert "B is read as if the swizzle of B were 64 bytes wide, meant 128 bytes wide" in output
    facts = json.loads(run(capsys, f"{given} --json")[1])
    assert [x["field"] for x in facts["mistakes"]] == ["swizzle"]
    assert len(facts["cells"]) == 512 and len(facts["outside"]) > 100
    same = run(capsys, f"descriptor {WORD | 1 << 16:#x} --instruction {I} --meant {WORD:#x}")
    assert same[0] == 0 and "B is read as meant; leading differ, without effect" in same[1]
    assert run(capsys, f"descriptor {WORD:#x} --instruction m16n8k16 f16 dense")[0] == 2
    assert run(capsys, f"descriptor {WORD:#x} --window 0:64")[0] == 2
    assert run(capsys, f"descriptor {1 << 64:#x}")[0] == 2
