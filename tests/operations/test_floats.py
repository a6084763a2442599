"""Floating-point arithmetic: exact references on fractions, NumPy, and what was measured of NaN and zeros."""

from __future__ import annotations

from fractions import Fraction
from typing import cast

import numpy as np
import pytest
from operation_references import bits, exact, float_format, operands, rounded, run, unbounded

from lab.generators import operation_inputs
from warpmma.formats import FloatFormat
from warpmma.isa import Spelling

# Arithmetic against fractions: every rounding, hard operands


def result(op: str, fmt: FloatFormat, codes: tuple[int, ...], rounding: str, ftz: bool = False) -> int:
    """One result by IEEE 754 (rules 2 to 4)."""
    tiny = 1 << fmt.fraction_bits
    if ftz:
        codes = tuple(c & fmt.sign_bit if (c & ~fmt.sign_bit) < tiny else c for c in codes)
    x = [exact(fmt, c) for c in codes]
    signs = [bool(c & fmt.sign_bit) for c in codes]
    if op == "mul":
        value, zero = x[0] * x[1], signs[0] != signs[1]
    else:
        first = (x[0] * x[1], signs[0] != signs[1]) if op == "fma" else (x[0], signs[0])
        last, last_sign = (-x[-1], not signs[-1]) if op == "sub" else (x[-1], signs[-1])
        value = first[0] + last
        zero = first[1] and last_sign if rounding != "rm" else first[1] or last_sign
    code = rounded(fmt, value, rounding, zero)
    if ftz and value and (unbounded(fmt, value, rounding) < Fraction(2) ** fmt.emin):
        return code & fmt.sign_bit
    return code


FINITE = [
    m for op in ("add", "sub", "mul", "fma") for form in (
        "<rn rz rm rp>{.ftz}.f32", "<rn rz rm rp>.f64", "rn{.ftz}.f16", "rn.bf16",
    ) for m in Spelling(f"{op}.{form}").mnemonics
]  # fmt: skip


@pytest.mark.parametrize("mnemonic", FINITE)
def test_finite_arithmetic_is_that_of_fractions(mnemonic: str) -> None:
    op, rounding, *_, name = mnemonic.split(".")
    given = operands(mnemonic)
    fmt = float_format(name)
    expected = [
        result(op, fmt, tuple(int(c) for c in codes), rounding, "ftz" in mnemonic) for codes in zip(*given, strict=True)
    ]
    np.testing.assert_array_equal(run(mnemonic, *given), np.array(expected, fmt.code_dtype))


def test_what_rounds_up_to_the_least_normal_number_only_as_a_subnormal_is_flushed() -> None:
    """2^-126 - 2^-150 rounds to 2^-126 on the grid of subnormals, but has 24 bits, and is flushed (rule 4)."""
    least, below_one, eighth = bits(2.0**-126), bits(1 - 2.0**-24), bits(0.125)
    assert run("mul.f32", least, below_one)[0] == least
    assert run("mul.ftz.f32", least, below_one)[0] == 0
    assert run("mul.ftz.f32", least | 1 << 31, below_one)[0] == 1 << 31
    assert run("mul.rz.f32", least, eighth)[0] == bits(2.0**-129)
    assert run("mul.rz.ftz.f32", least, eighth)[0] == 0


@pytest.mark.parametrize("op", ["add", "sub", "mul"])
@pytest.mark.parametrize("name", ["f32", "f16", "f64"])
def test_arithmetic_to_nearest_is_that_of_numpy(op: str, name: str) -> None:
    mnemonic, dtype = f"{op}.{name}", float_format(name).dtype
    x, y = (a.reshape(-1) for a in operation_inputs(mnemonic, 1 << 15, 5))
    function = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[op]
    with np.errstate(all="ignore"):
        expected = function(x.view(dtype), y.view(dtype))
    got = run(mnemonic, x, y)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(got[numbers], expected[numbers].view(x.dtype))
    if name != "f64":
        assert set(got[~numbers].tolist()) == {float_format(name).nan_code}


@pytest.mark.parametrize("name", ["f16", "bf16"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "fma", "min", "max", "neg", "abs"])
def test_packed_operations_work_on_halves(op: str, name: str) -> None:
    rounding = ".rn" if op == "fma" else ""
    words = [x.reshape(-1) for x in operation_inputs(f"{op}{rounding}.{name}x2", 4096, 6)]
    low, high = (
        run(f"{op}{rounding}.{name}", *[(w >> np.uint32(shift)).astype(np.uint16) for w in words]) for shift in (0, 16)
    )
    expected = low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)
    np.testing.assert_array_equal(run(f"{op}{rounding}.{name}x2", *words), expected)


@pytest.mark.parametrize("mnemonic", ["add.rm.ftz.f32", "mul.rz.f32", "fma.rp.f32", "sub.f32"])
def test_f32x2_works_on_halves(mnemonic: str) -> None:
    words = [x.reshape(-1) for x in operation_inputs(mnemonic + "x2", 4096, 6)]
    halves = [[(w >> np.uint64(shift)).astype(np.uint32) for w in words] for shift in (0, 32)]
    low, high = (run(mnemonic, *half).astype(np.uint64) for half in halves)
    np.testing.assert_array_equal(run(mnemonic + "x2", *words), low | high << np.uint64(32))


@pytest.mark.parametrize("name", ["f16", "bf16"])
@pytest.mark.parametrize("op", ["add", "sub", "fma"])
def test_mixed_operands_are_converted_exactly(op: str, name: str) -> None:
    """PTX ISA 9.1, 9.7.5: an operand of 16 bits becomes f32, then it is the f32 instruction."""
    rng = np.random.default_rng(8)
    narrow = [rng.integers(0, 1 << 16, 4096).astype(np.uint16) for _ in range(2 if op == "fma" else 1)]
    wide = rng.integers(0, 1 << 32, 4096, np.uint64).astype(np.uint32)
    widened = [run(f"cvt.f32.{name}", x) for x in narrow]
    for words in Spelling("<rn rz rm rp>{.sat}").mnemonics:
        got = run(f"{op}.{words}.f32.{name}", *narrow, wide)
        np.testing.assert_array_equal(got, run(f"{op}.{words}.f32", *widened, wide))


# NaN, zeros and clamps: rules 3, 5 to 10 of `arithmetic`

QUIET, SIGNALLING = 0x7FC01234, 0xFF801234
Q64, S64 = 0xFFF8_0000_0000_1234, 0x7FF0_0000_0000_5678


@pytest.mark.parametrize(
    ("mnemonic", "words", "expected"),
    [
        ("add.f32", (QUIET, 0), 0x7FFFFFFF),
        ("fma.rn.f32", (0xFF800000, 0, 0), 0x7FFFFFFF),
        ("add.f16", (0xFC00, 0x7C00), 0x7FFF),
        ("fma.rn.relu.bf16", (0xFFC1, 0, 0), 0x7FFF),
        ("add.f64", (Q64, 0), Q64),
        ("add.f64", (Q64, S64), S64 | 1 << 51),
        ("sub.f64", (0, S64), S64 | 1 << 51),
        ("mul.f64", (S64, Q64), Q64),
        ("fma.rn.f64", (Q64, 0, S64), S64 | 1 << 51),
        ("fma.rn.f64", (0, Q64, S64), Q64),
        ("mul.f64", (0, 0x7FF << 52), 0xFFF8 << 48),
        ("add.rn.f32", (0x3F800000, 0xBF800000), 0),
        ("add.rm.f32", (0x3F800000, 0xBF800000), 0x80000000),
        ("add.rm.f32", (0, 0), 0),
        ("add.rn.f32", (0x80000000, 0x80000000), 0x80000000),
        ("sub.rm.f64", (1 << 63, 1 << 63), 1 << 63),
        ("fma.rm.f64", (0, 1 << 63, 0), 1 << 63),
        ("add.sat.f32", (QUIET, 0), 0),
        ("add.sat.f32", (0x80000000, 0x80000000), 0),
        ("add.sat.f32", (0x40000000, 0), 0x3F800000),
        ("mul.sat.f16", (0x3C00, 0xBC00), 0),
        ("fma.rn.relu.f16", (0x8000, 0x3C00, 0x8000), 0),
        ("add.f16", (0x7BFF, 0x7BFF), 0x7C00),
        ("add.rz.f32", (0x7F7FFFFF, 0x7F7FFFFF), 0x7F7FFFFF),
        ("add.rm.f32", (0xFF7FFFFF, 0xFF7FFFFF), 0xFF800000),
        ("min.f32", (0, 0x80000000), 0x80000000),
        ("max.f32", (0x80000000, 0), 0),
        ("min.f32", (QUIET, 0x3F800000), 0x3F800000),
        ("max.f32", (0x3F800000, SIGNALLING), 0x3F800000),
        ("min.f32", (QUIET, SIGNALLING), 0x7FFFFFFF),
        ("min.NaN.f32", (QUIET, 0x3F800000), 0x7FFFFFFF),
        ("max.NaN.f16", (0xFE01, 0x3C00), 0x7FFF),
        ("min.f64", (Q64, S64), S64 | 1 << 51),
        ("max.f64", (Q64, 1), 1),
        ("min.ftz.f32", (0x00000001, 0x80000001), 0x80000000),
        ("min.xorsign.abs.f32", (0xC0000000, 0x3F800000), 0xBF800000),
        ("max.xorsign.abs.f32", (0xC0000000, 0xBF800000), 0x40000000),
        ("max.xorsign.abs.f32", (0xFFC00000, 0x3F800000), 0xBF800000),
        ("max.NaN.xorsign.abs.f32", (0xFFC00000, 0x3F800000), 0x7FFFFFFF),
        ("neg.f32", (0xFF800001,), 0x7FFFFFFF),
        ("neg.f32", (0,), 0x80000000),
        ("abs.ftz.f32", (0x80000001,), 0),
        ("neg.f64", (S64,), S64 | 1 << 51),
        ("abs.f64", (Q64,), Q64),
        ("abs.bf16", (0xFF81,), 0x7FFF),
    ],
)  # fmt: skip
def test_what_was_measured_of_nan_zeros_and_clamps(mnemonic: str, words: tuple[int, ...], expected: int) -> None:
    assert hex(run(mnemonic, *words)[0]) == hex(expected)


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_min_and_max_of_every_code_are_those_of_the_values(name: str) -> None:
    fmt = float_format(name)
    every = np.arange(1 << 16).astype(np.uint16)
    for other in (
        0,
        0x8000,
        1,
        0x3C00,
        0xBC00,
        fmt.max_code,
        cast(int, fmt.inf_code),
        cast(int, fmt.inf_code) | 0x8000,
    ):
        words = np.full_like(every, other)
        x, y = fmt.decode(every), fmt.decode(words)
        first = (x < y) | ((x == y) & np.signbit(x))
        for op in ("min", "max"):
            expected = np.where(np.isnan(x), words, np.where(first == (op == "min"), every, words))
            np.testing.assert_array_equal(run(f"{op}.{name}", every, words), expected)
