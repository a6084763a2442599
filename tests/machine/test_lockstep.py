"""Blocks in lockstep: the first block stands for all, and what is found is what each block's own state would show."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from lockstep_kernels import Hazards, outcome, random_kernel, without_lockstep

import warpmma as wm
from warpmma.machine import HazardWarning
from warpmma.machine.base import GrainTable, Site, alike_in_blocks, grain_engine, repeats
from warpmma.machine.memory import LockstepTouch, Touch
from warpmma.machine.memory.lockstep_shadow import LockstepShadow
from warpmma.machine.order import Agents, Completes, History, ThreadScopes, VectorClocks
from warpmma.machine.order.access_words import BLOCK_BIT, THREAD_BIT, TIME_BIT

FIRST, BLOCKS, WARPS, LANES = 3, 4, 4, 32
SHAPE, STEP = (BLOCKS, WARPS, LANES), 4096
U = np.uint64
SITE = Site(file="k", line=1, mnemonic="ld.shared.u32")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Counter[bool]:
    """How many accesses the first block's shadow has seen for all blocks, and how many that of all."""
    counts, see = Counter[bool](), LockstepShadow._see

    def counted(self: Any, *given: Any, **options: Any) -> Any:
        found = see(self, *given, **options)
        counts[self._first is not None] += 1
        return found

    monkeypatch.setattr(LockstepShadow, "_see", counted)
    return counts


@pytest.mark.parametrize("hazards", ["warn", "strict"])
def test_reports_are_those_of_blocks_on_their_own(hazards: Hazards, seen: Counter[bool]) -> None:
    found = 0
    for seed in range(40):
        text = random_kernel(np.random.default_rng(seed))
        together = outcome(text, hazards)
        with without_lockstep():
            assert outcome(text, hazards) == together, seed
        found += bool(together[0]) or isinstance(together[1], str)
    assert 10 < found < 40 and min(seen[True], seen[False]) > 20


COPY = """.version 8.5
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y) {
.reg .pred %p; .reg .b32 %t, %i, %a, %b, %v, %s; .reg .b64 %x, %y;
.shared .align 16 .b8 tile[1024];
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mov.u32 %s, tile;
mad.lo.u32 %a, %t, 16, %s; xor.b32 %b, %t, 32; mad.lo.u32 %b, %b, 16, %s; mad.lo.u32 %i, %i, 64, %t;
mad.wide.u32 %x, %i, 16, %x; mad.wide.u32 %y, %i, 4, %y; setp.eq.u32 %p, %i, 100;
cp.async.cg.shared.global [%a], [%x], 16; cp.async.commit_group; cp.async.wait_group 0; BARRIER
ld.shared.u32 %v, [%b]; st.global.u32 [%y], %v; ret; }"""


def launched(text: str) -> Any:
    x, y = np.arange(8 * 64 * 4, dtype=np.uint32), np.zeros(8 * 64, np.uint32)
    report = wm.ptx.load(text)["k"].launch(wm.Device("sm_80"), 8, 64, [x, y], hazards="warn")
    assert (y.reshape(8, 64) == np.roll(x.reshape(8, 64, 4)[:, :, 0], 32, axis=1)).all()
    return report


def test_one_shadow_serves_blocks_that_do_the_same(seen: Counter[bool]) -> None:
    assert not launched(COPY.replace("BARRIER", "bar.sync 0;")).hazards
    assert seen == {True: 3}  # a copy begins and is complete, and a load


def test_a_mistake_of_all_blocks_is_counted_in_all(seen: Counter[bool]) -> None:
    with pytest.warns(HazardWarning, match=r"race.*warp 0, lane 0 .*511 more lanes"):
        (hazard,) = launched(COPY.replace("BARRIER", "")).hazards
    assert hazard.block == 0 and hazard.count == 8 * 64
    assert seen == {True: 2, False: 1}


def test_a_mistake_of_one_block_is_found_there(seen: Counter[bool]) -> None:
    """Thread 36 of block 1 writes what thread 4 reads: in this block alone."""
    text = COPY.replace("BARRIER", "bar.sync 0; @%p st.shared.u32 [%a], 400;")
    with pytest.warns(HazardWarning, match=r"race: block 1, warp 0, lane 4 "):
        (hazard,) = launched(text).hazards
    assert (hazard.block, hazard.count) == (1, 1)
    assert seen == {True: 2, False: 2}


# Their parts


@pytest.mark.parametrize("native", [True, False])
def test_values_that_repeat(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr(grain_engine, "GRAINS", None)
    rng = np.random.default_rng(0)
    first = rng.integers(0, 1 << 40, 24)
    every = (first + np.arange(5)[:, None] * (1 << 41)).reshape(-1)
    assert repeats(every, 5, 1 << 41) and repeats(every.astype(U), 5, 1 << 41) and repeats(every[:0], 5, 7)
    for wrong in (every.copy(), every[:-1]):
        wrong[-1] += 1
        assert not repeats(wrong, 5, 1 << 41)
    flags = np.tile(rng.random((1, 4, 32)) < 0.5, (5, 1, 1))
    assert alike_in_blocks(flags) and alike_in_blocks(np.broadcast_to(flags[:1], (9, 4, 32)))
    assert alike_in_blocks(np.asfortranarray(flags))
    flags[3, 2, 1] ^= True
    assert not alike_in_blocks(flags) and not alike_in_blocks(np.asfortranarray(flags))


def test_a_table_of_one_block_becomes_that_of_all() -> None:
    rng = np.random.default_rng(1)
    table = GrainTable(rng.integers(0, 9, 300).astype(U))
    table.pages[1] = 5
    words = table.of(np.arange(300))
    found = table.repeated(3, 1 << 20).of(np.arange(900)).reshape(3, -1)
    assert all((found[i] == np.where(words, words + U(i << 20), 0)).all() for i in range(3))
    assert not GrainTable.empty(40).repeated(2, 1 << 20).of(np.arange(80)).any()


def clocks() -> VectorClocks:
    return VectorClocks(range(FIRST, FIRST + BLOCKS), WARPS, History(), scopes=ThreadScopes())


def touches(lanes: Any, offset: Any) -> tuple[Touch, Touch]:
    """An access of lanes of each block, `[warp, lane]`, as that of the first one and as that of all."""
    its, every = clocks(), np.broadcast_to(lanes, SHAPE)
    time, address = its.tick(SITE), np.zeros(SHAPE, np.uint32)
    part = Touch(
        site=SITE, time=time, clocks=its, address=address[:1], lanes=every[:1], offset=offset, size=4,
        who=its.who_of_first(time, every[:1], len(offset)),
    )  # fmt: skip
    found = LockstepTouch(part, lanes=every, address=address, blocks=BLOCKS, step=STEP)
    return found, found._copy(its.who(time, every, BLOCKS * len(offset)))


def test_an_access_that_is_alike_is_that_of_all_lanes() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        lanes = rng.random((WARPS, LANES)) < rng.choice([0.1, 1])
        one, other = touches(lanes, rng.integers(0, 1000, int(lanes.sum())) * 4)
        for step in rng.integers(0, 6, 5).tolist():
            some = np.broadcast_to(rng.random((WARPS, LANES)) < 0.7, SHAPE).copy()
            some[1] ^= step == 5
            numbers = np.repeat(np.arange(BLOCKS) * 1024 + 7, one.number // BLOCKS)
            numbers[-1:] += rng.integers(0, 2)
            how = Completes(int(rng.integers(1, 4)))
            changes: list[Any] = [
                lambda x: x.now(), lambda x: x.in_async_proxy(), lambda x: x.until_complete(),
                lambda x, h=how, n=numbers: x.completed(h, n if h is Completes.MBARRIER else None),
                lambda x, s=some: x.of(s), lambda x, s=some: x.of(s),
            ]  # fmt: skip
            of_all = Agents(one.who.words, FIRST).block.max(initial=0) >= BLOCKS  # those of operations stay
            if step == 3 and (of_all or one.number % BLOCKS):
                continue
            one, other = changes[step](one), changes[step](other)
            other.time = one.time
            assert one.number == other.number and (one.offset == other.offset).all()
            assert (one.lanes == other.lanes).all() and (one.proxy, one.later) == (other.proxy, other.later)
            assert (one.who.words >> THREAD_BIT == other.who.words >> THREAD_BIT).all()
            part = other.first(BLOCKS, STEP)
            if isinstance(one, LockstepTouch):
                assert part is not None and (part.who.words >> THREAD_BIT == one.part.who.words >> THREAD_BIT).all()


def known(its: VectorClocks, space: str) -> Any:
    """The time up to which each thread knows of each thread, and of each warpgroup, `[thread, agent]`."""
    block, warp, lane = np.indices(SHAPE).reshape(3, -1)
    words = (block + FIRST + 1).astype(U) << BLOCK_BIT | (warp * LANES + lane).astype(U) << THREAD_BIT
    agents = np.concatenate([words, np.unique(Agents(words, FIRST).completed(Completes.WARPGROUP).words)])
    found = np.zeros((len(block), len(agents)), np.int64)
    for at in range(0, len(block), 37):  # some of them
        for time in range(40):
            where = tuple(np.full(len(agents), x[at]) for x in (block, warp, lane))
            found[at] += its.causality.held.covers(where, agents | U(time) << TIME_BIT, space)
    return found


def test_clocks_of_blocks_in_lockstep() -> None:
    stayed = set[bool]()
    for seed in range(12):
        each: list[VectorClocks] = []
        for together in (True, False):
            rng, its = np.random.default_rng(seed), clocks()
            each.append(its)
            for _ in range(int(rng.integers(3, 14))):
                lanes = np.broadcast_to(rng.random((WARPS, 1)) < 0.6, SHAPE).copy()
                lanes[BLOCKS - 1] &= rng.random() < 0.93  # seldom not all blocks
                what, odd = int(rng.integers(4)), rng.random() < 0.2
                lanes[:, :, 5] &= not odd
                words = its.who(its.tick(SITE), np.ones(SHAPE, bool), lanes.size)
                if together:
                    act(its, what, lanes, words.completed(Completes.WARPGROUP).words)
                else:
                    with without_lockstep():
                        act(its, what, lanes, words.completed(Completes.WARPGROUP).words)
        stayed.add(each[0].causality.held.in_lockstep)
        for space in ("", "shared"):
            assert (known(each[0], space) == known(each[1], space)).all()
        one, other = (x.passed_by(np.ones(SHAPE, bool)).clocks for x in each)
        assert one is not None and other is not None
        assert all(np.array_equal(one.of(row).of_block(FIRST, row), other.of(row).of_block(FIRST, row))
                   for row in range(BLOCKS))  # fmt: skip
    assert stayed == {True, False}


def act(its: VectorClocks, what: int, lanes: Any, words: Any) -> None:
    """Let threads of clocks do something."""
    if what == 0:
        its.fence_proxy(lanes, ["shared"])
    elif what == 1:
        of_warps = words.reshape(SHAPE)[:, :, 0].copy()
        its.observe_of_warps(lanes, np.where(lanes.any(axis=2), of_warps, U(0)))
    elif what == 2:
        its.synchronize_blocks(lanes.any(axis=(1, 2)))
    else:
        its.synchronize_lanes(lanes.all(axis=2), {})
