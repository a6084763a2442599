"""Kernels with a race: two warps of 32 threads, a word each."""

from __future__ import annotations

from typing import Any

from hazard_kernels.case import COPY, EVERY, LDSM, STSM1, WAIT_ALL, Case, X


def read_after_write(t: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])  # there
    t("ld.shared.b32", (63 - t.tid[0]) * 4)  # here


def write_after_read(t: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])
    t("bar.sync")
    t("ld.shared.b32", (63 - t.tid[0]) * 4)  # there
    t("st.shared.b32", t.tid[0] * 4, 0)  # here


def write_after_write(t: Any) -> None:
    with t.where(t.warpid == 0):
        t("st.shared.b32", t.laneid * 4, 1)  # there
    with t.where(t.warpid == 1):
        t("st.shared.b8", t.laneid + 127, 1)  # here


def write_after_reads(t: Any) -> None:
    with t.where(t.warpid == 0):
        t("st.shared.b32", t.laneid * 4, 1)
    t("bar.sync")
    t("ld.shared.b32", t.laneid * 4)  # there
    with t.where(t.warpid == 1):
        t("st.shared.b32", t.laneid * 4, 1)  # here


def write_after_reads_in_turn(t: Any) -> None:
    """The writer has read it last, and another warp before."""
    with t.where(t.warpid == 0):
        t("st.shared.b32", t.laneid * 4, 1)
    t("bar.sync")
    for warp in (0, 1):
        with t.where(t.warpid == warp):
            t("ld.shared.b32", t.laneid * 4)  # there
    with t.where(t.warpid == 1):
        t("st.shared.b32", t.laneid * 4, 1)  # here


def write_after_reads_at_two_lines(t: Any) -> None:
    """Of both warps that read it, the one that does not write; and its line, however often the other reads."""
    with t.where(t.warpid == 0):
        t("st.shared.b32", t.laneid * 4, 1)
    t("bar.sync")
    with t.where(t.warpid == 0):
        t("ld.shared.b32", t.laneid * 4)
    with t.where(t.warpid == 1):
        t("ld.shared.b64", t.laneid % 16 * 8)  # there
    with t.where(t.warpid == 0):
        t("ld.shared.b32", t.laneid * 4)
        t("st.shared.b32", t.laneid * 4, 1)  # here


def write_with_write(t: Any) -> None:
    t("st.shared.b32", t.laneid * 4, t.warpid + 1)  # here


def copy_with_copy(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # here


def write_within_warp(t: Any) -> None:
    t("st.shared.b8", t.laneid >> 1, t.laneid)  # here


def copies_within_warp(t: Any, x: Any) -> None:
    with t.where(t.warpid == 0):
        t(COPY, (t.laneid >> 1) * 16, x + t.laneid * 16, 16)  # here
        t(WAIT_ALL)


def matrices_overlap(t: Any) -> None:
    with t.where(t.warpid == 0):
        t(STSM1, (t.laneid & 3) * 16, t.laneid)  # here


def copy_onto_reads(t: Any, x: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, 0)
    t("bar.sync")
    t("ld.shared.b32", (t.tid[0] ^ 32) * 4)  # there
    t("bar.warp.sync", EVERY)
    with t.where(t.tid[0] < 16):
        t(COPY, t.tid[0] * 16, x + t.tid[0] * 16, 16)  # here


def copy_onto_reads_and_wait_later(t: Any, x: Any) -> None:
    """The barrier between the copy and its wait saves nobody."""
    t("st.shared.b32", t.tid[0] * 4, 0)
    t("bar.sync")
    t("ld.shared.b32", (t.tid[0] ^ 32) * 4)  # there
    t("bar.warp.sync", EVERY)
    with t.where(t.tid[0] < 16):
        t(COPY, t.tid[0] * 16, x + t.tid[0] * 16, 16)  # here
    t("bar.sync")
    t(WAIT_ALL)


def read_copied_without_barrier(t: Any, x: Any) -> None:
    t(COPY, t.tid[0] * 16, x + t.tid[0] * 16, 16)  # there
    t(WAIT_ALL)
    t("ld.shared.b32", (t.tid[0] ^ 32) * 16)  # here


def barrier_before_wait(t: Any, x: Any) -> None:
    t(COPY, t.tid[0] * 16, x + t.tid[0] * 16, 16)  # there
    t("bar.sync")
    t(WAIT_ALL)
    t("ld.shared.b32", (t.tid[0] ^ 32) * 16)  # here


def barrier_of_another_block(t: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])  # there
    with t.where(t.ctaid[0] == 0):
        t("bar.sync")
    t("ld.shared.b32", (t.tid[0] ^ 32) * 4)  # here


def matrix_race(t: Any) -> None:
    t("st.shared.v2.b32", t.tid[0] * 8, 0, 0)  # there
    t("bar.warp.sync", EVERY)
    t(LDSM, t.laneid * 16)  # here


RACES = [
    Case(read_after_write, "race", address=252, count=64, says="warp 1 wrote it"),
    Case(write_after_read, "race", address=0, count=64, says="warp 1 read it"),
    Case(write_after_write, "race", warp=1, address=127, says="warp 0 wrote it"),
    Case(write_after_reads, "race", warp=1, address=0, count=32, says="warp 0 read it at"),
    Case(write_after_reads_in_turn, "race", warp=1, address=0, count=32, says="warp 0 read it at"),
    Case(write_after_reads_at_two_lines, "race", address=0, count=32, says="warp 1 read it at"),
    Case(write_with_write, "race", address=0, count=32, says="warp 1 writes it in this very access"),
    Case(copy_with_copy, "race", address=0, count=32, args=X, says="in this very access"),
    Case(write_within_warp, "lane order", lane=1, address=0, count=16, says="another lane", options={"block": 32}),
    Case(copies_within_warp, "race", address=0, count=16, args=X, says="another lane"),
    Case(matrices_overlap, "lane order", lane=4, address=0, count=4, says="another lane"),
    Case(copy_onto_reads, "race", address=0, count=8, args=X, says="warp 1 read it"),
    Case(copy_onto_reads_and_wait_later, "race", address=0, count=8, args=X, says="warp 1 read it"),
    Case(read_copied_without_barrier, "race", address=512, count=64, args=X, says="warp 1 wrote it"),
    Case(barrier_before_wait, "race", address=512, count=64, args=X, says="warp 1 wrote it"),
    Case(barrier_of_another_block, "race", block=1, address=128, count=64, options={"grid": 2}),
    Case(matrix_race, "race", lane=16, address=256, count=32, says="warp 1 wrote it"),
]
