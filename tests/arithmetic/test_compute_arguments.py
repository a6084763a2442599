"""`arithmetic.compute`: what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpmma.arithmetic import compute
from warpmma.arithmetic.recipes.lowerings import recipe
from warpmma.errors import OperandError

HALF = recipe("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_90")
FP4 = recipe("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "sm_120a")
B1 = recipe("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc", "sm_90")


def given(**changes: Any) -> dict[str, Any]:
    operands = {
        "a": np.zeros((16, 2, 1), np.uint16),
        "b": np.zeros((16, 1, 3), np.uint16),
        "c": np.zeros((), np.uint32),
    }
    return {"recipe": HALF, **operands, **changes}


def scaled(**changes: Any) -> dict[str, Any]:
    codes, scales = np.zeros((64, 2), np.uint8), np.zeros((2, 2), np.uint8)
    operands = {"a": codes, "b": codes, "c": np.zeros(2, np.uint32), "scale_a": scales, "scale_b": scales}
    return {"recipe": FP4, **operands, **changes}


def test_what_fits() -> None:
    assert compute(**given()).shape == (2, 3)
    assert compute(**scaled()).shape == (2,)
    half = np.zeros((8, 2, 1), np.intp)
    assert compute(**given(a=np.zeros((8, 2, 1), np.uint16), chosen=half)).shape == (2, 3)
    assert compute(**given(b=np.zeros((16, 4, 1, 3), np.uint16))).shape == (4, 2, 3)
    assert compute(**given(c=np.zeros((5, 1, 3), np.uint32))).shape == (5, 2, 3)
    assert compute(**given(a=np.zeros((8, 2, 1), np.uint16), chosen=half[:, 0])).shape == (2, 3)
    for index in (np.uint8, np.int16, np.uint64):
        assert compute(**given(a=np.zeros((8, 2, 1), np.uint16), chosen=half.astype(index))).shape == (2, 3)
    for dtype in (np.uint8, np.uint32, np.uint64):  # bits, as many in one word as one likes
        assert compute(B1, np.ones((4, 2), dtype), np.ones((4, 2), dtype), np.zeros(2, np.uint32)).tolist() == [4, 4]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (given(recipe="sm_90"), "a recipe is a record, as warpmma.arithmetic.recipes.recipe returns; got 'sm_90'"),
        (given(a=[[0]]), "A is an array of unsigned integers of at most 32 dimensions; got list"),
        (given(b=np.ma.masked_array(np.zeros((16, 1, 3), np.uint16))),
         "B is an array of unsigned integers of at most 32 dimensions; got MaskedArray"),
        (given(c=np.zeros((1,) * 40, np.uint32)),
         "C is an array of unsigned integers of at most 32 dimensions; got uint32, 40 dimensions"),
        (given(a=np.zeros((16, 2, 1), np.float16)),
         "A is an array of unsigned integers of at most 32 dimensions; got float16, 3 dimensions"),
        (given(a=np.zeros((16, 2, 1), np.uint32)), "A holds codes of f16, uint16; got uint32"),
        (given(a=np.zeros((16, 2, 1), ">u2")),
         "A is an array of unsigned integers of at most 32 dimensions; got >u2, 3 dimensions"),
        (scaled(b=np.full((64, 2), 16, np.uint8)), "B holds codes of e2m1, up to 0xf; got 0x10"),
        (given(b=np.zeros((15, 1, 3), np.uint16)),
         "first dimensions do not go together: A [16, 2, 1], B [15, 1, 3], C []"),
        (given(chosen=np.zeros((8, 2, 1), np.intp)),
         "first dimensions do not go together: A [16, 2, 1], B [16, 1, 3], C [], chosen [8, 2, 1]"),
        (scaled(scale_a=np.zeros((3, 2), np.uint8)),
         "first dimensions do not go together: A [64, 2], B [64, 2], C [2], scale_a [3, 2], scale_b [2, 2]"),
        (given(scale_a=np.zeros((2, 2, 1), np.uint8)), "scales of A and B go with recipes of scales, this is of None: "
         "A [16, 2, 1], B [16, 1, 3], C [], scale_a [2, 2, 1]"),
        (scaled(scale_b=None), "scales of A and B go with recipes of scales, this is of ue8m0: "
         "A [64, 2], B [64, 2], C [2], scale_a [2, 2]"),
        (scaled(scale_a=None, scale_b=None), "scales of A and B go with recipes of scales, this is of ue8m0: "
         "A [64, 2], B [64, 2], C [2]"),
        (given(c=np.zeros((3, 3), np.uint32)),
         "what follows k does not broadcast: A [16, 2, 1], B [16, 1, 3], C [3, 3]"),
        (given(chosen=np.full((16, 2, 1), 16)), "chosen is below 16, the rows of one instruction; got 16"),
        (given(chosen=np.full((16, 2, 1), -1)), "chosen is below 16, the rows of one instruction; got -1"),
        (given(c=np.broadcast_to(np.uint32(0), (1 << 50, 2, 3))),
         "C has 6,755,399,441,055,744 elements: more than any memory holds"),
        (given(a=np.broadcast_to(np.uint16(0), (16, 1 << 30, 1)), b=np.broadcast_to(np.uint16(0), (16, 1, 1 << 30))),
         "16 products for each of [1073741824, 1073741824] outputs: no memory holds them"),
    ],
)  # fmt: skip
def test_what_does_not_fit(call: dict[str, Any], message: str) -> None:
    with pytest.raises(OperandError) as caught:
        compute(**call)
    assert str(caught.value) == f"compute: {message}"
