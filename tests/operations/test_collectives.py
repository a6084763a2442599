"""Collectives: PTX's rules one by one, and what it leaves undefined."""

from __future__ import annotations

import numpy as np
import pytest
from arrays import Array
from operation_rows import FULL, LANE, ROWS, run

from warpmma.errors import OperandError, TargetError
from warpmma.operations import operation

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
