"""Number formats: what their records derive, decoding, arrays and raw codes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from format_cases import FLOATS, INTEGERS, TYPES, as_float, bits_of, codes_of

from warpmma.errors import OperandError
from warpmma.formats import FORMATS, FloatFormat, IntegerFormat

pytestmark = pytest.mark.quick

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
