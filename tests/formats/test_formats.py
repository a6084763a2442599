"""Number formats: every code against ml_dtypes, every rounding against a format's sorted values."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from warpmma._rounding import quantize
from warpmma.errors import OperandError
from warpmma.formats import FORMATS, FloatFormat, IntegerFormat, Number

Array = npt.NDArray[Any]
Rounding = Literal["rn", "rz", "rm", "rp"]
Overflow = Literal["infinity", "saturate"]

FLOATS = {name: f for name, f in FORMATS.items() if isinstance(f, FloatFormat)}
INTEGERS = {name: f for name, f in FORMATS.items() if isinstance(f, IntegerFormat)}
SMALL = [name for name, f in FLOATS.items() if f.bits <= 16]
LISTED = [*SMALL, "tf32"]  # every value of these is listed below; f32 is sampled, f64 is the identity
TYPES = {**{n: f.dtype for n, f in FLOATS.items()}, "ue4m3": np.dtype(ml_dtypes.float8_e4m3fn)}
ROUNDINGS: tuple[Rounding, ...] = ("rn", "rz", "rm", "rp")
each_rounding = pytest.mark.parametrize("rounding", ROUNDINGS)


def codes_of(name: str, count: int = 20_000) -> Array:
    """Every code of a format of at most 16 bits; else random ones, with all exponents and the extreme two."""
    fmt = FORMATS[name]
    if fmt.bits <= 16:
        return np.arange(1 << fmt.bits).astype(fmt.code_dtype)
    codes = np.random.default_rng(1).integers(0, fmt.mask, count, np.uint64, endpoint=True)
    if isinstance(fmt, FloatFormat):
        exponent = np.uint64(((1 << fmt.exponent_bits) - 1) << (fmt.fraction_bits + fmt.padding))
        edges = np.array([0, 1, fmt.sign_bit, fmt.max_code, fmt.inf_code, fmt.nan_code], np.uint64)
        codes = np.concatenate([codes, codes & ~exponent, codes | exponent, edges])
    return codes.astype(fmt.code_dtype)


def bits_of(values: npt.ArrayLike) -> Array:
    """Bits of float64 values, all NaNs being one: tells -0 from +0."""
    values = np.asarray(values, np.float64)
    return np.where(np.isnan(values), np.nan, values).view(np.uint64)


def as_float(number: Number) -> float:
    sign = -1.0 if number.sign else 1.0
    if number.kind == "finite":
        return sign * math.ldexp(number.significand, number.exponent)
    return sign * {"infinity": math.inf, "nan": math.nan}[number.kind]


def next_float32(values: Array, toward: float) -> Array:
    return np.nextafter(values.astype(np.float32), np.float32(toward))


# Facts that the records derive.


@pytest.mark.parametrize("name", [n for n in FLOATS if n not in ("tf32", "ue4m3")])
def test_derived_facts_are_those_of_numpy_and_ml_dtypes(name: str) -> None:
    fmt, info = FLOATS[name], ml_dtypes.finfo(FORMATS[name].dtype)  # type: ignore[no-untyped-call]
    assert as_float(fmt.largest) == float(info.max)
    assert 2.0**fmt.emin == float(info.smallest_normal)
    assert fmt.emin == info.minexp
    assert fmt.emax == math.frexp(float(info.max))[1] - 1
    assert fmt.bits == info.bits


@pytest.mark.parametrize(
    ("name", "bits", "emin", "emax", "largest", "least", "infinity", "nan"),
    [
        ("f64", 64, -1022, 1023, (2**53 - 1) * 2**971, 2.0**-1074, 0x7FF0 << 48, (1 << 63) - 1),  # IEEE
        ("f32", 32, -126, 127, (2**24 - 1) * 2**104, 2.0**-149, 0x7F80_0000, 0x7FFF_FFFF),
        ("f16", 16, -14, 15, 65504, 2.0**-24, 0x7C00, 0x7FFF),
        ("tf32", 32, -126, 127, (2**11 - 1) * 2**117, 2.0**-136, 0x7F80_0000, 0x7FFF_FFFF),  # PTX, 5.2.3
        ("bf16", 16, -126, 127, (2**8 - 1) * 2**120, 2.0**-133, 0x7F80, 0x7FFF),
        ("e5m2", 8, -14, 15, 57344, 2.0**-16, 0x7C, 0x7F),  # OCP FP8 1.0, table 1
        ("e4m3", 8, -6, 8, 448, 2.0**-9, None, 0x7F),
        ("e3m2", 6, -2, 4, 28, 2.0**-4, None, None),  # OCP MX 1.0, table 5
        ("e2m3", 6, 0, 2, 7.5, 2.0**-3, None, None),
        ("e2m1", 4, 0, 2, 6, 2.0**-1, None, None),  # OCP MX 1.0, table 6
        ("ue8m0", 8, -127, 127, 2**127, 2.0**-127, None, 0xFF),  # OCP MX 1.0, table 7
        ("ue4m3", 7, -6, 8, 448, 2.0**-9, None, 0x7F),
    ],
)  # fmt: skip
def test_published_facts(
    name: str, bits: int, emin: int, emax: int, largest: float, least: float,
    infinity: int | None, nan: int | None,
) -> None:  # fmt: skip
    fmt = FLOATS[name]
    assert (fmt.bits, fmt.emin, fmt.emax) == (bits, emin, emax)
    assert fmt.largest.significand * Fraction(2) ** fmt.largest.exponent == largest
    assert as_float(fmt.unpack(1 << fmt.padding if fmt.subnormals else 0)) == least
    assert (fmt.inf_code, fmt.nan_code, fmt.has_infinity) == (infinity, nan, infinity is not None)


@pytest.mark.parametrize(("name", "fmt"), FORMATS.items())
def test_records_name_themselves_their_source_and_the_narrowest_code_type(
    name: str, fmt: FloatFormat | IntegerFormat
) -> None:
    assert fmt.name == name
    assert fmt.source
    assert fmt.code_dtype == f"uint{min(w for w in (8, 16, 32, 64) if w >= fmt.bits)}"


# Decoding.


@pytest.mark.parametrize("name", FLOATS)
def test_codes_decode_as_in_numpy_and_ml_dtypes(name: str) -> None:
    codes = codes_of(name)
    plain = codes & np.uint32(0xFFFFE000) if name == "tf32" else codes
    with np.errstate(invalid="ignore"):  # the cast of a NaN sets the flag
        expected = plain.view(TYPES[name]).astype(np.float64)
    np.testing.assert_array_equal(bits_of(FLOATS[name].decode(codes)), bits_of(expected))


@pytest.mark.parametrize("name", FLOATS)
def test_the_scalar_path_is_the_array_path(name: str) -> None:
    codes = codes_of(name, 3_000)
    scalar = [as_float(FLOATS[name].unpack(int(code))) for code in codes]
    np.testing.assert_array_equal(bits_of(scalar), bits_of(FLOATS[name].decode(codes)))


@pytest.mark.parametrize("name", FORMATS)
def test_unpack_refuses_codes_that_do_not_fit(name: str) -> None:
    fmt = FORMATS[name]
    fmt.unpack(fmt.mask)
    for code in (-1, fmt.mask + 1):
        with pytest.raises(OperandError, match=rf"{name}: code .* does not fit {fmt.bits} bits"):
            fmt.unpack(code)


def test_tf32_ignores_its_low_13_bits_and_is_written_with_them_clear() -> None:
    fmt, codes = FLOATS["tf32"], codes_of("tf32")
    plain = codes & np.uint32(0xFFFFE000)
    np.testing.assert_array_equal(bits_of(fmt.decode(codes)), bits_of(fmt.decode(plain)))
    assert all(fmt.unpack(int(c)) == fmt.unpack(int(p)) for c, p in zip(codes[:1000], plain, strict=False))
    values = FLOATS["f32"].decode(codes)
    assert not (fmt.encode(values[~np.isnan(values)]) & np.uint32(0x1FFF)).any()


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("shape", [(), (0,), (2, 1, 3)])
def test_shapes_are_kept(name: str, shape: tuple[int, ...]) -> None:
    codes = np.full(shape, FLOATS[name].max_code, FORMATS[name].code_dtype)
    again = FLOATS[name].encode(FLOATS[name].decode(codes))
    assert (np.shape(again), again.dtype) == (shape, FORMATS[name].code_dtype)
    np.testing.assert_array_equal(again, codes)


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
    codes = quantize(magnitude, 1, 0, np.array([False, True, False, True]))
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


# Arrays and raw codes.


@pytest.mark.parametrize("name", FORMATS)
def test_arrays_and_codes_round_trip_bit_for_bit(name: str) -> None:
    fmt, codes = FORMATS[name], codes_of(name)
    codes = codes[: len(codes) // 2 * 2].reshape(2, -1).T[::-1]  # not contiguous
    array = fmt.array(codes)
    assert (array.dtype, array.shape) == (fmt.dtype, codes.shape)
    for given in (array, codes):
        again = fmt.codes(given)
        assert again.dtype == fmt.code_dtype
        np.testing.assert_array_equal(again, codes)


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("name", INTEGERS)
def test_integer_arrays_of_any_dtype_are_taken_where_they_fit(name: str, dtype: str) -> None:
    fmt, info = INTEGERS[name], np.iinfo(dtype)
    values = [v for v in (0, 1, fmt.least, fmt.greatest) if info.min <= v <= info.max]
    assert fmt.decode(fmt.codes(np.array(values, dtype))).tolist() == values


def test_bits_are_taken_as_bool() -> None:
    assert FORMATS["b1"].codes(np.array([True, False])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("f16", np.zeros(2, np.float32), r"got dtype float32; expected float16, or raw codes .*encode\)$"),
        ("f16", np.zeros(2, np.int16), r"got dtype int16; expected float16, or raw codes as uint16$"),
        ("f32", [1.0, 2.0], r"got dtype float64; expected float32"),
        ("bf16", np.zeros(2, np.float16), r"got dtype float16; expected bfloat16"),
        ("e4m3", np.zeros(2, ml_dtypes.float8_e5m2), r"got dtype float8_e5m2; expected float8_e4m3fn"),
        ("tf32", np.zeros(2, np.float64), r"got dtype float64; expected float32"),
        ("f64", np.zeros(2, np.complex128), r"got dtype complex128; expected float64"),
        ("s8", np.zeros(2, np.float32), r"got dtype float32; expected int8"),
        ("s32", ["1"], r"got dtype <U1; expected int32"),
        ("f32", np.array([1.0], object), r"object arrays hold no bits; give float32 or uint32 codes"),
        ("s8", np.array([1], object), r"object arrays hold no bits; give int8 or uint8 codes"),
        ("e2m1", np.array([[1, 2], [3, 16]], np.uint8), r"16 at \[1, 1\] does not fit; expected 0 to 15"),
        ("e3m2", np.array([64], np.uint8), r"64 at \[0\] does not fit; expected 0 to 63"),
        ("ue4m3", np.array([127, 128], np.uint8), r"128 at \[1\] does not fit; expected 0 to 127"),
        ("s8", np.array([0, 0, 128]), r"128 at \[2\] does not fit; expected -128 to 127"),
        ("u8", np.array([[-1]], np.int8), r"-1 at \[0, 0\] does not fit; expected 0 to 255"),
        ("s4", np.array([7, 8], np.int8), r"8 at \[1\] does not fit; expected -8 to 7"),
        ("s4", np.array([15, 16], np.uint8), r"16 at \[1\] does not fit; expected 0 to 15"),
        ("u4", np.array([-1], np.int64), r"-1 at \[0\] does not fit; expected 0 to 15"),
        ("b1", np.array([2], np.uint8), r"2 at \[0\] does not fit; expected 0 to 1"),
        ("s32", np.array(2**31), r"2147483648 at \[\] does not fit; expected -2147483648 to 2147483647"),
    ],
)  # fmt: skip
def test_arrays_that_cannot_be_codes_are_refused(name: str, array: Any, message: str) -> None:
    with pytest.raises(OperandError, match=f"^{name}: {message}"):
        FORMATS[name].codes(array)
