"""Copies without a wait, outputs that are never written, barriers that some threads never reach: with their lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hazard_cases import (
    COMMIT,
    COPY,
    EVERY,
    TWO,
    WAIT,
    WAIT_ALL,
    Case,
    Kernel,
    check_error,
    check_warning,
    each,
    one_array,
    run,
    words,
)  # fmt: skip

from warpmma.kernel import Output

# Asynchronous copies


def nobody_waits(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x + t.laneid * 16, 16)  # here
    t(COMMIT)


def waited_for_and_not_committed(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x + t.laneid * 16, 16)  # here
    t(WAIT, 0)


def last_group_is_left(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x + t.laneid * 16, 16)
    t(COMMIT)
    t(COPY, t.laneid * 16 + 1024, x + t.laneid * 16, 16)  # here
    t(COMMIT)
    t(WAIT, 1)


def exit_with_a_copy(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x + t.laneid * 16, 16)  # here
    with t.where(t.laneid == 5):
        t("exit")
    t(WAIT_ALL)


def copied_for_another_lane(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x + t.laneid * 16, 16)  # there
    t(WAIT_ALL)
    t("ld.shared.b32", (t.laneid ^ 1) * 16)  # here


def copied_for_another_warp(t: Any, x: Any) -> None:
    t(COPY, t.tid[0] * 16, x + t.tid[0] * 16, 16)  # there
    t(WAIT_ALL)
    t("bar.warp.sync", EVERY)
    t("ld.shared.b32", (t.tid[0] ^ 32) * 16)  # here


def barrier_of_the_warp_before_the_wait(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x + t.laneid * 16, 16)  # there
    t("bar.warp.sync", EVERY)
    t(WAIT_ALL)
    t("ld.shared.b32", (t.laneid ^ 1) * 16)  # here


def source_is_written_in_flight(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x + t.laneid * 16, 16)  # there
    t("st.global.b32", x + t.laneid * 16 + 12, 5)  # here
    t(WAIT_ALL)


def source_of_another_warp_is_written_in_flight(t: Any, x: Any) -> None:
    t(COPY, t.tid[0] * 16, x + t.tid[0] * 16, 16)  # there
    t("bar.sync")
    t("st.global.b32", x + (t.tid[0] ^ 32) * 16, 5)  # here
    t(WAIT_ALL)


def source_is_written_by_another_after_the_wait(t: Any, x: Any) -> None:
    t(COPY, t.tid[0] * 16, x + t.tid[0] * 16, 16)  # there
    t(WAIT_ALL)
    t("st.global.b32", x + (t.tid[0] ^ 32) * 16, 5)  # here


COPIES = [
    Case(nobody_waits, "pending", args=one_array),
    Case(waited_for_and_not_committed, "pending", args=one_array),
    Case(last_group_is_left, "pending", args=one_array),
    Case(exit_with_a_copy, "pending", args=one_array),
    Case(copied_for_another_lane, "race", args=one_array),
    Case(copied_for_another_warp, "race", args=one_array, options=TWO),
    Case(barrier_of_the_warp_before_the_wait, "race", args=one_array),
    Case(source_is_written_in_flight, "pending", args=one_array),
    Case(source_of_another_warp_is_written_in_flight, "pending", args=one_array, options=TWO),
    Case(source_is_written_by_another_after_the_wait, "race", args=one_array, options=TWO),
]


# Outputs


def nobody_writes(t: Any, x: Any, y: Any) -> None:
    t("ld.global.b32", x + t.laneid * 4)


def no_lane_writes(t: Any, x: Any, y: Any) -> None:
    with t.where(t.laneid > 31):
        t("st.global.b32", y, 1)


def two_arrays() -> tuple[Any, ...]:
    return words(), Output(words())


OUTPUTS = [
    Case(nobody_writes, "unwritten", "Output", args=two_arrays, mark="# launched"),
    Case(no_lane_writes, "unwritten", "Output", args=two_arrays, options={"grid": 2}, mark="# launched"),
]


# Barriers that some never come to


def one_warp_waits(t: Any) -> None:
    with t.where(t.warpid == 0):
        t("bar.sync")  # here


def one_warp_waits_once_more(t: Any) -> None:
    t("bar.sync")
    with t.where(t.warpid == 1):
        t("bar.sync")  # here


def different_barriers(t: Any) -> None:
    with t.where(t.warpid == 0):
        t("bar.sync", 1, 64)  # here
    with t.where(t.warpid == 1):
        t("bar.sync", 2, 64)  # here


def too_few_threads(t: Any) -> None:
    t("bar.sync", 1, 96)  # here


def exited_before_a_named_barrier(t: Any) -> None:
    """A barrier of a number of threads counts those that come, and nobody else."""
    with t.where(t.warpid == 0):
        t("exit")
    t("bar.sync", 1, 64)  # here


def nobody_arrives(t: Any) -> None:
    with t.where(t.warpid == 1):
        t("bar.sync", 1, 64)  # here


def one_block_waits(t: Any) -> None:
    with t.where((t.ctaid[0] != 1) | (t.warpid == 0)):
        t("bar.sync")  # here


BARRIERS = [
    Case(one_warp_waits, "barrier", options=TWO),
    Case(one_warp_waits_once_more, "barrier", options=TWO),
    Case(different_barriers, "barrier", options=TWO),
    Case(too_few_threads, "barrier", options=TWO),
    Case(exited_before_a_named_barrier, "barrier", options=TWO),
    Case(nobody_arrives, "barrier", options=TWO),
    Case(one_block_waits, "barrier", "block 1", options={"grid": 3, "block": 64}),
]


# Named barriers order only those that meet


def another_pair(t: Any) -> None:
    """Warps 0 and 1 have met, and warp 2 has met nobody."""
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])  # there
    with t.where(t.warpid < 2):
        t("bar.sync", 1, 64)
    with t.where(t.warpid == 2):
        t("ld.shared.b32", t.laneid * 4)  # here


def arriving_is_not_waiting(t: Any) -> None:
    """Who arrives orders what was before, and knows nothing of the others."""
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])  # there
    with t.where(t.warpid == 0):
        t("bar.arrive", 1, 64)
    with t.where(t.warpid == 1):
        t("bar.sync", 1, 64)
    with t.where(t.warpid == 0):
        t("ld.shared.b32", (t.tid[0] ^ 32) * 4)  # here


def producer_does_not_wait(t: Any) -> None:
    for step in range(2):
        with t.where(t.warpid == 0):
            t("st.shared.b32", t.laneid * 4, t.laneid + step)  # here
            t("bar.arrive", 1, 64)
        with t.where(t.warpid == 1):
            t("bar.sync", 1, 64)
            t("ld.shared.b32", t.laneid * 4)  # there


def stored_after_arriving(t: Any) -> None:
    """What follows `bar.arrive` lies behind no barrier."""
    with t.where(t.warpid == 0):
        t("bar.arrive", 1, 64)
        t("st.shared.b32", t.laneid * 4, t.laneid)  # there
    with t.where(t.warpid == 1):
        t("bar.sync", 1, 64)
        t("ld.shared.b32", t.laneid * 4)  # here


def each_warp_alone(t: Any) -> None:
    """A barrier of 32 threads is complete with every warp that comes."""
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])  # there
    t("bar.sync", 1, 32)
    t("ld.shared.b32", (t.tid[0] ^ 32) * 4)  # here


def one_barrier_for_two_pairs(t: Any) -> None:
    """Nothing says that the first two that come to it are of a pair."""
    with t.where(t.warpid < 2):
        t("bar.sync", 1, 64)  # there
    with t.where(t.warpid >= 2):
        t("bar.sync", 1, 64)  # here


def one_barrier_for_two_pairs_at_once(t: Any) -> None:
    t("bar.sync", 1, 64)  # here


def not_a_member(t: Any) -> None:
    """A lane that the membermask of `bar.warp.sync` does not name must not execute it."""
    t("bar.warp.sync", 0xFFFFFFFE)  # here


FOUR: dict[str, Any] = {"block": 128}
NAMED = [
    Case(another_pair, "race", options={"block": 96}),
    Case(arriving_is_not_waiting, "race", options=TWO),
    Case(producer_does_not_wait, "race", options=TWO),
    Case(stored_after_arriving, "race", options=TWO),
    Case(each_warp_alone, "race", options=TWO),
    Case(one_barrier_for_two_pairs, "barrier", options=FOUR),
    Case(one_barrier_for_two_pairs_at_once, "barrier", options=FOUR),
    Case(not_a_member, "divergent"),
]

CASES = [*COPIES, *OUTPUTS, *BARRIERS, *NAMED]


@each(CASES)
def test_found(case: Case) -> None:
    check_error(case)


@each(CASES)
def test_as_a_warning(case: Case) -> None:
    check_warning(case)


def barriers_in_turn(t: Any) -> None:
    """Different warps may use a barrier one after the other, where another barrier lies between."""
    for pair in range(2):
        with t.where((t.warpid >> 1) == pair):
            t("bar.sync", 1, 64)
        t("bar.sync")


def barriers_of_single_warps(t: Any) -> None:
    t("bar.sync", 1, 32)
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])
    t("bar.sync", 1, 32)
    t("ld.shared.b32", (t.tid[0] ^ 31) * 4)


def ring_of_two_barriers(t: Any) -> None:
    """Who has heard that a barrier was complete may come to it again."""
    for _ in range(3):
        with t.where(t.warpid == 0):
            t("bar.arrive", 1, 64)
        with t.where(t.warpid == 1):
            t("bar.sync", 1, 64)
            t("bar.arrive", 2, 64)
        with t.where(t.warpid == 0):
            t("bar.sync", 2, 64)


@pytest.mark.parametrize("kernel", [barriers_in_turn, barriers_of_single_warps, ring_of_two_barriers])
def test_named_barriers_used_again(kernel: Kernel) -> None:
    assert run(kernel, block=64 if kernel is ring_of_two_barriers else 128).hazards == []


def test_an_output_of_no_bytes_is_not_missed() -> None:
    assert run(lambda t, y: None, Output(np.empty(0, np.uint32))).hazards == []
