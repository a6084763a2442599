"""Distances of elements: how many values of a format lie between two."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from report_cases import NARROW, every

from warpmma.errors import OperandError
from warpmma.formats import FORMATS, FloatFormat, Format
from warpmma.testing import ulps
from warpmma.testing.reading import distance

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("fmt", NARROW, ids=lambda f: f.name)
def test_distances_of_all_pairs_of_narrow_codes(fmt: Format) -> None:
    """A float's distance is that of the ranks of values, counted anew; an integer's is the difference."""
    values = [float(v) for v in fmt.decode(np.arange(fmt.mask + 1))]
    numbers = sorted({v for v in values if not np.isnan(v)})
    rank: dict[float, Any] = {v: (i if isinstance(fmt, FloatFormat) else int(v)) for i, v in enumerate(numbers)}
    found = ulps(fmt.name, every(fmt)[:, None], every(fmt)[None, :])
    assert found.shape == (fmt.mask + 1, fmt.mask + 1)
    expected = [[None if x not in rank or y not in rank else rank[x] - rank[y] for y in values] for x in values]
    assert found.tolist() == expected


def test_a_distance_counts_infinity_as_the_next_value() -> None:
    e5m2 = FORMATS["e5m2"]
    assert ulps("e5m2", 0x7C, e5m2.max_code) == 1
    assert ulps("e5m2", 0xFC, 0x7C) == -2 * 0x7C


def test_neighbours_of_all_halves_are_one_apart() -> None:
    x = np.arange(1 << 16).astype(np.uint16).view(np.float16)
    with np.errstate(over="ignore"):
        up = np.nextafter(x, np.float16(np.inf))
    steps = ulps("f16", up, x)
    nan, top = np.isnan(x), x == np.inf
    assert set(steps[nan].tolist()) == {None}
    assert steps[top].tolist() == [0]
    assert set(steps[~nan & ~top].tolist()) == {1}
    assert int(nan.sum()) == 2 * 1023


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours_of_wide_floats_are_one_apart(dtype: Any) -> None:
    info = np.finfo(dtype)
    edges = [0, info.smallest_subnormal, info.smallest_normal, 1, 1.5, 2, info.max, -1, -info.max]
    rng = np.random.default_rng(0)
    x = np.concatenate([np.array(edges, dtype), rng.standard_normal(1000).astype(dtype)])
    fmt = FORMATS["f32" if dtype is np.float32 else "f64"]
    with np.errstate(over="ignore", under="ignore"):
        up, down = (np.nextafter(x, dtype(end)) for end in (np.inf, -np.inf))
    assert set(ulps(fmt, up, x).tolist()) == {1}
    assert set(ulps(fmt, down, x).tolist()) == {-1}


def test_distances_that_no_64_bits_hold_are_exact() -> None:
    assert ulps("f64", np.inf, -np.inf) == 2 * (0x7FF << 52)
    assert ulps("f64", -np.inf, np.inf) == -2 * (0x7FF << 52)
    assert ulps("f64", -1.0, 1.0) == -2 * (1023 << 52)
    assert ulps("s32", np.int32(-(1 << 31)), np.int32((1 << 31) - 1)) == 1 - (1 << 32)
    least, most = np.array([-(1 << 63)]), np.array([(1 << 63) - 1])
    assert distance(least, most).tolist() == distance(most, least).tolist() == [(1 << 64) - 1]


def test_distances_are_of_values() -> None:
    assert ulps("f32", np.float32(-0.0), np.float32(0.0)) == 0
    assert ulps("tf32", 0x3F80_1FFF, 0x3F80_0000) == 0  # bits that tf32 has not
    assert ulps("tf32", 0x3F80_2000, 0x3F80_0000) == 1
    assert ulps("f16", np.float16("nan"), np.float16("nan")) is None
    assert ulps("b1", np.array([0, 1], np.uint8), np.uint8(1)).tolist() == [-1, 0]


@pytest.mark.parametrize(
    ("format", "x", "y", "words"),
    [
        ("f17", 0, 0, "no format 'f17'; expected one of f64, f32"),
        (None, 0, 0, "no format None"),
        ("e4m3", 0x100, 0, "codes go from 256 to 256; expected 0 to 0xff"),
        ("f16", -1, 0, "codes go from -1"),
        ("f16", np.float32(1), 0, "got dtype float32"),
        ("s8", 128, 0, "128 at [] does not fit"),
        ("f16", [0, 1], [0, 1, 2], "shapes (2,) and (3,) do not broadcast"),
    ],
)
def test_distances_refuse(format: Any, x: Any, y: Any, words: str) -> None:
    with pytest.raises(OperandError, match=re.escape(words)):
        ulps(format, x, y)
