"""Forward progress: threads that can run do, whatever others wait for; endless spins are detected or reach a limit."""

from __future__ import annotations

import numpy as np
import pytest
from assembler import go

from warpmma import LimitError
from warpmma.errors import OperandError
from warpmma.machine import HazardError, Limit

# What is guarded by a lock that nothing orders is a race: these programs are about who runs, not about order.
pytestmark = pytest.mark.filterwarnings("ignore::warpmma.machine.HazardWarning")
_RACES = {"race": "warn"}

SEEDS = pytest.mark.parametrize("seed", [0, 1, 2, 3])

ACQUIRE_THEN_RUN = """
        look:
        atom.global.cas.b32 x, a0, 0, 1
        setp.ne.u32 p, x, 0
        @p bra look
        ld.global.b32 y, a1
        add.u32 y, y, tid
        st.global.b32 a1, y
        atom.global.exch.b32 x, a0, 0
"""
"""A lock whose critical section lies behind the loop: who spins is further behind in the program than who holds it."""

INSIDE = """
        mov.u32 z, 0
        loop:
        atom.global.cas.b32 x, a0, 0, 1
        setp.ne.u32 p, x, 0
        @p bra next
        ld.global.b32 y, a1
        add.u32 y, y, tid
        st.global.b32 a1, y
        atom.global.exch.b32 x, a0, 0
        mov.u32 z, 1
        next:
        setp.eq.u32 q, z, 0
        @q bra loop
"""


@SEEDS
@pytest.mark.parametrize("text", [ACQUIRE_THEN_RUN, INSIDE])
def test_a_naive_lock_between_the_lanes_of_a_warp(text: str, seed: int) -> None:
    lock, total = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    go(text, threads=48, blocks=2, arrays=(lock, total), policy=_RACES, seed=seed,
       limit=Limit(instructions=10**6))  # fmt: skip
    assert total[0] == 2 * 48 * 47 // 2 and lock[0] == 0


def test_threads_that_leave_a_lock_join_those_that_left_it_earlier() -> None:
    """After a lock all lanes of a warp go on together: the last line is executed once for each warp."""
    lock, total = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    _, costs = go(ACQUIRE_THEN_RUN + "mov.u32 x, 0\n" * 200, threads=64, arrays=(lock, total), policy=_RACES)
    assert {site.line: n for site, n in costs.instructions.items()}[208] == 2


@SEEDS
def test_a_warp_that_waits_for_another_of_its_block(seed: int) -> None:
    flag = np.zeros(1, np.uint32)
    file, _ = go("""
        setp.ne.u32 p, warp, 0
        @p bra writer
        look:
        atom.global.add.u32 x, a0, 0
        setp.eq.u32 q, x, 0
        @q bra look
        exit
        writer:
        mov.u32 z, 0
        long:
        add.u32 z, z, 1
        setp.lt.u32 q, z, 500
        @q bra long
        atom.global.exch.b32 y, a0, 7
    """, arrays=(flag,), policy=_RACES, seed=seed)  # fmt: skip
    assert (file.read("x", where=np.arange(2)[:, None] == 0)[0, 0] == 7).all()


@SEEDS
def test_blocks_that_wait_for_each_other(seed: int) -> None:
    """Each block for the one behind it, so that the last begins."""
    flags = np.zeros(8, np.uint32)
    flags[7] = 1
    go("""
        mul.lo.u32 x, %ctaid.x, 4
        cvt.u64.u32 wide, x
        add.u64 wide, wide, a0
        setp.eq.u32 p, %ctaid.x, 7
        @p bra done
        look:
        atom.global.add.u32 y, [wide+4], 0
        setp.eq.u32 p, y, 0
        @p bra look
        add.u32 y, y, 1
        atom.global.exch.b32 z, wide, y
        done:
        exit
    """, blocks=8, threads=1, arrays=(flags,), policy=_RACES, seed=seed)  # fmt: skip
    assert flags.tolist() == [8, 7, 6, 5, 4, 3, 2, 1]


POLL_WITH_A_BARRIER = """
        setp.eq.u32 p, %ctaid.x, 0
        @p bra work
        poll:
        ld.acquire.gpu.global.b32 x, a0
        setp.eq.u32 q, x, 0
        barrier.red.and.pred q, 0, q
        @q bra poll
        exit
        work:
        setp.eq.u32 p, warp, 0
        @p bra wait
        mov.u32 z, 0
        long:
        add.u32 z, z, 1
        setp.lt.u32 p, z, 500
        @p bra long
        wait:
        barrier.sync 0
        mov.u32 z, 1
        st.release.gpu.global.b32 a0, z
"""
"""CUTLASS's Semaphore, at a lower program counter than the block that is to release it, half of which waits."""

ONE_WARP_POLLS = """
        setp.eq.u32 p, %ctaid.x, 0
        @p bra work
        mov.u32 x, 0
        setp.ne.u32 p, warp, 0
        @p bra other
        poll:
        ld.acquire.gpu.global.b32 x, a0
        setp.eq.u32 q, x, 0
        barrier.red.and.pred q, 0, q
        @q bra poll
        exit
        other:
        setp.eq.u32 q, x, 0
        barrier.red.and.pred q, 0, q
        @q bra other
        exit
        work:
        mov.u32 z, 0
        long:
        add.u32 z, z, 1
        setp.lt.u32 p, z, 50
        @p bra long
        mov.u32 z, 1
        st.release.gpu.global.b32 a0, z
"""


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("text", [POLL_WITH_A_BARRIER, ONE_WARP_POLLS])
def test_a_loop_with_a_barrier_is_a_poll(text: str, seed: int) -> None:
    """What its lanes observed before the barrier still counts after it: the other block gets its turn."""
    flag = np.zeros(1, np.uint32)
    go(text, blocks=2, arrays=(flag,), seed=seed, limit=Limit(instructions=10_000))
    assert flag[0] == 1


def test_a_poll_with_a_barrier_that_nobody_answers_is_a_deadlock() -> None:
    text = POLL_WITH_A_BARRIER.replace("st.release.gpu.global.b32 a0, z", "exit")
    with pytest.raises(HazardError, match=r"deadlock: .*wait for a value that no thread will write"):
        go(text, blocks=2, arrays=(np.zeros(1, np.uint32),), limit=Limit(instructions=100_000))


def test_a_loop_that_calls_loses_patience() -> None:
    """Steps of a called function are steps of the loop that calls it."""
    flag = np.zeros(1, np.uint32)
    go("""
        setp.ne.u32 p, lane, 0
        @p bra other
        loop:
        call look
        ld.global.b32 x, a0
        setp.eq.u32 q, x, 0
        @q bra loop
        exit
        other:
        mov.u32 z, 1
        st.global.b32 a0, z
        exit
        .func look y
        mov.u32 y, 1
        ret
    """, threads=32, arrays=(flag,), policy=_RACES, limit=Limit(instructions=10**6))  # fmt: skip
    assert flag[0] == 1


def test_lanes_after_a_long_loop_make_progress() -> None:
    """One lane loops on plain arithmetic until another, further on, has set what it looks at now and then."""
    flag = np.zeros(1, np.uint32)
    go("""
        setp.ne.u32 p, lane, 0
        @p bra other
        loop:
        add.u32 y, y, 1
        ld.global.b32 x, a0
        setp.eq.u32 q, x, 0
        @q bra loop
        exit
        other:
        mov.u32 z, 1
        st.global.b32 a0, z
    """.replace("add.u32 y, y, 1", "mov.u32 y, 1"), threads=32, arrays=(flag,), policy=_RACES,
       limit=Limit(instructions=10**6))  # fmt: skip


def test_an_endless_loop_comes_to_a_limit_of_instructions() -> None:
    limit = Limit(instructions=1000)
    with pytest.raises(
        LimitError, match=r"program has run \d+ .* limit is 1000. 64 lanes of block 0, warps 0-1, are at program.ptx:\d"
    ):
        go("mov.u32 x, 0\nloop:\nadd.u32 x, x, 1\nbra loop", limit=limit)
    assert 1000 < limit.executed <= 1010


def test_and_to_one_of_time() -> None:
    with pytest.raises(LimitError, match=r"longer than the limit of 1e-09 seconds. 64 lanes"):
        go("loop:\nbra loop", limit=Limit(seconds=1e-9))


def test_a_limit_is_of_all_batches() -> None:
    limit = Limit(instructions=25)
    go("mov.u32 x, 0\n" * 10, limit=limit)  # two warps
    with pytest.raises(LimitError, match="limit is 25"):
        go("mov.u32 x, 0\n" * 10, limit=limit)


@pytest.mark.parametrize("wrong", [{"instructions": 0}, {"instructions": 1.5}, {"seconds": -1}, {"seconds": "x"}])
def test_limits_are_positive_numbers(wrong: dict[str, object]) -> None:
    with pytest.raises(OperandError, match="expected a positive"):
        Limit(**wrong)  # type: ignore[arg-type]


def test_a_deadlock_says_where_everybody_waits() -> None:
    with pytest.raises(HazardError) as caught:
        go("""
            setp.eq.u32 p, warp, 0
            @p bra first
            bar.sync 1, 96
            exit
            first:
            bar.sync 2, 96
        """, threads=96)  # fmt: skip
    text = str(caught.value)
    assert "no thread can run, and it has not arrived" in text
    assert "32 lanes of block 0, warp 0, wait for threads of their block at program.ptx:6 (bar.sync)" in text


@pytest.mark.parametrize("seed", [5, 6])
def test_the_same_seed_gives_the_same(seed: int) -> None:
    """The order in which threads come is another with each seed, and the same each time."""
    text = "atom.global.add.u32 x, a0, 1\nmov.u32 z, 0\nloop:\nadd.u32 z, z, 1\nsetp.lt.u32 p, z, warp\n@p bra loop\n"
    text += "atom.global.add.u32 y, a0, 1"
    runs = []
    for each in (seed, seed, 0):
        file, _ = go(text, threads=256, arrays=(np.zeros(1, np.uint32),), seed=each)
        runs.append(file.read("y").tolist())
    assert runs[0] == runs[1] != runs[2]
    assert sorted(np.ravel(runs[0]).tolist()) == sorted(set(np.ravel(runs[0]).tolist()))


def test_a_lock_that_is_never_released_is_a_deadlock() -> None:
    """The holder waits at a barrier for those who look for the lock."""
    with pytest.raises(HazardError) as caught:
        go("""
            look:
            atom.global.cas.b32 x, a0, 0, 1
            setp.ne.u32 p, x, 0
            @p bra look
            barrier.sync 0
            atom.global.exch.b32 x, a0, 0
        """, arrays=(np.zeros(1, np.uint32),))  # fmt: skip
    text = str(caught.value)
    assert "program.ptx:2: atom.global.cas.b32: deadlock: block 0, warp 0, lane 1 (and 62 more lanes)" in text
    assert "63 lanes of block 0, warps 0-1, are at program.ptx:2" in text
    assert "1 lane of block 0, warp 0, wait for threads of their block at program.ptx:5 (barrier.sync)" in text


def test_blocks_that_wait_for_one_that_is_not_resident() -> None:
    with pytest.raises(HazardError, match=r"deadlock: block 0, .*wait for a value that no thread will write"):
        go("look:\natom.global.add.u32 x, a0, 0\nsetp.eq.u32 p, x, 0\n@p bra look", blocks=2, threads=1,
           arrays=(np.zeros(1, np.uint32),))  # fmt: skip


def test_where_a_deadlock_is_a_warning_those_who_spin_end() -> None:
    file, _ = go("""
        mov.u32 y, 1
        setp.eq.u32 p, warp, 0
        @!p bra end
        look:
        atom.global.add.u32 x, a0, 0
        setp.eq.u32 p, x, 0
        @p bra look
        end:
        barrier.sync 0
        mov.u32 y, 2
    """, arrays=(np.zeros(1, np.uint32),), policy={"deadlock": "warn"})  # fmt: skip
    assert (file.read("y")[0, 0] == 1).all() and (file.read("y")[0, 1] == 2).all()


def test_who_counts_looks_comes_to_an_end() -> None:
    """A thousand looks in vain, and then another way: no deadlock."""
    file, _ = go("""
        mov.u32 y, 0
        look:
        add.u32 y, y, 1
        atom.global.add.u32 x, a0, 0
        setp.lt.u32 p, y, 1000
        @p bra look
    """, arrays=(np.zeros(1, np.uint32),))  # fmt: skip
    assert (file.read("y") == 1000).all()
