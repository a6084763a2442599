"""Known times: what rows prove is what the clocks of threads say; the native engine and NumPy prove the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpmma.machine.base import (
    WARPGROUP_BITS,
    Bits,
    GrainRuns,
    GrainTable,
    KnownRows,
    grain_engine,
    ordered_by,
    words_at,
)
from warpmma.machine.order import AFTER_ALL, AcquiredClocks, Agents, Completes, VectorClock, known_times
from warpmma.machine.order.access_words import BLOCK_BIT, LAST_TIME, THREAD_BIT, THREADS, TIME_BIT, agents_of, time_of
from warpmma.machine.order.cluster_clocks import ClusterClocks, ClusterColumns
from warpmma.machine.order.known_times import KnownTimes

FIRST, BLOCKS, WARPS, LANES = 3, 4, 2, 32
BITS = Bits(int(THREAD_BIT), int(BLOCK_BIT), int(TIME_BIT), LAST_TIME)
COLUMNS = 2 * WARPS * LANES + int(THREADS) + 1 + (int(THREADS) >> WARPGROUP_BITS) + 1
U = np.uint64
needs_native = pytest.mark.skipif(not hasattr(grain_engine.GRAINS, "ordered_by"), reason="the engine is not built")


def accesses(rng: np.random.Generator, n: int, *, apart: float = 0.02) -> Any:
    """Draw words: of threads, mbarriers, groups and warpgroups of few blocks; some are 0."""
    block = np.where(rng.random(n) < apart, 0, rng.integers(1, 3, n)).astype(U) + U(FIRST)
    words = (block + U(1)) << BLOCK_BIT | rng.integers(0, 6, n).astype(U) << THREAD_BIT
    words |= rng.integers(0, 6, n).astype(U) << TIME_BIT | rng.integers(0, 3, n).astype(U)
    made = [Agents(words, FIRST).completed(how).words for how in Completes]
    known = [x for x in Completes for _ in range(1 + (x in (Completes.THREAD, Completes.MBARRIER)))]
    kind = rng.choice(known, n)
    return np.where(rng.random(n) < 0.3, U(0), np.choose(kind, made))


def nothing() -> AcquiredClocks:
    """Return clocks that know nothing, of two clusters of two blocks."""
    return AcquiredClocks.none(ClusterColumns(range(FIRST, FIRST + BLOCKS), WARPS, 2), BLOCKS)


def beyond(rng: np.random.Generator) -> VectorClock:
    """Draw a clock that knows much of block 1 and 2, and of their mbarriers."""
    shape = (2, WARPS, LANES) if rng.random() < 0.5 else (2, WARPS)
    words = accesses(rng, 12)
    agents = dict(zip(agents_of(words).tolist(), (time_of(words) + U(3)).tolist(), strict=True))
    return VectorClock(FIRST, rng.choice([2, 6, 6, AFTER_ALL], shape), agents=agents, low=1)


def clocks(rng: np.random.Generator, columns: ClusterColumns) -> ClusterClocks:
    """Draw clocks that know much of all blocks and of some mbarriers."""
    words = accesses(rng, 12)
    agents = columns.of_accesses(words[words != 0])
    times = rng.choice([2, 6, 6, LAST_TIME], columns.shape).astype(np.int32)
    return agents | ClusterClocks(columns, times)


def threads(rng: np.random.Generator, n: int) -> Any:
    block, thread = rng.integers(1, 3, n).astype(U) + U(FIRST + 1), rng.integers(0, 6, n).astype(U)
    return Agents(block << BLOCK_BIT | thread << THREAD_BIT | U(9) << TIME_BIT, FIRST)


def covered(held: AcquiredClocks, who: Agents, lane: int, word: Any) -> bool:
    one = who.some(np.array([lane]))
    return bool(held.covers((one.block, one.warp, one.lane), np.array([word]))[0])


def proved_of(word: Any, who: Agents, lane: int, floor: int, held: AcquiredClocks) -> bool:
    """Return whether an access happens before what a thread does, as far as rule 3 can say."""
    own, block = who.words[lane], word >> BLOCK_BIT
    agents = [who.completed(how).words[lane] >> BLOCK_BIT for how in Completes if how != Completes.THREAD]
    if word == 0 or (word ^ own) >> THREAD_BIT == 0 or (block == own >> BLOCK_BIT and time_of(word) < floor):
        return True
    return block in (own >> BLOCK_BIT, *agents) and covered(held, who, lane, word)


def proved(table: Any, grains: GrainRuns, who: Agents, floor: int, held: AcquiredClocks) -> bool:
    """Return what rule 3 says, word by word."""
    return all(
        proved_of(word, who, lane, floor, held) for lane in range(len(who.words)) for word in table[grains.all[lane]]
    )


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("each", [1, 4])
def test_rows_prove_what_clocks_say(each: int, native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr(grain_engine, "GRAINS", None)
    rng, answers = np.random.default_rng(each), []
    held = nothing()
    known = KnownTimes(held.columns, BLOCKS)
    for step in range(300):
        if step % 3 == 0:  # threads learn something: one of them, a warp, or blocks
            chosen = np.zeros((BLOCKS, WARPS, LANES), bool)
            at: Any = [(1, 0, 3), (2, 0), 1, (slice(None), 0)][step // 3 % 4]
            chosen[at] = True
            if step % 60 == 0:
                held, chosen[:] = nothing(), True
                known = KnownTimes(held.columns, BLOCKS)
            if step % 2:
                held.acquire_beyond(np.nonzero(chosen), beyond(rng))
            else:
                held.acquire(np.nonzero(chosen), clocks(rng, held.columns))
            known.forget(chosen)
        table, who = accesses(rng, 16 * each), threads(rng, 5)
        table[rng.random(len(table)) < rng.choice([0, 0.9])] = 0
        grains, floor = GrainRuns(rng.integers(0, 16, 5) * each, each), int(rng.integers(0, 6))
        answers.append(known.ordered(GrainTable(table), grains, who, floor, held))
        assert answers[-1] == proved(table, grains, who, floor, held)
        others = accesses(rng, 5, apart=0.3)
        bad, asked = known.open((who.block, who.warp, who.lane), others, held)
        for lane, word in enumerate(others):
            own = who.words[lane : lane + 1] >> BLOCK_BIT
            one = Agents(who.words[lane : lane + 1], FIRST)
            far = [one.completed(how).words >> BLOCK_BIT for how in Completes if how != Completes.THREAD]
            assert asked[lane] == (word >> BLOCK_BIT not in (own, *far))
            assert bad[lane] or covered(held, who, lane, word)
            assert asked[lane] or bad[lane] != covered(held, who, lane, word)
    assert {*answers} == {True, False}


@pytest.mark.parametrize("native", [True, False])
def test_a_write_ends_the_reads_that_happen_before_it(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write covers grains 10 i to 10 i + 7; reads of 2 grains are inside of one, between two, or half inside."""
    if not native:
        monkeypatch.setattr(grain_engine, "GRAINS", None)
    rng, answers = np.random.default_rng(3), []
    for step in range(400):
        held = nothing()
        known = KnownTimes(held.columns, BLOCKS)
        held.acquire(np.nonzero(np.ones((BLOCKS, WARPS, LANES), bool)), clocks(rng, held.columns))
        who, floor = threads(rng, 3), int(rng.integers(0, 6))
        place = np.array([1, 2, 3])[[0, 1, 2] if step % 3 else rng.permutation(3)]  # lanes may write in any order
        writes = GrainRuns(10 * place, 8)
        inside, between = rng.integers(0, 7, 6) + 10 * rng.integers(1, 4, 6), np.array([0, 8, 18, 28, 38, 60])
        half = np.array([9, 17, 19, 27, 29, 37])
        kinds = rng.choice(3, 6, p=[0.7, 0.3, 0] if step % 4 else [0.6, 0.2, 0.2])
        reads, readers = GrainRuns(np.choose(kinds, [inside, between, half]), 2), accesses(rng, 6, apart=0.01)
        kept = known.ends_reads(writes, who, reads, readers, floor, held)
        ended = np.flatnonzero(kinds == 0)
        lane = np.argsort(place)
        fine = all(proved_of(readers[i], who, int(lane[inside[i] // 10 - 1]), floor, held) for i in ended)
        answers.append(fine and not (kinds == 2).any())
        assert (kept is not None) == answers[-1]
        assert kept is None or kept.tolist() == (kinds == 1).tolist()
    assert {*answers} == {True, False}
    twice = GrainRuns(np.array([20, 30, 27]), 8)
    assert known.ends_reads(twice, who, reads, readers * U(0), 0, held) is None


@pytest.mark.parametrize("native", [True, False])
def test_grains_among_others(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr(grain_engine, "GRAINS", None)
    rng = np.random.default_rng(4)
    for _ in range(50):
        these, others = (GrainRuns(rng.integers(0, 60, int(rng.integers(0, 9))), int(rng.integers(1, 5))) for _ in "ab")
        np.testing.assert_array_equal(these.among(others), np.isin(these.all, others.all))


def test_rows_are_forgotten_where_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_times, "_MOST", 3 * BLOCKS)
    monkeypatch.setattr(known_times, "_CLOCKS", 3)
    lanes = np.arange(WARPS * LANES, dtype=U)
    who = Agents(U(FIRST + 1) << BLOCK_BIT | lanes << THREAD_BIT | U(9) << TIME_BIT, FIRST)
    table = np.array([U(FIRST + 1) << BLOCK_BIT | U(40) << THREAD_BIT | U(5) << TIME_BIT])
    grains = GrainRuns(np.zeros(len(lanes), np.int64), 1)

    def held(until: int, different: int) -> AcquiredClocks:
        """Let threads learn of block 0 up to a time, from so many clocks."""
        found = nothing()
        for some in np.array_split(np.arange(WARPS * LANES), different):
            at = np.zeros(len(some), np.int64), some // LANES, some % LANES
            found.acquire(at, ClusterClocks(found.columns, np.full(found.columns.shape, until, np.int32)))
        return found

    first = held(6, 1)
    known = KnownTimes(first.columns, BLOCKS)
    for until in (6, 5, 6, 5, 6):
        known.forget(0)
        assert known.ordered(GrainTable(table), grains, who, 0, held(until, 2)) == (until > 5)
    many = held(6, 20)
    known.forget(0)
    assert not known.ordered(GrainTable(table), grains, who, 0, many)  # it would need more rows than there may be
    known.forget(0)
    assert known.open((who.block, who.warp, who.lane), np.repeat(table, len(lanes)), many)[1].all()
    known.forget(0)
    assert known.ordered(GrainTable(table), GrainRuns(grains.first[:9], 1), who.some(np.arange(9)), 0, many)


@needs_native
@pytest.mark.parametrize("each", [1, 3])
def test_native_and_numpy_prove_the_same(each: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, answers = np.random.default_rng(each), set()
    for _ in range(400):
        table, who = accesses(rng, 12 * each, apart=0.01), threads(rng, 6)
        table[rng.random(len(table)) < rng.choice([0, 0.9])] = 0
        places = rng.integers(0, 12, 6) if rng.random() < 0.5 else np.sort(rng.permutation(12)[:6])
        grains, floor = GrainRuns(places * each, each), int(rng.integers(0, 7))
        times = (rng.integers(0, 9, (4, COLUMNS)) + rng.choice([0, 5])).astype(np.uint32)
        row = rng.integers(-1, 4, BLOCKS * WARPS * LANES)
        none = Agents(np.zeros(1, U), 0)
        order = (Completes.MBARRIER, Completes.GROUPS, Completes.WARPGROUP)
        mbarrier, groups, warpgroup = (int(none.completed(x).words[0] >> BLOCK_BIT) for x in order)
        known = KnownRows(FIRST + 1, WARPS * LANES, mbarrier, groups, warpgroup, row, times)
        table = GrainTable(table)
        ask = (table, grains, who.words, floor, BITS, known)
        mine, uniform = ordered_by(*ask), words_at(table, grains)
        with monkeypatch.context() as patch:
            patch.setattr(grain_engine, "GRAINS", None)
            other = ordered_by(*ask)
            assert (uniform == words_at(table, grains)).all() and uniform.shape == grains.shape
        assert (mine is None) == (other is None)
        if mine is not None and other is not None:
            assert mine.tolist() == other.tolist()
        answers.add((None if mine is None else len(mine) > 0, uniform.strides[1] == 0))
    assert {proof for proof, _ in answers} == {None, True, False}
    assert each == 1 or {alike for _, alike in answers} == {True, False}


@needs_native
def test_what_is_beyond_is_refused() -> None:
    table, who, grains = np.zeros(4, U), threads(np.random.default_rng(0), 2), GrainRuns(np.array([0, 1]), 1)
    times, row = np.zeros((2, COLUMNS), np.uint32), np.zeros(BLOCKS * WARPS * LANES, np.int64)
    for changed in ({"first": FIRST + 9}, {"threads": 1}, {"row": row + 2}, {"times": times[:, :9]}):
        known = KnownRows(**{**KnownRows(FIRST + 1, WARPS * LANES, 1, 2, 3, row, times)._asdict(), **changed})
        with pytest.raises(ValueError, match=r"beyond|room"):
            ordered_by(GrainTable(table), grains, who.words, 0, BITS, known)
    with pytest.raises(ValueError, match="words"):
        grain_engine.GRAINS.uniform(table, np.zeros(1, U), grains.first, 1, np.zeros(1, U))


@pytest.mark.parametrize("memory", [False, True])
def test_rows_that_are_used_again_know_nothing_old(memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later clocks know less of agents, or of others, than those whose rows they get."""
    monkeypatch.setattr(known_times, "_MOST", 2 * BLOCKS)
    monkeypatch.setattr(known_times, "_CLOCKS", 2)
    rng, answers = np.random.default_rng(4), set[bool]()
    columns = ClusterColumns(range(FIRST, FIRST + BLOCKS), WARPS, 2)
    known = KnownTimes(columns, BLOCKS)
    for _ in range(300):
        held = AcquiredClocks.none(columns, BLOCKS)
        every = tuple(x.reshape(-1) for x in np.indices((BLOCKS, WARPS, LANES)))
        held.acquire(every, clocks(rng, columns))
        if memory and rng.random() < 0.5:
            held.acquire_beyond(every, beyond(rng))
        known.forget(...)
        who, words = threads(rng, 3), accesses(rng, 3)
        found = [
            known.ordered(GrainTable(words[[i]]), GrainRuns(np.zeros(1, np.int64), 1), who.some(np.array([i])), 0, held)
            for i in range(3)
        ]
        assert found == [proved_of(words[i], who, i, 0, held) for i in range(3)]
        answers.update(found)
    assert answers == {True, False}
