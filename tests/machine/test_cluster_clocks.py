"""Clocks of all clusters at once: against a table with the time of every agent for every thread."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from warpmma.machine.order import (
    Agents,
    Completes,
    History,
    Passed,
    ThreadScopes,
    VectorClock,
    VectorClocks,
    acquired_clocks,
)
from warpmma.machine.order.access_words import BLOCK_BIT, THREAD_BIT, TIME_BIT
from warpmma.machine.order.causality import Causality
from warpmma.machine.order.moments import Moment

FIRST, BLOCKS, WARPS, LANES = 5, 6, 2, 32
THREADS, LATEST = WARPS * LANES, 12
SHAPE = BLOCKS, WARPS, LANES
U = np.uint64


def agents() -> Any:
    """Return a word for each agent: the threads of the batch, then an mbarrier and three groups of each block."""
    block, thread = np.divmod(np.arange(BLOCKS * THREADS, dtype=U), U(THREADS))
    words = (block + U(FIRST + 1)) << BLOCK_BIT | thread << THREAD_BIT
    who = Agents(words, FIRST)
    few = who.some(np.flatnonzero(thread < 3))
    numbers = few.block * 1024 + 7 * few.lane
    more = [few.completed(Completes.MBARRIER, numbers).words, few.completed(Completes.GROUPS).words]
    return np.concatenate([words, *more])


AGENTS = agents()
BLOCK_OF = np.concatenate([np.repeat(np.arange(BLOCKS), THREADS), *[np.repeat(np.arange(BLOCKS), 3)] * 2])


class Table(NamedTuple):
    """What each of n threads or clusters knows: the time of every agent, and that of what has crossed, `[n, agent]`."""

    known: Any
    crossed: Any

    def join(self, which: Any, known: Any, crossed: Any) -> None:
        self.known[which], self.crossed[which] = (
            np.maximum(mine[which], its) for mine, its in zip(self, (known, crossed), strict=True)
        )


def told(covers: Any) -> Any:
    """Return the time of every agent, from which of its accesses are covered."""
    return np.sum([covers(AGENTS | U(time) << TIME_BIT) for time in range(LATEST)], axis=0)


def of_passed(passed: Passed, clusters: int) -> Table:
    """Return what comes to each cluster."""
    found = Table(*(np.zeros((clusters, len(AGENTS)), np.int64) for _ in range(2)))
    for row in range(clusters):
        rows, clocks, beyond = np.full(len(AGENTS), row), passed.clocks, passed.beyond.get(row)
        if clocks is not None:
            found.join(row, told(lambda x, c=clocks, r=rows: c.covers(x, r)), 0)
            if (crossed := clocks.crossed.get("shared")) is not None:
                found.join(row, 0, told(lambda x, c=crossed, r=rows: c.covers(x, r)))
        if beyond is not None:
            found.join(row, told(beyond.covers), told(beyond.crossed["shared"].covers) if beyond.crossed else 0)
    return found


def of_threads(causality: Causality) -> Table:
    """Return what each thread knows."""
    where = [np.repeat(x, len(AGENTS)) for x in np.indices(SHAPE).reshape(3, -1)]
    words = np.tile(AGENTS, BLOCKS * THREADS)

    def asked(space: str) -> Any:
        return np.sum([causality.held.covers((where[0], where[1], where[2]), words | U(time) << TIME_BIT, space)
                       for time in range(LATEST)], axis=0).reshape(-1, len(AGENTS))  # fmt: skip

    return Table(asked(""), asked("shared"))


def of_moment(moment: Moment) -> Any:
    """Return what each thread knows besides what it has acquired."""
    known = np.zeros((*SHAPE, *SHAPE), np.int64)
    warps = moment.warps if moment.warps.ndim == 3 else np.repeat(moment.warps[..., None], WARPS, axis=2)
    for block in range(BLOCKS):
        for warp in range(WARPS):
            known[block, warp, :, block] = warps[block, warp][:, None]
            known[block, warp, :, block, warp] = moment.own[block, warp]
            if moment.pairs is not None:
                of = known[block, warp, :, block, warp]
                np.maximum(of, moment.pairs[block, warp], out=of)
            known[block, warp, range(LANES), block, warp, range(LANES)] = moment.time
    flat = known.reshape(BLOCKS * THREADS, -1)
    return np.pad(flat, ((0, 0), (0, len(AGENTS) - flat.shape[1])))


def some_threads(rng: np.random.Generator, cluster: int) -> Any:
    """Draw threads: of all blocks, or of few; alike in each cluster, or not."""
    lanes = rng.random((cluster, WARPS, LANES)) < rng.choice([0.05, 0.5, 1])
    threads = np.tile(lanes, (BLOCKS // cluster, 1, 1)) if rng.random() < 0.6 else rng.random(SHAPE) < 0.1
    return threads & (rng.random(BLOCKS) < rng.choice([0.4, 1]))[:, None, None]


@pytest.mark.parametrize("most", [3, 64], ids=["few clocks are kept", "all clocks are kept"])
@pytest.mark.parametrize("cluster", [1, 2])
def test_threads_know_what_they_acquire(cluster: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acquired_clocks, "_MOST", most)
    rng, clusters = np.random.default_rng([cluster, most]), BLOCKS // cluster
    causality = Causality(range(FIRST, FIRST + BLOCKS), (BLOCKS, WARPS), ThreadScopes(cluster))
    table = Table(*(np.zeros((BLOCKS * THREADS, len(AGENTS)), np.int64) for _ in range(2)))
    row_of = np.arange(BLOCKS * THREADS) // (THREADS * cluster)
    for step in range(60):
        threads, others = some_threads(rng, cluster), some_threads(rng, cluster)
        which, kind = np.flatnonzero(threads), step % 6
        if not len(which):
            continue
        if kind < 2:  # others pass on what they know
            pairs = rng.integers(0, 9, (BLOCKS, WARPS, LANES, LANES)) if step % 4 else None
            warps = rng.integers(0, 8, (BLOCKS, WARPS, WARPS) if step % 3 else (BLOCKS, WARPS))
            held = causality.held if causality.active else None
            at = Moment(causality.columns, 10, warps, rng.integers(0, 8, (BLOCKS, WARPS)), pairs, held)
            passed, theirs = at.passed_by(others), of_moment(at)
            wanted = Table(*(np.zeros((clusters, len(AGENTS)), np.int64) for _ in range(2)))
            for thread in np.flatnonzero(others).tolist():
                wanted.join(row_of[thread], np.maximum(theirs[thread], table.known[thread]), table.crossed[thread])
            if kind and passed.clocks is not None:  # it crosses, and nothing else
                crossed = causality.columns.without_times({"shared": passed.clocks.uncrossed()})
                memory = {row: VectorClock(FIRST, np.zeros((0, WARPS), np.int64), crossed={"shared": x.uncrossed()})
                          for row, x in passed.beyond.items()}  # fmt: skip
                passed, wanted = Passed(crossed, memory), Table(wanted.known * 0, wanted.known)
            assert all((x == y).all() for x, y in zip(of_passed(passed, clusters), wanted, strict=True))
        elif kind == 2:  # operations
            agent = rng.choice(np.arange(BLOCKS * THREADS, len(AGENTS)), 5)
            times = rng.integers(0, LATEST - 2, 5)
            passed = Passed(causality.columns.of_accesses(AGENTS[agent] | times.astype(U) << TIME_BIT))
            wanted = Table(*(np.zeros((clusters, len(AGENTS)), np.int64) for _ in range(2)))
            for each, time in zip(agent.tolist(), times.tolist(), strict=True):
                wanted.join((BLOCK_OF[each] // cluster, each), time + 1, 0)
        elif kind == 3:  # memory, which knows of other clusters
            until = rng.integers(0, 9, (1, WARPS))
            block = int(rng.integers(BLOCKS))
            for thread in which[:3].tolist():
                causality.acquire_lanes([(thread // LANES % WARPS, thread % LANES)], thread // THREADS,
                                        VectorClock(FIRST, until, low=block))  # fmt: skip
                times = np.zeros(len(AGENTS), np.int64)
                times[block * THREADS : (block + 1) * THREADS] = np.repeat(until[0], LANES)
                table.join(thread, times, 0)
            continue
        elif kind == 4:  # a barrier of blocks
            blocks = rng.random(BLOCKS) < 0.6
            causality.synchronize_blocks(blocks)
            for block in np.flatnonzero(blocks & causality.active).tolist():
                its = slice(block * THREADS, (block + 1) * THREADS)
                table.join(its, table.known[its].max(axis=0), table.crossed[its].max(axis=0))
            continue
        else:  # lanes of warps, or some threads of a block, which others wait for
            warps = threads.any(axis=-1)
            causality.synchronize_whole(warps)
            for warp in np.flatnonzero(warps).tolist():
                its = slice(warp * LANES, (warp + 1) * LANES)
                table.join(its, table.known[its].max(axis=0), table.crossed[its].max(axis=0))
            before = Table(*(x.copy() for x in table))
            causality.synchronize_threads(threads, threads | others, [(others, causality.held.copy())])
            for block in range(BLOCKS):
                wait, arrive = (np.flatnonzero(x[block]) + block * THREADS for x in (threads, threads | others))
                if len(wait):
                    table.join(wait, before.known[arrive].max(axis=0), before.crossed[arrive].max(axis=0))
            continue
        causality.acquire(np.argwhere(threads), passed)
        for row in range(clusters):
            table.join(which[row_of[which] == row], wanted.known[row], wanted.crossed[row])
    found = of_threads(causality)
    assert (found.known == table.known).all() and (found.crossed == table.crossed).all()
    assert table.known.any() and table.crossed.any()
    for block in range(BLOCKS):
        some = np.flatnonzero(rng.random(THREADS) < 0.1)
        clock = causality.held.known_to((np.full(len(some), block), some // LANES, some % LANES))
        its = table.known[block * THREADS + some]
        assert (told(clock.covers) == its.max(axis=0)).all() if clock is not None else not its.any()


def test_what_is_over_are_operations_and_reads() -> None:
    columns = Causality(range(FIRST, FIRST + BLOCKS), (BLOCKS, WARPS), ThreadScopes(2)).columns
    known = columns.of_accesses(AGENTS | U(4) << TIME_BIT)
    over, threads = known.over(), np.arange(len(AGENTS)) < BLOCKS * THREADS
    assert (told(lambda words: over.covers(words, BLOCK_OF // 2)) == np.where(threads, 0, 5)).all()
    assert (told(lambda words: over.crossed["reads"].covers(words, BLOCK_OF // 2)) == 5).all()
    assert not told(lambda words: over.covers(words, 1 - BLOCK_OF // 2)).any()  # of other clusters


@pytest.mark.parametrize("cluster", [1, 2])
def test_a_block_has_crossed_until_the_least_time_of_its_threads(cluster: int) -> None:
    rng = np.random.default_rng(cluster)
    causality = Causality(range(FIRST, FIRST + BLOCKS), (BLOCKS, WARPS), ThreadScopes(cluster))
    times = rng.integers(0, 9, BLOCKS * THREADS)
    known = causality.columns.of_accesses(AGENTS[: len(times)] | times.astype(U) << TIME_BIT)
    threads = some_threads(rng, cluster)
    causality.acquire(np.argwhere(threads), Passed(causality.columns.without_times({"shared": known})))
    block, warp, lane = np.indices(SHAPE).reshape(3, -1)
    until = causality.held.crossed_until((block, warp, lane), "shared")
    least = times.reshape(BLOCKS, THREADS).min(axis=1) + 1
    assert threads.any() and (until == np.where(threads.ravel(), least[block], 0)).all()
    assert not causality.held.crossed_until((block, warp, lane), "global").any()
    few = causality.columns.of_accesses(AGENTS[1 : len(times)] | U(4) << TIME_BIT)
    assert few.least[0] == 0 and (few.least[1:] == 5).all()
    assert not causality.columns.without_times({}).least.any()


@pytest.mark.parametrize("joined", [False, True])
def test_threads_observe_operations_of_several_agents(joined: bool) -> None:
    """Words that repeat, of lanes of a warp, are as good as others."""
    clocks = VectorClocks(range(FIRST, FIRST + BLOCKS), WARPS, History(), scopes=ThreadScopes())
    threads = np.argwhere(np.ones(SHAPE, bool))
    who = Agents(AGENTS[: BLOCKS * THREADS] | U(3) << TIME_BIT, FIRST)
    if joined:
        who = who.some(np.arange(BLOCKS * THREADS) // LANES * LANES)
    words = who.completed(Completes.WARPGROUP if joined else Completes.GROUPS).words
    clocks.observe(threads[:0], words[:0])
    assert not clocks.causality.active
    clocks.observe(threads, words)
    where = threads[:, 0], threads[:, 1], threads[:, 2]
    assert clocks.causality.held.covers(where, words).all()
    if not joined:  # of no other thread's
        other = np.roll(words.reshape(-1, LANES), 1, axis=1).ravel()
        assert not clocks.causality.held.covers(where, other | U(9) << TIME_BIT).any()
