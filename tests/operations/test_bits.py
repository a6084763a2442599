"""Arithmetic, logic, shifts, bit fields and permutations of bytes: PTX's rules one by one."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operation_rows import FULL, lane0, run

from warpmma.errors import OperandError

# Arithmetic, logic, shifts: Python's integers


def signed(x: int, width: int = 32) -> int:
    return x - (1 << width) if x >> (width - 1) else x


B32 = st.one_of(st.integers(0, FULL), st.sampled_from([0, 1, 31, 32, 33, 0x7FFFFFFF, 0x80000000, FULL]))
B64 = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1]))
AMOUNT = st.one_of(st.integers(0, 70), st.integers(0, 255), B32)
BINARY: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul.lo": operator.mul, "min": min, "max": max,
}  # fmt: skip


@given(B32, B32, B32, B64)
@settings(max_examples=60, deadline=None)
def test_arithmetic_of_32_bits(a: int, b: int, c: int, wide: int) -> None:
    for kind, value in (("u32", int), ("s32", signed)):
        x, y = value(a), value(b)
        for name, function in BINARY.items():
            assert lane0(f"{name}.{kind}", a, b) == function(x, y) & FULL
        assert lane0(f"mul.hi.{kind}", a, b) == x * y >> 32 & FULL
        assert lane0(f"mul.wide.{kind}", a, b) == x * y % 2**64
        assert lane0(f"mad.lo.{kind}", a, b, c) == (x * y + c) & FULL
        assert lane0(f"mad.hi.{kind}", a, b, c) == ((x * y >> 32) + c) & FULL
        assert lane0(f"mad.wide.{kind}", a, b, wide) == (x * y + wide) % 2**64


@given(B64, B64, B64)
@settings(max_examples=40, deadline=None)
def test_arithmetic_of_64_bits(a: int, b: int, c: int) -> None:
    for kind, value in (("u64", int), ("s64", lambda x: signed(x, 64))):
        for name, function in BINARY.items():
            assert lane0(f"{name}.{kind}", a, b) == function(value(a), value(b)) % 2**64
        assert lane0(f"mad.lo.{kind}", a, b, c) == (a * b + c) % 2**64


@given(B64, AMOUNT)
@settings(max_examples=60, deadline=None)
def test_logic_and_shifts(a: int, count: int) -> None:
    for width in (16, 32, 64):
        ones, x = (1 << width) - 1, a & ((1 << width) - 1)
        clamped = min(count, width)
        for name, function in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor)):
            assert lane0(f"{name}.b{width}", x, count & ones) == function(x, count & ones)
        assert lane0(f"not.b{width}", x) == x ^ ones
        assert lane0(f"shl.b{width}", x, count) == x << clamped & ones
        for kind in ("b", "u"):
            assert lane0(f"shr.{kind}{width}", x, count) == x >> clamped
        assert lane0(f"shr.s{width}", x, count) == signed(x, width) >> clamped & ones
        if width > 16:
            assert lane0(f"popc.b{width}", x) == x.bit_count()
            assert lane0(f"brev.b{width}", x) == int(f"{x:0{width}b}"[::-1], 2)


@given(B32, B32, AMOUNT)
@settings(max_examples=60, deadline=None)
def test_funnel_shifts(a: int, b: int, c: int) -> None:
    for mode, n in (("clamp", min(c, 32)), ("wrap", c & 31)):
        assert lane0(f"shf.l.{mode}.b32", a, b, c) == (b << n | a >> (32 - n)) & FULL
        assert lane0(f"shf.r.{mode}.b32", a, b, c) == (b << (32 - n) | a >> n) & FULL


def bfe(a: int, position: int, length: int, width: int, is_signed: bool) -> int:
    """PTX's loop over bits."""
    sign = a >> min(position + length - 1, width - 1) & 1 if is_signed and length else 0
    inside = [i < length and position + i < width for i in range(width)]
    return sum((a >> (position + i) & 1 if inside[i] else sign) << i for i in range(width))


def bfi(a: int, b: int, position: int, length: int, width: int) -> int:
    for i in range(min(length, width)):
        if position + i < width:
            b = b & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
    return b


@given(B64, B64, st.integers(0, 255), st.one_of(st.integers(0, 70), st.integers(0, 255)))
@settings(max_examples=100, deadline=None)
def test_bit_fields(a: int, b: int, position: int, length: int) -> None:
    for width in (32, 64):
        x, y = a % 2**width, b % 2**width
        assert lane0(f"bfe.u{width}", x, position, length) == bfe(x, position, length, width, False)
        assert lane0(f"bfe.s{width}", x, position, length) == bfe(x, position, length, width, True)
        assert lane0(f"bfi.b{width}", x, y, position, length) == bfi(x, y, position, length, width)


def test_what_an_h200_does_with_positions_and_lengths_above_255() -> None:
    assert lane0("bfe.u32", 0xABCD, 0xFF00 | 4, 0xFF00 | 8) == 0xBC
    assert lane0("bfe.u64", 0xABCD, 0xFF00 | 4, 8) == 0
    assert lane0("bfi.b64", 0xFF, 0, 0, 0xFF00 | 8) == 0xFF
    assert lane0("bfi.b64", 0xABCD, 0, 0, 0x100) == 0xABCD  # the low byte alone would be 0, an empty field


@given(B32, B32, B32, st.integers(0, 255), st.booleans())
@settings(max_examples=100, deadline=None)
def test_lop3(a: int, b: int, c: int, lut: int, q: bool) -> None:
    expected = sum((lut >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i for i in range(32))
    assert lane0("lop3.b32", a, b, c, lut) == expected
    for name, value in (("or", bool(expected) or q), ("and", bool(expected) and q)):
        result, predicate = run(f"lop3.{name}.b32", a, b, c, lut, q)
        assert (result[0], predicate[0]) == (expected, value)


def test_lop3_of_the_manual() -> None:
    ta, tb, tc = 0xF0, 0xCC, 0xAA
    a, b, c = 0x12345678, 0x9ABCDEF0, 0x0F1E2D3C
    assert lane0("lop3.b32", a, b, c, ta & tb & tc) == a & b & c
    assert lane0("lop3.b32", a, b, c, ta & tb & (~tc & 0xFF)) == a & b & ~c
    assert lane0("lop3.b32", a, b, c, (ta & tb & tc) | (ta & (~tb & 0xFF))) == (a & b & c) | (a & ~b)
    assert lane0("lop3.b32", a, b, c, 0x1A) == (a & b | c) ^ a


@pytest.mark.parametrize("lut", [-1, 256])
def test_a_look_up_table_has_eight_bits(lut: int) -> None:
    with pytest.raises(OperandError, match=r"lop3\.b32: the look-up table is -?\d+; expected an immediate of 0 to 255"):
        run("lop3.b32", 0, 0, 0, lut)


# prmt: PTX's table, most significant byte first

A, B = 0x33221100, 0x77665544  # byte i is 0x11 * i
PRMT = {
    "f4e": ("3210", "4321", "5432", "6543"), "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"), "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"), "rc16": ("1010", "3232", "1010", "3232"),
}  # fmt: skip


@pytest.mark.parametrize("mode", PRMT)
def test_prmt_modes(mode: str) -> None:
    for control, picked in enumerate(PRMT[mode]):
        expected = int("".join(2 * digit for digit in picked), 16)
        assert lane0(f"prmt.b32.{mode}", A, B, control) == expected
        assert lane0(f"prmt.b32.{mode}", A, B, 0xFFFFFFFC | control) == expected


def test_prmt() -> None:
    for place in range(4):
        for byte in range(8):
            assert lane0("prmt.b32", A, B, byte << 4 * place) == 0x11 * byte << 8 * place
            for value, sign in ((0x7F, 0x00), (0x80, 0xFF)):
                pair = value << 8 * byte
                got = lane0("prmt.b32", pair & FULL, pair >> 32, (8 | byte) << 4 * place | 0xABCD0000)
                others = value * (byte == 0) * (0x01010101 ^ 1 << 8 * place)
                assert got == sign << 8 * place | others
