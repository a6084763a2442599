"""Divergence: branch tables, guards, loops with exits, the end of the program."""

from __future__ import annotations

import numpy as np
import pytest
from assembler import go

from warpmma.errors import OperandError
from warpmma.machine import HazardError, HazardWarning

LANE = np.arange(64) % 32

SWITCH = """
    mov.u32 x, 0
    brx.idx z, {zero, one, two}
    zero:
    mov.u32 x, 10
    bra end
    one:
    mov.u32 x, 11
    two:
    add.u32 x, x, 1
    end:
    add.u32 y, x, 0
"""


def test_a_table_of_branches() -> None:
    file, costs = go(["and.b32 z, lane, 1", "@p bra on", "on:", "add.u32 z, z, z"][0] + "\n" + SWITCH)
    assert file.read("y").reshape(-1).tolist() == [10 if n % 2 == 0 else 12 for n in LANE]
    assert max(costs.instructions.values()) == 2  # they have met at the end


def test_an_index_beyond_the_table() -> None:
    text = "and.b32 z, lane, 3\n" + SWITCH
    with pytest.raises(HazardError, match=r"brx.idx: bounds: .*lane 3 .*index 3 is out of range"):
        go(text)
    with pytest.warns(HazardWarning, match="the table has 3 targets"):
        file, _ = go(text, policy="warn")
    assert file.written("y").reshape(-1).tolist() == [n % 4 != 3 for n in LANE]


def test_a_guard_that_no_lane_passes_costs_nothing() -> None:
    file, costs = go("setp.lt.u32 p, lane, 0\n@p add.u32 x, lane, 1\n@!p add.u32 x, lane, 2")
    assert file.read("x").reshape(-1).tolist() == (LANE + 2).tolist()
    assert [site.line for site in costs.instructions] == [1, 3]


def test_lanes_leave_a_loop_from_its_middle_and_reconverge_after_it() -> None:
    file, costs = go("""
        mov.u32 x, 0
        loop:
        add.u32 x, x, 1
        setp.eq.u32 p, x, lane
        @p bra out
        setp.lt.u32 q, x, 20
        @q bra loop
        out:
        add.u32 y, x, 0
    """)
    assert file.read("y").reshape(-1).tolist() == [n if 0 < n < 20 else 20 for n in LANE]
    assert {site.line: n for site, n in costs.instructions.items()}[9] == 2


def test_few_warps_of_many_compute_alone() -> None:
    """One warp of 64 goes through a loop, then a lane of each: registers of all others keep what they had."""
    file, _ = go("""
        mov.u32 x, 7
        add.u32 y, tid, 1
        setp.ne.u32 p, %ctaid.x, 40
        @p bra end
        mov.u32 z, 0
        loop:
        add.u32 x, x, y
        setp.lt.u32 q, x, 1000
        add.u32 z, z, 1
        @q bra loop
        end:
        setp.eq.u32 p, tid, 3
        @p add.u32 y, x, 1
    """, threads=32, blocks=64)  # fmt: skip
    x, y = file.read("x"), file.read("y")
    assert (x[np.arange(64) != 40] == 7).all() and (x[40] >= 1000).all()
    assert (y[:, 0, 3] == x[:, 0, 3] + 1).all() and (y[:, 0, 4] == 5).all()
    assert not file.written("z")[0].any() and file.written("z")[40].all()


def test_threads_fall_off_the_end() -> None:
    file, _ = go("setp.lt.u32 p, lane, 3\n@p bra end\nmov.u32 x, 1\nend:", threads=40)
    assert file.written("x").reshape(-1)[:40].tolist() == [n % 32 >= 3 for n in range(40)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("add.u32 x, p, 1", r"add.u32: operand a0 of d0, a0, a1 is p, pred; expected b32"),
        ("add.u32 x, tid", r"add.u32 takes 2 operands \(d0, a0, a1\); got 1"),
        ("add.u32 wide, tid, 1", r"add.u32: result d0 of d0, a0, a1 is wide, b64; expected b32"),
        ("ld.global.b64 x, a0", r"ld.global.b64: result d0 of d0, \[p\] is x, b32; expected b64 or wider"),
    ],
)
def test_operands_that_do_not_fit(text: str, says: str) -> None:
    with pytest.raises(OperandError, match=says):
        go(text, arrays=(np.zeros(4, np.uint64),), threads=1)
