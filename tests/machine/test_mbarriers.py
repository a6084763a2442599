"""mbarriers: their states, the order that they establish, copies that arrive at them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from assembler import go
from kernels import outcome, run

from warpmma.kernel import HazardError
from warpmma.machine.sync.mbarrier_state import MOST, MbarrierState

pytestmark = pytest.mark.quick

INIT, ARRIVE, TEST = "mbarrier.init.shared.b64", "mbarrier.arrive.shared.b64", "mbarrier.test_wait.shared.b64"
PARITY = "mbarrier.test_wait.parity.shared.b64"


@pytest.mark.parametrize(
    "state", [MbarrierState(1, 1, 0, 0, 1), MbarrierState(MOST, MOST, MOST, 1, 1), MbarrierState(0, 5, -MOST, 1, 0)]
)
def test_a_state_is_its_64_bits(state: MbarrierState) -> None:
    assert MbarrierState.of(state.word) == state and 0 <= state.word < 1 << 64


def _begun(t: Any, expected: int, *, at: int = 0) -> None:
    with t.where(t.tid[0] == 0):
        t(INIT, at, expected)
    t("bar.sync", 0)


def _bit(t: Any, predicate: Any) -> Any:
    return t("selp.b32", 1, 0, predicate)


def test_phases_follow_each_other() -> None:
    def compute(t: Any) -> Any:
        _begun(t, 32)
        seen = _bit(t, t(PARITY, 0, 1)) * 2 + _bit(t, t(PARITY, 0, 0))  # phase 0: the one before counts as complete
        first = t(ARRIVE, 0)
        seen = seen * 4 + _bit(t, t(TEST, 0, first)) * 2 + _bit(t, t(PARITY, 0, 1))
        with t.where(t.laneid < 31):
            t(ARRIVE, 0)
        seen = seen * 2 + _bit(t, t(PARITY, 0, 1))
        with t.where(t.laneid == 31):
            t(ARRIVE, 0)
        return seen * 2 + _bit(t, t(PARITY, 0, 1))

    assert set(outcome(compute).tolist()) == {0b10_10_0_1}


def test_counts_are_read_from_states() -> None:
    def compute(t: Any) -> Any:
        _begun(t, 40)
        return t("mbarrier.pending_count.b64", t("mbarrier.arrive.noComplete.shared.b64", 0, 1))

    assert outcome(compute).tolist() == list(range(40, 8, -1))


def test_who_drops_out_is_not_expected_again() -> None:
    def compute(t: Any) -> Any:
        _begun(t, 32)
        with t.where(t.laneid < 30):
            t("mbarrier.arrive_drop.shared.b64", 0)
        with t.where(t.laneid >= 30):
            t(ARRIVE, 0)
        one = _bit(t, t(PARITY, 0, 0))
        with t.where(t.laneid >= 30):
            t(ARRIVE, 0)
        return one * 2 + _bit(t, t(PARITY, 0, 1))

    assert set(outcome(compute).tolist()) == {3}


def test_bytes_are_waited_for() -> None:
    def compute(t: Any) -> Any:
        _begun(t, 1)
        with t.where(t.laneid == 0):
            t("mbarrier.arrive.expect_tx.shared.b64", 0, 64)
        seen = _bit(t, t(PARITY, 0, 0))
        with t.where(t.laneid < 4):
            t("mbarrier.complete_tx.shared::cta.b64", 0, 16)
        return seen * 2 + _bit(t, t("mbarrier.try_wait.parity.acquire.cta.shared::cta.b64", 0, 0, 1000))

    assert set(outcome(compute).tolist()) == {1}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda t: t(ARRIVE, 8), "unwritten"),
        (lambda t: t(ARRIVE, 4), "misaligned"),
        (lambda t: [t(ARRIVE, 0, 2)], "barrier"),
        (lambda t: t("mbarrier.arrive.noComplete.shared.b64", 0, 1), "barrier"),
        (lambda t: t(INIT, 16, 0), "barrier"),
        (lambda t: [t("mbarrier.inval.shared.b64", 0), t(ARRIVE, 0)], "barrier: .*there is no mbarrier"),
        (lambda t: t("mbarrier.expect_tx.shared.b64", 0, MOST + 1), "barrier"),
        (lambda t: t("mbarrier.init.b64", t.constant(1 << 46, "b64"), 1), "bounds"),
    ],
)
def test_what_is_wrong_with_one(wrong: Any, says: str) -> None:
    def kernel(t: Any) -> None:
        _begun(t, 1)
        with t.where(t.tid[0] == 0):
            wrong(t)

    with pytest.raises(HazardError, match=says):
        run(kernel)


def test_an_mbarrier_that_is_not_in_order_with_who_made_it_is_a_race() -> None:
    def kernel(t: Any) -> None:
        with t.where(t.tid[0] == 0):
            t(INIT, 0, 64)
        with t.where(t.tid[0] == 40):
            t(ARRIVE, 0)

    with pytest.raises(HazardError, match="race"):
        run(kernel, block=64)


def _passed(t: Any, arrive: str, wait: str, *, waits: bool = True) -> None:
    """Warp 0 writes 32 words, and warp 1 reads them when it has seen that warp 0 has."""
    _begun(t, 32)
    with t.where(t.warpid == 0):
        t("st.shared.b32", 64 + t.laneid * 4, t.laneid)
        t(arrive, 0)
    with t.where(t.warpid == 1):
        if waits:
            t(wait, 0, 0)
        t("ld.shared.b32", 64 + (31 - t.laneid) * 4)


def test_who_has_seen_a_phase_knows_what_came_before_it() -> None:
    run(lambda t: _passed(t, ARRIVE, PARITY), block=64)
    run(lambda t: _passed(t, "mbarrier.arrive.release.cta.shared::cta.b64", PARITY), block=64)
    for arrive, wait, waits in (
        ("mbarrier.arrive.relaxed.cta.shared.b64", PARITY, True),
        (ARRIVE, "mbarrier.test_wait.parity.relaxed.cta.shared.b64", True),
        (ARRIVE, PARITY, False),
    ):
        with pytest.raises(HazardError, match=r"race.*warp 0 wrote it"):
            run(lambda t, a=arrive, w=wait, s=waits: _passed(t, a, w, waits=s), block=64)


def _copied(t: Any, source: Any, *, arrive: str, expected: int, reader: Any, waits: bool = True) -> None:
    _begun(t, expected)
    with t.where(t.warpid == 0):
        t("cp.async.ca.shared.global", 64 + t.laneid * 4, source + t.laneid * 4, 4)
        t(arrive, 0)
        if "noinc" not in arrive:
            t(ARRIVE, 0)
    with t.where(reader(t)):
        if waits:
            t(PARITY, 0, 0)
        t("st.global.b32", source + 128 + t.laneid * 4, t("ld.shared.b32", 64 + (31 - t.laneid) * 4))


@pytest.mark.parametrize("arrive", ["cp.async.mbarrier.arrive.noinc.shared.b64", "cp.async.mbarrier.arrive.shared.b64"])
def test_copies_arrive(arrive: str) -> None:
    data = np.arange(64, dtype=np.uint32)
    for warp in range(2):
        run(
            lambda t, x, w=warp: _copied(t, x, arrive=arrive, expected=32, reader=lambda t: t.warpid == w),
            data,
            block=64,
        )
        assert data[32:].tolist() == list(range(31, -1, -1))
    with pytest.raises(HazardError, match="pending"):
        run(lambda t, x: _copied(t, x, arrive=arrive, expected=32, reader=lambda t: t.warpid == 1, waits=False), data,
            block=64)  # fmt: skip
    with pytest.raises(HazardError, match=r"race.*an asynchronous operation wrote it"):  # one is still to come
        run(lambda t, x: _copied(t, x, arrive=arrive, expected=33, reader=lambda t: t.warpid == 1), data, block=64)


def test_copies_that_their_thread_waits_for_too_are_done_once() -> None:
    def kernel(t: Any, x: Any) -> None:
        _begun(t, 32)
        t("cp.async.ca.shared.global", 64 + t.laneid * 4, x + t.laneid * 4, 4)
        t("cp.async.mbarrier.arrive.shared.b64", 0)
        t("cp.async.wait_all")
        t("st.shared.b32", 64 + t.laneid * 4, 7)
        t(ARRIVE, 0)
        t("st.global.b32", x + t.laneid * 4, t("ld.shared.b32", 64 + t.laneid * 4))

    data = np.arange(32, dtype=np.uint32)
    run(kernel, data)
    assert (data == 7).all()


def test_who_ignores_the_source_copies_zeros() -> None:
    def kernel(t: Any, x: Any) -> None:
        t("cp.async.ca.shared.global", t.laneid * 4, x + t.laneid * 4, 4, t.laneid < 8)
        t("cp.async.wait_all")
        t("st.global.b32", x + t.laneid * 4, t("ld.shared.b32", t.laneid * 4))

    data = np.arange(1, 33, dtype=np.uint32)
    run(kernel, data)
    assert data.tolist() == [0] * 8 + list(range(9, 33))


def test_warps_of_a_ring_wait_for_each_other_in_a_program() -> None:
    """A producer warp and a consumer warp pass 8 values through one slot, with a full and an empty barrier."""
    file, _ = go(
        """
        setp.eq.u32 p, tid, 0
        @p mbarrier.init.shared.b64 0, 32
        @p mbarrier.init.shared.b64 8, 32
        bar.sync 0
        mov.b32 x, 0
        mov.b32 y, 0
        setp.lt.u32 p, tid, 32
        shl.b32 at, lane, 2
        add.u32 at, at, 64
        @p bra produce
        consume:
        and.b32 z, x, 1
        full:
        mbarrier.try_wait.parity.shared.b64 q, 0, z
        @!q bra full
        ld.shared.b32 z, [at]
        add.u32 y, y, z
        mbarrier.arrive.shared.b64 wide, 8
        add.u32 x, x, 1
        setp.lt.u32 q, x, 8
        @q bra consume
        bra end
        produce:
        and.b32 z, x, 1
        xor.b32 z, z, 1
        empty:
        mbarrier.try_wait.parity.shared.b64 q, 8, z
        @!q bra empty
        add.u32 z, x, lane
        st.shared.b32 [at], z
        mbarrier.arrive.shared.b64 wide, 0
        add.u32 x, x, 1
        setp.lt.u32 q, x, 8
        @q bra produce
        end:
        add.u32 x, x, 0
        """,
        threads=64,
    )
    assert file.read("y")[0, 1].tolist() == [28 + 8 * lane for lane in range(32)]


def test_phases_and_atomics_are_the_same_without_tracking() -> None:
    arrive = "cp.async.mbarrier.arrive.noinc.shared.b64"
    data = np.arange(64, dtype=np.uint32)

    def kernel(t: Any, x: Any) -> None:
        _copied(t, x, arrive=arrive, expected=32, reader=lambda t: t.warpid == 1)
        t("fence.acq_rel.gpu")
        t("red.release.gpu.global.add.f32", x, 1.0)

    report = run(kernel, data, block=64, hazards="off")
    assert data[32:].tolist() == list(range(31, -1, -1)) and not report.counts
    assert data[:1].view(np.float32)[0] == 64.0


def test_kernels_in_python_copy_in_bulk_too() -> None:
    def kernel(t: Any, x: Any, y: Any) -> None:
        _begun(t, 1, at=1024)
        t("barrier.cluster.arrive")
        t("barrier.cluster.wait")
        with t.where(t.laneid == 0):
            t("mbarrier.expect_tx.shared.b64", 1024, 512)
        t("bar.sync", 0)
        copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        t(copy, t.laneid * 16, x + t.laneid * 16, 16, 1024)
        with t.where(t.laneid == 0):
            t("mbarrier.arrive.shared.b64", 1024)
        assert t("mbarrier.try_wait.parity.shared.b64", 1024, 0).bits.all()
        t("st.global.b32", y + t.laneid * 4, t("ld.shared.b32", t.laneid * 16))

    x, y = np.arange(128, dtype=np.uint32), np.zeros(32, np.uint32)
    run(kernel, x, y, shared=2048, target="sm_90")
    assert (y == x[::4]).all()
