"""The epilogue of whole products: it rounds once, as the format says."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np
import pytest
from arrays import Array, same
from product_cases import EPILOGUES, F16, HALF, Call, each_engine

import warpmma as wm
from warpmma.formats import FORMATS, FloatFormat
from warpmma.isa import parse

pytestmark = pytest.mark.quick


def rounded(fmt: FloatFormat) -> tuple[Array, Array]:
    """Values of f32, and the codes that they round to: numbers of a format, ties and what is beside these."""
    step = 1 << fmt.padding
    codes = np.arange(0, fmt.max_code, max(step, fmt.max_code >> 16 & -step))  # all, but of f32 and tf32
    low, high = (fmt.decode(x.astype(fmt.code_dtype)) for x in (codes, codes + step))
    tie = (low + high) / 2
    even = np.where(codes >> fmt.padding & 1, codes + step, codes)
    top, below_top = fmt.decode([fmt.max_code, fmt.max_code - step])
    beyond = cast(int, fmt.inf_code) if fmt.overflow == "infinity" else fmt.max_code
    ends = {top: fmt.max_code, np.inf: beyond}
    if fmt.name != "f32":  # whose ties are no numbers of f32
        edge = np.float32(top + (top - below_top) / 2)  # the largest is odd, so that this goes on
        ends |= {edge: beyond, np.nextafter(edge, np.float32(0)): fmt.max_code, 3.4028235e38: beyond}
        less, more = (np.nextafter(tie.astype(np.float32), np.float32(x)) for x in (0, np.inf))
        values, found = np.concatenate([low, tie, less, more]), np.concatenate([codes, even, codes, codes + step])
        assert (tie.astype(np.float32) == tie).all()
    else:
        values, found = low, codes
    values, found = np.append(values, list(ends)).astype(np.float32), np.append(found, list(ends.values()))
    nan = fmt.max_code if fmt.nan_code is None else fmt.nan_code
    nans = np.array([0x7FC00000, 0xFFC12345, 0x7F800001], np.uint32).view(np.float32)
    return np.concatenate([values, -values, nans]), np.concatenate([found, found | fmt.sign_bit, [nan] * 3])


@each_engine
@pytest.mark.parametrize("name", EPILOGUES)
def test_the_epilogue_rounds_once(name: str, engine: Any) -> None:
    """C goes through: k is 0. Numbers, ties and their neighbours; both signs; what is too large; NaN."""
    fmt = FORMATS[name]
    assert isinstance(fmt, FloatFormat)
    values, codes = rounded(fmt)
    a, b = np.zeros((1, 0), np.float16), np.zeros((0, len(values)), np.float16)
    d = wm.matmul(a, b, values, target="sm_80", epilogue=name, engine=engine)
    assert d.dtype == fmt.dtype
    same(fmt.codes(d), codes.astype(fmt.code_dtype)[None])


@each_engine
@pytest.mark.parametrize("name", EPILOGUES)
def test_the_epilogue_of_a_chain(name: str, engine: Any) -> None:
    rng, fmt = np.random.default_rng(16), FORMATS[name]
    a, b = rng.standard_normal((33, 40)).astype(np.float16), rng.standard_normal((40, 30)).astype(np.float16)
    for i in (parse(F16), parse(HALF)):
        call: Call = partial(wm.matmul, a, b, instruction=i, target="sm_90", engine=engine)
        d = call(epilogue=name)
        assert d.dtype == fmt.dtype
        same(d, fmt.array(cast(FloatFormat, fmt).encode(call().astype(np.float64))))
        out = np.empty((33, 30), fmt.dtype)
        assert call(epilogue=name, out=out) is out
        same(fmt.codes(out), fmt.codes(d))
        of_codes = np.empty((33, 30), fmt.code_dtype)
        same(call(epilogue=name, out=of_codes), fmt.codes(d))
