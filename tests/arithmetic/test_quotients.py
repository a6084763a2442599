"""Quotients and square roots: the form on arrays against the reference, and both against fractions and NumPy."""

from __future__ import annotations

from itertools import product
from typing import cast

import numpy as np
import pytest
from arrays import Array, same
from environments import DOWNWARD, FLUSH, TOWARD_ZERO, UPWARD, Environment, x86
from hypothesis import example, given, settings
from hypothesis import strategies as st
from operation_references import ROUNDINGS, divided, exact, float_format, flushed, rooted, unbounded

from lab.generators import operation_inputs
from warpmma._rounding import Rounding
from warpmma.arithmetic import quotient, quotient_reference, square_root, square_root_reference
from warpmma.formats import FloatFormat

F32, F64 = float_format("f32"), float_format("f64")
MODES = [
    *((F32, rounding, ftz) for rounding, ftz in product(ROUNDINGS, (False, True))),
    *((F64, rounding, False) for rounding in ROUNDINGS),
]
each_mode = pytest.mark.parametrize(
    ("fmt", "rounding", "ftz"), MODES, ids=[f"{f.name} {r}{' ftz' * z}" for f, r, z in MODES]
)


def borders(fmt: FloatFormat) -> Array:
    """Codes about every border, of both signs."""
    least, one, infinity = 1 << fmt.fraction_bits, fmt.bias << fmt.fraction_bits, cast(int, fmt.inf_code)
    near = {c + x for c in (0, least // 2, least, 2 * least, one, one + least, infinity) for x in (-2, -1, 0, 1, 2)}
    near |= {one - least, one + least // 2, infinity - least - 1, infinity - least, infinity + least // 2 + 77}
    codes = [code for code in sorted(near) if 0 <= code < fmt.sign_bit]
    return np.array([code | sign for sign in (0, fmt.sign_bit) for code in codes], fmt.code_dtype)


def by_reference(fmt: FloatFormat, x: Array, y: Array, rounding: Rounding, ftz: bool) -> Array:
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    return np.array([quotient_reference(fmt, a, b, rounding, ftz=ftz) for a, b in pairs], fmt.code_dtype)


def roots_by_reference(fmt: FloatFormat, x: Array, rounding: Rounding, ftz: bool) -> Array:
    return np.array([square_root_reference(fmt, a, rounding, ftz=ftz) for a in x.tolist()], fmt.code_dtype)


def hard(fmt: FloatFormat, opcode: str, count: int = 4096) -> list[Array]:
    return [x.reshape(-1) for x in operation_inputs(f"{opcode}.rn.{fmt.name}", count, 11)]


# Arrays against the reference


@each_mode
def test_borders(fmt: FloatFormat, rounding: Rounding, ftz: bool) -> None:
    codes = borders(fmt)
    x, y = np.repeat(codes, len(codes)), np.tile(codes, len(codes))
    same(quotient(fmt, x, y, rounding, ftz=ftz), by_reference(fmt, x, y, rounding, ftz))
    same(square_root(fmt, codes, rounding, ftz=ftz), roots_by_reference(fmt, codes, rounding, ftz))


@each_mode
def test_hard_operands(fmt: FloatFormat, rounding: Rounding, ftz: bool) -> None:
    x, y = hard(fmt, "div")
    same(quotient(fmt, x, y, rounding, ftz=ftz), by_reference(fmt, x, y, rounding, ftz))
    (x,) = hard(fmt, "sqrt")
    same(square_root(fmt, x, rounding, ftz=ftz), roots_by_reference(fmt, x, rounding, ftz))


@pytest.mark.parametrize("fmt", [F32, F64], ids=lambda fmt: fmt.name)
def test_every_exponent_and_its_subnormal_neighbours(fmt: FloatFormat) -> None:
    """Of dividends and divisors; short fractions, so that many quotients lie half way between two numbers."""
    rng, bits = np.random.default_rng(3), fmt.fraction_bits
    field = np.resize(np.arange(cast(int, fmt.inf_code) >> bits, dtype=np.uint64), 2048)
    x = field << np.uint64(bits) | rng.integers(0, 8, len(field), np.uint64) << np.uint64(bits - 3)
    y = rng.permutation(x)
    tiny = (np.uint64(1) << rng.integers(0, bits, len(x), np.uint64)) + rng.integers(0, 2, len(x), np.uint64)
    for a, b in ((x, y), (tiny, y), (x, tiny)):
        a, b = a.astype(fmt.code_dtype), b.astype(fmt.code_dtype)
        for rounding in ROUNDINGS:
            same(quotient(fmt, a, b, rounding), by_reference(fmt, a, b, rounding, False))
            same(square_root(fmt, a, rounding), roots_by_reference(fmt, a, rounding, False))


def test_operands_broadcast() -> None:
    x, y = np.array([[0x3F800000], [0x40000000]], np.uint32), np.array([0x40400000, 0, 0x7F800001], np.uint32)
    got = quotient(F32, x, y, "rz")
    assert got.tolist() == [[0x3EAAAAAA, 0x7F800000, 0x7FFFFFFF], [0x3F2AAAAA, 0x7F800000, 0x7FFFFFFF]]
    same(quotient(F32, x[0, 0], y, "rz"), got[0])
    same(quotient(F32, np.asarray(x[0, 0]), np.asarray(y[0]), "rz"), np.array(0x3EAAAAAA, np.uint32))
    assert quotient(F32, x[:0, 0], x[:0, 0], "rn").shape == square_root(F32, x[:0], "rn").shape[:1] == (0,)


@pytest.mark.parametrize("fmt", [F32, F64], ids=lambda fmt: fmt.name)
def test_arrays_of_any_size_and_order(fmt: FloatFormat) -> None:
    """They are computed in parts, which nobody sees."""
    x, y = (a[:36_000] for a in hard(fmt, "div", 1 << 16))
    whole, root = quotient(fmt, x, y, "rn"), square_root(fmt, x, "rn")
    for start in (0, 1, 16_383, 16_384, 20_000, 35_999):
        same(quotient(fmt, x[start:], y[start:], "rn"), whole[start:])
        same(square_root(fmt, x[start:], "rn"), root[start:])
    table = x.reshape(180, 200).T, y.reshape(180, 200).T
    same(quotient(fmt, *table, "rn"), whole.reshape(180, 200).T)
    same(square_root(fmt, table[0], "rn"), root.reshape(180, 200).T)


@x86
@pytest.mark.parametrize("control", [FLUSH, UPWARD, DOWNWARD, TOWARD_ZERO, FLUSH | UPWARD])
@pytest.mark.parametrize("fmt", [F32, F64], ids=lambda fmt: fmt.name)
def test_no_mode_of_the_processor_reaches_a_result(fmt: FloatFormat, control: int) -> None:
    environment, (x, y), (z,) = Environment(), hard(fmt, "div", 1 << 16), hard(fmt, "sqrt", 1 << 16)
    for rounding in ROUNDINGS:
        expected = quotient(fmt, x, y, rounding), square_root(fmt, z, rounding)
        with environment.with_control(control):
            got = quotient(fmt, x, y, rounding), square_root(fmt, z, rounding)
        same(got[0], expected[0])
        same(got[1], expected[1])


# Fractions, NumPy and what IEEE 754 says


def codes(fmt: FloatFormat) -> st.SearchStrategy[int]:
    """Any code, borders, and few bits set: those of quotients that are exact, or half way."""
    bits = fmt.fraction_bits
    short = st.builds(lambda e, f: (e << bits) | (f << (bits - 6)), st.integers(0, 2 * fmt.bias), st.integers(0, 63))
    return st.one_of(st.integers(0, fmt.mask), st.sampled_from(borders(fmt).tolist()), short)


def check_quotient(fmt: FloatFormat, x: int, y: int) -> None:
    number = [code & ~fmt.sign_bit < cast(int, fmt.inf_code) for code in (x, y)]
    arrays = [np.array([code], fmt.code_dtype) for code in (x, y)]
    for f, rounding, ftz in MODES:
        if f is not fmt:
            continue
        got = quotient_reference(fmt, x, y, rounding, ftz=ftz)
        assert quotient(fmt, arrays[0], arrays[1], rounding, ftz=ftz)[0] == got
        a, b = (flushed(fmt, code) if ftz else code for code in (x, y))
        if all(number) and b & ~fmt.sign_bit:
            expected, value = divided(fmt, a, b, rounding), exact(fmt, a) / exact(fmt, b)
            if ftz and value and unbounded(fmt, value, rounding) < exact(fmt, 1 << fmt.fraction_bits):
                expected &= fmt.sign_bit
            assert got == expected


@settings(max_examples=300, deadline=None)
@given(codes(F32), codes(F32))
@example(0x00FFFFFF, 0x40000000)  # 2^-126 on the grid of subnormal numbers, by rp alone: flushed
@example(0x00800000, 0x3F800001)  # 2^-126 / (1 + 2^-23)
@example(0x00000001, 0x40000000)  # half of the least number, and even is 0
@example(0x00000003, 0x40000000)  # half way between 1 and 2 of them
@example(0x00000001, 0x40000001)  # below a half of it
@example(0x00000001, 0x7F7FFFFF)  # far below all
@example(0x7F7FFFFF, 0x00000001)  # far beyond
@example(0x7F7FFFFF, 0x3F7FFFFF)  # just beyond the largest number, or that
@example(0x7F000000, 0xBF000000)  # 2^128, negative
@example(0x3F7FFFFF, 0x3F800000)
@example(0x3F800000, 0x3F7FFFFF)
def test_f32_quotients_are_those_of_fractions(x: int, y: int) -> None:
    check_quotient(F32, x, y)


@settings(max_examples=300, deadline=None)
@given(codes(F64), codes(F64))
@example(0x001FFFFFFFFFFFFF, 0x4000000000000000)
@example(0x0000000000000001, 0x4000000000000000)
@example(0x0000000000000003, 0xC000000000000000)
@example(0x0000000000000001, 0x7FEFFFFFFFFFFFFF)
@example(0x7FEFFFFFFFFFFFFF, 0x0000000000000001)
@example(0x7FEFFFFFFFFFFFFF, 0x3FEFFFFFFFFFFFFF)
@example(0x3FEFFFFFFFFFFFFF, 0x3FF0000000000000)
def test_f64_quotients_are_those_of_fractions(x: int, y: int) -> None:
    check_quotient(F64, x, y)


@pytest.mark.parametrize("fmt", [F32, F64], ids=lambda fmt: fmt.name)
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_roots_are_those_of_squares(fmt: FloatFormat, data: st.DataObject) -> None:
    x = data.draw(codes(fmt)) & ~fmt.sign_bit
    for rounding in ROUNDINGS:
        got = square_root_reference(fmt, x, rounding)
        assert square_root(fmt, np.array([x], fmt.code_dtype), rounding)[0] == got
        if x < cast(int, fmt.inf_code):
            assert got == rooted(fmt, x, rounding)


@pytest.mark.parametrize("fmt", [F32, F64], ids=lambda fmt: fmt.name)
def test_hard_and_small_roots_are_those_of_squares(fmt: FloatFormat) -> None:
    given = [*hard(fmt, "sqrt", 512)[0].tolist(), *range(1, 40), *((1 << fmt.fraction_bits) - x for x in range(1, 9))]
    x = np.array([code for code in given if code < cast(int, fmt.inf_code)], fmt.code_dtype)
    for rounding in ROUNDINGS:
        same(square_root(fmt, x, rounding), np.array([rooted(fmt, c, rounding) for c in x.tolist()], fmt.code_dtype))


@pytest.mark.parametrize("fmt", [F32, F64], ids=lambda fmt: fmt.name)
def test_to_nearest_is_numpys(fmt: FloatFormat) -> None:
    (x, y), (z,) = hard(fmt, "div", 1 << 16), hard(fmt, "sqrt", 1 << 16)
    with np.errstate(all="ignore"):
        expected = x.view(fmt.dtype) / y.view(fmt.dtype), np.sqrt(z.view(fmt.dtype))
    for got, values in zip((quotient(fmt, x, y, "rn"), square_root(fmt, z, "rn")), expected, strict=True):
        number = ~np.isnan(values)
        same(got[number], values[number].view(fmt.code_dtype))
        assert (got[~number] & fmt.code_dtype.type(fmt.mask & ~fmt.sign_bit) > cast(int, fmt.inf_code)).all()
        assert number.sum() > 1 << 14


@pytest.mark.parametrize("fmt", [F32, F64], ids=lambda fmt: fmt.name)
def test_exact_results_are_so_in_every_rounding(fmt: FloatFormat) -> None:
    """Small integers: (i j) / j, and the root of i i."""
    i, j = (x.ravel() for x in np.meshgrid(np.arange(1.0, 60), np.arange(1.0, 60)))
    codes = [fmt.encode(x) for x in (i * j, j, i, i * i)]
    for rounding in ROUNDINGS:
        same(quotient(fmt, codes[0], codes[1], rounding), codes[2])
        same(square_root(fmt, codes[3], rounding), codes[2])
