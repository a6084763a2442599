"""Blocks of a grid synchronize through the memory that `cooperative_groups` finds in %envreg1 and %envreg2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.machine import HazardError

TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y) {
.reg .pred %p<9>; .reg .b32 %r<19>; .reg .b64 %d<9>;
ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y];
mov.u32 %r1, %envreg2; mov.u32 %r2, %envreg1; mov.b64 %d3, {%r1, %r2};
mov.u32 %r3, %tid.x; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %nctaid.x; mov.u32 %r6, %ntid.x;
mad.lo.u32 %r7, %r4, %r6, %r3; mul.wide.u32 %d4, %r7, 4; add.u64 %d5, %d1, %d4; add.u64 %d6, %d2, %d4;
st.global.u32 [%d5], %r7;
bar.sync 0; setp.ne.u32 %p1, %r3, 0; @%p1 bra DONE;
membar.gl; atom.global.add.u32 %r8, [%d3+4], 1;
LOOK: ld.volatile.global.u32 %r9, [%d3+4]; setp.lt.u32 %p2, %r9, %r5; @%p2 bra LOOK;
membar.gl;
DONE: bar.sync 0;
mul.lo.u32 %r10, %r5, %r6; sub.u32 %r10, %r10, 1; sub.u32 %r10, %r10, %r7; mul.wide.u32 %d7, %r10, 4;
add.u64 %d7, %d1, %d7; ld.global.u32 %r11, [%d7]; st.global.u32 [%d6], %r11;
ret; }"""


def launched(blocks: int, **more: Any) -> list[int]:
    x, y = np.zeros(blocks * 512, np.uint32), np.zeros(blocks * 512, np.uint32)
    wm.ptx.load(TEXT)["k"].launch(wm.Device("sm_80"), blocks, 512, [x, y], **more)
    return y.tolist()


@pytest.mark.parametrize("blocks", [1, 3, 70])
def test_all_blocks_synchronize_in_every_launch(blocks: int) -> None:
    """70 blocks of 512 threads are more than those that are resident together by default."""
    for _ in range(2):
        assert launched(blocks) == list(range(blocks * 512))[::-1]


def test_waiting_for_blocks_that_are_not_resident_is_a_deadlock() -> None:
    with pytest.raises(HazardError, match="deadlock"):
        launched(3, resident=2)


FLAG = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y) {
.reg .pred %p<9>; .reg .b32 %r<19>; .reg .b64 %d<9>;
ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d1, %d3; setp.ne.u32 %p1, %r1, 0; setp.ne.u32 %p2, %r2, 0;
@%p2 bra READ;
st.global.u32 [%d3+4], %r1; membar.gl; bar.sync 0; @!%p1 st.volatile.global.u32 [%d1], 1; bra DONE;
READ: @%p1 bra MEET;
LOOK: ld.volatile.global.u32 %r9, [%d1]; setp.eq.u32 %p3, %r9, 0; @%p3 bra LOOK; membar.gl;
MEET: bar.sync 0; ld.global.u32 %r3, [%d3+4]; mul.wide.u32 %d4, %r1, 4; add.u64 %d4, %d2, %d4; st.global.u32 [%d4], %r3;
DONE: ret; }"""


def test_a_fence_of_each_thread_then_a_barrier_then_a_flag() -> None:
    """As `__threadfence(); __syncthreads(); if (threadIdx.x == 0) flag = 1;` has it."""
    device, y = wm.Device("sm_80"), np.zeros(64, np.uint32)
    wm.ptx.load(FLAG)["k"].launch(device, 2, 64, [np.zeros(65, np.uint32), y])
    assert (y == np.arange(64)).all()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("membar.gl; bar.sync 0; @!", "bar.sync 0; @!"), ("membar.gl; bar.sync 0; @!", "membar.cta; bar.sync 0; @!"),
        ("membar.gl; bar.sync 0; @!", "bar.sync 0; @%p1 membar.gl; @!"),
        ("membar.gl; bar.sync 0; @!", "fence.acq_rel.gpu; bar.sync 0; @!"),
        ("membar.gl; bar.sync 0; @!", "membar.gl; @!"), ("LOOK; membar.gl;", "LOOK;"),
    ],
)  # fmt: skip
def test_without_a_part_of_that_it_is_a_race(old: str, new: str) -> None:
    with pytest.raises(HazardError, match="race"):
        wm.ptx.load(FLAG.replace(old, new))["k"].launch(
            wm.Device("sm_80"), 2, 64, [np.zeros(65, np.uint32), np.zeros(64, np.uint32)]
        )
