"""Comparing bits: distances of every code, reports of every place, and GPUs by their target."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import warpmma as wm
from warpmma.errors import MnemonicError, OperandError, TargetError
from warpmma.formats import FORMATS, FloatFormat, Format, IntegerFormat
from warpmma.isa.mma import Instruction, instructions
from warpmma.layouts import Operand
from warpmma.registers import LANES
from warpmma.testing.assertions import Gpu, assert_same_bits, ulps
from warpmma.testing.reading import distance, reader, reader_of

Array = npt.NDArray[Any]

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
HALF = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
F64 = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
QUAD = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
MIXED = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32"
B1 = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"
NARROW = [f for f in FORMATS.values() if f.bits <= 8]


def every(fmt: Format) -> Array:
    """Every code of a narrow format, as its type has it."""
    return fmt.array(np.arange(fmt.mask + 1).astype(fmt.code_dtype))


def report(actual: Any, expected: Any, **named: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_same_bits(actual, expected, **named)
    return str(caught.value)


def rows(text: str) -> list[list[str]]:
    """The lines of a report's table, cut into cells."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.lstrip().startswith("[")]


def where(text: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith("where: ")]
    return line.removeprefix("where: ")


# Distances


@pytest.mark.parametrize("fmt", NARROW, ids=lambda f: f.name)
def test_distances_of_all_pairs_of_narrow_codes(fmt: Format) -> None:
    """A float's distance is that of the ranks of values, counted anew; an integer's is the difference."""
    values = [float(v) for v in fmt.decode(np.arange(fmt.mask + 1))]
    numbers = sorted({v for v in values if not np.isnan(v)})
    rank: dict[float, Any] = {v: (i if isinstance(fmt, FloatFormat) else int(v)) for i, v in enumerate(numbers)}
    found = ulps(fmt.name, every(fmt)[:, None], every(fmt)[None, :])
    assert found.shape == (fmt.mask + 1, fmt.mask + 1)
    expected = [[None if x not in rank or y not in rank else rank[x] - rank[y] for y in values] for x in values]
    assert found.tolist() == expected


def test_a_distance_counts_infinity_as_the_next_value() -> None:
    e5m2 = FORMATS["e5m2"]
    assert ulps("e5m2", 0x7C, e5m2.max_code) == 1
    assert ulps("e5m2", 0xFC, 0x7C) == -2 * 0x7C


def test_neighbours_of_all_halves_are_one_apart() -> None:
    x = np.arange(1 << 16).astype(np.uint16).view(np.float16)
    with np.errstate(over="ignore"):
        up = np.nextafter(x, np.float16(np.inf))
    steps = ulps("f16", up, x)
    nan, top = np.isnan(x), x == np.inf
    assert set(steps[nan].tolist()) == {None}
    assert steps[top].tolist() == [0]
    assert set(steps[~nan & ~top].tolist()) == {1}
    assert int(nan.sum()) == 2 * 1023


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours_of_wide_floats_are_one_apart(dtype: Any) -> None:
    info = np.finfo(dtype)
    edges = [0, info.smallest_subnormal, info.smallest_normal, 1, 1.5, 2, info.max, -1, -info.max]
    rng = np.random.default_rng(0)
    x = np.concatenate([np.array(edges, dtype), rng.standard_normal(1000).astype(dtype)])
    fmt = FORMATS["f32" if dtype is np.float32 else "f64"]
    with np.errstate(over="ignore", under="ignore"):
        up, down = (np.nextafter(x, dtype(end)) for end in (np.inf, -np.inf))
    assert set(ulps(fmt, up, x).tolist()) == {1}
    assert set(ulps(fmt, down, x).tolist()) == {-1}


def test_distances_that_no_64_bits_hold_are_exact() -> None:
    assert ulps("f64", np.inf, -np.inf) == 2 * (0x7FF << 52)
    assert ulps("f64", -np.inf, np.inf) == -2 * (0x7FF << 52)
    assert ulps("f64", -1.0, 1.0) == -2 * (1023 << 52)
    assert ulps("s32", np.int32(-(1 << 31)), np.int32((1 << 31) - 1)) == 1 - (1 << 32)
    least, most = np.array([-(1 << 63)]), np.array([(1 << 63) - 1])
    assert distance(least, most).tolist() == distance(most, least).tolist() == [(1 << 64) - 1]


def test_distances_are_of_values() -> None:
    assert ulps("f32", np.float32(-0.0), np.float32(0.0)) == 0
    assert ulps("tf32", 0x3F80_1FFF, 0x3F80_0000) == 0  # bits that tf32 has not
    assert ulps("tf32", 0x3F80_2000, 0x3F80_0000) == 1
    assert ulps("f16", np.float16("nan"), np.float16("nan")) is None
    assert ulps("b1", np.array([0, 1], np.uint8), np.uint8(1)).tolist() == [-1, 0]


@pytest.mark.parametrize(
    ("format", "x", "y", "words"),
    [
        ("f17", 0, 0, "no format 'f17'; expected one of f64, f32"),
        (None, 0, 0, "no format None"),
        ("e4m3", 0x100, 0, "codes go from 256 to 256; expected 0 to 0xff"),
        ("f16", -1, 0, "codes go from -1"),
        ("f16", np.float32(1), 0, "got dtype float32"),
        ("s8", 128, 0, "128 at [] does not fit"),
        ("f16", [0, 1], [0, 1, 2], "shapes (2,) and (3,) do not broadcast"),
    ],
)
def test_distances_refuse(format: Any, x: Any, y: Any, words: str) -> None:
    with pytest.raises(OperandError, match=re.escape(words)):
        ulps(format, x, y)


# How elements are read


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda f: f.name)
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


# Which elements differ


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda f: f.name)
def test_the_same_bits_pass_and_every_flipped_bit_fails(fmt: Format) -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, fmt.mask, (3, 5), np.uint64, endpoint=True).astype(fmt.code_dtype)
    array = fmt.array(codes)
    assert_same_bits(array, array.copy())
    assert_same_bits(codes, codes.copy())
    for bit in range(fmt.bits):
        flipped = codes.copy()
        flipped[1, 4] ^= fmt.code_dtype.type(1 << bit)
        (row,) = rows(report(fmt.array(flipped), array))
        assert row[0] == "[1, 4]"
        assert int(row[3], 16) ^ int(row[4], 16) == 1 << bit


def test_every_bit_of_a_register_counts_and_is_placed() -> None:
    """Padding too: the e2m1 of this instruction sit in bits 5:2 of their bytes."""
    record = wm.parse(MIXED)
    a = np.random.default_rng(3).integers(0, 1 << 32, (4, LANES), np.uint32)
    for register, lane, bit in np.ndindex(4, LANES, 32):
        if (lane + register) % 4:
            continue
        flipped = a.copy()
        flipped[register, lane] ^= np.uint32(1 << bit)
        text = report(flipped, a, instruction=record, operand="A")
        (row,) = rows(text)
        byte = bit // 8
        assert row[-2:] == [str(lane), f"{register}, bits {8 * byte + 7}:{8 * byte}"]
        r, c = (int(x) for x in row[0].strip("[]").split(", "))
        assert record.layout("A").locate(r, c) == (lane, register, 8 * byte + 2)
        padding = not 2 <= bit % 8 < 6
        assert ("equal but for the sign of a zero or for padding: 1" in text) == padding or row[5] == "0"


ALL: tuple[Operand, ...] = ("A", "B", "C", "D")
PLACED: list[tuple[str, Operand]] = [
    *((F16, x) for x in ALL), (HALF, "D"), (S8, "A"), (F64, "A"), (F64, "D"), (MIXED, "B"), (SPARSE, "A"),
    *((QUAD, x) for x in ALL), (B1, "B"),
]  # fmt: skip


@pytest.mark.parametrize(("mnemonic", "operand"), PLACED)
def test_every_element_is_placed_as_its_layout_says(mnemonic: str, operand: Operand) -> None:
    """Given as a matrix and given as registers, one report of all elements each."""
    record = wm.parse(mnemonic)
    layout, fmt = record.layout(operand), record.format(operand)
    zeros = fmt.array(np.zeros(layout.shape, fmt.code_dtype))
    ones = fmt.array(np.full(layout.shape, fmt.encode(1), fmt.code_dtype))
    named: dict[str, Any] = {"instruction": mnemonic, "operand": operand, "limit": 10_000}
    of_matrix = report(ones, zeros, **named)
    registers = wm.load(record, operand, ones), wm.load(record, operand, zeros)
    of_registers = report(*registers, **named)
    assert sorted(r[0] for r in rows(of_registers)) == sorted(r[0] for r in rows(of_matrix))
    assert len(rows(of_matrix)) == ones.size
    for table in (rows(of_matrix), rows(of_registers)):
        for row in table:
            index = [int(x) for x in row[0].strip("[]").split(", ")]
            lane, register, bit = layout.locate(*index[-2:], *index[:-2])
            packing = layout.packing
            low = bit - packing.shift
            bits = f", bits {low + packing.slot - 1}:{low}" if packing.per_register > 1 else ""
            assert row[-2:] == [str(lane), f"{register}{bits}"]
    assert where(of_matrix) == "in every row, column, lane and register"


@pytest.mark.parametrize("seed", range(20))
def test_a_matrix_and_its_registers_have_the_same_report(seed: int) -> None:
    """All but the order of the elements, which is that of the array."""
    rng = np.random.default_rng(seed)
    record: Instruction = wm.parse([F16, HALF, S8, F64, QUAD, SPARSE][seed % 6])
    operand: Operand = "D" if seed % 2 else "A"
    fmt, layout = record.format(operand), record.layout(operand)
    x = rng.integers(0, fmt.mask, (3, *layout.shape), np.uint64, endpoint=True).astype(fmt.code_dtype)
    y = np.where(rng.random(x.shape) < 0.03, x ^ fmt.code_dtype.type(1 << fmt.bits // 2), x)
    assert (x != y).any()
    named: dict[str, Any] = {"instruction": record, "operand": operand, "limit": 999}
    one = report(fmt.array(x), fmt.array(y), **named).splitlines()
    other = report(wm.load(record, operand, x), wm.load(record, operand, y), **named).splitlines()
    key = [re.sub(r", at .*", "", line) for line in sorted(one)]
    assert key == [re.sub(r", at .*", "", line) for line in sorted(other)]
    assert report(x, y, **named).splitlines() == one  # codes are taken as they are


def test_whole_matrices_are_tiles_from_the_corner_on() -> None:
    expected = np.ones((2, 50, 20), np.float32)
    actual = expected.copy()
    actual[1, 37, 13] = 2
    (row,) = rows(report(actual, expected, instruction=F16))
    lane, register, _ = wm.parse(F16).layout("D").locate(37 - 32, 13 - 8)
    assert row == ["[1, 37, 13]", "2", "1", "0x40000000", "0x3f800000", "+8,388,608", str(lane), str(register)]


def test_signs_of_zeros_and_payloads_of_nan_differ() -> None:
    zeros = np.array([0.0, -0.0], np.float32)
    assert "equal but for the sign of a zero or for padding: 2" in report(zeros, -zeros)
    nans = np.array([0x7FC0_0000, 0x7FC0_0001, 0xFFC0_0000], np.uint32).view(np.float32)
    assert_same_bits(nans, nans.copy())
    text = report(nans, nans[::-1].copy())
    assert [row[5] for row in rows(text)] == ["NaN", "NaN"]
    assert "NaN on one side or both: 2" in text
    assert "largest" not in text


def test_nan_may_be_any() -> None:
    nans = np.array([0x7FC0_0000, 0x7FC0_0001, 0xFFC0_0000], np.uint32).view(np.float32)
    assert_same_bits(nans, nans[::-1].copy(), nan="any")
    with pytest.raises(AssertionError, match="1 of 3 elements differs"):
        assert_same_bits(nans, np.array([np.nan, np.nan, 1], np.float32), nan="any")
    with pytest.raises(AssertionError, match="1 of 1 element differs"):
        assert_same_bits(np.float32(0), np.float32(-0.0), nan="any")
    codes = np.full((16, 8), 0x7FC0_0000, np.uint32)
    codes[3, 3] = 0x7F80_0000  # infinity is no NaN
    text = report(codes, np.full((16, 8), 0x7FFF_FFFF, np.uint32), nan="any", instruction=F16)
    assert [row[0] for row in rows(text)] == ["[3, 3]"]


def test_shapes_and_dtypes_come_first() -> None:
    assert report(np.zeros((2, 3), np.float32), np.ones((3, 2), np.float32)) == (
        "shapes differ: actual (2, 3), expected (3, 2)"
    )
    assert report(np.zeros(3, np.uint16), np.ones(3, np.float16), names=("gpu", "here")) == (
        "dtypes differ: gpu uint16, here float16"
    )
    assert report(np.zeros(2, np.uint16), np.ones(3, np.float16)).splitlines() == [
        "shapes differ: actual (2,), expected (3,)",
        "dtypes differ: actual uint16, expected float16",
    ]
    assert "shapes differ" in report(1, [1])


def test_what_is_listed_is_limited_and_named() -> None:
    x, y = np.zeros(5000, np.float16), np.ones(5000, np.float16)
    text = report(x, y, limit=3, names=("kernel", "model")).splitlines()
    assert text[0] == "5,000 of 5,000 elements differ (f16)"
    assert text[1].split("  ")[-6:] != text[2].split("  ")[-6:]
    assert re.split(r"\s{2,}", text[1].strip()) == ["index", "kernel", "model", "kernel bits", "model bits", "ulps"]
    assert [line.split("]")[0] for line in text[2:5]] == ["    [0", "    [1", "    [2"]
    assert text[5:] == ["  and 4,997 more", "largest difference: 15,360 ulps, at [0]"]
    assert len(rows(report(x, y))) == 10
    assert report(x, y, limit=0).splitlines()[1] == "  and 5,000 more"


def test_no_elements_are_the_same() -> None:
    assert_same_bits(np.zeros((0, 16, 8), np.float32), np.zeros((0, 16, 8), np.float32), instruction=F16)
    assert_same_bits([], [])


def marked(**index: Any) -> str:
    """The report's pattern where D of f16 differs at these rows and columns of two warps."""
    expected = np.ones((2, 16, 8), np.float32)
    actual = expected.copy()
    sizes = {"w": 2, "r": 16, "c": 8}
    actual[np.ix_(*(np.atleast_1d(index.get(name, range(size))) for name, size in sizes.items()))] = 2
    text = report(actual, expected, instruction=F16, limit=0).splitlines()
    start = next(n for n, line in enumerate(text) if line.startswith("where"))
    return "\n".join(line for line in text[start:] if not line.startswith("largest"))


@pytest.mark.parametrize(
    ("index", "pattern"),
    [
        ({"r": 1}, "where: only row 1; lanes 4-7 (groupID 1); registers 0-1"),
        ({"w": 1}, "where: only warp 1"),
        ({"c": [2, 3]}, "where: columns 2-3; lanes 1, 5, ..., 29 (threadID_in_group 1)"),
        ({"r": range(8, 16)}, "where: rows 8-15; registers 2-3"),
        ({"c": range(0, 8, 2)}, "where: columns 0, 2, ..., 6; registers 0, 2"),
        (
            {"w": 0, "r": [0, 9], "c": range(4)},
            "where: only warp 0; rows 0, 9; columns 0-3; lanes 0-1, 4-5 (groupID 0-1, threadID_in_group 0-1)\n"
            "  registers 0-1: 4 in lanes 0-1 (groupID 0, threadID_in_group 0-1)\n"
            "  registers 2-3: 4 in lanes 4-5 (groupID 1, threadID_in_group 0-1)",
        ),
        (
            {"r": [0, *range(8, 16)]},
            "where: rows 0, 8-15\n  registers 0-1: 16 in lanes 0-3 (groupID 0)\n  registers 2-3: 128 in all lanes",
        ),
        (
            {"r": 15, "c": 7},
            "where: only row 15; only column 7; only lane 31 (groupID 7, threadID_in_group 3); only register 3",
        ),
    ],
)  # fmt: skip
def test_patterns_are_named(index: dict[str, Any], pattern: str) -> None:
    assert marked(**index) == pattern


def test_lanes_that_are_no_product_of_groups_and_threads_are_only_listed() -> None:
    x, y = np.zeros((16, 8), np.float32), np.zeros((16, 8), np.float32)
    y[0, 0] = y[1, 2] = 1
    assert where(report(x, y, instruction=F16)) == "rows 0-1; columns 0, 2; lanes 0, 5; only register 0"


def test_positions_in_packed_registers_are_named() -> None:
    a = np.zeros((16, 16), np.float16)
    b = a.copy()
    b[:, 1::2] = 1
    assert where(report(a, b, instruction=F16, operand="A")) == "columns 1, 3, ..., 15; only position in the register 1"


def test_indices_of_plain_arrays_are_named() -> None:
    x = np.zeros((4, 6, 30))
    y = x.copy()
    y[1:3, 4, [0, 2, 3, 5, 7, 8, 11, 13, 17, 19, 23, 29]] = 1
    many = "0, 2-3, 5, 7-8, 11, 13, 17, 19, ... (12 of them)"
    assert where(report(x, y)) == f"index[0] = 1-2; index[1] = 4; index[2] = {many}"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: assert_same_bits([1j], [1j]), "complex128 has no bits to compare"),
        (lambda: assert_same_bits(np.array([object()]), np.array([None])), "object has no bits to compare"),
        (lambda: assert_same_bits(["a"], ["a"]), "<U1 has no bits to compare"),
        (lambda: assert_same_bits(np.zeros(1, "M8[s]"), np.zeros(1, "M8[s]")), "has no bits to compare"),
        (lambda: assert_same_bits(np.zeros(1, "i1,i1"), np.zeros(1, "i1,i1")), "has no bits to compare"),
        (lambda: assert_same_bits(np.zeros(1, np.longdouble), np.zeros(1, np.longdouble)), "has no bits to compare"),
        (lambda: assert_same_bits([[1], [1, 2]], [1]), "actual: no array"),
        (lambda: assert_same_bits(1, [[1], [1, 2]], names=("x", "y")), "y: no array"),
        (lambda: assert_same_bits(1, 1, limit=-1), "limit is -1"),
        (lambda: assert_same_bits(1, 1, limit=True), "limit is True"),
        (lambda: assert_same_bits(1, 1, nan="none"), "nan is 'none'; expected 'bits' or 'any'"),  # type: ignore[arg-type]
        (lambda: assert_same_bits(1, 1, names=("x",)), "names are ('x',); expected two strings"),  # type: ignore[arg-type]
        (lambda: assert_same_bits(1, 1, names=(1, 2)), "names are (1, 2)"),  # type: ignore[arg-type]
        (lambda: assert_same_bits(1.0, 1.0, instruction=F16), "D is float64 (1,); expected matrices [..., 16, 8]"),
        (lambda: assert_same_bits(np.zeros((16, 8)), np.zeros((16, 8)), instruction=F16), "D: f32: got dtype float64"),
        (
            lambda: assert_same_bits(np.zeros((8, 4)), np.zeros((8, 4)), instruction=QUAD, operand="A"),
            "expected matrices [..., 4, 8, 4], or registers uint32 [..., 2, 32]",
        ),
        (lambda: assert_same_bits(1, 1, instruction=F16, operand="E"), "operand is 'E'"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_compared_is_refused(call: Any, words: str) -> None:
    with pytest.raises(OperandError, match=re.escape(words)):
        call()


def test_an_unknown_instruction_is_refused() -> None:
    with pytest.raises(MnemonicError, match="unknown qualifier"):
        assert_same_bits(1, 1, instruction=F16.replace("k16", "k17"))


# GPUs


def test_a_gpu_computes_what_the_package_does() -> None:
    gpu, rng = Gpu("sm_80"), np.random.default_rng(4)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((16, 16), (16, 8)))
    c = rng.standard_normal((16, 8)).astype(np.float32)
    assert_same_bits(gpu.mma(F16, a, b, c), wm.mma(F16, a, b, c, target="sm_80"))
    assert_same_bits(gpu.mma(F16, a, b, engine="numpy"), wm.mma(F16, a, b, target="sm_80"))
    registers = [wm.load(F16, "A", a), wm.load(F16, "B", b), wm.load(F16, "C", c)]
    assert_same_bits(gpu.execute(F16, *registers), wm.execute(F16, *registers, target="sm_80"))
    assert_same_bits(gpu.matmul(a, b, c), wm.matmul(a, b, c, target="sm_80"))
    assert_same_bits(gpu.matmul(a, b, split_k=2), wm.matmul(a, b, target="sm_80", split_k=2))
    assert gpu.evidence(F16) == wm.evidence(F16, target="sm_80")
    assert str(gpu) == gpu.target == "sm_80"


def test_a_gpu_computes_for_its_own_target() -> None:
    """The README's example, which an A100 and an H100 answer differently."""
    a, b = np.zeros((16, 16), np.float16), np.ones((16, 8), np.float16)
    a[0, [0, 7, 8]] = 1, 2.0**-24, 2.0**-24
    assert Gpu("sm_80").mma(F16, a, b)[0, 0] != Gpu("sm_90").mma(F16, a, b)[0, 0]
    with pytest.raises(TargetError):
        Gpu("sm_70").mma(F16, a, b)


def test_a_gpu_launches_kernels() -> None:
    def double(t: Any, x: Any) -> None:
        at = x + (t.ctaid[0] * 64 + t.tid[0]) * 4
        t("st.global.b32", at, t("ld.global.b32", at) * 2)

    numbers = np.arange(128, dtype=np.uint32)
    Gpu("sm_90").launch(double, 2, 64, [numbers], engine="numpy")
    assert_same_bits(numbers, 2 * np.arange(128, dtype=np.uint32))


def test_a_gpu_has_the_instructions_of_its_target() -> None:
    for target in ("sm_70", "sm_90a", "sm_120a"):
        gpu, mine = Gpu(target), set(instructions(target))
        assert [gpu.has(i) for i in instructions()] == [i in mine for i in instructions()]
    assert Gpu("sm_90a").has("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16")


def test_an_unknown_gpu_is_refused() -> None:
    with pytest.raises(TargetError, match="unknown target 'sm_91'; did you mean"):
        Gpu("sm_91")
