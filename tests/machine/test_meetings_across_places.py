"""`.sync` instructions at several places of a program that lanes of one warp execute together: rules 1, 2 and 5."""

from __future__ import annotations

import numpy as np
import pytest
from assembler import go
from hypothesis import given, settings
from hypothesis import strategies as st

from warpmma.machine import HazardError, HazardWarning

LANE = np.arange(64) % 32
_BFLY = "shfl.sync.bfly.b32 y, q, x, 16, 31, 0xFFFFFFFF"


def test_warps_that_are_together_and_warps_that_are_not() -> None:
    """Of four warps one goes whole through the first arm, one through the second, and two through both."""
    file, costs = go(f"""
        shl.b32 z, warp, 4
        setp.lt.u32 p, lane, z
        add.u32 x, tid, 7
        @p bra low
        {_BFLY}
        bra end
        low:
        {_BFLY}
        end:
        add.u32 z, y, 0
    """, threads=96, blocks=3)  # fmt: skip
    expected = (np.arange(96) ^ 16) + 7
    assert (file.read("z").reshape(3, -1) == expected).all()
    assert {site.line: n for site, n in costs.instructions.items() if "shfl" in site.mnemonic} == {5: 6, 8: 6}


def test_who_waits_at_two_places_for_lanes_that_exit() -> None:
    file, _ = go("""
        mov.u32 y, 0
        setp.lt.u32 p, lane, 8
        @p bra first
        setp.lt.u32 p, lane, 16
        @p bra second
        exit
        first:
        redux.sync.add.u32 y, lane, 0xFFFFFFFF
        exit
        second:
        redux.sync.add.u32 y, lane, 0xFFFFFFFF
    """)
    assert file.read("y").reshape(-1).tolist() == [120 if n < 16 else 0 for n in LANE]


def test_a_lane_in_deeper_calls_converges_with_another_place() -> None:
    file, _ = go(f"""
        add.u32 x, tid, 7
        setp.lt.u32 p, lane, 16
        @p bra low
        call inside
        bra end
        low:
        {_BFLY}
        end:
        exit
        .func inside
        call innermost
        ret
        .func innermost
        {_BFLY}
        ret
    """)
    assert file.read("y").reshape(-1).tolist() == [(n ^ 16) + 7 for n in range(64)]


def test_poison_names_the_instruction_of_the_lane_that_reads_it() -> None:
    """Lanes 0 to 15 never wrote z; their instruction is the one in line 8."""
    text = """
        setp.lt.u32 p, lane, 16
        @p bra low
        mov.u32 z, 1
        shl.b32 x, z, 31
        match.any.sync.b32 y, z, 0xFFFFFFFF
        bra end
        low:
        match.any.sync.b32 y, z, 0xFFFFFFFF
        end:
        exit
    """
    with pytest.raises(HazardError, match=r"program.ptx:8: .*poison: block 0, warp 0, lane 0 \(and 15 more lanes\)"):
        go(text, threads=32)
    with pytest.warns(HazardWarning) as caught:
        go(text, threads=32, policy="warn")
    assert [str(x.message).split(":")[1] for x in caught] == ["8"]


def test_lanes_with_another_mask_are_waited_for() -> None:
    """The upper half executes it twice: first by itself, then with everybody."""
    file, _ = go("""
        setp.lt.u32 p, lane, 16
        @p bra low
        redux.sync.add.u32 x, lane, 0xFFFF0000
        redux.sync.add.u32 y, lane, 0xFFFFFFFF
        bra end
        low:
        redux.sync.add.u32 y, lane, 0xFFFFFFFF
        end:
        exit
    """, threads=32)  # fmt: skip
    assert (file.read("x", where=LANE[:32] >= 16)[..., 16:] == sum(range(16, 32))).all()
    assert (file.read("y") == sum(range(32))).all()


_OPERATIONS = {
    "shfl.sync.idx.b32 {d}, _, x, {n}, 31, {mask}": (0, 31),
    "shfl.sync.bfly.b32 {d}, _, x, {n}, 31, {mask}": (0, 31),
    "redux.sync.add.u32 {d}, x, {mask}": (0, 0),
    "match.any.sync.b32 {d}, x, {mask}": (0, 0),
}


@given(
    operations=st.lists(st.tuples(st.sampled_from(sorted(_OPERATIONS)), st.integers(0, 31)), min_size=1, max_size=4),
    border=st.integers(1, 31),
    seed=st.integers(0, 3),
)
@settings(max_examples=40, deadline=None)
def test_a_sequence_gives_the_same_in_two_arms_as_in_one(
    operations: list[tuple[str, int]], border: int, seed: int
) -> None:
    lines = []
    for text, n in operations:
        lines += [text.format(d="y", n=n, mask="0xFFFFFFFF"), "xor.b32 x, x, y", "add.u32 x, x, lane"]
    arm = "\n".join(lines)
    one, _ = go(f"mul.lo.u32 x, tid, 77\n{arm}", seed=seed)
    two, _ = go(
        f"""
        mul.lo.u32 x, tid, 77
        setp.lt.u32 p, lane, {border}
        @p bra low
        {arm}
        bra end
        low:
        {arm}
        end:
        exit
        """,
        seed=seed,
    )
    assert (one.read("x") == two.read("x")).all() and (one.read("y") == two.read("y")).all()
