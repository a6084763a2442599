"""The functions of the special-function unit: the array form against the reference, and what their rules say."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from arrays import Array
from function_cases import border_codes
from hypothesis import example, given
from hypothesis import strategies as st

from warpmma.arithmetic import (
    SPECIAL_FUNCTIONS,
    Engine,
    approximate,
    engines,
    interpolators,
    special_function,
    special_function_reference,
    squarer,
)
from warpmma.errors import OperandError
from warpmma.formats import FORMATS, FloatFormat

ENGINES = cast(list[Engine], list(engines()))
WIDE = [name for name, function in SPECIAL_FUNCTIONS.items() if function.bits == 32]
NARROW = [name for name in SPECIAL_FUNCTIONS if name not in WIDE]
INFINITY, NAN, SIGN = 0x7F800000, 0x7FFFFFFF, 0x80000000


def f32(*values: float) -> Array:
    return np.array(values, np.float32).view(np.uint32)


def words(*codes: int) -> Array:
    return np.array(codes, np.uint32)


def expected(name: str, codes: Array) -> Array:
    return np.array([special_function_reference(name, int(code)) for code in codes], codes.dtype)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WIDE)
def test_arrays_equal_the_reference(name: str, engine: Engine) -> None:
    rng = np.random.default_rng(7)
    upper = SPECIAL_FUNCTIONS[name].fmt == "f64"
    codes = np.concatenate([
        border_codes(20 if upper else 23)[:: 19 if upper else 2],
        rng.integers(0, 1 << 32, 2000, np.uint32),
        f32(*rng.normal(0, 2, 2000), *rng.uniform(-1, 1, 2000)),
    ])  # fmt: skip
    assert np.array_equal(special_function(name, codes, engine=engine), expected(name, codes))


@pytest.mark.parametrize("name", NARROW)
def test_16_bit_functions_are_those_of_f32_cut(name: str) -> None:
    """Of every operand; the cut is toward zero, but that f16 has no numbers from 65,536 on."""
    fmt = FORMATS[SPECIAL_FUNCTIONS[name].fmt]
    assert isinstance(fmt, FloatFormat)
    codes = np.arange(1 << 16, dtype=np.uint16)
    wide = special_function(name.partition(".")[0], f32(*fmt.decode(codes)))
    values = np.asarray(wide.view(np.float32), np.float64)
    cut = fmt.encode(values, "rz", overflow="infinity")
    cut = np.where(np.abs(values) >= 2.0 ** (fmt.emax + 1), cut & 0x8000 | cast(int, fmt.inf_code), cut)
    got = special_function(name, codes)
    assert np.array_equal(got, np.where(np.isnan(values), 0x7FFF, cut))
    some = np.concatenate([codes[::13], codes[0x7BF0:0x7C10], codes[0x4BF0:0x4C10], codes[0xCBF0:0xCC10]])
    assert np.array_equal(got[some], expected(name, some))


@given(st.sampled_from(WIDE), st.integers(0, 0xFFFFFFFF))
@example("sin", 0x7F7FFFFF)  # the shift of the largest number of turns must not leave an int64
@example("cos", 0x4C800001)
@example("ex2", 0x44800000)
@example("ex2", 0xC3168001)
@example("lg2", 0x3F7FFFFF)
@example("tanh", 0x007FFFFF)
@example("tanh", 0x40FFFFFF)
@example("rcp", 0x7E800001)
@example("rcp.f64", 0x7FD00000)
@example("rcp.f64", 0x7FD00001)
@example("rsqrt.f64", 0x000FFFFF)
def test_any_code(name: str, code: int) -> None:
    for engine in ENGINES:
        got = special_function(name, np.array([code], np.uint32), engine=engine)
        assert int(got[0]) == special_function_reference(name, code)


def test_shapes_and_strides() -> None:
    codes = f32(*np.linspace(-3, 3, 24)).reshape(2, 3, 4)
    for engine in ENGINES:
        whole = special_function("tanh", codes, engine=engine)
        assert whole.shape == codes.shape and whole.dtype == np.uint32
        assert np.array_equal(special_function("tanh", codes[:, ::-1, ::2], engine=engine), whole[:, ::-1, ::2])
        assert special_function("ex2", codes[:0], engine=engine).shape == (0, 3, 4)
        assert special_function("ex2", codes[0, 0, 0], engine=engine).shape == ()
    assert special_function("ex2.f16", np.zeros((2, 0), np.uint16)).shape == (2, 0)


def test_what_is_exact() -> None:
    """Integers of ex2; powers of two of rcp, of four of the roots; lg2 of 2^n: of n < 0 a place short, of -1 two."""
    n = np.arange(-126, 128)
    powers = ((n + 127) << 23).astype(np.uint32)
    assert np.array_equal(special_function("ex2", f32(*n)), powers)
    assert np.array_equal(special_function("lg2", powers), f32(*n) - (n < 0) - (n == -1))
    assert np.array_equal(special_function("rcp", powers[:-1]), powers[:-1][::-1])
    even = powers[n % 2 == 0]
    assert np.array_equal(special_function("sqrt", even), ((n[n % 2 == 0] // 2 + 127) << 23).astype(np.uint32))
    assert np.array_equal(special_function("rsqrt", even), ((127 - n[n % 2 == 0] // 2) << 23).astype(np.uint32))
    turns = f32(0, 0.25, 0.5, 0.75, 1)
    assert special_function("cos", turns)[0] == f32(1) and special_function("sin", turns)[0] == 0


ZEROS = np.array([0, SIGN, 1, SIGN | 0x7FFFFF], np.uint32)
INFINITIES = np.array([INFINITY, SIGN | INFINITY], np.uint32)


@pytest.mark.parametrize(
    ("name", "zeros", "infinities", "minus_one"),
    [
        ("rcp", [INFINITY, SIGN | INFINITY] * 2, [0, SIGN], 0xBF800000),
        ("rsqrt", [INFINITY, SIGN | INFINITY] * 2, [0, NAN], NAN),
        ("sqrt", [0, SIGN] * 2, [INFINITY, NAN], NAN),
        ("ex2", [0x3F800000] * 4, [INFINITY, 0], 0x3F000000),
        ("lg2", [SIGN | INFINITY] * 4, [INFINITY, NAN], NAN),
        ("sin", [0, SIGN] * 2, [NAN, NAN], None),
        ("cos", [0x3F800000] * 4, [NAN, NAN], None),
        ("tanh", [0, SIGN, 1, SIGN | 0x7FFFFF], [0x3F800000, 0xBF800000], None),
    ],
)
def test_special_values(name: str, zeros: list[int], infinities: list[int], minus_one: int | None) -> None:
    """Rules 3 to 9, as on an H200: a subnormal operand is a zero, but for tanh."""
    assert special_function(name, ZEROS).tolist() == zeros
    assert special_function(name, INFINITIES).tolist() == infinities
    nans = np.array([0x7F800001, 0xFFC00000, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32)
    assert special_function(name, nans).tolist() == [NAN] * 4
    if minus_one is not None:
        assert special_function(name, f32(-1)).tolist() == [minus_one]


def test_upper_words_of_f64() -> None:
    """Rule 11, as on an H200: what the lower word would say of an operand does not matter."""
    rcp = special_function("rcp.f64", words(0, 0x800FFFFF, 0x7FD00000, 0x7FD00001, 0x7FF00000, 0x7FF00001))
    assert rcp.tolist() == [0x7FF00000, 0xFFF00000, 0x00100000, 0, 0, NAN]
    rsqrt = special_function("rsqrt.f64", words(0, SIGN, 0x3FF00000, 0xBFF00000, 0x7FF00000, 0xFFF00000))
    assert rsqrt.tolist() == [0x7FF00000, 0xFFF00000, 0x3FF00000, NAN, 0, NAN]


def test_unknown_functions() -> None:
    with pytest.raises(OperandError, match="function"):
        special_function("exp", f32(1))
    with pytest.raises(OperandError, match="function"):
        special_function_reference("exp", 0)


def test_the_squarer_of_the_paper() -> None:
    """Where every partial product is there, the square is exact; those that are left out are all below 2^-15."""
    for bits in (16, 17):
        unit = squarer(bits)
        x = np.arange(1 << bits, dtype=np.int64)
        missing = x * x - (unit.table.astype(np.int64) << (2 * bits - 15))
        assert missing.min() == 0
        upper = x & -(1 << (bits - 7))
        assert np.array_equal(missing[x == upper], np.zeros((x == upper).sum()))
        assert [unit.square(int(i)) for i in x[::977]] == unit.table[::977].tolist()
        # Column w has floor(w / 2) of them, or 1 more of even w from 2 to 2 B; what is left out is their sum at most.
        left = [(i, j) for i in range(1, bits + 1) for j in range(i, bits + 1) if (i, j) not in unit.products]
        assert missing.max() <= sum(2 ** (2 * bits - (2 * i if i == j else i + j - 1)) for i, j in left)


@pytest.mark.parametrize("name", interpolators())
def test_sums_are_exact_in_64_bits(name: str) -> None:
    """The bounds that `Interpolator.scaled_rows` argues with, and that float64 holds V (rule 3 on arrays)."""
    table = interpolators()[name]
    rows = table.scaled_rows(41)
    x, q = (1 << table.bits) - 1, int(table.squarer.table.max())
    assert np.all(np.abs(rows) < [1 << 43, 1 << 22, 1 << 20])
    assert (np.abs(rows) @ np.array([1, x, q])).max() < 1 << 52
    assert rows.min(axis=0)[0] >= 0


class Kind(np.ndarray[Any, Any]):
    """An array of another kind."""


@pytest.mark.parametrize(
    ("codes", "text"),
    [
        (np.zeros(2, np.float32), "ex2: operands are arrays of uint32; got float32"),
        (np.zeros(2, ">u4"), "ex2: operands are arrays of uint32; got >u4"),
        (np.zeros(2, np.uint32).view(Kind), "ex2: operands are arrays of uint32; got Kind"),
        (np.ma.zeros(2, np.uint32), "ex2: operands are arrays of uint32; got MaskedArray"),
        ([0], "ex2: operands are arrays of uint32; got list"),
        (np.uint64(0), "ex2: operands are arrays of uint32; got uint64"),
        (np.broadcast_to(np.uint32(0), 1 << 50), "ex2: operands of [1125899906842624]: no memory holds the results"),
    ],
)
def test_what_are_no_codes(codes: Any, text: str) -> None:
    with pytest.raises(OperandError) as found:
        special_function("ex2", codes)
    assert str(found.value) == text


def test_one_code_may_be_a_number_of_numpy() -> None:
    assert special_function("ex2", np.uint32(0)) == approximate("ex2.approx.f32", np.uint32(0)) == 0x3F800000  # type: ignore[arg-type]
    assert approximate("div.full.f32", np.zeros((0, 2), np.uint32), np.uint32(1)).shape == (0, 2)  # type: ignore[arg-type]
