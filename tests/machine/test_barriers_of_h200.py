"""Barriers and collectives with exited or nonexistent threads: the same kernels on an H200 and here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from assembler import go

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "h200_barriers.json").read_text())["outputs"]

STORE = """
    mul.wide.u32 wide, tid, 4
    add.u64 wide, wide, a0
    st.global.u32 wide, y
"""
KERNELS = {
    "exit_lanes": (96, """
        setp.eq.u32 p, lane, 7
        @p exit
        setp.eq.u32 p, warp, 1
        @p exit
        bar.sync 0
        add.u32 y, tid, 1
    """ + STORE),
    "counted_with_exits": (64, """
        setp.ge.u32 p, lane, 16
        setp.eq.u32 q, warp, 0
        and.pred p, p, q
        @p exit
        shl.b32 at, tid, 2
        st.shared.u32 at, tid
        bar.sync 1, 64
        add.u32 x, tid, 32
        and.b32 z, lane, 15
        selp.b32 x, x, z, q
        shl.b32 at, x, 2
        ld.shared.u32 y, at
        add.u32 y, y, 1
    """ + STORE),
    "last_counted": (48, """
        bar.sync 1, 64
        add.u32 y, tid, 1
    """ + STORE),
    "two_lines": (64, """
        shl.b32 at, tid, 2
        st.shared.u32 at, tid
        setp.eq.u32 p, warp, 0
        @!p bra other
        bar.sync 0
        bra both
        other:
        bar.sync 0
        both:
        xor.b32 at, at, 128
        ld.shared.u32 y, at
        add.u32 y, y, 1
    """ + STORE),
    "arrive_sync": (128, """
        and.b32 z, tid, 63
        shl.b32 at, z, 2
        mov.u32 x, 0
        mov.u32 y, 1
        setp.lt.u32 p, warp, 2
        loop:
        @!p bra consume
        add.u32 u, x, z
        st.shared.u32 at, u
        bar.arrive 1, 128
        bar.sync 2, 128
        bra next
        consume:
        bar.sync 1, 128
        ld.shared.u32 u, at
        add.u32 y, y, u
        bar.arrive 2, 128
        next:
        add.u32 x, x, 1
        setp.lt.u32 q, x, 3
        @q bra loop
    """ + STORE),
    "last_warp": (48, """
        mov.u32 x, tid
        shfl.sync.bfly.b32 u, q, x, 8, 31, 0xffffffff
        add.u32 x, x, u
        shfl.sync.bfly.b32 u, q, x, 4, 31, 0xffffffff
        add.u32 x, x, u
        shfl.sync.bfly.b32 u, q, x, 2, 31, 0xffffffff
        add.u32 x, x, u
        shfl.sync.bfly.b32 u, q, x, 1, 31, 0xffffffff
        add.u32 x, x, u
        and.b32 u, tid, 1
        setp.eq.u32 p, u, 0
        vote.sync.ballot.b32 y, p, 0xffffffff
        mov.u32 v, 5
        match.all.sync.b32 z, q, v, 0xffffffff
        mov.u32 v, 1
        redux.sync.add.u32 u, v, 0xffffffff
        mul.wide.u32 wide, tid, 16
        add.u64 wide, wide, a0
        st.global.v4.u32 wide, x, y, z, u
    """),
    "shuffle_after_exit": (32, """
        setp.ge.u32 p, lane, 24
        @p exit
        shfl.sync.idx.b32 x, q, tid, 3, 31, 0xffffffff
        setp.eq.u32 p, tid, tid
        vote.sync.ballot.b32 y, p, 0xffffffff
        mov.u32 v, 5
        match.all.sync.b32 z, q, v, 0xffffffff
        mul.wide.u32 wide, tid, 12
        add.u64 wide, wide, a0
        st.global.u32 wide, x
        add.u64 wide, wide, 4
        st.global.u32 wide, y
        add.u64 wide, wide, 4
        st.global.u32 wide, z
    """),
    "halves": (64, """
        setp.lt.u32 p, lane, 16
        @!p bra other
        barrier.sync 0
        mov.u32 y, 1
        bra both
        other:
        barrier.sync 0
        mov.u32 y, 2
        both:
    """ + STORE),
    "halves_counted": (64, """
        setp.lt.u32 p, lane, 16
        @!p bra other
        barrier.sync 3, 64
        mov.u32 y, 1
        bra both
        other:
        mov.u32 y, 2
        both:
    """ + STORE),
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDED)
def test_the_same_outputs(name: str) -> None:
    threads, text = KERNELS[name]
    y = np.zeros(len(RECORDED[name]), np.uint32)
    go(text, threads=threads, arrays=(y,), registers="x y z at u v")
    assert y.tolist() == RECORDED[name]
