"""Whole products into a given array."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from arrays import same
from product_cases import Call, each_engine, small_tiles

import warpmma as wm
from warpmma.errors import OperandError

pytestmark = pytest.mark.quick


@each_engine
def test_out_is_written_and_returned(engine: Any) -> None:
    rng = np.random.default_rng(17)
    a, b = rng.standard_normal((3, 20, 40)).astype(np.float16), rng.standard_normal((40, 9)).astype(np.float16)
    call: Call = partial(wm.matmul, a, b, target="sm_90", engine=engine)
    d = call()
    for dtype in (np.float32, np.uint32):
        buffer = np.full((5, 20, 9), 7, dtype)
        view = buffer[1:4]
        assert call(out=view) is view
        same(view.view(np.float32), d)
        assert (buffer[[0, 4]] == 7).all()
    flat = d[0]
    for other in (np.zeros((20, 9), np.float32).view(kind) for kind in (np.matrix, np.recarray)):
        assert wm.matmul(a[0], b, target="sm_90", engine=engine, out=other) is other
        same(np.asarray(other), flat)
    memory = bytearray(4 * 20 * 9 + 1)
    unaligned = np.frombuffer(memory, np.float32, 20 * 9, offset=1).reshape(20, 9)
    same(wm.matmul(a[0], b, target="sm_90", engine=engine, out=unaligned), flat)
    integers = rng.integers(-9, 9, (2, 5, 6), np.int8)
    for kind in ("i4", "u4"):
        out = np.empty((5, 5), kind)
        assert wm.matmul(integers[0], integers[1].T, target="sm_90", out=out, engine=engine) is out
        same(out.view(np.int32), integers[0].astype(np.int32) @ integers[1].T.astype(np.int32))


@each_engine
def test_out_may_be_an_operand(engine: Any) -> None:
    """Whatever it overlaps, as if it did not."""
    rng = np.random.default_rng(18)
    with small_tiles(3):
        a, b, c = (rng.standard_normal((12, 12)).astype(np.float32) for _ in range(3))
        call: Call = partial(wm.matmul, target="sm_90", engine=engine, float32="tf32")
        d = call(a, b, c)
        for which in range(3):
            given = [a.copy(), b.copy(), c.copy()]
            assert call(*given, out=given[which]) is given[which]
            same(given[which], d)
            flipped = given[which] = [a, b, c][which][::-1, ::-1].copy()
            given[which] = flipped[::-1, ::-1]
            same(call(*given, out=flipped), d)
        bias = c.copy()
        expected = call(a, b, c[0])
        same(call(a, b, bias[0], out=bias), expected)
        buffer = np.concatenate([c, c])
        same(call(a, b, buffer[:12], out=buffer[4:16]), d)


def test_out_is_left_alone_when_something_is_wrong() -> None:
    out, a = np.full((3, 3), 7, np.float32), np.ones((3, 3), np.float16)
    with pytest.raises(OperandError):
        wm.matmul(a, a, np.ones((2, 3), np.float32), target="sm_90", out=out)
    with pytest.raises(OperandError):
        wm.matmul(a, a, target="sm_90", out=out, epilogue="bf16")
    assert (out == 7).all()
