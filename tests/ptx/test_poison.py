"""Poison is followed through registers, memory and matrix units of a program, and is a hazard where it decides."""

from __future__ import annotations

import numpy as np
import pytest

import warpmma as wm
from warpmma import ptx

HEAD = """.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 y) {
    .reg .b64 %rd<6>; .reg .b32 %r<12>; .reg .pred %p<6>;
    .shared .align 16 .b32 sums[4];
    ld.param.u64 %rd1, [y];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 31;
    shr.u32 %r3, %r1, 5;
    setp.eq.u32 %p1, %r2, 0;
    setp.lt.u32 %p2, %r1, 4;
"""
LOADED = """
    shl.b32 %r4, %r3, 2;
    mov.u32 %r5, sums;
    add.u32 %r4, %r4, %r5;
    @%p1 st.shared.u32 [%r4], %r1;
    bar.sync 0;
    shl.b32 %r4, %r1, 2;
    add.u32 %r4, %r4, %r5;
    @%p2 ld.shared.u32 %r6, [%r4];
"""
REDUCED = """
    shfl.sync.bfly.b32 %r7, %r6, 2, 31, -1;
    add.u32 %r6, %r6, %r7;
    shfl.sync.bfly.b32 %r7, %r6, 1, 31, -1;
    add.u32 %r6, %r6, %r7;
"""


def launch(body: str, **options: object) -> tuple[np.ndarray, object]:
    device = wm.Device("sm_90")
    y = device.zeros(128, np.uint32)
    report = ptx.load(HEAD + body + "    ret;\n}\n")["k"].launch(device, 1, 128, [y], **options)  # type: ignore[arg-type]
    return y.numpy(), report


STORED = "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], %r7;"


def line(text: str) -> int:
    """Return in which line of the whole text something stands."""
    whole = (HEAD + LOADED).splitlines()
    return next(i for i, x in enumerate(whole, 1) if text in x)


def test_a_reduction_over_warps_as_triton_has_it() -> None:
    """Few lanes load, all lanes add, and those that loaded store."""
    y, report = launch(LOADED + REDUCED + "    @%p2 st.global.u32 [%rd1], %r6;\n")
    assert y[0] == 32 + 64 + 96
    assert not report.hazards  # type: ignore[attr-defined]


def test_what_is_not_chosen_may_be_poison() -> None:
    y, _ = launch(
        LOADED
        + """
        add.u32 %r7, %r6, 1;
        selp.u32 %r8, %r7, 5, %p2;
        mul.wide.u32 %rd2, %r1, 4;
        add.u64 %rd1, %rd1, %rd2;
        st.global.u32 [%rd1], %r8;
    """
    )
    assert y.tolist() == [1, 33, 65, 97] + [5] * 124


USES = {
    "stored": ("st.global.u32", "add.u32 %r7, %r6, 1; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;"
               "st.global.u32 [%rd1], %r7;"),
    "an address": ("ld.global.u32", "mul.wide.u32 %rd2, %r6, 4; add.u64 %rd1, %rd1, %rd2; ld.global.u32 %r7, [%rd1];"),
    "a guard": ("ld.global.u32", "setp.eq.u32 %p3, %r6, 7; not.pred %p4, %p3; @%p4 ld.global.u32 %r7, [%rd1];"),
    "a branch": ("bra", "setp.eq.u32 %p3, %r6, 7; @%p3 bra END; ld.global.u32 %r7, [%rd1]; END:"),
    "a mask": ("shfl.sync.bfly.b32", "or.b32 %r7, %r6, -2; shfl.sync.bfly.b32 %r8, %r1, 1, 31, %r7;"),
    "a lane": ("shfl.sync.idx.b32", "add.u32 %r7, %r6, 1; shfl.sync.idx.b32 %r8, %r1, %r7, 31, -1;"),
    "an atomic": ("atom.global.cas.b32", "atom.global.cas.b32 %r7, [%rd1], 0, %r6;"),
    "a membermask": ("vote.sync.any.pred", "or.b32 %r7, %r6, -2; vote.sync.any.pred %p4, %p3, %r7;"),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_where_it_decides_something_it_is_a_hazard(use: str) -> None:
    mnemonic, body = USES[use]
    with pytest.raises(wm.machine.HazardError, match=rf"{mnemonic}.*: poison: block 0, warp 0, lane 4 ") as caught:
        launch(LOADED + body)
    other = caught.value.hazard.other
    assert other is not None
    assert (other.mnemonic, other.line) == ("ld.shared.u32", line("@%p2 ld.shared"))
    assert "or that was computed from one" in str(caught.value)


def test_a_shuffle_takes_it_to_other_lanes() -> None:
    with pytest.raises(wm.machine.HazardError, match=r"poison: .*lane 0 .*shfl.sync.bfly.b32") as caught:
        launch(LOADED + "shfl.sync.bfly.b32 %r7, %r6, 4, 31, -1; add.u32 %r7, %r7, 1;" + STORED)
    assert caught.value.hazard.count == 124  # lanes 4 to 7 have what lanes 0 to 3 loaded


def test_without_hazards_nothing_is_looked_for() -> None:
    y, _ = launch(LOADED + "add.u32 %r7, %r6, 1; @%p2 st.global.u32 [%rd1], %r7;", hazards="off")
    assert y[0] == 1  # of lanes that store to one word, the lowest stays
