"""Conversions: exact references on fractions, NumPy and ml_dtypes."""

from __future__ import annotations

from fractions import Fraction
from typing import cast

import ml_dtypes
import numpy as np
import pytest
from arrays import Array
from operation_references import ROUNDINGS, ROWS, exact, float_format, operands, rounded, run, unbounded

from lab.generators import operation_inputs
from warpmma.formats import FORMATS, FloatFormat, IntegerFormat
from warpmma.operations.arithmetic import conversions
from warpmma.operations.elements import TYPES


def nearest(fmt: FloatFormat, values: Array, rounding: str) -> Array:
    """Codes by search among all values of a format of at most 16 bits."""
    count = fmt.max_code + 1
    grid = fmt.decode(np.arange(count).astype(fmt.code_dtype))
    size = np.abs(values)
    below = np.minimum(np.searchsorted(grid, size, "right") - 1, count - 1)
    above = np.minimum(below + 1, count - 1)
    exact = grid[below] == size
    nearer = (size - grid[below] > grid[above] - size) | ((size - grid[below] == grid[above] - size) & (below % 2 == 1))
    negative = np.signbit(values)
    up = {"rn": nearer, "rz": np.zeros_like(exact), "rm": negative & ~exact, "rp": ~negative & ~exact}[rounding]
    codes = np.where(up, above, below)
    if fmt.has_infinity:
        top = float(grid[-1])
        limit = top + (top - float(grid[-2])) / 2
        outward = {"rn": size >= limit, "rz": np.isinf(size), "rm": negative, "rp": ~negative}[rounding]
        codes = np.where(np.isinf(size) | ((size > top) & outward), count, codes)
    return (codes + np.where(negative, fmt.sign_bit, 0)).astype(fmt.code_dtype)


def numbers(name: str) -> tuple[Array, Array]:
    """All codes of a format of 16 bits that are no NaN, and their values."""
    codes = np.arange(1 << 16).astype(np.uint16)
    values = float_format(name).decode(codes)
    return codes[~np.isnan(values)], values[~np.isnan(values)]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize(("source", "out"), [("f16", "bf16"), ("bf16", "f16")])
def test_every_16_bit_code_rounds_to_the_other_format(source: str, out: str, rounding: str) -> None:
    codes, values = numbers(source)
    expected = nearest(float_format(out), values, rounding)
    np.testing.assert_array_equal(run(f"cvt.{rounding}.{out}.{source}", codes), expected)


@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_every_16_bit_code_widens_exactly(source: str) -> None:
    codes, values = numbers(source)
    np.testing.assert_array_equal(run(f"cvt.f64.{source}", codes), values.view(np.uint64))
    np.testing.assert_array_equal(run(f"cvt.f32.{source}", codes), values.astype(np.float32).view(np.uint32))
    back = run(f"cvt.rn.{source}.f32", run(f"cvt.f32.{source}", codes))
    np.testing.assert_array_equal(back, codes)


@pytest.mark.parametrize("source", ["f16", "bf16"])
@pytest.mark.parametrize("out", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
def test_every_16_bit_code_becomes_the_nearest_integer_there_is(source: str, out: str) -> None:
    if (source, out[1:]) == ("bf16", "8"):
        pytest.skip("PTX has no such conversion")
    codes, values = numbers(source)
    fmt = TYPES[out].fmt
    assert isinstance(fmt, IntegerFormat)
    dtype = np.dtype(f"{'' if fmt.signed else 'u'}int{fmt.bits}")
    for word, function in (("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)):
        clipped = [min(max(int(v), fmt.least), fmt.greatest) for v in np.clip(function(values), -1e38, 1e38).tolist()]
        expected = np.array(clipped, dtype).astype(np.dtype(f"{'' if fmt.signed else 'u'}int{max(16, fmt.bits)}"))
        got = run(f"cvt.{word}.{out}.{source}", codes)
        np.testing.assert_array_equal(got.view(expected.dtype), expected)


@pytest.mark.parametrize("out", ["f16", "bf16"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_f32_rounds_to_16_bits(out: str, rounding: str) -> None:
    mnemonic = f"cvt.{rounding}.{out}.f32"
    codes = operation_inputs(mnemonic, 1 << 15, 9)[0].reshape(-1)
    values = float_format("f32").decode(codes)
    codes, values = codes[~np.isnan(values)], values[~np.isnan(values)]
    np.testing.assert_array_equal(run(mnemonic, codes), nearest(float_format(out), values, rounding))


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_f64_rounds_to_f32_as_fractions_do(rounding: str) -> None:
    for mnemonic in (f"cvt.{rounding}.f32.f64", f"cvt.{rounding}.ftz.f32.f64"):
        codes = operands(mnemonic, 1024)[0]
        f32, f64 = float_format("f32"), float_format("f64")
        expected = []
        for code in codes.tolist():
            value = exact(f64, code)
            made = rounded(f32, value, rounding, bool(code & f64.sign_bit))
            flush = "ftz" in mnemonic and value and unbounded(f32, value, rounding) < Fraction(2) ** f32.emin
            expected.append(made & f32.sign_bit if flush else made)
        np.testing.assert_array_equal(run(mnemonic, codes), np.array(expected, np.uint32))


PAIRS = np.arange(1 << 16).astype(np.uint16)
SMALL = {
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn,
}  # fmt: skip


def halves(name: str, words: Array) -> tuple[Array, Array]:
    """Low and high element of a packed word, as codes."""
    shift, mask = (4, 0xF) if name == "e2m1" else (8, FORMATS[name].mask)
    return (words & mask).astype(np.uint8), ((words >> shift) & mask).astype(np.uint8)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("relu", [False, True])
def test_every_pair_of_small_codes_widens_as_in_ml_dtypes(name: str, relu: bool) -> None:
    words = PAIRS & {"e2m1": 0xFF, "e2m3": 0x3F3F, "e3m2": 0x3F3F}.get(name, 0xFFFF)
    got = run(f"cvt.rn{'.relu' * relu}.f16x2.{name}x2", words)
    for codes, shift in zip(halves(name, words), (0, 16), strict=True):
        values = codes.view(SMALL[name]).astype(np.float32)
        values = np.where(values < 0, 0, np.abs(values) if relu else values) if relu else values
        expected = values.astype(np.float16).view(np.uint16)
        expected = np.where(np.isnan(values), 0x7FFF, expected)
        np.testing.assert_array_equal((got >> shift) & 0xFFFF, expected)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("relu", [False, True])
def test_numbers_narrow_to_pairs_as_in_ml_dtypes(name: str, relu: bool) -> None:
    """Every f16 value, so every tie; the first operand in the upper element; the largest number beyond the range."""
    fmt = float_format(name)
    values = PAIRS.view(np.float16).astype(np.float32)
    with np.errstate(invalid="ignore"):
        values = np.where(np.isnan(values), np.float32(np.nan), values)
    top = np.float32(fmt.decode([fmt.max_code])[0])
    expected = np.clip(values, -top, top).astype(SMALL[name]).view(np.uint8) & fmt.mask
    if relu:
        expected = np.where(np.signbit(values), 0, expected)
    expected = np.where(np.isnan(values), fmt.max_code if fmt.nan_code is None else fmt.nan_code, expected)
    words = values.view(np.uint32)
    mnemonic = f"cvt.rn.satfinite{'.relu' * relu}.{name}x2."
    got = run(mnemonic + "f32", words, np.roll(words, 1))
    low, high = halves(name, got)
    np.testing.assert_array_equal(high, expected)
    np.testing.assert_array_equal(low, np.roll(expected, 1))
    if name in ("e4m3", "e5m2"):
        packed = PAIRS.astype(np.uint32) << np.uint32(16) | np.roll(PAIRS, 1)
        np.testing.assert_array_equal(run(mnemonic + "f16x2", packed), got)


@pytest.mark.parametrize("source", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("out", ["f16", "bf16", "f32", "f64"])
def test_integers_become_floating_point_as_fractions_do(source: str, out: str) -> None:
    if (out, source[1:]) == ("bf16", "8"):
        pytest.skip("PTX has no such conversion")
    integer, fmt = cast(IntegerFormat, TYPES[source].fmt), float_format(out)
    for rounding in ROUNDINGS:
        mnemonic = f"cvt.{rounding}.{out}.{source}"
        codes = operation_inputs(mnemonic, 512, 10)[0].reshape(-1)
        values = [integer.unpack(int(c) & integer.mask) for c in codes]
        expected = [rounded(fmt, Fraction(v), rounding) for v in values]
        np.testing.assert_array_equal(run(mnemonic, codes), np.array(expected, fmt.code_dtype))


INTEGERS = [n for n, t in TYPES.items() if isinstance(t.fmt, IntegerFormat)]


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("out", INTEGERS)
def test_integers_become_integers_by_low_bits_or_clamped(source: str, out: str) -> None:
    given, made = (cast(IntegerFormat, TYPES[n].fmt) for n in (source, out))
    width = max(16, made.bits)
    for mnemonic in (f"cvt.{out}.{source}", f"cvt.sat.{out}.{source}"):
        if mnemonic not in ROWS:
            assert made.least <= given.least and given.greatest <= made.greatest
            continue
        codes = operation_inputs(mnemonic, 1024, 11)[0].reshape(-1)
        values = [given.unpack(int(c) & given.mask) for c in codes]
        kept = [
            min(max(v, made.least), made.greatest) if "sat" in mnemonic else made.unpack(v & made.mask) for v in values
        ]
        np.testing.assert_array_equal(run(mnemonic, codes), [v & ((1 << width) - 1) for v in kept])


CASTS = [
    (source, out, width)
    for source in INTEGERS
    for out in INTEGERS
    for width in (16, 32, 64)
    if f"cvt.{out}.{source}" in ROWS and width >= int(TYPES[source].register[1:])
]


@pytest.mark.parametrize(("source", "out", "width"), CASTS)
def test_casts_of_registers_of_any_width_are_conversions_of_their_elements(source: str, out: str, width: int) -> None:
    given, made = TYPES[source], TYPES[out]
    codes = operation_inputs("cvt.u64.s64", 512, 12)[0].reshape(1, 2, -1).astype(f"u{width // 8}")
    for words in (codes, np.broadcast_to(codes[..., :1], codes.shape), codes[..., ::2]):
        (found,) = ROWS[f"cvt.{out}.{source}"].compute(words)
        elements = conversions._integer_to_integer(given.fmt, made.fmt, frozenset(), given.split(words)[0])  # type: ignore[arg-type]
        np.testing.assert_array_equal(found, made.join([elements]), strict=True)


@pytest.mark.parametrize("name", ["u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"])
def test_cvt_pack_puts_clamped_integers_below_the_third(name: str) -> None:
    """PTX ISA 9.1, 9.7.9.22."""
    size, signed = int(name[1:]), name[0] == "s"
    low = -(1 << (size - 1)) if signed else 0
    mnemonic = f"cvt.pack.sat.{name}.s32" + ("" if size == 16 else ".b32")
    words = [x.reshape(-1) for x in operation_inputs(mnemonic, 2048, 12)]
    expected = []
    for a, b, *c in zip(*(w.tolist() for w in words), strict=True):
        fields = [min(max(v - (v >> 31 << 32), low), low + (1 << size) - 1) & ((1 << size) - 1) for v in (b, a)]
        expected.append((fields[0] | fields[1] << size | sum(c) << 2 * size) & 0xFFFFFFFF)
    np.testing.assert_array_equal(run(mnemonic, *words), expected)


@pytest.mark.parametrize(
    ("mnemonic", "words", "expected"),
    [
        # Rule 2 and 6c: tf32. PTX ISA 9.1, 9.7.9.21: .rna is to nearest, ties away from zero.
        ("cvt.rna.tf32.f32", (0x3F801000,), 0x3F802000),
        ("cvt.rn.tf32.f32", (0x3F801000,), 0x3F800000),
        ("cvt.rz.tf32.f32", (0x3F803FFF,), 0x3F802000),
        ("cvt.rna.tf32.f32", (0x7F7FFFFF,), 0x7F800000),
        ("cvt.rna.satfinite.tf32.f32", (0xFF7FFFFF,), 0xFF7FE000),
        ("cvt.rna.satfinite.tf32.f32", (0x7F800000,), 0x7F7FE000),
        ("cvt.rn.tf32.f32", (0xFFC00001,), 0x7FFFE000),
        ("cvt.rn.relu.tf32.f32", (0xBF800000,), 0),
        ("cvt.rna.tf32.f32", (0x7F800001,), 0x7F800000),
        ("cvt.rna.tf32.f32", (0xFFFFFFFF,), 0xFFFFE000),
        ("cvt.rna.satfinite.tf32.f32", (0xFFFFFFFF,), 0xFFFFC000),
        ("cvt.rn.satfinite.tf32.f32", (0x7F7FFFFF,), 0x7F7FE000),
        # Rules 3 and 7.
        ("cvt.rn.satfinite.f16.f32", (0x7F800000,), 0x7BFF),
        ("cvt.rn.satfinite.f16.f32", (0xFFC00000,), 0x7FFF),
        ("cvt.rn.relu.satfinite.bf16.f32", (0xFF800000,), 0),
        ("cvt.rn.f16x2.f32", (0x3F800000, 0xC0000000), 0x3C00C000),
        ("cvt.rn.sat.f16.f32", (0xFFC00000,), 0),
        ("cvt.sat.f32.f32", (0x40000000,), 0x3F800000),
        ("cvt.rn.satfinite.e4m3x2.f32", (0x7FC00000, 0xFF800000), 0x7FFE),
        ("cvt.rn.satfinite.e5m2x2.f32", (0x7F800000, 0xFFC00000), 0x7B7F),
        # Rule 4.
        ("cvt.rni.f32.f32", (0xBE800000,), 0x80000000),
        ("cvt.rni.f32.f32", (0x40200000,), 0x40000000),
        ("cvt.rpi.f64.f64", (0xBFE0 << 48,), 1 << 63),
        # Rule 5: flushed on the way to bf16, f64 and integers, not to f16.
        ("cvt.rp.ftz.bf16.f32", (1,), 0),
        ("cvt.rp.ftz.f16.f32", (1,), 1),
        ("cvt.ftz.f64.f32", (0x80000001,), 1 << 63),
        ("cvt.rpi.ftz.s32.f32", (1,), 0),
        ("cvt.rpi.s32.f32", (1,), 1),
        ("cvt.ftz.f32.bf16", (0x8001,), 0x80000000),
        # Rule 6.
        ("cvt.f32.f16", (0xFE01,), 0x7FFFFFFF),
        ("cvt.f64.f32", (0xFF800001,), 0xFFF8_0000_2000_0000),
        ("cvt.ftz.f64.f32", (0xFF800001,), 0x7FFF_FFFF_E000_0000),
        ("cvt.f64.f16", (0x7C01,), 0x7FF8_0400_0000_0000),
        ("cvt.rn.f32.f64", (0xFFF0_0000_0000_0001,), 0xFFC00000),
        ("cvt.rz.f16.f64", (0x7FFE_0EAD_936A_87FF,), 0x7F83),
        ("cvt.f32.f32", (0xFF800001,), 0xFF800001),
        ("cvt.f64.f64", (0xFFF0 << 48 | 1,), 0xFFF0 << 48 | 1),
        ("cvt.rni.f64.f64", (0xFFF0 << 48 | 1,), 0xFFF8 << 48 | 1),
        ("cvt.f32.bf16", (0xFF81,), 0xFF810000),
        ("cvt.f16.f16", (0xFE01,), 0x7FFF),
        # Rule 8. Of f32 PTX says that NaN becomes 0.
        ("cvt.rzi.s32.f32", (0x7FC00000,), 0),
        ("cvt.rzi.s64.f32", (0x7FC00000,), 1 << 63),
        ("cvt.rzi.s32.f64", (0x7FF8 << 48,), 1 << 31),
        ("cvt.rzi.u8.f64", (0x7FF8 << 48,), 0x80),
        ("cvt.rzi.s8.f64", (0x7FF8 << 48,), 0xFF80),
        ("cvt.rni.u32.f32", (0xBF800000,), 0),
        ("cvt.rni.s32.f32", (0x4F000000,), 0x7FFFFFFF),
        # Rule 10.
        ("cvt.rp.ue8m0x2.f32", (0x3F800001, 0xBF800000), 0x807F),
        ("cvt.rz.ue8m0x2.f32", (0, 0x00400000), 0),
        ("cvt.rp.ue8m0x2.f32", (0x00400001, 0x7F000000), 0x01FE),
        ("cvt.rp.ue8m0x2.f32", (0x7F000001, 0x7FC00000), 0xFFFF),
        ("cvt.rp.satfinite.ue8m0x2.f32", (0x7F000001, 0x7FC00000), 0xFEFF),
        ("cvt.rz.satfinite.ue8m0x2.bf16x2", (0x7F807F7F,), 0xFEFE),
        ("cvt.rz.ue8m0x2.bf16x2", (0x7F807F7F,), 0xFFFE),
        ("cvt.rn.bf16x2.ue8m0x2", (0x00FF,), 0x00407FFF),
    ],
)  # fmt: skip
def test_conversions_of_special_values(mnemonic: str, words: tuple[int, ...], expected: int) -> None:
    assert hex(run(mnemonic, *words)[0]) == hex(expected)
