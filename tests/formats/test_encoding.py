"""Encoding: every code against ml_dtypes, every rounding against a format's sorted values."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from arrays import Array
from format_cases import FLOATS, INTEGERS, LISTED, ROUNDINGS, SMALL, TYPES, Rounding, as_float, codes_of

from warpmma._rounding import to_grid
from warpmma.errors import OperandError
from warpmma.formats import FORMATS, FloatFormat

Overflow = Literal["infinity", "saturate"]
each_rounding = pytest.mark.parametrize("rounding", ROUNDINGS)


def next_float32(values: Array, toward: float) -> Array:
    return np.nextafter(values.astype(np.float32), np.float32(toward))


# Encoding.


@each_rounding
@pytest.mark.parametrize("name", FLOATS)
def test_what_a_format_holds_is_encoded_without_rounding(name: str, rounding: Rounding) -> None:
    fmt = FLOATS[name]
    codes = codes_of(name) >> fmt.padding << fmt.padding
    finite = codes[np.isfinite(fmt.decode(codes))]
    np.testing.assert_array_equal(fmt.encode(fmt.decode(finite), rounding), finite)


def grid_of(fmt: FloatFormat) -> tuple[Array, Array, float]:
    """Sorted finite values without -0, their codes, and the value that would follow the largest."""
    codes = np.arange(0, 1 << fmt.bits, 1 << fmt.padding)
    values = fmt.decode(codes)
    kept = np.isfinite(values) & ~((values == 0) & np.signbit(values))
    order = np.argsort(values[kept])
    beyond = as_float(fmt.largest) + 2.0 ** (fmt.emax - fmt.fraction_bits)
    return values[kept][order], codes[kept][order], beyond


def points(fmt: FloatFormat) -> Array:
    """Every value and midpoint between neighbours, the float64 numbers beside each, and the extremes."""
    grid, _, beyond = grid_of(fmt)
    grid = np.concatenate([[-beyond] if fmt.signed else [], grid, [beyond]])
    exact = np.concatenate([grid, (grid[:-1] + grid[1:]) / 2, [-grid[1], 0.0, -0.0]])
    far = [s * x for s in (1.0, -1.0) for x in (5e-324, 2.0**-200, 1e300, np.finfo(float).max, math.inf)]
    return np.concatenate([exact, np.nextafter(exact, math.inf), np.nextafter(exact, -math.inf), far])


def rounded(fmt: FloatFormat, values: Array, rounding: Rounding, overflow: Overflow) -> Array:
    """Round by looking values up among the sorted ones: only comparisons of exact float64 numbers."""
    grid, codes, beyond = grid_of(fmt)
    if overflow == "infinity":
        assert fmt.inf_code is not None
        grid = np.concatenate([[-math.inf], grid, [math.inf]])
        codes = np.concatenate([[fmt.inf_code | fmt.sign_bit], codes, [fmt.inf_code]])
    below = np.clip(np.searchsorted(grid, values, "right") - 1, 0, None)
    above = np.clip(np.searchsorted(grid, values, "left"), None, len(grid) - 1)
    # Exact: neighbours differ in the last place, so that their mean has one bit more than they.
    near = np.clip(grid, -beyond, beyond)
    middle = (near[below] + near[above]) / 2
    # One-bit significands are never even; IEEE 754-2019, 4.3.1, then takes the one larger in magnitude.
    even = ((codes[below] >> fmt.padding) % 2 == 0) & (fmt.fraction_bits > 0)
    down = {
        "rn": (values < middle) | ((values == middle) & even),
        "rz": values >= 0,
        "rm": np.full(values.shape, True),
        "rp": np.full(values.shape, False),
    }
    result = np.where(down[rounding], codes[below], codes[above])
    return np.where((result == 0) & np.signbit(values), fmt.sign_bit, result).astype(fmt.code_dtype)


@each_rounding
@pytest.mark.parametrize("name", LISTED)
def test_rounding_at_and_around_every_value_and_midpoint(name: str, rounding: Rounding) -> None:
    fmt = FLOATS[name]
    values = points(fmt)
    np.testing.assert_array_equal(fmt.encode(values, rounding), rounded(fmt, values, rounding, fmt.overflow))


@each_rounding
@pytest.mark.parametrize("overflow", ["infinity", "saturate"])
@pytest.mark.parametrize("name", [n for n in LISTED if FLOATS[n].has_infinity])
def test_overflow_can_be_asked_for(name: str, overflow: Overflow, rounding: Rounding) -> None:
    fmt = FLOATS[name]
    steps = np.array([-1, 0, 0.25, 0.49, 0.5, 0.51, 0.99, 1, 1.01, 1000, math.inf])
    sizes = as_float(fmt.largest) + 2.0 ** (fmt.emax - fmt.fraction_bits) * steps
    values = np.concatenate([sizes, -sizes])
    expected = rounded(fmt, values, rounding, overflow)
    np.testing.assert_array_equal(fmt.encode(values, rounding, overflow=overflow), expected)


@pytest.mark.parametrize("name", [n for n, f in FLOATS.items() if not f.has_infinity])
def test_a_format_without_infinity_cannot_overflow_to_it(name: str) -> None:
    with pytest.raises(OperandError, match=rf"{name} has no infinity; overflow can only be 'saturate'"):
        FLOATS[name].encode([1.0], overflow="infinity")


# Versions of ml_dtypes differ among themselves in ue8m0's cast; the sorted values above test that format.
@pytest.mark.parametrize("name", [name for name in SMALL if name != "ue8m0"])
def test_round_to_nearest_is_the_cast_of_ml_dtypes(name: str) -> None:
    fmt = FLOATS[name]
    top = as_float(fmt.largest)  # beyond it ml_dtypes gives NaN or infinity, where PTX saturates
    exact = points(fmt)
    exact = exact[np.abs(exact) <= top].astype(np.float32)  # ml_dtypes rounds float64 to float32 first
    values = np.concatenate([next_float32(exact, -np.inf), exact, next_float32(exact, np.inf)])
    least = -top if fmt.signed else 0.0
    values = values[(np.abs(values) <= top) & (values >= least)]
    cast = values.astype(TYPES[name]).view(fmt.code_dtype)
    np.testing.assert_array_equal(fmt.encode(values), cast & fmt.code_dtype.type(fmt.mask))


def test_f32_rounds_as_numpy_does_and_otherwise_to_a_neighbour_of_it() -> None:
    fmt, rng = FLOATS["f32"], np.random.default_rng(2)
    exact = fmt.decode(codes_of("f32"))
    exact = exact[np.abs(exact) < np.finfo(np.float32).max]
    ties = (exact + next_float32(exact, np.inf)) / 2
    values = np.concatenate([exact, ties, exact * rng.uniform(0.5, 1, exact.shape)])
    values = np.concatenate([values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)])
    rn = values.astype(np.float32)
    rm = np.where(rn > values, next_float32(rn, -np.inf), rn)
    rp = np.where(rn < values, next_float32(rn, np.inf), rn)
    expected: dict[Rounding, Array] = {"rn": rn, "rm": rm, "rp": rp, "rz": np.where(values < 0, rp, rm)}
    for rounding, result in expected.items():
        signed = np.copysign(result, values).astype(np.float32)  # a zero keeps the sign of what became zero
        np.testing.assert_array_equal(fmt.encode(values, rounding), signed.view(np.uint32), err_msg=rounding)


@pytest.mark.parametrize(
    ("name", "value", "rounding", "code"),
    [
        ("f16", 65519.99, "rn", 0x7BFF),  # PTX cvt: the largest value until half a step above it
        ("f16", 65520.0, "rn", 0x7C00),
        ("f16", 1e9, "rz", 0x7BFF),
        ("f16", -1e9, "rp", 0xFBFF),
        ("f16", -1e9, "rm", 0xFC00),
        ("f16", -math.inf, "rz", 0xFC00),
        ("f32", 1e39, "rn", 0x7F80_0000),
        ("f32", 1e39, "rm", 0x7F7F_FFFF),
        ("tf32", 1e39, "rn", 0x7F80_0000),
        ("tf32", 1e39, "rz", 0x7F7F_E000),
        ("e4m3", 1e9, "rn", 0x7E),  # 448
        ("e4m3", -math.inf, "rn", 0xFE),
        ("e5m2", 1e9, "rn", 0x7B),  # 57344, although the format has an infinity: cvt saturates
        ("e5m2", math.inf, "rn", 0x7B),
        ("e2m1", -7.0, "rn", 0xF),
        ("ue8m0", 0.0, "rz", 0x00),  # no zero: 2**-127 is the least
        ("ue8m0", 3.0, "rz", 0x80),
        ("ue8m0", 3.0, "rp", 0x81),
        ("ue8m0", math.inf, "rp", 0xFE),
        ("ue4m3", -1.0, "rn", 0x00),
    ],
)
def test_spot_checks_of_encode(name: str, value: float, rounding: Rounding, code: int) -> None:
    assert int(FLOATS[name].encode(value, rounding)) == code


@each_rounding
@pytest.mark.parametrize("name", [n for n in FLOATS if n != "f64"])
def test_nan_is_canonical_or_the_largest_value(name: str, rounding: Rounding) -> None:
    fmt = FLOATS[name]
    code = fmt.max_code if fmt.nan_code is None else fmt.nan_code
    assert fmt.encode([math.nan, -math.nan], rounding).tolist() == [code, code]


@pytest.mark.parametrize("name", [n for n in FORMATS if n != "f64"])
def test_a_signalling_nan_is_encoded_as_any_other(name: str) -> None:
    signalling = np.array([0x7FF0_0000_0000_0001, 0xFFF0_0000_0000_0001], np.uint64).view(np.float64)
    assert FORMATS[name].encode(signalling).tolist() == FORMATS[name].encode([math.nan, math.nan]).tolist()


def test_ue8m0_has_no_zero_and_f64_keeps_its_bits() -> None:
    assert not (FLOATS["ue8m0"].decode(codes_of("ue8m0")) == 0).any()
    codes = codes_of("f64")
    np.testing.assert_array_equal(FLOATS["f64"].encode(FLOATS["f64"].decode(codes)), codes)


def test_quantize_rounds_up_where_its_mask_says() -> None:
    magnitude = np.array([1.25, 1.25, 2.0, 2.0])  # with one fraction bit, 1, 1.5 and 2 have codes 2, 3 and 4
    codes = to_grid(magnitude, 1, 0, np.array([False, True, False, True]))
    np.testing.assert_array_equal(codes, [2, 3, 4, 4])


# Integers.


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_both_ways(name: str) -> None:
    fmt, codes = INTEGERS[name], codes_of(name, 5_000)
    values = [int(c) - (1 << fmt.bits) * (fmt.signed and int(c) >> (fmt.bits - 1)) for c in codes]
    assert [fmt.unpack(int(c)) for c in codes] == values
    assert fmt.decode(codes).tolist() == values
    assert fmt.encode(values).tolist() == codes.tolist()
    assert min(values) >= fmt.least
    assert max(values) <= fmt.greatest
    assert fmt.decode(fmt.encode([fmt.least, fmt.greatest])).tolist() == [fmt.least, fmt.greatest]


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_clamp_and_nan_is_zero(name: str) -> None:
    fmt = INTEGERS[name]
    low, high = fmt.encode([fmt.least, fmt.greatest]).tolist()
    assert fmt.encode([fmt.least - 1, fmt.greatest + 1, -(2**40), 2**40]).tolist() == [low, high, low, high]
    assert fmt.encode([-1e30, 1e30, -math.inf, math.inf, math.nan]).tolist() == [low, high, low, high, 0]


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [
        ("rn", [-2, -2, 0, 0, 2, 2]),
        ("rz", [-2, -1, 0, 0, 1, 2]),
        ("rm", [-3, -2, -1, 0, 1, 2]),
        ("rp", [-2, -1, 0, 1, 2, 3]),
    ],
)
def test_integers_round(rounding: Rounding, expected: list[int]) -> None:
    codes = INTEGERS["s8"].encode([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], rounding)
    assert INTEGERS["s8"].decode(codes).tolist() == expected
