"""Kernels whose barriers and instructions of whole warps lack threads."""

from __future__ import annotations

from typing import Any

from hazard_kernels.case import EVERY, LDSM1, MMA, STSM1, Case


def barrier_of_one_warp(t: Any) -> None:
    with t.where(t.warpid == 0):
        t("bar.sync")  # here


def barrier_of_some_lanes(t: Any) -> None:
    with t.where((t.ctaid[0] != 1) | (t.laneid != 13)):
        t("barrier.cta.sync.aligned", 0)  # here


def masked_mma(t: Any) -> None:
    zero = [t.constant(0)] * 4
    with t.where((t.warpid == 0) | (t.laneid > 3)):
        t(MMA, zero, zero[:2], zero)  # here


def unfilled_warp(t: Any) -> None:
    zero = [t.constant(0)] * 4
    t(MMA, zero, zero[:2], zero)  # here


def masked_ldmatrix(t: Any) -> None:
    with t.where(t.laneid < 8):
        t(LDSM1, t.laneid * 16)  # here


def masked_stmatrix(t: Any) -> None:
    with t.where(t.laneid != 31):
        t(STSM1, t.laneid * 16, t.laneid)  # here


def masked_movmatrix(t: Any) -> None:
    with t.where(t.laneid != 31):
        t("movmatrix.sync.aligned.m8n8.trans.b16", t.laneid)  # here


def masked_shuffle(t: Any) -> None:
    with t.where(t.laneid != 31):
        t("shfl.sync.bfly.b32", t.laneid, 1, 31, EVERY)  # here


def masked_vote(t: Any) -> None:
    with t.where(t.warpid == 1), t.where(t.laneid < 16):
        t("vote.sync.ballot.b32", t.laneid < 4, EVERY)  # here


def masked_warp_barrier(t: Any) -> None:
    with t.where(t.laneid < 16):
        t("bar.warp.sync", EVERY)  # here


def undefined_metadata(t: Any) -> None:
    zero = t.constant(0)
    mma = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    t(mma, [zero] * 4, [zero] * 4, [t.constant(0.0)] * 4, zero, 0)  # here


WHOLE = [
    Case(barrier_of_one_warp, "barrier", warp=1, lane=0, count=32, says="masked off"),
    Case(barrier_of_some_lanes, "barrier", block=1, lane=13, count=2, options={"grid": 3}),
    Case(masked_mma, "divergent", warp=1, lane=4, count=28, says="all 32 lanes"),
    Case(unfilled_warp, "divergent", warp=1, lane=0, count=8, options={"block": 40}, says="not threads"),
    Case(masked_ldmatrix, "divergent", count=16),
    Case(masked_stmatrix, "divergent", count=62),
    Case(masked_movmatrix, "divergent", count=62),
    Case(masked_shuffle, "divergent", count=62, says="membermask"),
    Case(masked_vote, "divergent", warp=1, count=16, says="membermask"),
    Case(undefined_metadata, "metadata", count=64, says="legal are 0x4"),
    Case(masked_warp_barrier, "divergent", count=32, says="membermask"),
]
