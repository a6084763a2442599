"""Formats of one's own: records that decode and encode by their fields, or that are refused."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warpmma.errors import OperandError
from warpmma.formats import FloatFormat, IntegerFormat, floating, integer
from warpmma.testing import ulps

E3M4 = replace(floating("e2m3"), name="e3m4", exponent_bits=3, fraction_bits=4, nan="ieee", overflow="infinity",
               bias=3, dtype_name="float8_e3m4")  # fmt: skip
S24 = IntegerFormat(name="s24", bits=24, signed=True, dtype_name="int32", source="none")


def test_a_format_that_no_instruction_has() -> None:
    codes = np.arange(256, dtype=np.uint8)
    values = codes.view(ml_dtypes.float8_e3m4).astype(np.float64)
    decoded = E3M4.decode(codes)
    assert np.array_equal(decoded, values, equal_nan=True)
    finite = np.isfinite(values)
    assert (E3M4.encode(values[finite]) == codes[finite]).all()
    assert ulps(E3M4, 0x11, 0x10) == 1
    assert pickle.loads(pickle.dumps(E3M4)) == E3M4


def test_a_double_by_another_name() -> None:
    """What is 64 bits wide is read as it stands, whatever it is called."""
    double = replace(floating("f64"), name="double")
    values = np.array([0.1, -np.inf, 5e-324])
    assert (double.encode(values) == values.view(np.uint64)).all() and (
        double.decode(double.encode(values)) == values
    ).all()


def test_fields_of_numpy() -> None:
    f32 = floating("f32")
    fields: dict[str, Any] = {
        "exponent_bits": np.int8(8), "fraction_bits": np.uint8(23), "bias": np.int16(127), "padding": np.int8(0),
    }  # fmt: skip
    same = replace(f32, **fields)
    assert same == f32 and same.largest == f32.largest and same.mask == 0xFFFFFFFF
    width: Any = np.int8(24)
    assert replace(S24, bits=width).greatest == 0x7FFFFF


def test_integers_of_other_widths() -> None:
    assert S24.encode([1 << 30, -1]).tolist() == [0x7FFFFF, 0xFFFFFF] and S24.decode([0xFFFFFF]).tolist() == [-1]


BAD: list[tuple[FloatFormat | IntegerFormat, dict[str, Any], str]] = [
    (E3M4, {"name": 3}, "name of a format is 3; expected text"),
    (E3M4, {"dtype_name": np.float16}, "dtype_name of a format is <class 'numpy.float16'>; expected text"),
    (E3M4, {"name": "\ud800"}, "name of a format is '\\ud800'; expected text"),
    (E3M4, {"source": None}, "source of a format is None; expected text"),
    (E3M4, {"signed": 1}, "e3m4: signed is 1; expected True or False"),
    (E3M4, {"subnormals": np.zeros(2)}, "e3m4: subnormals is array([0., 0.]); expected True or False"),
    (E3M4, {"exponent_bits": True}, "e3m4: exponent_bits is True; expected 0 to 11"),
    (E3M4, {"fraction_bits": 1 << 64}, "e3m4: fraction_bits is 18446744073709551616; expected 0 to 52"),
    (E3M4, {"bias": 3.0}, "e3m4: bias is 3.0; expected 0 to 1023"),
    (E3M4, {"padding": -1}, "e3m4: padding is -1; expected 0 to 13"),
    (E3M4, {"fraction_bits": 20}, "e3m4: 24 bits; expected at most 16, or the exponents of f32 in 32, of f64 in 64"),
    (floating("f32"), {"bias": 126}, "f32: 32 bits; expected at most 16, or the exponents of f32 in 32, of f64 in 64"),
    (floating("f64"), {"subnormals": False},
     "f64: 64 bits; expected at most 16, or the exponents of f32 in 32, of f64 in 64"),
    (integer("s8"), {"bits": 0}, "s8: bits is 0; expected 1 to 64"),
    (integer("s8"), {"bits": "8"}, "s8: bits is '8'; expected 1 to 64"),
    (integer("s8"), {"signed": "no"}, "s8: signed is 'no'; expected True or False"),
]  # fmt: skip


@pytest.mark.parametrize(("fmt", "changes", "message"), BAD)
def test_fields_that_are_none(fmt: FloatFormat | IntegerFormat, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OperandError) as caught:
        replace(fmt, **changes)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["float17", "float32", "a", "", "finfo"])
def test_types_that_do_not_hold_the_codes(name: str) -> None:
    with pytest.raises(OperandError) as caught:
        replace(E3M4, dtype_name=name).array([1])
    expected = "expected a type of NumPy or ml_dtypes of 1 bytes, as its codes have"
    assert str(caught.value) == f"e3m4: dtype_name is {name!r}; {expected}"
