"""`assert_close`: which values are close, and what is said of those that are not."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from report_cases import F16, QUAD, S8, rows, where

import warpmma as wm
from warpmma.errors import OperandError
from warpmma.testing import assert_close

pytestmark = pytest.mark.quick

SPECIAL = [0.0, -0.0, 1.0, -1.0, 1e-300, 1e300, -1e300, 1.7e308, -1.7e308, np.inf, -np.inf, np.nan, -np.nan]
TYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


def failing(actual: Any, expected: Any, **named: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected, **named)
    return str(caught.value)


def marked(actual: Any, expected: Any, **named: Any) -> Any:
    """A mask of the elements that are reported."""
    mask = np.zeros(np.shape(actual), bool)
    try:
        assert_close(actual, expected, limit=10_000, **named)
    except AssertionError as report:
        for row in rows(str(report)):
            mask[tuple(int(x) for x in row[0].strip("[]").split(", "))] = True
    return mask


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize(("rtol", "atol"), [(0, 0), (1e-3, 0), (0, 0.5), (0.25, 1e-3), (2, 0)])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
def test_closeness_is_that_of_numpy(dtype: Any, rtol: float, atol: float, equal_nan: bool) -> None:
    """For all pairs of special values, and random neighbours; `numpy.isclose` of float64 is the oracle."""
    rng = np.random.default_rng(1)
    with np.errstate(over="ignore"):
        values = np.array(SPECIAL).astype(dtype)
        near = rng.standard_normal(200)
        x = np.concatenate([np.repeat(values, len(values)), near.astype(dtype)])
        y = np.concatenate([np.tile(values, len(values)), (near * (1 + 1e-3 * rng.standard_normal(200))).astype(dtype)])
        a, b = x.astype(np.float64), y.astype(np.float64)
        expected = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    expected |= np.isinf(a) != np.isinf(b)  # NumPy takes infinity for close to what has a tolerance beyond float64
    assert (marked(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan) == expected).all()


def test_types_may_differ_if_both_are_floats() -> None:
    x = np.linspace(-3, 3, 97)
    of_types = {np.float32: 1e-7, np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3, ml_dtypes.float8_e5m2: 0.2}
    for dtype, rtol in of_types.items():
        assert_close(x.astype(dtype), x, rtol=rtol, atol=1e-3)
        assert_close(x, x.astype(dtype), rtol=rtol, atol=1e-3)
    for other in (np.int32, np.uint8, bool):
        assert failing(x, x.astype(other), rtol=1) == f"dtypes differ: actual float64, expected {np.dtype(other)}"
    assert (
        failing(np.zeros(3, np.int32), np.zeros(3, np.int64), rtol=1) == "dtypes differ: actual int32, expected int64"
    )


def test_integers_are_compared_exactly() -> None:
    x = np.array([(1 << 62) + 1, -(1 << 63), 7])
    assert_close(x, x.copy(), rtol=0)
    text = failing(x, np.array([1 << 62, (1 << 63) - 1, 7]), rtol=0)
    assert [row[0] for row in rows(text)] == ["[0]", "[1]"]
    assert [row[3] for row in rows(text)] == ["+1", "-18,446,744,073,709,551,615"]
    assert_close(np.array([250, 3], np.uint8), np.array([255, 0], np.uint8), rtol=0, atol=5)
    assert "off by 5 where 4 is allowed" in failing(
        np.array([250], np.uint8), np.array([255], np.uint8), rtol=0, atol=4
    )


def test_the_report_has_all_that_is_known() -> None:
    expected = np.arange(1, 65, dtype=np.float64).reshape(8, 8)
    actual = expected.astype(np.float32)
    actual[2, 4] += 0.5
    actual[6, 1] *= 2
    assert failing(actual, expected, rtol=1e-3, atol=1e-2, names=("kernel", "NumPy")) == (
        "2 of 64 elements are not close (f32 and f64; rtol 0.001, atol 0.01)\n"
        "   index  kernel  NumPy  difference  allowed        ulps\n"
        "  [2, 4]    21.5     21        +0.5    0.031    +262,144\n"
        "  [6, 1]     100     50         +50     0.06  +8,388,608\n"
        "where: rows 2, 6; columns 1, 4 (2 of 4 elements)\n"
        "worst: [6, 1], off by 50 where 0.06 is allowed, 833 times as much, 8,388,608 ulps of f32\n"
        "largest difference: 50, at [6, 1]; largest relative difference: 1, at [6, 1]"
    )


def test_what_is_no_number_is_counted() -> None:
    nan, inf = np.nan, np.inf
    x = np.array([nan, nan, 1, inf, inf, 2], np.float32)
    y = np.array([nan, 1, nan, -inf, 1, 2], np.float32)
    lines = failing(x, y, rtol=1).splitlines()
    assert lines[0] == "5 of 6 elements are not close (f32; rtol 1, atol 0)"
    assert lines[-3:] == [
        "NaN on one side: 2",
        "NaN on both sides, and equal_nan is False: 1",
        "infinity on one side, or of another sign: 2",
    ]
    lines = failing(x, y, rtol=1, equal_nan=True).splitlines()
    assert lines[0].startswith("4 of 6") and lines[-2] == "NaN on one side: 2"
    assert not [line for line in lines if line.startswith(("worst", "largest"))]


def test_a_tolerance_of_nothing_asks_for_equal_values() -> None:
    assert_close(np.array([0.0, 1], np.float32), np.array([-0.0, 1], np.float32), rtol=0)
    text = failing(
        np.array([1, 2], np.float32), np.array([1, np.nextafter(np.float32(2), np.float32(3))], np.float32), rtol=0
    )
    assert "worst: [1], off by 2.38e-07 where 0 is allowed, 1 ulp of f32" in text


def test_a_tolerance_below_the_precision_of_the_type_is_named() -> None:
    expected = np.linspace(1, 2, 100)
    text = failing(expected.astype(ml_dtypes.bfloat16), expected, rtol=1e-4)
    assert text.endswith("each of these is the expected value rounded to bf16: the tolerance is too small for it")
    assert "0 ulps of bf16" in text
    other = expected.astype(ml_dtypes.bfloat16)
    other[50] *= 2
    assert "the tolerance is too small" not in failing(other, expected, rtol=1e-4)


def test_operands_of_an_instruction_are_placed() -> None:
    expected = np.random.default_rng(0).standard_normal((32, 16)).astype(np.float32)
    actual = expected.copy()
    actual[16:24, 8:] += 1
    text = failing(actual, expected, rtol=1e-3, instruction=F16, limit=1)
    assert text.startswith(f"64 of 512 elements of D are not close (f32, {F16}; rtol 0.001, atol 0)")
    assert rows(text)[0][-2:] == ["0", "0"]
    assert where(text).startswith("only row of tiles 1; only column of tiles 1; rows 16-23; columns 8-15")
    stored = actual.astype(np.float16)  # as a kernel stores an f32 D, beside a reference in float64
    text = failing(stored, expected.astype(np.float64), rtol=1e-2, instruction=F16, limit=1)
    assert text.startswith(f"64 of 512 elements of D are not close (f16 and f64, {F16}; rtol 0.01")
    registers = [wm.load(F16, "D", x[:16, :8]) for x in (actual + 1, expected)]
    text = failing(*registers, rtol=1e-3, instruction=F16)
    assert text.startswith("128 of 128 elements of D are not close (f32, ")
    assert_close(*[wm.load(F16, "D", x[:16, :8]) for x in (actual, expected)], rtol=1e-3, instruction=F16)
    codes = expected[:16, :8].copy().view(np.uint32)
    assert_close(codes, codes ^ np.uint32(1), rtol=1e-6, instruction=F16)  # as floats, not as integers
    d = np.zeros((16, 8), np.int32)
    assert "s32" in failing(d, d + 3, rtol=0, atol=2, instruction=S8)


def test_shapes_come_first() -> None:
    assert failing(np.zeros(3), np.zeros((3, 1)), rtol=1) == "shapes differ: actual (3,), expected (3, 1)"
    assert failing(1.0, [1.0], rtol=1) == "shapes differ: actual (), expected (1,)"
    assert_close(1.0, 1.0 + 1e-9, rtol=1e-6)
    assert_close([], [], rtol=0)


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"rtol": -1e-3}, "rtol is -0.001; expected a number of at least 0"),
        ({"rtol": np.nan}, "rtol is nan; expected a number of at least 0"),
        ({"rtol": np.inf}, "rtol is inf; expected"),
        ({"rtol": "1e-3"}, "rtol is '1e-3'; expected"),
        ({"rtol": True}, "rtol is True; expected"),
        ({"rtol": None}, "rtol is None; expected"),
        ({"rtol": 10**400}, "expected a number of at least 0"),
        ({"rtol": 0, "atol": -1}, "atol is -1; expected a number of at least 0"),
        ({"rtol": 0, "equal_nan": "yes"}, "equal_nan is 'yes'; expected True or False"),
        ({"rtol": 0, "limit": -1}, "limit is -1"),
        ({"rtol": 0, "names": "xy"}, "names are 'xy'"),
        ({"rtol": 0, "operand": "E"}, "operand is 'E'"),
        ({"rtol": 0, "instruction": QUAD, "operand": "A"}, "expected matrices [..., 4, 8, 4]"),
        ({"rtol": 0, "actual": [1j], "expected": [1j]}, "complex128 has no bits to compare"),
        ({"rtol": 0, "actual": ["a"], "expected": ["a"]}, "<U1 has no bits to compare"),
        ({"rtol": 0, "actual": [1j]}, "complex128 has no bits to compare"),
    ],
    ids=str,
)
def test_what_cannot_be_compared_is_refused(named: dict[str, Any], words: str) -> None:
    with pytest.raises(OperandError, match=re.escape(words)):
        assert_close(**{"actual": np.zeros(1), "expected": np.zeros(1), **named})
