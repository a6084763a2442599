"""Arithmetic and conversions: legality, exact references on fractions, NumPy and ml_dtypes, an H200's registers."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from oracles import needs

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import compare_operations as tool
from operation_inputs import inputs

from warpmma.errors import MnemonicError, OperandError, TargetError
from warpmma.formats import FORMATS, FloatFormat, IntegerFormat
from warpmma.kernel import operation
from warpmma.operations.conversions import OPERATIONS as CONVERSIONS
from warpmma.operations.elements import TYPES, expand
from warpmma.operations.floats import OPERATIONS as ARITHMETIC

Array = npt.NDArray[Any]

DATA = Path(__file__).parents[1] / "data"
ROWS = {row.mnemonic: row for row in (*ARITHMETIC, *CONVERSIONS)}
ROUNDINGS = ("rn", "rz", "rm", "rp")


def run(mnemonic: str, *words: npt.ArrayLike) -> Array:
    """Execute on any number of words; registers are filled up with zeros."""
    row = operation(mnemonic)
    dtypes = {"b16": np.uint16, "b32": np.uint32, "b64": np.uint64}
    arrays = [np.atleast_1d(np.asarray(w, dtypes[k])) for w, k in zip(words, row.inputs, strict=True)]
    count = max(len(x) for x in arrays)
    padded = [np.resize(x, -(-count // 32) * 32).reshape(-1, 32) for x in arrays]
    return row(*padded)[0].reshape(-1)[:count]


def bits(value: float, name: str = "f32") -> int:
    return int(cast(FloatFormat, FORMATS[name]).encode([value])[0])


def rounded(fmt: FloatFormat, value: Fraction, rounding: str, zero_sign: int = 0) -> int:
    """Code of an exact value: the reference, on integers."""
    if value == 0:
        return fmt.sign_bit if zero_sign else 0
    sign, magnitude = value < 0, abs(value)
    exponent = max((magnitude.numerator.bit_length() - magnitude.denominator.bit_length()) - 1, fmt.emin)
    while magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    scaled = magnitude / Fraction(2) ** (exponent - fmt.fraction_bits)
    whole, rest = scaled.numerator // scaled.denominator, scaled - scaled.numerator // scaled.denominator
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "rz": False,
        "rm": sign and rest > 0,
        "rp": not sign and rest > 0,
    }[rounding]
    code = ((exponent - fmt.emin) << fmt.fraction_bits) + whole + up
    infinity = cast(int, fmt.inf_code)
    if code >= infinity:
        outward = rounding == "rn" or (rounding == "rm" and sign) or (rounding == "rp" and not sign)
        code = infinity if outward else infinity - 1
    return code | (fmt.sign_bit if sign else 0)


def exact(fmt: FloatFormat, code: int) -> Fraction:
    number = fmt.unpack(code)
    size = number.significand * Fraction(2) ** number.exponent
    return -size if number.sign else size


def finite(fmt: FloatFormat, codes: Array) -> Array:
    return cast(Array, (codes & fmt.code_dtype.type(fmt.mask & ~fmt.sign_bit)) <= fmt.max_code)


# The table


def test_forms_expand_as_ptx_means_them() -> None:
    assert expand("add{.<rn rz>}{.sat}.f32") == [
        "add.f32", "add.sat.f32", "add.rn.f32", "add.rn.sat.f32", "add.rz.f32", "add.rz.sat.f32",
    ]  # fmt: skip


def test_rows_are_distinct_and_name_their_sources() -> None:
    assert len(ROWS) == len(ARITHMETIC) + len(CONVERSIONS)
    for row in ROWS.values():
        assert "PTX ISA" in row.source
        assert not row.lanes


# ptxas 13.0 knows no older target, and of a family an older PTX version knows the architecture alone.
_ASSEMBLED_FOR = {"sm_70": "sm_75", "sm_72": "sm_75", "sm_100f": "sm_100a"}
_TARGET_BEFORE = {
    "sm_80": "sm_75", "sm_86": "sm_80", "sm_89": "sm_88", "sm_90": "sm_89", "sm_100": "sm_90a", "sm_100f": "sm_100",
}  # fmt: skip
_VERSION_BEFORE = {(6, 5): (6, 4), (7, 1): (7, 0), (7, 2): (7, 1), (8, 1): (8, 0)}  # of others, the target's first


@needs("ptxas")
def test_every_row_assembles_for_its_oldest_target_and_version_and_not_before(tmp_path: Path) -> None:
    batches: dict[tuple[str, tuple[int, int], bool], list[str]] = defaultdict(list)
    for row in ROWS.values():
        target, version = _ASSEMBLED_FOR.get(row.since, row.since), max(row.ptx, (6, 3))
        batches[target, version, True].append(row.mnemonic)
        if row.since in _TARGET_BEFORE:
            batches[_TARGET_BEFORE[row.since], (9, 0), False].append(row.mnemonic)
        if version in _VERSION_BEFORE:
            batches[target, _VERSION_BEFORE[version], False].append(row.mnemonic)

    def refused(batch: tuple[str, tuple[int, int], bool]) -> set[str]:
        """Assemble kernels, each on a line of its own, and see which lines have errors."""
        target, version, _ = batch
        name = tmp_path / f"{target}_{version}_{len(batches[batch])}.ptx"
        kernels = [tool.kernel(ROWS[m], f"k{i}").replace("\n", " ") for i, m in enumerate(batches[batch])]
        name.write_text(tool.module(kernels, target, version))
        command = ["ptxas", "-O0", f"-arch={target}", str(name), "-o", str(name.with_suffix(".cubin"))]
        report = subprocess.run(command, capture_output=True, text=True, check=False).stderr
        assert ("error" in report) == (not batch[2]), report
        return {batches[batch][int(line) - 4] for line in re.findall(r"line (\d+); error", report)}

    with ThreadPoolExecutor() as pool:
        for batch, mnemonics in zip(batches, pool.map(refused, batches), strict=True):
            assert mnemonics == (set() if batch[2] else set(batches[batch])), batch


# An H200's registers


def test_recorded_registers_of_an_h200() -> None:
    names = set()
    for mnemonic, values, given, got in tool.recorded(DATA / "h200_operations_arithmetic.npz"):
        expected = tool.simulated(ROWS[mnemonic], given, values)
        bad = tool.different(tool.compared(ROWS[mnemonic], given, values), got, expected)
        assert not bad.any(), f"{mnemonic}: {tool.example(given, got, expected, np.argwhere(bad)[0])}"
        names.add(mnemonic)
    assert names == {m for m, row in ROWS.items() if "measured" in row.source}


def test_recordings_keep_what_was_run(tmp_path: Path) -> None:
    recorder = tool.Recorder(32)
    for job in (tool.Job("add.f32", (), 256, 0), tool.Job("mul.f32", (), 256, 0), tool.Job("neg.f16", (), 256, 0)):
        given = inputs(job.mnemonic, job.lanes, job.seed)
        recorder.add(job, given, tool.simulated(ROWS[job.mnemonic], given, ()))
    recorder.save(tmp_path / "kept.npz", "none")
    kept = {name: (given, got) for name, _, given, got in tool.recorded(tmp_path / "kept.npz")}
    assert list(kept) == ["add.f32", "mul.f32", "neg.f16"]
    assert kept["add.f32"][0] is kept["mul.f32"][0]
    for name, (given, got) in kept.items():
        np.testing.assert_array_equal(got[0], ROWS[name](*given)[0])
        bad = tool.different(tool.compared(ROWS[name], given, ()), got, [got[0] ^ got[0].dtype.type(1)])
        assert bad.sum() == 32


# Arithmetic against fractions: every rounding, hard operands

ELEMENTS = {"f32": ("b32", np.uint32), "f64": ("b64", np.uint64), "f16": ("b16", np.uint16), "bf16": ("b16", np.uint16)}


def operands(mnemonic: str, count: int = 512) -> list[Array]:
    """Hard operands, finite ones."""
    name = mnemonic.split(".")[-1]
    given = [x.reshape(-1) for x in inputs(mnemonic, 4 * count, 3)]
    keep = np.logical_and.reduce([finite(float_format(name), x) for x in given])
    return [x[keep][:count] for x in given]


def float_format(name: str) -> FloatFormat:
    fmt = FORMATS[name]
    assert isinstance(fmt, FloatFormat)
    return fmt


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


def unbounded(fmt: FloatFormat, value: Fraction, rounding: str) -> Fraction:
    """Magnitude of a value, not 0, that is rounded to a format's precision near 1, so with no bound of its exponent."""
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    number = fmt.unpack(rounded(fmt, value / Fraction(2) ** exponent, rounding))
    return number.significand * Fraction(2) ** (number.exponent + exponent)


FINITE = [
    m for op in ("add", "sub", "mul", "fma") for form in (
        "<rn rz rm rp>{.ftz}.f32", "<rn rz rm rp>.f64", "rn{.ftz}.f16", "rn.bf16",
    ) for m in expand(f"{op}.{form}")
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
    x, y = (a.reshape(-1) for a in inputs(mnemonic, 1 << 15, 5))
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
    words = [x.reshape(-1) for x in inputs(f"{op}{rounding}.{name}x2", 4096, 6)]
    low, high = (
        run(f"{op}{rounding}.{name}", *[(w >> np.uint32(shift)).astype(np.uint16) for w in words]) for shift in (0, 16)
    )
    expected = low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)
    np.testing.assert_array_equal(run(f"{op}{rounding}.{name}x2", *words), expected)


@pytest.mark.parametrize("mnemonic", ["add.rm.ftz.f32", "mul.rz.f32", "fma.rp.f32", "sub.f32"])
def test_f32x2_works_on_halves(mnemonic: str) -> None:
    words = [x.reshape(-1) for x in inputs(mnemonic + "x2", 4096, 6)]
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
    for words in expand("<rn rz rm rp>{.sat}"):
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


# Conversions


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
    codes = inputs(mnemonic, 1 << 15, 9)[0].reshape(-1)
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
        codes = inputs(mnemonic, 512, 10)[0].reshape(-1)
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
        codes = inputs(mnemonic, 1024, 11)[0].reshape(-1)
        values = [given.unpack(int(c) & given.mask) for c in codes]
        kept = [
            min(max(v, made.least), made.greatest) if "sat" in mnemonic else made.unpack(v & made.mask) for v in values
        ]
        np.testing.assert_array_equal(run(mnemonic, codes), [v & ((1 << width) - 1) for v in kept])


@pytest.mark.parametrize("name", ["u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"])
def test_cvt_pack_puts_clamped_integers_below_the_third(name: str) -> None:
    """PTX ISA 9.1, 9.7.9.22."""
    size, signed = int(name[1:]), name[0] == "s"
    low = -(1 << (size - 1)) if signed else 0
    mnemonic = f"cvt.pack.sat.{name}.s32" + ("" if size == 16 else ".b32")
    words = [x.reshape(-1) for x in inputs(mnemonic, 2048, 12)]
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


# Errors


def test_operands_that_do_not_fit_are_refused() -> None:
    word, half = np.zeros(32, np.uint32), np.zeros(32, np.uint16)
    add = operation("add.f32")
    with pytest.raises(OperandError, match=r"add\.f32 takes 2 operands \(d0, a0, a1\); got 1"):
        add(word)
    with pytest.raises(OperandError, match=r"add\.f32: operand 1 is uint16 \(32,\); expected uint32"):
        add(word, half)
    with pytest.raises(OperandError, match=r"add\.f32: operand 0 is uint32 \(31,\)"):
        add(word[:31], word)
    with pytest.raises(OperandError, match=r"do not broadcast"):
        add(np.zeros((2, 32), np.uint32), np.zeros((3, 32), np.uint32))


def test_unknown_mnemonics_and_targets_are_refused() -> None:
    with pytest.raises(MnemonicError, match=r"Nearest: cvt\.rn\.f16x2\.f32"):
        operation("cvt.rn.f16x2.f32x")
    with pytest.raises(TargetError, match=r"add\.bf16 is not legal on sm_80"):
        operation("add.bf16", "sm_80")
    with pytest.raises(TargetError, match="unknown target"):
        operation("add.f32", "sm_9")
    assert operation("cvt.rn.satfinite.e2m1x2.f32", "sm_120a").since == "sm_100f"
    assert operation("cvt.rn.satfinite.e4m3x2.f32", "sm_89") is ROWS["cvt.rn.satfinite.e4m3x2.f32"]
