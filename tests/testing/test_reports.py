"""Which elements differ, where they lie, and how this is reported."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from report_cases import B1, F16, F64, HALF, MIXED, QUAD, S8, SPARSE, report, rows, where

import warpmma as wm
from warpmma.errors import MnemonicError, OperandError
from warpmma.formats import FORMATS, Format
from warpmma.isa import Instruction
from warpmma.layouts import Operand
from warpmma.registers import LANES
from warpmma.testing import assert_same_bits

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
        assert ("equal except for the sign of a zero or for padding: 1" in text) == padding or row[5] == "0"


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


def test_tiles_of_whole_matrices_are_named() -> None:
    expected = np.ones((2, 50, 20), np.float32)
    actual = expected.copy()
    actual[1, 32:34, 8:16] = 2
    text = where(report(actual, expected, instruction=F16))
    tile = "only warp 1; only row of tiles 2; only column of tiles 1"
    assert text == f"{tile}; rows 32-33; columns 8-15; lanes 0-7 (groupID 0-1); registers 0-1"


def test_signs_of_zeros_and_payloads_of_nan_differ() -> None:
    zeros = np.array([0.0, -0.0], np.float32)
    assert "equal except for the sign of a zero or for padding: 2" in report(zeros, -zeros)
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
    assert where(report(x, y)) == f"index[0] = 1-2; only row 4; columns {many} (all 24 elements)"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: assert_same_bits([1j], [1j]), "complex128 has no bits to compare"),
        (lambda: assert_same_bits(np.array([object()]), np.array([None])), "object has no bits to compare"),
        (lambda: assert_same_bits(["a"], ["a"]), "<U1 has no bits to compare"),
        (lambda: assert_same_bits(np.zeros(1, "M8[s]"), np.zeros(1, "M8[s]")), "has no bits to compare"),
        (lambda: assert_same_bits(np.zeros(1, "i1,i1"), np.zeros(1, "i1,i1")), "has no bits to compare"),
        (lambda: assert_same_bits(np.zeros(1, np.longdouble), np.zeros(1, np.longdouble)), "has no bits to compare"),
        (lambda: assert_same_bits([[1], [1, 2]], [1]), "actual: not an array"),
        (lambda: assert_same_bits(1, [[1], [1, 2]], names=("x", "y")), "y: not an array"),
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
