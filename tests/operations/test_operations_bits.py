"""Rows of `bits`, `collectives` and `movmatrix`: PTX's rules one by one, an H200's registers, and what ptxas takes."""

from __future__ import annotations

import operator
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import needs

from warpmma.errors import OperandError, TargetError
from warpmma.isa.mma import TARGETS
from warpmma.operations import MatrixMove, Operation, collectives, matrix_moves, operation
from warpmma.operations import integers as bits
from warpmma.operations import matrices as fragments

Array = npt.NDArray[Any]

ROWS = {row.mnemonic: row for row in (*bits.OPERATIONS, *collectives.OPERATIONS, *fragments.OPERATIONS)}
RECORDING = Path(__file__).parents[1] / "data" / "h200_operations_bits.npz"
LANE = np.arange(32)
FULL = 0xFFFFFFFF
_DTYPES: dict[str, Any] = {"b16": np.uint16, "b32": np.uint32, "b64": np.uint64, "pred": np.bool_}


def run(mnemonic: str, *operands: Any, active: Any = None) -> Any:
    """Execute a row on Python numbers, or lists of 32, and return the outputs as lists."""
    row = ROWS[mnemonic]
    arrays = [
        x if kind == "imm" else np.broadcast_to(np.array(x, _DTYPES[kind]), (32,))
        for x, kind in zip(operands, row.inputs, strict=True)
    ]
    results = [x.tolist() for x in row(*arrays, active=active)]
    return results[0] if len(results) == 1 else results


def lane0(mnemonic: str, *operands: Any) -> int:
    return int(run(mnemonic, *operands)[0])


# The table


def test_rows_are_distinct_and_say_where_they_are_from() -> None:
    assert len(ROWS) == len(bits.OPERATIONS) + len(collectives.OPERATIONS) + len(fragments.OPERATIONS) == 127
    for row in ROWS.values():
        assert row.source.startswith("PTX ISA 9.1, ")
        assert row.lanes == (row.mnemonic not in {r.mnemonic for r in bits.OPERATIONS})


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


# Collectives


def shfl(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """PTX's pseudo-code, for one lane."""
    b, clamp, segment = b & 31, c & 31, c >> 8 & 31
    most, least = (lane & segment) | (clamp & ~segment), lane & segment
    if mode == "up":
        j = lane - b
        inside = j >= most
    else:
        j = {"down": lane + b, "bfly": lane ^ b, "idx": least | (b & ~segment)}[mode]
        inside = j <= most
    return (j if inside else lane), inside


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shfl_with_every_distance_and_segment(mode: str) -> None:
    c = np.array([segment << 8 | clamp for segment in range(32) for clamp in range(32)], np.uint32)
    b = np.arange(32, dtype=np.uint32)
    shape = (len(b), len(c), 32)
    values = np.broadcast_to((LANE * 0x01010101).astype(np.uint32), shape)
    bs, cs = np.broadcast_to(b[:, None, None], shape), np.broadcast_to(c[None, :, None], shape)
    got, inside = ROWS[f"shfl.sync.{mode}.b32"](values, bs, cs, np.full(32, FULL, np.uint32))
    expected = np.array([[[shfl(mode, n, x, y) for n in range(32)] for y in c.tolist()] for x in b.tolist()])
    np.testing.assert_array_equal(got, expected[..., 0] * 0x01010101)
    np.testing.assert_array_equal(inside, expected[..., 1].astype(bool))


def test_the_usual_reduction() -> None:
    """A sum of 32 lanes by butterflies, as every attention kernel has it."""
    total = LANE.tolist()
    for distance in (16, 8, 4, 2, 1):
        other, inside = run("shfl.sync.bfly.b32", total, distance, 0x1F, FULL)
        assert all(inside)
        total = run("add.s32", total, other)
    assert total == [496] * 32


GROUPS = [0x0000FFFF] * 16 + [0xFFFF0000] * 16


def test_groups_of_one_warp_do_not_see_each_other() -> None:
    odd = [bool(n % 2) for n in range(32)]
    low = [n < 16 for n in range(32)]
    assert run("vote.sync.ballot.b32", odd, GROUPS) == [0xAAAA] * 16 + [0xAAAA0000] * 16
    assert run("vote.sync.all.pred", low, GROUPS) == low
    assert run("vote.sync.any.pred", low, GROUPS) == low
    assert run("vote.sync.uni.pred", low, GROUPS) == [True] * 32
    assert run("vote.sync.uni.pred", low, FULL) == [False] * 32
    assert run("vote.sync.any.pred", low, FULL) == [True] * 32
    assert run("vote.sync.all.pred", low, FULL) == [False] * 32
    assert run("match.any.sync.b32", odd, GROUPS) == [0x5555, 0xAAAA] * 8 + [0x55550000, 0xAAAA0000] * 8
    assert run("match.all.sync.b64", low, GROUPS) == [GROUPS, [True] * 32]
    assert run("match.all.sync.b64", low, FULL) == [[0] * 32, [False] * 32]
    assert run("redux.sync.add.u32", LANE, GROUPS) == [120] * 16 + [376] * 16
    assert run("redux.sync.max.s32", LANE - 8 & FULL, GROUPS) == [7] * 16 + [23] * 16
    assert run("redux.sync.max.u32", LANE - 8 & FULL, GROUPS) == [FULL] * 16 + [23] * 16
    assert run("redux.sync.min.s32", LANE - 8 & FULL, GROUPS) == [FULL - 7] * 16 + [8] * 16
    assert run("redux.sync.xor.b32", 1 << LANE, FULL) == run("redux.sync.or.b32", 1 << LANE, FULL) == [FULL] * 32
    assert run("redux.sync.and.b32", ~(1 << LANE) & FULL, GROUPS) == [0xFFFF0000] * 16 + [0xFFFF] * 16


def test_activemask() -> None:
    assert run("activemask.b32") == [FULL] * 32
    assert run("activemask.b32", active=LANE % 2 == 1) == [0xAAAAAAAA] * 32


def f32(x: float) -> int:
    return int(np.float32(x).view(np.uint32))


NAN, INF, TINY = 0x7FC00001, f32(np.inf), 1


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("min", [f32(1), f32(-2), f32(3)], f32(-2)),
        ("max", [f32(1), f32(-2), f32(3)], f32(3)),
        ("max", [f32(-1), f32(-2), f32(-np.inf)], f32(-1)),
        ("min", [f32(0.0), f32(-0.0)], f32(-0.0)),
        ("max", [f32(0.0), f32(-0.0)], f32(0.0)),
        ("min", [TINY, INF], TINY),
        ("max.abs", [f32(1), f32(-2)], f32(2)),
        ("min.abs", [f32(-0.0), f32(1)], f32(0.0)),
        ("min", [NAN, f32(5), 0xFFFFFFFF], f32(5)),
        ("max", [NAN, f32(-5), 0xFFFFFFFF], f32(-5)),
        ("max", [NAN], 0x7FFFFFFF),
        ("min", [0xFFFFFFFF], 0x7FFFFFFF),
        ("max.NaN", [NAN, f32(5)], 0x7FFFFFFF),
        ("min.NaN", [f32(5), f32(4)], f32(4)),
        ("min.abs.NaN", [0xFFC00000, f32(4)], 0x7FFFFFFF),
        ("max.abs.NaN", [f32(-5), f32(4)], f32(5)),
    ],
)
def test_redux_f32(name: str, values: list[int], expected: int) -> None:
    """Lanes outside of the group hold what would win."""
    group = (1 << len(values)) - 1
    rest = [f32(-np.inf) if "min" in name else NAN if "NaN" in name else f32(np.inf)] * (32 - len(values))
    got = run(f"redux.sync.{name}.f32", values + rest, [group] * len(values) + [~group & FULL] * (32 - len(values)))
    assert got[: len(values)] == [expected] * len(values)


# What PTX leaves undefined


def lanes_of(mask: int) -> Array:
    return (mask >> LANE & 1).astype(bool)


@pytest.mark.parametrize(
    ("mask", "active", "undefined"),
    [
        (FULL, FULL, 0),
        (FULL, 0xFFFF, 0xFFFF),  # waits for lanes that are masked off
        (0xFFFF, 0xFFFF, 0),
        (0xFFFF, FULL, 0xFFFF0000),  # lanes that their own mask does not name
        (GROUPS, FULL, 0),
        (GROUPS, 0x0000FFFF, 0),
        (GROUPS, 0x0001FFFF, 0x00010000),
        ([FULL] * 31 + [0x80000000], FULL, 0x7FFFFFFF),  # one lane has another mask
    ],
)
def test_undefined_groups(mask: int | list[int], active: int, undefined: int) -> None:
    row, a = ROWS["vote.sync.any.pred"], np.ones(32, bool)
    masks, who = np.broadcast_to(np.array(mask, np.uint32), (32,)), lanes_of(active)
    np.testing.assert_array_equal(row.undefined_lanes(a, masks, active=who), lanes_of(undefined))
    if undefined:
        first = int(np.argmax(lanes_of(undefined)))
        with pytest.raises(OperandError, match=rf"^vote\.sync\.any\.pred: lane {first}: PTX leaves the result undef"):
            row(a, masks, active=who)
    (got,) = row(a, masks, active=who, undefined="zero")
    np.testing.assert_array_equal(got[who], ~lanes_of(undefined)[who])


def test_shfl_from_a_lane_outside_of_the_group_is_undefined() -> None:
    row, a = ROWS["shfl.sync.down.b32"], np.arange(32, dtype=np.uint32)
    b, c, masks = (np.broadcast_to(np.array(x, np.uint32), (2, 32)) for x in (1, 31, GROUPS))
    np.testing.assert_array_equal(row.undefined_lanes(a, b, c, masks), np.stack([LANE == 15] * 2))
    with pytest.raises(OperandError, match=r"shfl\.sync\.down\.b32: warp \(0,\), lane 15: PTX leaves the result"):
        row(a, b, c, masks)
    # Within a segment of 16 lanes the same shuffle is defined: lane 15 keeps its own.
    _, inside = row(a, b, np.full(32, 0x100F, np.uint32), masks)
    np.testing.assert_array_equal(inside[0], LANE % 16 != 15)


def test_lanes_that_their_mask_does_not_name_take_no_part_unless_they_are_said_to() -> None:
    assert run("vote.sync.ballot.b32", [True] * 32, 0xFFFF)[:16] == [0xFFFF] * 16
    with pytest.raises(OperandError, match=r"ballot\.b32: lane 16: PTX leaves the result undefined"):
        run("vote.sync.ballot.b32", [True] * 32, 0xFFFF, active=LANE >= 0)


def test_active_is_a_mask_of_lanes() -> None:
    with pytest.raises(OperandError, match=r"activemask\.b32: active is int64 \(32,\); expected bool \[\.\.\., 32\]"):
        run("activemask.b32", active=LANE)


def test_redux_f32_is_of_one_family_alone() -> None:
    assert operation("redux.sync.min.f32", "sm_103a") is ROWS["redux.sync.min.f32"]
    legal = r"min\.f32 is not legal on sm_120a; legal on sm_100f, sm_100a, sm_103f, sm_103a$"
    with pytest.raises(TargetError, match=legal):
        operation("redux.sync.min.f32", "sm_120a")


def test_movmatrix_wants_whole_warps() -> None:
    row, a = ROWS["movmatrix.sync.aligned.m8n8.trans.b16"], np.zeros(32, np.uint32)
    assert row.undefined_lanes(a, active=LANE < 31).sum() == 31
    assert not row.undefined_lanes(a, active=np.zeros(32, bool)).any()
    with pytest.raises(OperandError, match="PTX leaves the result undefined"):
        row(a, active=LANE < 31)


def test_rows_without_collectives_have_no_undefined_lanes() -> None:
    a = np.zeros((3, 32), np.uint32)
    assert ROWS["brev.b32"].undefined_lanes(a).shape == (3, 32)
    assert not ROWS["brev.b32"].undefined_lanes(a).any()


# An H200


@cache
def recording() -> dict[str, Array]:
    with np.load(RECORDING) as archive:
        return dict(archive)


def test_the_rows_of_an_h200_are_recorded() -> None:
    recorded = dict(recording())
    assert recorded.pop("device") == "NVIDIA H200, driver 580.159.04"
    assert {name.split()[0] for name in recorded} == {m for m, row in ROWS.items() if "sm_90a" in row.targets}


@pytest.mark.parametrize("name", sorted(set(recording()) - {"device"}))
def test_replay(name: str) -> None:
    table = recording()[name]
    mnemonic, *values = name.split()
    row, immediates, numbers = ROWS[mnemonic], iter(values), iter(range(9))
    operands = [int(next(immediates)) if kind == "imm" else table[f"a{next(numbers)}"] for kind in row.inputs]
    results = row(*operands, undefined="zero")
    defined = ~row.undefined_lanes(*operands) & (operands[-1] != 0 if row.membermask else True)
    np.testing.assert_array_equal(np.broadcast_to(defined, table.shape), table["compared"])
    assert table["compared"].sum() > 8
    for i, result in enumerate(results):
        got = np.broadcast_to(result, table.shape)
        np.testing.assert_array_equal(got[table["compared"]], table[f"d{i}"][table["compared"]])


# ptxas

FIRST = {"sm_75": (6, 3), "sm_80": (7, 0), "sm_90": (7, 8), "sm_100f": (8, 8)}  # the PTX version that brought a target


def statement(row: Operation | MatrixMove) -> str:
    syntax = row.syntax.replace("[p]", "[%p]")
    names = {f"a{i}": "7" if kind == "imm" else f"%{kind}a{i}" for i, kind in enumerate(getattr(row, "inputs", ()))}
    names |= {f"d{i}": f"%{kind}d{i}" for i, kind in enumerate(getattr(row, "outputs", ()))}
    for name in reversed([f"{letter}{i}" for letter in "ad" for i in range(5)]):
        syntax = syntax.replace(name, names.get(name, f"%b32{name}"))
    return f"{row.mnemonic} {syntax};"


def assembles(target: str, version: tuple[int, int], *rows: Operation | MatrixMove) -> str:
    """Return what ptxas has to say: nothing, if all is well."""
    kinds = (("b16", "b16"), ("b32", "b32"), ("b64", "b64"), ("pred", "pred"))
    registers = [f".reg .{kind} %{name}{letter}<5>;" for name, kind in kinds for letter in "ad"]
    head = [f".version {version[0]}.{version[1]}", f".target {target}", ".address_size 64", ".visible .entry k() {"]
    body = [*registers, ".reg .b64 %p;", *map(statement, rows), "ret;", "}"]
    command = ["ptxas", f"-arch={target}", "/dev/stdin", "-o", "/dev/null"]
    return subprocess.run(command, input="\n".join([*head, *body]), capture_output=True, text=True).stderr


def groups() -> dict[tuple[str, tuple[int, int]], list[Operation | MatrixMove]]:
    """Rows by the oldest target that ptxas 13 still knows, and the oldest PTX version for both."""
    found: dict[tuple[str, tuple[int, int]], list[Operation | MatrixMove]] = {}
    rows: list[Operation | MatrixMove] = [*ROWS.values(), *matrix_moves()]
    for row in rows:
        target = max(row.since, "sm_75") if row.since == "sm_70" else row.since
        found.setdefault((target, max(row.ptx, FIRST[target])), []).append(row)
    return found


@needs("ptxas")
def test_every_row_assembles_for_its_oldest_target() -> None:
    for (target, version), rows in groups().items():
        assert assembles(target, version, *rows) == ""


@needs("ptxas")
def test_no_row_is_older_than_it_says() -> None:
    """One minor PTX version before its first, or on any other target, ptxas refuses a row."""
    known = [t for t in TARGETS if not assembles(t, (9, 0))]
    assert "sm_90a" in known
    cases = []
    for (target, version), rows in groups().items():
        if version > FIRST[target]:
            cases += [(target, (version[0], version[1] - 1), row, False) for row in rows[:3]]
        one_of_each = {(type(row), row.targets): row for row in rows}
        cases += [(t, (9, 0), row, t in row.targets) for row in one_of_each.values() for t in known]
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda case: not assembles(*case[:3]), cases)
        for (target, version, row, legal), taken in zip(cases, results, strict=True):
            assert taken == legal, (target, version, row.mnemonic)
    assert len(cases) > 100
