"""Arguments of the formats' methods: integers of every type, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from warpmma.errors import OperandError
from warpmma.formats import FORMATS, FloatFormat, IntegerFormat, floating, integer

pytestmark = pytest.mark.quick

SECOND: Any = np.timedelta64(1, "s")
FLOATS = {name: f for name, f in FORMATS.items() if isinstance(f, FloatFormat)}
INTEGERS = {name: f for name, f in FORMATS.items() if isinstance(f, IntegerFormat)}
INTEGER_TYPES = [int, *(np.dtype(f"{sign}int{width}").type for sign in ("", "u") for width in (8, 16, 32, 64))]


def held(type_: Any, values: Iterable[int]) -> list[int]:
    """Those of these values that a type holds."""
    if type_ is int:
        return list(values)
    info = np.iinfo(type_)
    return [v for v in values if info.min <= v <= info.max]


def some_codes(fmt: FloatFormat | IntegerFormat) -> Sequence[int]:
    """All codes of narrow formats; of wide ones the ends, and what lies about the ends of integer types."""
    if fmt.bits <= 8:
        return range(fmt.mask + 1)
    edges = {0, 1, fmt.mask, *(x + d for w in (7, 8, 15, 16, 31, 32, 63) for x in (1 << w,) for d in (-1, 0, 1))}
    return sorted(x for x in edges if x <= fmt.mask)


@pytest.mark.parametrize("type_", INTEGER_TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", FORMATS)
def test_codes_mean_the_same_in_every_integer_type(name: str, type_: Any) -> None:
    fmt = FORMATS[name]
    codes = held(type_, some_codes(fmt))
    expected = fmt.decode(np.array(codes, fmt.code_dtype))
    raw = np.array(codes, fmt.code_dtype)
    assert [fmt.unpack(type_(c)) for c in codes] == [fmt.unpack(c) for c in codes]
    for given in ([type_(c) for c in codes], raw if type_ is int else np.array(codes, type_)):
        if isinstance(given, list) and type_ is int and max(given) >= 1 << 63:
            continue  # which NumPy takes for float64 beside smaller ones
        np.testing.assert_array_equal(fmt.decode(given), expected)
        np.testing.assert_array_equal(fmt.codes(fmt.array(given)), raw)
    for one in (codes[0], codes[-1]):
        assert fmt.unpack(np.array(type_(one))[()]) == fmt.unpack(one)
        np.testing.assert_array_equal(fmt.decode(type_(one)), fmt.decode(one))
        assert fmt.array(type_(one)).shape == ()
        assert int(fmt.codes(fmt.array(type_(one)))) == one


@pytest.mark.parametrize("type_", INTEGER_TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", FORMATS)
def test_values_mean_the_same_in_every_integer_type(name: str, type_: Any) -> None:
    fmt = FORMATS[name]
    edges = [s * (1 << w) + d for w in (3, 4, 7, 8, 15, 16, 31, 32, 53) for s in (-1, 1) for d in (-1, 0, 1)]
    values = held(type_, [0, 1, -1, *(v for v in edges if abs(v) <= 1 << 53)])
    if isinstance(fmt, IntegerFormat):
        values += held(type_, [1 << 63, (1 << 64) - 1, -(1 << 63), (1 << 63) - 1])
        expected = [min(max(v, fmt.least), fmt.greatest) & fmt.mask for v in values]
    else:
        expected = fmt.encode([float(v) for v in values]).tolist()
    assert [int(fmt.encode(type_(v))) for v in values] == expected
    if type_ is not int:  # NumPy makes float64 of Python's where no one of its types holds them all
        assert fmt.encode(np.array(values, type_)).tolist() == expected


@pytest.mark.parametrize("dtype", [t for t in INTEGER_TYPES if t is not int])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_of_every_type_are_codes_of_integers(name: str, dtype: Any) -> None:
    fmt = INTEGERS[name]
    values = held(dtype, [0, 1, fmt.least, fmt.greatest])
    for value in values:
        assert fmt.decode(fmt.codes(dtype(value))) == value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FORMATS["f16"].array([1.5, 2.0]), "f16: codes are unsigned integers such as uint16; got dtype float"),
        (lambda: FORMATS["f16"].array(np.array([1.5, 2.0])), "f16: codes are unsigned integers such as uint16; got "),
        (lambda: FORMATS["f16"].array([70000]), "f16: 70000 at [0] does not fit; expected 0 to 65535"),
        (lambda: FORMATS["s8"].array([-1]), "s8: -1 at [0] does not fit; expected 0 to 255"),
        (lambda: FORMATS["s4"].array(np.array([[0, 16]])), "s4: 16 at [0, 1] does not fit; expected 0 to 15"),
        (lambda: FORMATS["e2m1"].array(np.uint8(16)), "e2m1: 16 at [] does not fit; expected 0 to 15"),
        (lambda: FORMATS["f16"].array(np.array([True])), "f16: codes are unsigned integers such as uint16; got"),
        (lambda: FORMATS["f16"].unpack(1.0), "f16: a code is an integer; got 1.0"),  # type: ignore[arg-type]
        (lambda: FORMATS["f16"].unpack(True), "f16: a code is an integer; got True"),
        (lambda: FORMATS["s8"].unpack(SECOND), "s8: a code is an integer; got np.timedelta64(1,'s')"),
        (lambda: FORMATS["s8"].unpack(np.int8(-1)), "s8: code np.int8(-1) does not fit 8 bits"),
        (lambda: FORMATS["s8"].unpack(10**5000), "s8: code <int that cannot be shown> does not fit 8 bits"),
        (lambda: FORMATS["f16"].encode(1.0, "nr"),  # type: ignore[arg-type]
         "rounding is 'nr'; expected 'rn', 'rz', 'rm' or 'rp'"),
        (lambda: FORMATS["f16"].encode(1.0, np.zeros(2)),  # type: ignore[arg-type]
         "rounding is array([0., 0.]); expected 'rn', 'rz', 'rm' or 'rp'"),
        (lambda: FORMATS["f16"].encode(1.0, overflow="inf"),  # type: ignore[arg-type]
         "overflow is 'inf'; expected 'infinity' or 'saturate'; did you mean 'infinity'?"),
        (lambda: FORMATS["f16"].encode(1.0, overflow=np.zeros(2)),  # type: ignore[arg-type]
         "overflow is array([0., 0.]); expected 'infinity' or 'saturate'"),
        (lambda: FORMATS["f16"].decode(np.zeros((1,) * 64, np.uint16)), "f16 has 64 dimensions; expected at most 3"),
        (lambda: FORMATS["s32"].encode(np.zeros(3, "i4,f4").view(np.recarray)),
         "s32: cannot encode dtype (numpy.record, [('f0', '<i4'), ('f1', '<f4')]); give an integer or a float dtype"),
        (lambda: floating("s8"), "s8 is of the integer formats; expected one of f64, f32, tf32, f16,"),
        (lambda: integer("f16"), "f16 is of the floating-point formats; expected one of s32, s8, u8, s4, u4, b1"),
        (lambda: floating(["f16"]), "a format is named by a string; got ['f16']"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(OperandError, match=f"^{re.escape(message)}"):
        call()


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("code", [0x7F800001, 0xFFBFFFFF])
def test_signalling_nans_are_values_like_others(fmt: Any, code: int) -> None:
    """Without a warning, which would be an error here."""
    quiet, signalling = np.array([np.nan], np.float32), np.array([code], np.uint32).view(np.float32)
    if fmt.name == "f64":
        assert np.isnan(fmt.decode(fmt.encode(signalling))).all()  # payloads are kept
    else:
        assert fmt.encode(signalling) == fmt.encode(quiet)


def test_formats_by_kind() -> None:
    assert FORMATS["bf16"].fraction_bits + FORMATS["s8"].greatest == 7 + 127  # each of its own type, to mypy too
    assert {name: floating(name) for name in FLOATS} == FLOATS
    assert {name: integer(name) for name in INTEGERS} == INTEGERS
