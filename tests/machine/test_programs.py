"""Programs with branches: divergence and reconvergence, warps at different barriers, exits; hazards."""

from __future__ import annotations

import numpy as np
import pytest
from assembler import go

from warpmma.machine import HazardError, HazardWarning

pytestmark = pytest.mark.quick


def test_lanes_diverge_and_reconverge() -> None:
    """An if and its else; after it all lanes of a warp execute the next line together."""
    file, costs = go("""
        setp.lt.u32 p, lane, 5
        @p bra less
        add.u32 x, lane, 100
        bra done
        less:
        add.u32 x, lane, 200
        done:
        add.u32 y, x, 1
    """)
    lane = np.arange(64) % 32
    assert file.read("y").reshape(-1).tolist() == (np.where(lane < 5, lane + 200, lane + 100) + 1).tolist()
    counts = {site.line: n for site, n in costs.instructions.items()}
    assert counts == {1: 2, 2: 2, 3: 2, 4: 2, 6: 2, 8: 2}  # each line once for each of two warps


def test_a_loop_with_a_count_for_every_lane() -> None:
    file, costs = go("""
        mov.u32 x, 0
        mov.u32 y, 0
        loop:
        add.u32 y, y, x
        add.u32 x, x, 1
        setp.le.u32 p, x, tid
        @p bra loop
        add.u32 z, y, 0
    """)
    assert file.read("z").reshape(-1).tolist() == [n * (n + 1) // 2 for n in range(64)]
    counts = {site.line: n for site, n in costs.instructions.items()}
    assert counts[4] == 32 + 64 and counts[8] == 2  # of each warp as often as its last lane


def test_barriers_at_different_places() -> None:
    """Two warps meet at one barrier, each at a line of its own; the first waits for the other."""
    file, costs = go("""
        shl.b32 at, tid, 2
        st.shared.b32 at, tid
        setp.eq.u32 p, warp, 0
        @p bra first
        bar.sync 0
        bra meet
        first:
        bar.sync 0
        meet:
        xor.b32 at, at, 128
        ld.shared.b32 x, at
    """)
    assert file.read("x").reshape(-1).tolist() == [n ^ 32 for n in range(64)] and costs.barriers == 1


def test_without_the_barrier_it_is_a_race() -> None:
    with pytest.raises(HazardError, match=r"program.ptx:4: .*race: .*warp 1 wrote it at program.ptx:2 \(st.shared.b32"):
        go("""
            shl.b32 at, tid, 2
            st.shared.b32 at, tid
            xor.b32 at, at, 128
            ld.shared.b32 x, at
        """)


def test_exited_threads_are_not_waited_for() -> None:
    """Lanes and a whole warp exit before, and while others wait."""
    file, costs = go("""
        setp.eq.u32 p, lane, 7
        @p exit
        setp.eq.u32 q, warp, 1
        @q bra leave
        bar.sync 0
        add.u32 x, tid, 1
        leave:
        exit
    """, threads=96)  # fmt: skip
    written = file.written("x").reshape(-1)
    assert written.tolist() == [n // 32 != 1 and n % 32 != 7 for n in range(96)] and costs.barriers == 1


def test_a_wait_that_never_ends_is_found() -> None:
    with pytest.raises(
        HazardError, match=r"program.ptx:3: bar.sync: barrier: block 0, warp 1, lane 0 .*31 more"
    ) as caught:
        go("""
            setp.eq.u32 p, warp, 1
            @p bra forever
            bar.sync 1, 64
            forever:
            bar.sync 2, 64
        """)
    assert caught.value.hazard.count == 32


def test_and_goes_on_where_it_is_a_warning() -> None:
    with pytest.warns(HazardWarning, match="barrier"):
        file, _ = go("""
            setp.eq.u32 p, warp, 1
            @p bra other
            bar.sync 1, 64
            other:
            add.u32 x, tid, 1
        """, policy="warn")  # fmt: skip
    assert file.written("x").all()


def test_one_warp_waits_for_what_another_writes() -> None:
    """It looks again and again, at a lower place than the other's: that one has its turns all the same."""
    flag = np.zeros(1, np.uint32)
    with pytest.warns(HazardWarning, match="race"):  # such waiting needs atomics
        file, _ = go("""
            setp.ne.u32 p, warp, 0
            @p bra writer
            look:
            ld.global.b32 x, a0
            setp.eq.u32 q, x, 0
            @q bra look
            exit
            writer:
            mov.u32 y, 7
            st.global.b32 a0, y
        """, policy="warn", arrays=(flag,))  # fmt: skip
    assert flag[0] == 7 and (file.read("x", where=np.arange(2)[:, None] == 0)[0, 0] == 7).all()


PRODUCERS = """
        and.b32 z, tid, 63
        shl.b32 at, z, 2
        mov.u32 x, 0
        mov.u32 y, 0
        setp.lt.u32 p, warp, 2
        loop:
        @p bra produce
        bar.sync 1, 128
        ld.shared.b32 z, at
        add.u32 y, y, z
        bar.arrive 2, 128
        bra next
        produce:
        add.u32 z, x, tid
        st.shared.b32 at, z
        bar.arrive 1, 128
        bar.sync 2, 128
        next:
        add.u32 x, x, 1
        setp.lt.u32 q, x, 3
        @q bra loop
"""


def test_producers_arrive_and_consumers_wait() -> None:
    """Named barriers in a loop: two warps write in turn what two others read."""
    file, _ = go(PRODUCERS, threads=128, blocks=3)
    sums = file.read("y")[:, 2:].reshape(3, -1)
    assert (sums == 3 * np.arange(64) + 3).all()


@pytest.mark.parametrize("dropped", [11, 16, 17])
def test_without_one_of_them_there_is_a_hazard(dropped: int) -> None:
    lines = PRODUCERS.strip().splitlines()
    lines[dropped - 1] = "mov.u32 z, 0"
    with pytest.raises(HazardError, match=r"barrier|race"):
        go("\n".join(lines), threads=128)


def test_an_unwritten_predicate() -> None:
    with pytest.raises(HazardError, match=r"program.ptx:3: bra: poison: .*, at program.ptx:2 \(setp.lt.u32\)"):
        go("""
            setp.lt.u32 q, lane, 9
            @q setp.lt.u32 p, lane, 5
            @p bra end
            end:
        """)


def test_a_result_of_another_class() -> None:
    with pytest.raises(ValueError, match=r"result d0 of d0, a0, a1 is x, b32; expected pred"):
        go("setp.lt.u32 x, lane, 5")
