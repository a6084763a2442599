"""Views of tensor maps: text, JSON, card, and pictures whose cells are those of the copy."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from picture_places import overlaps
from svg_cells import SVG

from warpmma._views import html, view
from warpmma.errors import OperandError
from warpmma.layouts import Im2colBox, TensorMap

PLAIN = TensorMap(0x7F0000000400, (16, 64), type="f16", shape=(100, 120), swizzle=128, fill="nan", l2_promotion=256)
COLUMN = TensorMap(
    0, Im2colBox(lower=(-1, -1), upper=(-1, -1), channels=32, pixels=20), type="f16", shape=(2, 4, 5, 32)
)  # fmt: skip
DEEP = TensorMap(0, (2, 6, 12), type="f32", shape=(3, 9, 14), strides=(1024, 64), element_strides=(1, 2, 1), swizzle=64)
FLAT = TensorMap(0, (64,), type="u8", shape=(70,))
LONG = TensorMap(0, (256, 8), type="u64", shape=(300, 8))
LOADS: list[tuple[TensorMap, tuple[Any, ...], dict[str, Any]]] = [
    (PLAIN, ((-3, 80), 0x400), {}), (COLUMN, ((0, -1, -1, 0), 0x800), {"offsets": (1, 2)}),
    (DEEP, ((1, -2, 4), 0x180), {}), (FLAT, ((16,),), {}), (LONG, ((-1000000, 0),), {}),
]  # fmt: skip


def test_text() -> None:
    assert str(PLAIN).splitlines() == [
        "tensor map: tiled, f16, 2 dimensions",
        "  address       0x7f0000000400",
        "  shape         [100, 120]",
        "  strides       [240] bytes",
        "  box           [16, 64]",
        "  a copy        [16, 64] elements, 2,048 bytes",
        "  interleave    none",
        "  swizzle       128 bytes",
        "  L2 promotion  256 bytes",
        "  fill          NaN, 0x7ff7 in every 16 bits",
    ]
    assert "  box           20 pixels of 32 channels" in str(COLUMN) and "corners       [-1, -1] to" in str(COLUMN)
    assert "element strides  [1, 2, 1]" in str(DEEP) and "strides" not in str(FLAT)
    sliced = TensorMap(0, (2, 2, 8), type="f16", shape=(4, 4, 64), interleave=16)
    assert "  a copy        [2, 1, 8] slices of 16 bytes, 256 bytes" in str(sliced)


@pytest.mark.parametrize("made", [PLAIN, COLUMN, DEEP, FLAT])
def test_json_has_what_makes_the_map(made: TensorMap) -> None:
    known = json.loads(view(made, "json"))
    assert TensorMap.from_bytes(bytes.fromhex(known["encoded"])) == made
    names = ("type", "shape", "strides", "element_strides", "interleave", "swizzle", "l2_promotion", "fill")
    box = (
        known["box"] if "box" in known else Im2colBox(**{x: known[x] for x in ("lower", "upper", "channels", "pixels")})
    )
    assert TensorMap(known["address"], box, **{x: known[x] for x in names}).encoded == made.encoded
    assert "The 128 bytes" in html(made) and (not made.swizzle or f"{made.swizzle} bytes" in html(made))


def cells(svg: str) -> dict[tuple[str, int], int]:
    """Return the address and filled elements of each chunk, by its index."""
    found = re.findall(r"data-address='(\d+)' data-index='([\d,-]+)' data-filled='(\d+)'", svg)
    return {(index, int(address)): int(filled) for address, index, filled in found}


@pytest.mark.parametrize(("made", "words", "more"), LOADS)
def test_pictures_have_the_chunks_of_the_copy(made: TensorMap, words: Any, more: Any) -> None:
    svg = made.svg(*words, **more)
    copy = made.box_copy(*words, **more)
    per, expected = 16 // made.itemsize, {}
    target, inside = (x.reshape(-1, x.shape[-1] // per, per) for x in (copy.target, copy.inside))
    first = int(copy.index[-1].ravel()[0])
    for row, i in np.ndindex(*target.shape[:2]):
        if row < 32:
            expected[f"{row},{first + i * per}", int(target[row, i, 0])] = per - int(inside[row, i].sum())
    assert cells(svg) == expected
    root = ElementTree.fromstring(svg)
    assert overlaps(root) == []
    assert root.get("data-bytes") == str(copy.copied_bytes)
    assert ("The first 32 rows" in "".join(root.itertext())) == (made is LONG)
    assert {x.get("data-filled") for x in root.iter(f"{SVG}g")} >= {str(x) for x in expected.values()}


def test_themes() -> None:
    assert "<style>" in PLAIN.svg((0, 0)) and "<style>" not in PLAIN.svg((0, 0), theme="dark")
    with pytest.raises(OperandError, match="theme is 'blue'"):
        PLAIN.svg((0, 0), theme="blue")
