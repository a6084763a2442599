"""Convergence: which lanes of a warp wait for which at an instruction, and what is a hazard."""

from __future__ import annotations

import numpy as np
import pytest
from assembler import go

from warpmma.machine import HazardError, HazardWarning

LANE = np.arange(64) % 32


def test_lanes_that_come_one_after_another_are_waited_for() -> None:
    """An if without its else around half of a warp: the others stand at the shuffle when it comes."""
    file, costs = go("""
        mov.u32 x, 0
        setp.lt.u32 p, lane, 16
        @!p bra meet
        add.u32 x, x, 5
        add.u32 x, x, lane
        meet:
        shfl.sync.bfly.b32 y, q, x, 16, 31, 0xFFFFFFFF
    """)
    assert file.read("y").reshape(-1).tolist() == [0 if n < 16 else n - 16 + 5 for n in LANE]
    assert {site.line: n for site, n in costs.instructions.items()}[7] == 2


def test_a_loop_that_lanes_leave_one_by_one_ends_at_a_vote() -> None:
    file, _ = go("""
        mov.u32 x, 0
        loop:
        add.u32 x, x, 1
        setp.le.u32 p, x, lane
        @p bra loop
        setp.eq.u32 q, x, 7
        vote.sync.ballot.b32 y, q, 0xFFFFFFFF
    """)
    assert (file.read("y") == 1 << 6).all()


def test_groups_of_one_warp_converge_separately() -> None:
    """Halves of a warp go through different lines of one kind, each with a mask of its own, and both end."""
    file, _ = go("""
        setp.lt.u32 p, lane, 16
        @p bra low
        shfl.sync.idx.b32 x, _, tid, 16, 31, 0xFFFF0000
        bra end
        low:
        shfl.sync.idx.b32 x, _, tid, 3, 31, 0x0000FFFF
        end:
        add.u32 y, x, 0
    """)
    assert file.read("y").reshape(-1).tolist() == [n - n % 32 + (3 if n % 32 < 16 else 16) for n in range(64)]


def test_masks_that_differ_among_lanes_at_one_line() -> None:
    """Each quarter of a warp comes by itself; nobody waits for the others."""
    file, costs = go("""
        and.b32 z, lane, 24
        shl.b32 y, 255, z
        mov.u32 at, 0
        loop:
        setp.ne.u32 p, at, z
        @p bra next
        redux.sync.add.u32 x, tid, y
        next:
        add.u32 at, at, 8
        setp.lt.u32 q, at, 32
        @q bra loop
    """)
    assert file.read("x").reshape(-1).tolist() == [8 * (n // 8 * 8) + 28 for n in range(64)]
    assert {site.line: n for site, n in costs.instructions.items()}[7] == 8


def test_who_has_exited_is_not_waited_for() -> None:
    """Lanes exit while others stand at the vote already."""
    file, _ = go("""
        setp.ne.u32 p, lane, 9
        @p bra vote
        add.u32 x, lane, 1
        bra last
        vote:
        activemask.b32 y
        vote.sync.ballot.b32 z, p, 0xFFFFFFFF
        exit
        last:
        exit
    """, threads=40)  # fmt: skip
    votes = file.read("z", where=file.written("z"))[0]
    assert (votes[0][np.arange(32) != 9] == 0xFFFFFFFF - (1 << 9)).all() and (votes[1][:8] == 0xFF).all()


def test_activemask_names_those_who_run_together() -> None:
    file, _ = go("""
        setp.lt.u32 p, lane, 10
        @p bra low
        activemask.b32 x
        bra end
        low:
        activemask.b32 x
        end:
        activemask.b32 y
    """)
    assert file.read("x").reshape(-1).tolist() == [0x3FF if n < 10 else 0xFFFFFC00 for n in LANE]
    assert (file.read("y") == 0xFFFFFFFF).all()


@pytest.mark.parametrize(
    ("line", "other", "why"),
    [
        ("shfl.sync.idx.b32 x, _, tid, 0, 31, 0xFFFFFFFF", "bar.warp.sync 0xFFFFFFFF", "the same opcode"),
        ("bar.warp.sync 0xFFFFFFFF", "shfl.sync.idx.b32 x, _, tid, 0, 31, 0xFFFFFFFF", "the same opcode"),
        ("bar.warp.sync 0xFFFF0001", "bar.warp.sync 0xFFFFFFFF", "its membermask has another value"),
    ],
)
def test_two_instructions_that_wait_for_each_other(line: str, other: str, why: str) -> None:
    text = f"""
        setp.lt.u32 p, lane, 16
        @p bra low
        {line}
        exit
        low:
        {other}
    """
    with pytest.raises(HazardError) as caught:
        go(text, threads=32)
    message, (mnemonic, _, _), (others, _, _) = str(caught.value), line.partition(" "), other.partition(" ")
    assert message.startswith(
        f"program.ptx:3: {mnemonic}: divergent: block 0, warp 0, lane 16 (and 15 more lanes): stalled on lanes"
    )
    assert f"Other lanes of the warp wait at program.ptx:6 ({others}): " in message and why in message
    assert "16 lanes of block 0, warp 0, wait for lanes of their warp at program.ptx:3" in message
    assert "16 lanes of block 0, warp 0, wait for lanes of their warp at program.ptx:6" in message
    assert caught.value.hazard.other is not None and caught.value.hazard.other.line == 6
    with pytest.warns(HazardWarning, match="stalled on lanes that never arrived"):
        go(text, threads=32, policy="warn")


def test_half_a_warp_at_an_aligned_barrier_waits_for_the_rest() -> None:
    """They come later: that is no hazard, as no GPU would see the difference."""
    file, costs = go("""
        setp.lt.u32 p, lane, 16
        @p bra meet
        add.u32 x, lane, 1
        meet:
        bar.sync 0
        add.u32 y, lane, 1
    """)
    assert costs.barriers == 1 and file.written("y").all()


def test_half_a_warp_at_an_aligned_barrier_and_the_rest_at_another() -> None:
    with pytest.raises(HazardError, match=r"program.ptx:3: bar.sync: barrier: .*stalled on lanes.*program.ptx:6 \(bar"):
        go("""
            setp.lt.u32 p, lane, 16
            @p bra low
            bar.sync 0
            bra end
            low:
            bar.sync 0
            end:
            mov.u32 x, 0
        """)


def test_a_warp_that_waits_for_lanes_that_wait_at_a_barrier() -> None:
    """Warp 0 is at the barrier, half of warp 1 at a shuffle whose other half is at the barrier, too."""
    with pytest.raises(HazardError, match="48 lanes of block 0, warps 0-1, wait for threads of their block"):
        go("""
            setp.lt.u32 p, tid, 48
            @p bra meet
            shfl.sync.idx.b32 x, _, tid, 0, 31, 0xFFFFFFFF
            meet:
            barrier.sync 0
        """)


def test_lanes_that_do_not_name_themselves() -> None:
    with pytest.raises(HazardError, match=r"program.ptx:2: vote.sync.any.pred: divergent: .*lane 16 \(and 15 more"):
        go("""
            setp.lt.u32 p, lane, 3
            vote.sync.any.pred q, p, 0xFFFF
        """, threads=32)  # fmt: skip


def test_a_barrier_that_counts_gives_its_result_to_who_waited() -> None:
    """Warps come to it one after another, from two lines."""
    file, costs = go("""
        setp.lt.u32 q, lane, 5
        setp.eq.u32 p, warp, 0
        @p bra first
        barrier.red.popc.u32 x, 1, q
        bra end
        first:
        barrier.red.popc.u32 x, 1, q
        end:
        barrier.red.or.pred p, 0, q
        add.u32 y, x, 1
    """, threads=96)  # fmt: skip
    assert (file.read("x") == 15).all() and (file.read("y") == 16).all() and file.read("p").all()
    assert costs.barriers == 2
