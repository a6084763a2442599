"""Partial order: barriers of some warps, lanes and blocks leave other threads unordered."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from hazard_cases import EVERY
from hazard_kernels.case import run

from warpmma.errors import OperandError
from warpmma.kernel import HazardError, Output

pytestmark = pytest.mark.quick

X = np.zeros(64, np.uint32)


def last_block_writes(t: Any, x: Any) -> None:
    """All warps of all blocks read at once, and one thread writes later."""
    value = t("ld.global.b32", x)
    t("bar.sync")
    with t.where((t.ctaid[0] == t.nctaid[0] - 1) & (t.tid[0] == 0)):
        t("st.global.b32", x, value + 1)


def a_consumer_does_not_arrive(t: Any) -> None:
    """Of three warps that read a word, one does not say so."""
    with t.where(t.warpid == 3):
        t("st.shared.b32", t.laneid * 4, 7)
    t("bar.sync")
    with t.where(t.warpid < 3):
        t("ld.shared.b32", t.laneid * 4)
    with t.where((t.warpid == 1) | (t.warpid == 2)):
        t("bar.arrive", 1, 96)
    with t.where(t.warpid == 3):
        t("bar.sync", 1, 96)
        t("st.shared.b32", t.laneid * 4, 9)


def half_of_the_lanes_meet(t: Any) -> None:
    """Lanes that read, and do not meet the one that writes."""
    t("st.shared.b32", t.laneid * 4, 7)
    t("bar.warp.sync", EVERY)
    with t.where(t.laneid >= 16):
        t("bar.warp.sync", 0xFFFF0000)
    t("ld.shared.b32", 0)
    with t.where(t.laneid >= 16):
        t("bar.warp.sync", 0xFFFF0000)
    with t.where(t.laneid == 31):
        t("st.shared.b32", 0, 9)


def source_written_beside_the_wait(t: Any, x: Any) -> None:
    """Nothing orders the store with the wait, whichever stands first in the source."""
    with t.where(t.tid[0] == 0):
        t("cp.async.ca.shared.global", 0, x, 16)
    t("bar.sync")
    with t.where(t.tid[0] == 0):
        t("cp.async.wait_all")
    with t.where(t.tid[0] == 32):
        t("st.global.b32", x, 5)


def stored_and_exited(t: Any, y: Any) -> None:
    """A warp that exits comes to no barrier."""
    with t.where(t.warpid == 0):
        t("bar.sync")
    with t.where(t.warpid == 1):
        t("st.shared.b32", t.laneid * 4, t.laneid)
        t("exit")
    t("st.global.b32", y + t.laneid * 4, t("ld.shared.b32", t.laneid * 4))


@pytest.mark.parametrize(
    ("kernel", "args", "options"),
    [
        (last_block_writes, (X,), {"grid": 2}), (last_block_writes, (X,), {"grid": 8, "block": 256}),
        (a_consumer_does_not_arrive, (), {"block": 128}), (half_of_the_lanes_meet, (), {"block": 32}),
        (source_written_beside_the_wait, (X,), {}), (stored_and_exited, (X,), {}),
    ],
)  # fmt: skip
def test_races(kernel: Any, args: Any, options: Any) -> None:
    with pytest.raises(HazardError) as caught:
        run(kernel, *[x.copy() for x in args], **options)
    assert caught.value.hazard.kind == "race" and caught.value.hazard.other is not None


def exited_before(t: Any, y: Any) -> None:
    """What a warp did that has exited, and the others have heard of, is ordered; and so is nothing at all."""
    with t.where(t.warpid == 2):
        t("exit")
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])
    t("bar.sync")
    with t.where(t.warpid == 1):
        t("exit")
    t("bar.sync")
    t("st.global.b32", y + t.tid[0] * 4, t("ld.shared.b32", (t.tid[0] ^ 32) * 4))


def many_consumers(t: Any) -> None:
    """All of those who read arrive."""
    for step in range(3):
        with t.where(t.warpid == 3):
            t("st.shared.b32", t.laneid * 4, step)
        with t.where(t.warpid == 3):
            t("bar.arrive", 1, 128)
        with t.where(t.warpid < 3):
            t("bar.sync", 1, 128)
            t("ld.shared.b32", t.laneid * 4)
            t("bar.arrive", 2, 128)
        with t.where(t.warpid == 3):
            t("bar.sync", 2, 128)


def all_by_number(t: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])
    t("bar.sync", 0, 64)
    t("ld.shared.b32", (t.tid[0] ^ 32) * 4)


def nobody_reads(t: Any) -> None:
    """A load of no lanes, between a barrier of some warps and a smaller access than all before."""
    t("st.shared.b32", t.tid[0] * 4, 1)
    for warp in range(2):
        with t.where(t.warpid == warp):
            t("bar.sync", 1, 64)
    with t.where(t.warpid == 9):
        t("ld.shared.b32", 0)
    t("st.shared.b8", t.tid[0] * 4, 1)


@pytest.mark.parametrize(
    ("kernel", "args", "options"),
    [
        (exited_before, (X,), {"block": 96}),
        (many_consumers, (), {"block": 128}),
        (all_by_number, (), {}),
        (nobody_reads, (), {}),
    ],
)
def test_no_hazard(kernel: Any, args: Any, options: Any) -> None:
    assert run(kernel, *[x.copy() for x in args], **options).hazards == []


def test_half_a_warp_is_not_32_threads() -> None:
    def kernel(t: Any) -> None:
        with t.where(t.laneid < 16):
            t("barrier.sync", 1, 32)

    with pytest.raises(HazardError, match="32 threads must arrive at barrier 1"):
        run(kernel, block=32)


def test_lanes_that_arrive_alone_tell_what_they_did_and_no_more() -> None:
    def kernel(t: Any, lane: int) -> None:
        t("st.shared.b32", t.tid[0] * 4, t.tid[0])
        for half in (t.laneid < 16, t.laneid >= 16):
            with t.where((t.warpid == 0) & half):
                t("barrier.arrive", 1, 64)
                t("st.shared.b32", 1024 + t.laneid * 4, 1)
        with t.where(t.warpid == 1):
            t("barrier.sync", 1, 64)
            t("ld.shared.b32", lane * 4)

    run(lambda t: kernel(t, 3), block=64)
    run(lambda t: kernel(t, 20), block=64)
    with pytest.raises(HazardError, match=r"race.*warp 0 wrote it"):  # behind its arrival
        run(lambda t: kernel(t, 256 + 3), block=64)


def test_lanes_that_wait_alone_learn_alone() -> None:
    def kernel(t: Any, waits: Any, reads: Any) -> None:
        with t.where(t.warpid == 0):
            t("st.shared.b32", t.laneid * 4, t.laneid)
            t("barrier.sync", 1, 64)
        for part in waits:
            with t.where((t.warpid == 1) & part(t)):
                t("barrier.sync", 1, 64)
        with t.where((t.warpid == 1) & reads(t)):
            t("ld.shared.b32", t.laneid * 4)

    low, high = (lambda t: t.laneid < 16), (lambda t: t.laneid >= 16)
    run(lambda t: kernel(t, (low, high), low), block=64)
    run(lambda t: kernel(t, (low, high), high), block=64)


def test_what_barriers_do_not_take() -> None:
    with pytest.raises(OperandError, match="expected a multiple of 32, 1024 at most"):
        run(lambda t: t("bar.sync", 1, 1 << 70))


def test_the_clock_stops_and_no_race_is_invented(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("access_words", "happens_before"):
        monkeypatch.setattr(importlib.import_module(f"warpmma.machine.order.{module}"), "LAST_TIME", 3)

    def kernel(t: Any) -> None:
        for step in range(4):
            t("st.shared.b32", t.tid[0] * 4, t.tid[0] + step)
            t("bar.sync")
            t("ld.shared.b32", (t.tid[0] ^ 32) * 4)
            t("bar.sync")

    assert run(kernel).hazards == []


def test_one_array_given_twice_is_one_memory() -> None:
    def kernel(t: Any, x: Any, y: Any) -> None:
        value = t("ld.global.b32", x + (63 - t.tid[0]) * 4)
        t("st.global.b32", y + t.tid[0] * 4, value + 1)

    for second in (lambda x: x, Output, lambda x: x[:]):
        x = np.zeros(64, np.uint32)
        with pytest.raises(HazardError, match="race"):
            run(kernel, x, second(x))
    with pytest.raises(OperandError, match=r"args\[1\] shares a part of its memory"):
        x = np.zeros(96, np.uint32)
        run(kernel, x[:64], x[32:])
    x = np.zeros(128, np.uint32)
    assert run(kernel, x[:64], x[64:]).hazards == [] and x[64:].all()
