"""How elements are read and shown where they differ."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from report_cases import report, rows

from warpmma.formats import FORMATS, Format, IntegerFormat
from warpmma.testing.reading import reader, reader_of

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda f: f.name)
@pytest.mark.alike(2)
def test_what_is_shown_tells_every_value_from_every_other(fmt: Format) -> None:
    """All codes of 8 bits, and many of more; what is read back is the value."""
    rng = np.random.default_rng(1)
    many = [*range(300), *range(fmt.mask - 300, fmt.mask + 1), *rng.integers(0, fmt.mask, 2000, np.uint64).tolist()]
    for code in range(fmt.mask + 1) if fmt.bits <= 8 else many:
        text = reader(fmt).show(code)
        if isinstance(fmt, IntegerFormat):
            assert int(text) == fmt.unpack(code)
            continue
        number = fmt.unpack(code)
        assert text.startswith("-") == bool(number.sign)
        if number.kind == "nan":
            assert text.lstrip("-") == "nan"
        else:
            padding = (1 << fmt.padding) - 1
            again = float(text)
            assert int(fmt.encode(again)) == code & ~padding or number.kind == "infinity"
            assert np.isinf(again) == (number.kind == "infinity")


def test_what_is_shown_is_short() -> None:
    f32, f16, bf16 = (reader(FORMATS[name]).show for name in ("f32", "f16", "bf16"))
    assert [f32(0x3F80_0001), f32(0x3DCC_CCCD), f32(0x8000_0000)] == ["1.0000001", "0.1", "-0"]
    assert [f16(0x7BFF), f16(1), bf16(0x3DCD)] == ["65504", "6e-08", "0.1"]
    e2m3, ue8m0 = (reader(FORMATS[name]).show for name in ("e2m3", "ue8m0"))
    assert [e2m3(0x1F), ue8m0(0xFE)] == ["7.5", "1.7e+38"]  # not 8 and 2e+38, which would be clamped to these


FOREIGN = [
    *(getattr(ml_dtypes, f"float8_{name}") for name in ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fnuz", "e5m2fnuz")),
    *(ml_dtypes.int2, ml_dtypes.uint2, np.int16, np.uint16, np.bool_),
]  # fmt: skip


@pytest.mark.parametrize("dtype", FOREIGN)
def test_types_that_no_instruction_takes_are_read(dtype: Any) -> None:
    """Every code: neighbours in order are neighbours in value, and what is shown is the value."""
    read = reader_of(np.dtype(dtype))
    if read.bits == 2:
        array = np.array([0, 1, 2, 3] if dtype is ml_dtypes.uint2 else [-2, -1, 0, 1]).astype(dtype)
    elif dtype is np.bool_:
        array = np.array([False, True])
    else:
        array = np.arange(1 << read.bits).astype(f"uint{read.bits}").view(dtype)
    codes = read.codes(array)
    assert len(np.unique(codes)) == len(array)
    assert int(codes.max()) < 1 << read.bits
    place, nan = read.order(codes)
    values = array.astype(np.float64)
    assert (nan == np.isnan(values)).all()
    ranked = np.unique(values[~nan])
    assert (np.unique(place[~nan]) == np.arange(len(ranked)) + place[~nan].min()).all()
    assert (np.searchsorted(ranked, values[~nan]) == place[~nan] - place[~nan].min()).all()
    shown = [read.show(int(c)) for c in codes]
    if dtype is not np.bool_:
        again = np.array([float(s) for s in shown])
        assert (again.astype(dtype).astype(np.float64) == values)[~nan].all()
        assert (np.signbit(again) == np.signbit(values))[~nan].all()
        assert all(s == "nan" for s in np.array(shown)[nan])


def test_integers_of_64_bits_are_read() -> None:
    text = report(np.array([(1 << 63) - 1, 5]), np.array([-(1 << 63), 5]))
    assert rows(text) == [
        ["[0]", "9223372036854775807", "-9223372036854775808", "0x7fffffffffffffff", "0x8000000000000000",
         "+18,446,744,073,709,551,615"]
    ]  # fmt: skip
    text = report(np.array([0], np.uint64), np.array([(1 << 64) - 1], np.uint64))
    assert rows(text)[0][-1] == "-18,446,744,073,709,551,615"
    assert "largest difference: 18,446,744,073,709,551,615, at [0]" in text
