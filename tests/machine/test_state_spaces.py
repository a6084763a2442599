"""State spaces: generic addresses, local and constant memory, variables of shared memory, caches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels import outcome

import warpmma as wm
from warpmma.errors import OperandError, TargetError
from warpmma.kernel import HazardError, launch
from warpmma.machine import Batch, Costs, GlobalMemory, History, Reporter, Site, WarpRegister, execute
from warpmma.operations import WINDOWS, row, window_of

SITE = Site("test.ptx", 1, "ld")


def batch(blocks: int = 2, threads: int = 64, shared: int = 256, **policy: Any) -> Batch:
    reporter = Reporter(**policy)
    return Batch(
        blocks=range(blocks), threads=threads, target="sm_90", memory=GlobalMemory(reporter), shared=shared,
        reporter=reporter, costs=Costs(), history=History(),
    )  # fmt: skip


def do(b: Batch, mnemonic: str, *operands: Any, lanes: Any = None) -> Any:
    given = [WarpRegister(np.broadcast_to(x, b.shape)) if isinstance(x, np.ndarray) else x for x in operands]
    results = execute(b, SITE, row(mnemonic), given, b.lanes.alive if lanes is None else lanes)
    return results[0].bits if len(results) == 1 else [x.bits for x in results]


def lane(b: Batch) -> Any:
    return np.arange(np.prod(b.shape), dtype=np.uint64).reshape(b.shape)


# Generic addresses


def test_lanes_of_one_access_may_be_in_different_spaces() -> None:
    b, mine = batch(1, 32), np.arange(100, 132, dtype=np.uint32)
    base = b.memory.add(mine, "x")
    n = lane(b)
    do(b, "st.shared.b32", n.astype("u4") * np.uint32(4), n.astype("u4") + np.uint32(200))
    do(b, "st.local.b32", np.full(b.shape, 8, np.uint64), n.astype("u4") + np.uint32(300))
    bases = [np.uint64(base), np.uint64(WINDOWS["shared"].base), np.uint64(WINDOWS["local"].base + 8)]
    steps = [np.uint64(4), np.uint64(4), np.uint64(0)]
    which = (n % 3).astype(int)
    at = np.choose(which, bases) + n * np.choose(which, steps)
    expected = n + np.choose(which, [100, 200, 300]).astype(np.uint64)
    assert (do(b, "ld.b32", at) == expected).all()
    do(b, "st.b32", at, (n * 7).astype("u4"))
    assert (do(b, "ld.b32", at) == n * 7).all()
    assert (mine[::3] == np.arange(0, 32, 3) * 7).all() and (mine[1::3] == np.arange(101, 132, 3)).all()


def test_a_block_finds_its_own_shared_memory_and_a_thread_its_own_local_memory() -> None:
    b = batch(3, 64)
    n = lane(b)
    shared = np.full(b.shape, WINDOWS["shared"].base, np.uint64) + n % 64 * 4
    local = np.full(b.shape, WINDOWS["local"].base + 16, np.uint64)
    do(b, "st.b32", shared, n.astype("u4"))
    do(b, "st.b64", local, n)
    assert (do(b, "ld.b32", shared) == n).all() and (do(b, "ld.b64", local) == n).all()
    assert (do(b, "ld.local.b64", np.full(b.shape, 16, "u4")) == n).all()


@pytest.mark.parametrize("space", ["shared", "local", "const", "param", "shared::cta", "param::entry"])
def test_cvta_and_isspacep(space: str) -> None:
    window = WINDOWS[space.partition("::")[0]]

    def there(t: Any) -> Any:
        at = t(f"cvta.{space}.u64", t.constant(24, "b64"))
        assert (at.bits == window.base + 24).all()
        back = t(f"cvta.to.{space}.u64", at)
        yes = t(f"isspacep.{space}", at)
        no = t(f"isspacep.{space}", t.constant(24, "b64"))
        assert yes.bits.all() and not no.bits.any()
        assert t("isspacep.global", at).bits.all() == (window is WINDOWS["param"])
        return back

    assert (outcome(there) == 24).all()
    assert window_of(window.base + window.size - 1) == space.partition("::")[0]
    assert window_of(window.base - 1) != window_of(window.base) != window_of(window.base + window.size)


def test_global_addresses_are_generic_ones() -> None:
    def same(t: Any) -> Any:
        at = t("cvta.to.global.u64", t("cvta.global.u64", t.constant(1 << 40, "b64")))
        assert t("isspacep.global", at).bits.all() and not t("isspacep.shared", at).bits.any()
        return at

    assert (outcome(same) == 1 << 40).all()


def test_a_block_is_a_cluster_of_its_own() -> None:
    def mapped(t: Any) -> Any:
        assert (t("getctarank.shared::cluster.u32", t.laneid).bits == 0).all()
        return t("mapa.shared::cluster.u32", t.laneid * 4, 0)

    assert outcome(mapped).tolist() == [*range(0, 128, 4)]
    with pytest.raises(TargetError):
        outcome(mapped, target="sm_80")


def test_another_rank_of_a_cluster_has_an_address_and_no_memory() -> None:
    def kernel(t: Any, mnemonic: str) -> Any:
        at = t("mapa.shared::cluster.u32", t.laneid * 4, t.laneid // 16)
        t("st.shared.b32", t.laneid * 4, t.laneid)
        return t(mnemonic, at)

    assert outcome(lambda t: kernel(t, "getctarank.shared::cluster.u32")).tolist() == [0] * 16 + [1] * 16
    with pytest.raises(HazardError, match=r"lane 16 .*of a block of rank 1, and each block is a cluster"):
        outcome(lambda t: kernel(t, "ld.shared::cluster.b32"))


@pytest.mark.parametrize("mnemonic", ["ld.shared::cluster.b32", "ld.volatile.shared.b32", "ld.acquire.cta.b32"])
def test_the_same_memory_by_other_names(mnemonic: str) -> None:
    def kernel(t: Any) -> Any:
        t("st.relaxed.cta.shared::cta.b32", t.tid[0] * 4, t.tid[0])
        at = t("cvta.shared.u64", t("cvt.u64.u32", t.tid[0] * 4))
        return t(mnemonic, at if "shared" not in mnemonic else t.tid[0] * 4)

    assert outcome(kernel).tolist() == list(range(32))


def test_global_accesses_do_not_reach_into_windows() -> None:
    for space, window in WINDOWS.items():
        with pytest.raises(HazardError, match=rf"bounds.*in the window of generic addresses of \.{space}"):
            do(batch(), "ld.global.b32", np.array(window.base, np.uint64))
    with pytest.raises(HazardError, match="bounds"):
        do(batch(), "ld.b32", np.array(0, np.uint64))


# Constant memory and parameters


def test_constant_memory_is_read_and_never_written() -> None:
    device = wm.Device("sm_90")
    device.variable("before", 4, constant=True)
    table = device.variable("table", 128, alignment=4, initial=np.arange(32, dtype="u4").tobytes(), constant=True)
    offset, found = table.address - WINDOWS["const"].base, []

    def read(t: Any) -> None:
        found.append(t("ld.const.b32", t.tid[0] * 4 + offset).bits)
        found.append(t("ld.b32", t("cvt.u64.u32", t.tid[0] * 4) + table.address).bits)

    launch(read, 1, 32, [], target=device)
    assert all((x == np.arange(32)).all() for x in found)
    with pytest.raises(HazardError, match=r"bounds: .*table, which is read-only"):
        launch(lambda t: t("st.b32", table.address, 1), 1, 32, [], target=device)
    with pytest.raises(HazardError, match=r"bounds: .*the nearest, table \(128 bytes"):
        launch(lambda t: t("ld.const.b32", offset + 128), 1, 32, [], target=device)


def test_parameters_lie_in_constant_memory_of_the_launch() -> None:
    b = batch()
    at = b.memory.parameters(np.arange(4, dtype="u8").tobytes())
    assert (do(b, "ld.param.b64", np.array(at + 8, np.uint32)) == 1).all()
    assert (do(b, "ld.b64", np.array(WINDOWS["param"].base + at + 24, np.uint64)) == 3).all()
    b.memory.end()
    with pytest.raises(HazardError, match="bounds"):
        do(b, "ld.param.b64", np.array(at + 8, np.uint32))


# Local memory


@pytest.mark.parametrize(("type_", "count"), [("u8", 1), ("s16", 4), ("b32", 1), ("f64", 2), ("b128", 1), ("b8", 4)])
def test_what_a_thread_writes_it_reads(type_: str, count: int) -> None:
    b, rng = batch(2, 48), np.random.default_rng(count)
    element: Any = row(f"ld.local.{type_}")
    vector = f"v{count}." * (count > 1)
    size, width = count * element.bits // 8, min(element.bits, 64)
    kept: dict[int, Any] = {}
    registers = count * (2 if element.bits == 128 else 1)
    for at in [0, 1024 - size, 1024, 5 * 1024, (512 << 10) - size, *(rng.integers(0, 4000, 20) * size)]:
        bits = [rng.integers(0, 1 << min(width, 63), b.shape, "u8") for _ in range(registers)]
        values = [x.astype(wm.operations.DTYPES[element.kind]) for x in bits]
        do(b, f"st.local.{vector}{type_}", np.array(at, np.uint32), *values)
        kept[int(at)] = values
    for at, values in kept.items():
        found = do(b, f"ld.local.{vector}{type_}", np.array(at, np.uint64))
        found = found if isinstance(found, list) else [found]
        mask = (1 << width) - 1
        for x, y in zip(found, values, strict=True):
            assert (x[b.lanes.exists] & mask == y[b.lanes.exists] & mask).all(), at


def test_what_was_loaded_stays_as_it_was() -> None:
    b = batch()
    where = np.array(16, np.uint32)
    do(b, "st.local.v4.b32", where, 1, 2, 3, 4)
    found = do(b, "ld.local.v4.b32", where)
    do(b, "st.local.v4.b32", where, 5, 6, 7, 8, lanes=b.lanes.alive & (lane(b) % 3 == 0))
    assert [int(x.max()) for x in found] == [1, 2, 3, 4]
    assert (do(b, "ld.local.b32", where) == np.where(lane(b) % 3 == 0, 5, 1)).all()
    some = b.lanes.alive & (lane(b) % 3 == 0)
    assert (do(b, "ld.local.b32", where, lanes=some) == np.where(some, 5, 0)).all()


def test_each_lane_at_its_own_place() -> None:
    b = batch(1, 32)
    n = lane(b)
    at = n * np.uint64(12 * 64)
    do(b, "st.local.b64", at, n)
    do(b, "st.local.b8", at + np.uint64(9), n.astype("u2"))
    assert (do(b, "ld.local.b64", at) == n).all() and (do(b, "ld.local.u8", at + np.uint64(9)) == n).all()
    with pytest.raises(HazardError, match=r"unwritten: .*lane 0 at address 0x8 .and 31 more lanes.: the thread"):
        do(b, "ld.local.b16", at + np.uint64(8))


def test_local_memory_is_unwritten_poison_misaligned_or_beyond() -> None:
    b = batch()
    where = np.array(64, np.uint32)
    with pytest.raises(HazardError, match=r"unwritten: .*the thread has not written it"):
        do(b, "ld.local.b32", where)
    some = b.lanes.alive & (np.arange(32) < 5)
    do(b, "st.local.v2.b32", where, 1, 2, lanes=some)
    with pytest.raises(HazardError, match=r"unwritten: .*lane 5"):
        do(b, "ld.local.b32", where)
    do(b, "st.local.b32", where, 3)
    results: Any = execute(b, SITE, row("ld.local.v2.b32"), [64], b.lanes.alive)
    assert results[0].defined is None and (results[1].defined == some).all()
    with pytest.raises(HazardError, match=r"misaligned: .*a multiple of 8"):
        do(b, "ld.local.b64", np.array(68, np.uint32))
    with pytest.raises(HazardError, match=r"stack: .*beyond the 524288 that a thread has"):
        do(b, "st.local.b64", np.array(512 << 10, np.uint32), np.array(0, np.uint64))
    with pytest.raises(HazardError, match="stack"):
        do(b, "st.b32", np.array(WINDOWS["local"].base + (1 << 31), np.uint64), 0)


def test_frames_bound_local_memory_and_are_forgotten() -> None:
    b = batch()
    b.local.reach(b.lanes.exists, 40)
    do(b, "st.local.b64", np.array(32, np.uint32), np.array(5, np.uint64))
    with pytest.raises(HazardError, match=r"stack: .*not all in frames of functions that run"):
        do(b, "st.local.b64", np.array(40, np.uint32), np.array(5, np.uint64))
    leaving = b.lanes.exists & (np.arange(32) % 2 == 0)
    b.local.forget(leaving, 34, 100)
    assert (do(b, "ld.local.b16", np.array(32, np.uint32)) == 5).all()
    with pytest.raises(HazardError, match=r"unwritten: .*lane 0 .*and 63 more"):
        do(b, "ld.local.b32", np.array(32, np.uint32))


def test_local_memory_of_all_threads_has_an_end() -> None:
    b = batch(32, 1024)
    with pytest.raises(HazardError, match=r"stack: .*32768 threads that run together grows beyond 1073741824 bytes"):
        do(b, "st.local.b32", np.array(40000, np.uint32), 1)


def test_where_hazards_are_warnings_a_lane_beyond_takes_no_part() -> None:
    b = batch(1, 32, policy="warn")
    at = np.where(lane(b) < 3, np.uint64(1 << 30), np.uint64(0))
    with pytest.warns(UserWarning, match="stack"):
        do(b, "st.local.b32", at, 7)
    assert (do(b, "ld.local.b32", at) == np.where(lane(b) < 3, 0, 7)).all()  # of one line the first is told


# Variables of shared memory


def test_between_variables_is_nothing() -> None:
    b = batch(shared=256)
    b.shared.declare([("left", range(40)), ("right", range(64, 96))])
    do(b, "st.shared.b64", np.array(32, np.uint32), np.array(0, np.uint64))
    do(b, "st.shared.b64", np.array(64, np.uint32), np.array(0, np.uint64))
    for at, says in (
        (40, r"left \(40 bytes from 0x0\), ends 8 bytes too early"),
        (48, r"left \(40 bytes from 0x0\), ends 16 bytes too early"),
        (56, r"right \(32 bytes from 0x40\), begins 8 bytes later"),
    ):
        with pytest.raises(HazardError, match=rf"bounds: .*8 bytes that are not all in one variable.*{says}"):
            do(b, "st.shared.b64", np.array(at, np.uint32), np.array(0, np.uint64))
    do(b, "st.shared.b64", np.array(96, np.uint32), np.array(0, np.uint64))  # dynamic
    do(b, "st.shared.b64", np.array(248, np.uint32), np.array(0, np.uint64))
    with pytest.raises(HazardError, match="shared memory, which has 256 bytes"):
        do(b, "st.shared.b64", np.array(256, np.uint32), np.array(0, np.uint64))


# 128 bits


@pytest.mark.parametrize("space", ["global", "shared", "local"])
def test_128_bits_are_two_registers(space: str) -> None:
    b = batch(1, 8)
    at = lane(b) * np.uint64(16)
    if space == "global":
        at = at + np.uint64(b.memory.add(np.zeros(512, np.uint8), "x"))
    low, high = lane(b) + np.uint64(1 << 63), lane(b) * np.uint64(3)
    do(b, f"st.{space}.b128", at, low, high)
    found = do(b, f"ld.{space}.b128", at)
    assert (found[0][b.lanes.exists] == low[b.lanes.exists]).all()
    assert (do(b, f"ld.{space}.b64", at + np.uint64(8))[b.lanes.exists] == high[b.lanes.exists]).all()
    with pytest.raises(HazardError, match="misaligned"):
        do(b, f"ld.{space}.b128", at + np.uint64(8))


# Caches


def test_prefetching_changes_nothing_and_may_miss() -> None:
    b = batch()
    for mnemonic in ("prefetch.global.L2", "prefetch.L1", "prefetch.local.L1", "prefetchu.L1", "prefetch.tensormap"):
        assert do(b, mnemonic, np.array(12345, np.uint64)) == []


def test_what_is_discarded_is_unwritten() -> None:
    b, mine = batch(1, 1), np.arange(64, dtype=np.uint32)
    base = np.array(b.memory.add(mine, "x"), np.uint64)
    do(b, "applypriority.global.L2::evict_normal", base, 128)
    do(b, "ld.global.b32", base)
    do(b, "discard.global.L2", base, 128)
    with pytest.raises(HazardError, match="unwritten"):
        do(b, "ld.global.b32", base)
    do(b, "ld.global.b32", base + np.uint64(128))
    assert (mine == np.arange(64)).all()
    with pytest.raises(OperandError, match="is 64; expected 128"):
        do(b, "discard.global.L2", base, 64)
    with pytest.raises(HazardError, match=r"misaligned: .*a multiple of 128"):
        do(b, "discard.L2", base + np.uint64(64), 128)
    with pytest.raises(HazardError, match="bounds"):
        do(b, "applypriority.L2::evict_normal", base + np.uint64(256), 128)


@pytest.mark.parametrize(
    ("mnemonic", "operands", "bits"),
    [
        ("fractional.L2::evict_last", (), 0x14F0),
        ("fractional.L2::evict_first", (1.0,), 0x12F0),
        ("fractional.L2::evict_normal", (0.9,), 0x16E0),
        ("fractional.L2::evict_unchanged", (0.001,), 0x1000),
        ("fractional.L2::evict_last.L2::evict_first", (0.27,), 0x1540),
        ("fractional.L2::evict_first.L2::evict_unchanged", (0.5,), 0x1270),
    ],
)
def test_policies_of_fractions_are_those_that_ptxas_folds_them_to(mnemonic: str, operands: Any, bits: int) -> None:
    """As read from the machine code of ptxas 13.0 for sm_90."""
    assert (outcome(lambda t: t(f"createpolicy.{mnemonic}.b64", *operands)) == bits << 48).all()


def test_policies_of_ranges_and_of_the_host() -> None:
    def kernel(t: Any) -> Any:
        t("createpolicy.range.global.L2::evict_last.b64", t.constant(1 << 40, "b64"), 1 << 20, 1 << 21)
        return t("createpolicy.cvt.L2.b64", 0x12F0000000000000)

    assert (outcome(kernel) == 0x12F0000000000000).all()
    with pytest.raises(OperandError, match="expected above 0, at most 1"):
        outcome(lambda t: t("createpolicy.fractional.L2::evict_last.b64", 0.0))
    with pytest.raises(OperandError, match="expected above 0, at most 1"):
        outcome(lambda t: t("createpolicy.fractional.L2::evict_last.b64", 1.5))
