"""Given words of metadata and scales: what is read of them, as records and as pictures."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from picture_places import overlaps

import warpmma as wm
from warpmma import lookup, scaling, sparsity
from warpmma.errors import MetadataError, OperandError, ScaleError
from warpmma.isa import Instruction
from warpmma.lookup import WarpWords, read_words

SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"


def drawn(of: WarpWords) -> dict[tuple[int, int], int]:
    """Code of each group or scale that a picture has."""
    root = ElementTree.fromstring(of.svg())
    assert overlaps(root) == []
    cells = [x.attrib for x in root.iter() if "data-code" in x.attrib]
    for cell in cells:
        lane, low, high = (int(cell[f"data-{name}"]) for name in ("lane", "low", "high"))
        assert of.words[lane] >> low & (1 << high + 1 - low) - 1 == int(cell["data-code"])
    words = {int(x.attrib["data-word-lane"]): x.attrib["data-word"] for x in root.iter() if "data-word" in x.attrib}
    assert words == {lane: f"0x{word:08x}" for lane, word in enumerate(of.words)}
    return {(int(cell["data-row"]), int(cell["data-column"])): int(cell["data-code"]) for cell in cells}


def first(instructions: list[Instruction], *names: str) -> list[Instruction]:
    """One instruction of each kind that differs in these fields."""
    return list({tuple(getattr(i, name) for name in names): i for i in instructions}.values())


SPARSE_ONES = first([i for i in wm.instructions() if i.sparse], "shape", "a_type", "sparsity", "kind")
SCALED_ONES = first([i for i in wm.instructions() if i.block_scale], "shape", "stype", "scales_per_row")


@pytest.mark.parametrize("i", SPARSE_ONES, ids=str)
@pytest.mark.alike(3)
def test_metadata(i: Instruction) -> None:
    rng = np.random.default_rng(7)
    words = rng.integers(0, 1 << 32, 32, dtype=np.uint32)
    for selector in sparsity.selectors(i):
        found = read_words(i, "metadata", words, selector=selector)
        indices = sparsity.unpack_metadata(words, i, selector=selector)
        expected = {(r, g): int(indices[r, g, 0] | indices[r, g, 1] << 2) for r, g in np.ndindex(indices.shape[:2])}
        assert {(part.cell.row, part.cell.column): part.code for part in found.parts} == expected
        if selector == 0:
            assert drawn(found) == expected
            assert ("leaves such a nibble undefined" in found.svg()) is any(
                code not in sparsity.legal_codes(i) for code in expected.values()
            )


@pytest.mark.parametrize("i", SCALED_ONES, ids=str)
def test_scales(i: Instruction) -> None:
    rng = np.random.default_rng(8)
    words = rng.integers(0, 1 << 32, 32, dtype=np.uint32)
    for operand in ("A", "B"):
        for byte_id in scaling.byte_ids(i):
            for thread_id in scaling.thread_ids(operand):
                ids: dict[str, Any] = {"byte_id": byte_id, "thread_id": thread_id}
                found = read_words(i, f"scale_{operand.lower()}", words.tolist(), **ids)
                codes = scaling.unpack_scales(words, i, operand, **ids)
                codes = codes if operand == "A" else codes.T
                assert drawn(found) == {at: int(codes[at]) for at in np.ndindex(codes.shape)}


def test_what_is_said() -> None:
    words = sparsity.pack_metadata(np.tile([1, 3], (16, 8, 1)), SPARSE, selector=1)
    found = read_words(SPARSE, "metadata", words, selector=1)
    svg = found.svg()
    assert (
        "A[3, 8–11]" not in svg and "A[3, 8-11]: columns 9 and 11 are stored; nibble 0xd, indices 1 and 3, of " in svg
    )
    assert "lane 14, bits 8–11<" in svg and "Metadata of m16n8k32: selector 1" in svg and ">T14 8–11<" in svg
    assert found._repr_html_().count("<svg ") == 1 and "#14181d" in found.svg(theme="dark")
    tens = read_words(SCALED, "scale_a", [0x7F85_FF00] * 32, thread_id=1, byte_id=2)
    assert ">2^0<" in tens.svg() and ">2^6<" in tens.svg() and tens.parts[0].meaning == "64"
    nan = read_words(SCALED, "scale_b", [0x7F85_FF00] * 32).svg()
    assert ">NaN<" in nan and ">2^-127<" in nan
    assert repr(found) == repr(lookup.WarpWords(instruction=wm.parse(SPARSE), operand="metadata",
                                                words=tuple(map(int, words)), selector=1))  # fmt: skip


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ((SPARSE, "A", [0] * 32), OperandError, "operand is 'A'; expected 'metadata', 'scale_a' or 'scale_b'"),
        ((SPARSE, "metadata", [0] * 31), OperandError, "expected 32 integers, one of each lane"),
        ((SPARSE, "metadata", 3), OperandError, "words are 3; expected 32 integers"),
        ((SPARSE, "metadata", [0.5] * 32), OperandError, "expected 32 integers"),
        ((SPARSE, "metadata", [1 << 32] * 32), OperandError, "expected 32 bits"),
        ((SPARSE, "scale_a", [0] * 32), ScaleError, "no block scaling|has no scales|without"),
        ((SCALED, "metadata", [0] * 32), MetadataError, "is dense"),
    ],
)
def test_other_words(given: tuple[Any, ...], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        read_words(*given)


def test_other_selectors() -> None:
    with pytest.raises(OperandError, match="selector of metadata is 2; expected 0, 1"):
        read_words(SPARSE, "metadata", [0] * 32, selector=2)
    with pytest.raises(OperandError, match="byte_id of scale_a is 1; expected 0, 2"):
        read_words(SCALED, "scale_a", [0] * 32, byte_id=1)
