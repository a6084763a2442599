"""Products of every type of `wgmma`, as an H200 computed them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warpmma as wm
from warpmma.execution.shared_operands import bits_apart
from warpmma.isa import parse_any
from warpmma.sparsity import pack_metadata
from warpmma.sparsity.patterns import indices_of

RECORDED = Path(__file__).parents[1] / "data" / "h200_wgmma.npz"
"""The first eight columns of a product of n = 256 (driver 580.159.04), by mnemonic.

Codes of A, B by columns, C and D; nibbles of metadata, also such as PTX leaves undefined; words of single bits.
"""

with np.load(RECORDED) as _archive:
    NAMES = sorted({name.split("|")[0] for name in _archive.files if "|" in name})


def test_every_type_is_there() -> None:
    assert len(NAMES) == 41


@pytest.mark.parametrize("name", NAMES)
def test_a_product_is_that_of_an_h200(name: str) -> None:
    with np.load(RECORDED) as archive:
        a, b, c, d = (archive[f"{name}|{x}"] for x in "abcd")
        nibbles = archive[f"{name}|nibbles"] if f"{name}|nibbles" in archive.files else None
    record, more = parse_any(name.replace("n256", "n8")), {}
    if nibbles is not None:
        more = {"metadata": pack_metadata(indices_of(nibbles), record, selector=0), "undefined": "hardware"}
    if record.a_type == "b1":
        a, b = bits_apart(a), bits_apart(b)
    found = wm.mma(record, a, b.swapaxes(-1, -2), c, target="sm_90a", **more)  # type: ignore[arg-type]
    np.testing.assert_array_equal(found.view(d.dtype), d)
