"""Uninitialized values that compilers let lanes compute with: no hazard if they do not matter."""

from __future__ import annotations

import numpy as np
import pytest

import warpmma as wm
from warpmma.machine import HazardError

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y) {
.reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .shared .align 8 .b8 s[512]; .local .align 8 .b8 l[16];
ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y];
mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 4; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;
ld.global.u32 %r2, [%d1]; mov.u32 %r8, s; mad.lo.u32 %r8, %r1, 4, %r8; setp.lt.u32 %p1, %r1, 16;
"""


def launched(body: str) -> list[int]:
    """Launch one warp; return y, of which x is 0 to 31."""
    x, y = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    wm.ptx.load(HEAD + body + "\nret; }")["k"].launch(wm.Device("sm_80"), 1, 32, [x, y])
    return y.tolist()


def test_half_of_a_register_that_nothing_writes() -> None:
    text = "mov.b64 %d4, {%r2, %r7}; cvt.u32.u64 %r3, %d4; st.global.u32 [%d2], %r3;"
    assert launched(text) == list(range(32))
    with pytest.raises(HazardError, match="poison"):
        launched("mov.b64 %d4, {%r6, %r7}; cvt.u32.u64 %r3, %d4; st.global.u32 [%d2], %r3;")


@pytest.mark.parametrize(
    "text",
    [
        "and.pred %p3, %p1, %p2; selp.u32 %r4, 1, 0, %p3;",
        "not.pred %p4, %p1; or.pred %p3, %p2, %p4; @%p4 not.pred %p3, %p3; selp.u32 %r4, 1, 0, %p3;",
        "setp.eq.and.u32 %p3, %r3, 5, %p1; selp.u32 %r4, 1, 0, %p3;",
        "selp.b32 %r5, -1, 0, %p1; and.b32 %r4, %r3, %r5; setp.ne.u32 %p3, %r4, 0; selp.u32 %r4, 1, 0, %p3;",
        "selp.b32 %r5, 0, -1, %p1; or.b32 %r4, %r3, %r5; setp.ne.u32 %p3, %r4, -1; selp.u32 %r4, 1, 0, %p3;",
    ],
)
def test_another_operand_decides(text: str) -> None:
    """The upper half of the lanes load unwritten shared memory, as merges of sorted lists do at their ends."""
    load = "@%p1 st.shared.u32 [%r8], 5; ld.shared.u32 %r3, [%r8]; setp.eq.u32 %p2, %r3, 5;"
    assert launched(f"{load} {text} st.global.u32 [%d2], %r4;") == [1] * 16 + [0] * 16
    with pytest.raises(HazardError, match=r"ld.shared.u32: unwritten: .* and its value (matters|is left in)"):
        launched(f"{load} selp.u32 %r4, 1, 0, %p2; st.global.u32 [%d2], %r4;")


@pytest.mark.parametrize("where", ["shared.u32 %r3, [s+128]", "local.u32 %r3, [l]"])
def test_it_is_loaded_and_not_used(where: str) -> None:
    assert launched(f"ld.{where}; st.global.u32 [%d2], %r2;") == list(range(32))
    with pytest.raises(HazardError, match="unwritten"):
        launched(f"ld.{where}; st.global.u32 [%d2], %r3;")


def test_atomics_need_what_is_there() -> None:
    with pytest.raises(HazardError, match="unwritten"):
        launched("atom.shared.add.u32 %r3, [s], 1; setp.eq.u32 %p2, %r3, 5; @%p2 trap;")


def test_one_lane_ends_a_barrier_at_which_all_arrived() -> None:
    text = """
    setp.eq.u32 %p2, %r1, 0; @%p2 mbarrier.init.shared.b64 [s], 32; bar.warp.sync -1;
    mbarrier.arrive.shared.b64 %d5, [s]; @%p2 mbarrier.inval.shared.b64 [s];
    """
    launched(text)
    with pytest.raises(HazardError, match="race"):
        launched(text.replace("@%p2 mbarrier.inval.shared.b64 [s]", "@%p2 st.shared.u64 [s], 0"))
