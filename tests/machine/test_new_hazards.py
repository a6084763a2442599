"""Races between lanes of a warp, in global memory, and between blocks: each named with both lines."""

from __future__ import annotations

from typing import Any

import pytest
from hazard_cases import COPY, EVERY, TWO, WAIT_ALL, Case, check_error, check_warning, each, one_array

pytestmark = pytest.mark.quick

# Between lanes of a warp


def read_after_write_in_a_warp(t: Any) -> None:
    t("st.shared.b32", t.laneid * 4, t.laneid)  # there
    t("ld.shared.b32", (t.laneid ^ 1) * 4)  # here


def write_after_read_in_a_warp(t: Any) -> None:
    t("st.shared.b32", t.laneid * 4, t.laneid)
    t("bar.warp.sync", EVERY)
    t("ld.shared.b32", (t.laneid ^ 1) * 4)  # there
    t("st.shared.b32", t.laneid * 4, 7)  # here


def write_after_write_in_a_warp(t: Any) -> None:
    t("st.shared.b32", t.laneid * 4, t.laneid)  # there
    t("st.shared.b32", (31 - t.laneid) * 4, t.laneid)  # here


def writes_of_two_branches(t: Any) -> None:
    with t.where(t.laneid == 3):
        t("st.shared.b32", 64, 1)  # there
    with t.where(t.laneid == 9):
        t("st.shared.b32", 64, 2)  # here


def byte_within_a_word(t: Any) -> None:
    t("st.shared.b8", t.laneid, t.laneid)  # there
    t("ld.shared.b32", (t.laneid >> 2) * 4)  # here


def matrices_in_a_warp(t: Any) -> None:
    t("stmatrix.sync.aligned.m8n8.x1.shared.b16", (t.laneid & 7) * 16, t.laneid)  # there
    t("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16", (7 - (t.laneid & 7)) * 16)  # here


def row_of_another_lane(t: Any) -> None:
    """`ldmatrix` reads the row at a lane's address for that lane."""
    t("st.shared.v4.b32", t.laneid * 16, 0, 0, 0, 0)  # there
    t("ldmatrix.sync.aligned.m8n8.x4.shared.b16", (t.laneid ^ 8) * 16)  # here


def reused_without_a_second_barrier(t: Any) -> None:
    for step in range(2):
        t("st.shared.b32", t.laneid * 4, t.laneid + step)  # here
        t("bar.warp.sync", EVERY)
        t("ld.shared.b32", (t.laneid ^ 31) * 4)  # there


def barriers_of_halves(t: Any) -> None:
    """Each half of the warp has met, and the two have not."""
    t("st.shared.b32", t.laneid * 4, t.laneid)  # there
    for half, mask in ((0, 0x0000FFFF), (1, 0xFFFF0000)):
        with t.where((t.laneid >> 4) == half):
            t("bar.warp.sync", mask)
    t("ld.shared.b32", (t.laneid ^ 16) * 4)  # here


def shuffle_is_no_barrier(t: Any) -> None:
    """`shfl.sync` and `vote.sync` order no memory."""
    t("st.shared.b32", t.laneid * 4, t.laneid)  # there
    t("shfl.sync.bfly.b32", t.laneid, 1, 31, EVERY)
    t("vote.sync.ballot.b32", t.laneid < 4, EVERY)
    t("ld.shared.b32", (t.laneid ^ 1) * 4)  # here


def barrier_of_a_warp_for_the_block(t: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])  # there
    t("bar.warp.sync", EVERY)
    t("ld.shared.b32", (t.tid[0] ^ 32) * 4)  # here


WITHIN = [
    Case(read_after_write_in_a_warp, "race"),
    Case(write_after_read_in_a_warp, "race"),
    Case(write_after_write_in_a_warp, "race"),
    Case(writes_of_two_branches, "race"),
    Case(byte_within_a_word, "race"),
    Case(matrices_in_a_warp, "race"),
    Case(row_of_another_lane, "race"),
    Case(reused_without_a_second_barrier, "race"),
    Case(barriers_of_halves, "race"),
    Case(shuffle_is_no_barrier, "race"),
    Case(barrier_of_a_warp_for_the_block, "race", options=TWO),
]


# Global memory, within a block and between blocks


def global_read_after_write(t: Any, x: Any) -> None:
    t("st.global.b32", x + t.tid[0] * 4, t.tid[0])  # there
    t("ld.global.b32", x + (t.tid[0] ^ 32) * 4)  # here


def global_write_after_read(t: Any, x: Any) -> None:
    t("ld.global.b32", x + (t.tid[0] ^ 32) * 4)  # there
    t("st.global.b32", x + t.tid[0] * 4, t.tid[0] + 1)  # here


def global_write_after_write(t: Any, x: Any) -> None:
    t("st.global.b32", x + t.tid[0] * 4, t.tid[0])  # there
    t("st.global.b32", x + (63 - t.tid[0]) * 4, t.tid[0])  # here


def global_read_in_a_warp(t: Any, x: Any) -> None:
    t("st.global.b32", x + t.laneid * 4, t.laneid)  # there
    t("ld.global.b32", x + (t.laneid ^ 1) * 4)  # here


def global_write_in_a_warp(t: Any, x: Any) -> None:
    t("ld.global.v4.b32", x + (t.laneid & 7) * 16)  # there
    t("st.global.b32", x + t.laneid * 4, t.laneid + 1)  # here


def block_reads_what_another_wrote(t: Any, x: Any) -> None:
    """`bar.sync` is of a block alone."""
    t("st.global.b32", x + (t.ctaid[0] * 32 + t.laneid) * 4, t.laneid)  # there
    t("bar.sync")
    t("ld.global.b32", x + ((t.ctaid[0] ^ 1) * 32 + t.laneid) * 4)  # here


def block_writes_what_another_read(t: Any, x: Any) -> None:
    t("ld.global.b32", x + ((t.ctaid[0] ^ 1) * 32 + t.laneid) * 4)  # there
    t("bar.sync")
    t("st.global.b32", x + (t.ctaid[0] * 32 + t.laneid) * 4, t.laneid + 1)  # here


def blocks_write_different_values(t: Any, x: Any) -> None:
    with t.where(t.ctaid[0] == 0):
        t("st.global.b32", x + t.laneid * 4, 5)  # there
    with t.where(t.ctaid[0] == 1):
        t("st.global.b32", x + t.laneid * 4, 6)  # here


def blocks_write_in_one_access(t: Any, x: Any) -> None:
    t("st.global.b32", x + t.laneid * 4, t.ctaid[0])  # here


def copy_of_what_another_block_wrote(t: Any, x: Any) -> None:
    with t.where(t.ctaid[0] == 0):
        t("st.global.v4.b32", x + t.laneid * 16, 0, 0, 0, 0)  # there
    with t.where(t.ctaid[0] == 1):
        t(COPY, t.laneid * 16, x + t.laneid * 16, 16)  # here
        t(WAIT_ALL)


def far_away_blocks(t: Any, x: Any) -> None:
    """The blocks are too many to go through the kernel together."""
    with t.where((t.ctaid[0] == 0) & (t.tid[0] == 0)):
        t("st.global.b32", x, 5)  # there
    with t.where((t.ctaid[0] == 99) & (t.tid[0] == 7)):
        t("ld.global.b32", x)  # here


def far_away_write_after_read(t: Any, x: Any) -> None:
    with t.where((t.ctaid[0] == 0) & (t.tid[0] == 0)):
        t("ld.global.b32", x + 4)  # there
    with t.where((t.ctaid[0] == 99) & (t.tid[0] == 7)):
        t("st.global.b32", x + 4, 77)  # here


BLOCKS = {"grid": 2}
MANY = {"grid": 100, "block": 1024}
GLOBAL = [
    Case(global_read_after_write, "race", args=one_array, options=TWO),
    Case(global_write_after_read, "race", args=one_array, options=TWO),
    Case(global_write_after_write, "race", args=one_array, options=TWO),
    Case(global_read_in_a_warp, "race", args=one_array),
    Case(global_write_in_a_warp, "race", args=one_array),
    Case(block_reads_what_another_wrote, "race", "block", args=one_array, options=BLOCKS),
    Case(block_writes_what_another_read, "race", "block", args=one_array, options=BLOCKS),
    Case(blocks_write_different_values, "race", "block", args=one_array, options=BLOCKS),
    Case(blocks_write_in_one_access, "race", "block", args=one_array, options=BLOCKS),
    Case(copy_of_what_another_block_wrote, "race", "block", args=one_array, options=BLOCKS),
    Case(far_away_blocks, "race", "block 99", args=one_array, options=MANY),
    Case(far_away_write_after_read, "race", "block 99", args=one_array, options=MANY),
]

CASES = [*WITHIN, *GLOBAL]


@each(CASES)
def test_found(case: Case) -> None:
    check_error(case)


@each(CASES)
def test_as_a_warning(case: Case) -> None:
    check_warning(case)
