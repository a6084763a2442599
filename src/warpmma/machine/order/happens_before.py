"""Happens-before: which accesses of other threads happen before what a thread does now.

The rules (PTX ISA 9.1, Memory Consistency Model; 9.7.13, barriers; CUDA C++ Programming Guide, "Warp Synchronization
Functions"):

1. The accesses of one thread are in program order.
2. When threads synchronize at a barrier of the block, everything that the arriving threads did before it happens before
   everything that the waiting threads do after it. With `bar.sync` these are the same threads; `bar.arrive` does not
   wait. A warp arrives as a whole.
3. When lanes of a warp synchronize at `bar.warp.sync`, everything that one of them did before it happens before what
   each does next. Nothing else orders the lanes of a warp: they need not run in lockstep, and PTX promises no memory
   order for `shfl`, `vote`, `match`, `redux`, `mma` and `ldmatrix`.
4. Order is transitive: a thread that synchronizes with a warp is ordered after everything that the warp is ordered
   after.
5. Threads of different blocks are unordered unless they synchronize through memory (`causality`); threads of one block
   may do so as well.
6. Atomics are strong, and so are loads and stores with `.relaxed`, `.acquire`, `.release` or `.volatile`. Two strong
   accesses do not race if the scope of each includes both threads (`thread_scopes`).

7. A strong write that a thread has observed happens before what the thread does next (causality order, by
   observation), though nothing else that the writer did does; nor need a thread that is ordered after such a read
   have read it itself. A thread has observed the last write of a byte if it has read the byte by a strong read since,
   and the scope of each includes both threads (`access_shadow`).

Time counts the events of a batch of blocks: every access and every barrier is one. A thread is identified by its number
in the block. Each warp has, for every other warp, the time up to which that warp's accesses are ordered before it. An
access is stored as a word of 64 bits (`access_words`); the word 0 means no access.

A time has only 22 bits. After four million events of a batch the clock stops; a race within a block may then be missed,
but nothing ordered is ever reported as a race.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import Array, frozen
from ...operations import MemoryOrder
from ...registers import LANES
from ..base import GrainRuns, GrainTable, Site, alike_in_blocks, ordered, repeats, words_of_lanes
from .access_words import (
    AFTER_ALL,
    BLOCK_BIT,
    LAST_TIME,
    STRONG,
    THREAD_BIT,
    THREADS,
    TIME_BIT,
    WARP_BIT,
    Agents,
    asynchronous,
    block_of,
    outside_scopes,
    thread_of,
    time_of,
)
from .acquired_clocks import AcquiredClocks
from .causality import Causality, Encounters, SyncCells
from .cluster_clocks import Passed
from .known_times import KnownTimes
from .moments import Moment
from .thread_scopes import ThreadScope, ThreadScopes
from .vector_clock import READS, RETURNED, VectorClock

_U = np.uint64
_WIDE = 8  # columns
_MANY = 64  # accesses
_ALONE = ThreadScopes()


class History:
    """The lines of all events of a launch, by batch of blocks."""

    def __init__(self) -> None:
        self._batches: list[tuple[range, list[Site | None]]] = []

    def begin(self, blocks: range) -> list[Site | None]:
        """Begin a batch; return the list of the lines of its events, in which entry 0 is unused."""
        if len(self._batches) > 1 and self._batches[-1][1] == self._batches[-2][1]:  # most batches are the same
            self._batches[-1] = (self._batches[-1][0], self._batches[-2][1])
        self._batches.append((blocks, [None]))
        return self._batches[-1][1]

    def site(self, word: Any) -> Site | None:
        """Return the line of an access; None if the clock had stopped."""
        sites = next(sites for blocks, sites in reversed(self._batches) if block_of(word) in blocks)
        time = int(time_of(word))
        return sites[time] if time < len(sites) else None


@lru_cache(maxsize=8)
def _keys(blocks: range, warps: int) -> Array:
    """Return the part of an access word that names the thread, `[block, warp, lane]`."""
    thread = np.arange(warps * LANES, dtype=_U).reshape(1, warps, LANES) << THREAD_BIT
    block = (np.arange(blocks.start, blocks.stop, dtype=_U) + _U(1)).reshape(-1, 1, 1) << BLOCK_BIT
    return frozen(block | thread)


@lru_cache(maxsize=8)
def _never_synchronized(shape: tuple[int, int]) -> Array:
    """Return the times of the last barriers before there was one, `[block, warp]`."""
    return frozen(np.zeros(shape, np.int64))


def _alike(words: Array) -> Array | None:
    """Return the first column of words, `[n, m]`, if all others equal it, as in large accesses; otherwise None.

    None, too, if there is no other one.
    """
    if words.shape[1] == 1:
        return None
    if words.strides[1] == 0 or (words.shape[1] >= _WIDE and (words == words[:, :1]).all()):
        return words[:, :1]
    return None


class Standing(NamedTuple):
    """What n threads know at a time: up to when other threads are ordered before them.

    Attributes
    ----------
    words : ndarray of uint64
        Their access words, `[n]`.
    warp, thread : tuple of ndarray
        Where the tables have each one's warp, and the thread itself.
    others : ndarray of int
        Time of all other warps of the block, `[*warp]`, or of each, `[*warp, other]`.
    own : ndarray of int
        Time of the own warp, `[*warp]`.
    pairs : ndarray of int or None
        Time of each lane of the own warp, `[*thread, lane]`.
    held : AcquiredClocks or None
        The clocks that they have acquired, `[*thread]`.
    known : KnownTimes or None
        What these clocks prove about accesses of the own block.
    """

    words: Array
    warp: tuple[Array, ...]
    thread: tuple[Array, ...]
    others: Array
    own: Array
    pairs: Array | None
    held: AcquiredClocks | None
    known: KnownTimes | None = None

    def kept(self) -> Standing:
        """Return the same with tables of its own, of these threads alone."""
        rows = (np.arange(len(self.words)),)
        pairs = None if self.pairs is None else self.pairs[self.thread]
        held = None if self.held is None else self.held.of(self.thread)
        return Standing(self.words, rows, rows, self.others[self.warp], self.own[self.warp], pairs, held)

    def unordered(self, others: Array, mine: Array) -> Array:
        """Return which accesses, words `[k]`, are unordered with what threads do, by their numbers `[k]`."""
        block, time = others >> BLOCK_BIT, time_of(others).astype(np.int64)
        its_warp, its_lane = np.divmod((others >> THREAD_BIT & THREADS).astype(np.int64), LANES)
        words, at = self.words[mine], tuple(x[mine] for x in self.warp)
        its_warp[asynchronous(others)] = 0  # they are in no table
        before = self.others[at if self.others.ndim == len(at) else (*at, its_warp)]
        within = self.own[at]
        if self.pairs is not None:
            within = np.maximum(within, self.pairs[(*(x[mine] for x in self.thread), its_lane)])
        same = others >> WARP_BIT == words >> WARP_BIT
        late: Array = (block != words >> BLOCK_BIT) | (time >= np.where(same, within, before))
        if self.held is not None and (some := np.flatnonzero(late)).size:
            if len(some) >= _MANY and self.known is not None:
                threads = tuple(x[mine[some]] for x in self.thread)
                late[some], asked = self.known.open(threads, others[some], self.held)
                some = some[asked]
            if len(some):
                late[some] = ~self.held.covers(tuple(x[mine[some]] for x in self.thread), others[some])
        return late


class VectorClocks:
    """The clocks of a batch of blocks.

    Parameters
    ----------
    blocks : range
        Their numbers in the grid.
    warps : int
        Warps of each block.
    history : History
        Of the launch.
    tracking : bool
        Whether the threads that access memory are recorded.
    scopes : ThreadScopes
        Of the launch.

    Attributes
    ----------
    blocks : range
    scopes : ThreadScopes
    now : int
        The time of the next event.
    floor : int
        Everything before this time happens before everything that follows in its own block.
    touched : ndarray of int
        When each warp last accessed memory, `[block, warp]`.
    alike : bool
        Whether the threads of each block know of it what those of the first know of theirs.
    """

    def __init__(
        self, blocks: range, warps: int, history: History, *, tracking: bool = True,
        scopes: ThreadScopes = _ALONE,
    ) -> None:  # fmt: skip
        self._tracking, self.scopes = tracking, scopes
        self._shape, self._first, self.blocks = (len(blocks), warps), blocks.start, blocks
        self.now = 1
        self.sites = history.begin(blocks)
        self._history = history
        self._keys = _keys(blocks, warps)
        # For each warp, the times up to which the other warps, its own lanes, and both are ordered before it.
        self._others = self._own = self._both = _never_synchronized(self._shape)
        self.touched = np.zeros(self._shape, np.int64)
        self._warps: Array | None = None  # [block, warp, other warp], from the first barrier of part of a block on
        self._pairs: Array | None = None  # [block, warp, lane, other lane], from the first mask of part of a warp on
        self._no_words = np.zeros(0, _U)
        self.floor = 0
        self.causality = Causality(blocks, self._shape, scopes)
        self._encounters = Encounters(self._shape, self.causality)
        self._moment_now: Moment | None = None
        self._no_times = np.zeros((0, warps), np.int64)
        self._alike: bool | None = None  # as far as barriers tell; None if it is not known
        self._held_alike = -1, False  # the changes of what is held, and the answer then

    def tick(self, site: Site | None = None) -> int:
        """Count an event and return its time; a barrier has no line, because no access refers to it."""
        time = self.now
        if time < LAST_TIME:
            self.now += 1
            self.sites.append(site)
        return time

    def who(self, time: int, lanes: Array, count: int) -> Agents:
        """Return the agents of an access at a time: `count` lanes, bool `[block, warp, lane]`."""
        if not self._tracking:
            if len(self._no_words) < count:
                self._no_words = frozen(np.zeros(count, _U))
            return Agents(self._no_words[:count], self._first)
        keys = self._keys
        if count == lanes.size:
            self.touched[...] = time
            words = keys.reshape(-1) | _U(time) << TIME_BIT
        else:
            words = words_of_lanes(keys, lanes, count, time, int(TIME_BIT), self.touched)
        return Agents(words, self._first)

    def who_of_first(self, time: int, lanes: Array, count: int) -> Agents:
        """Return the agents of the first block, lanes `[1, warp, lane]`, of an access that is alike in all."""
        if not self._tracking:
            return self.who(time, lanes, count)
        self.touched[:, lanes[0].any(axis=-1)] = time
        keys = self._keys[:1]
        words = keys.reshape(-1) if count == lanes.size else keys[lanes]
        return Agents(words | _U(time) << TIME_BIT, self._first)

    # Rule 2

    def arrive(self) -> tuple[int, Array]:
        """Return the time of an arrival, and up to when others are ordered before warps, `[block, warp, other]`."""
        time = self._barrier_time()
        self.tick()
        if self._warps is None:
            self._warps, self._alike = np.repeat(self._others[:, :, None], self._shape[1], axis=2), None
        return time, self._warps

    def synchronize_blocks(self, blocks: Array) -> None:
        """Synchronize all warps of blocks, bool `[block]`."""
        time = self._barrier_time()
        self._others, self._own = (np.where(blocks[:, None], time, x) for x in (self._others, self._own))
        if self._warps is not None:
            self._warps[blocks] = time
        if self.causality.active:
            self.causality.synchronize_blocks(blocks)
        self._renew()

    def synchronize_warps(self, waiting: Array, arriving: Array, when: Array, ordered_until: Array) -> None:
        """Synchronize warps at a barrier.

        Parameters
        ----------
        waiting, arriving : ndarray of bool
            `[block, warp]`; warps that wait arrive too.
        when, ordered_until : ndarray of int
            What `arrive` returned when each of them arrived, `[block, warp]` and `[block, warp, other warp]`.
        """
        _, warps = self.arrive()
        joined = np.where(arriving[:, :, None], ordered_until, 0).max(axis=1)  # rule 4
        joined[arriving] = when[arriving]
        self._warps = np.where(waiting[:, :, None], np.maximum(warps, joined[:, None]), warps)
        self._others = self._least_of_others(self._warps)
        self._own = np.where(waiting, self._barrier_time(), self._own)
        self._renew()

    def quiet(self, warps: Array) -> Array:
        """Return which of some warps, `[block, warp]`, did nothing that other warps of the block are unordered with."""
        known = np.where(warps, AFTER_ALL, self._others).min(axis=1, keepdims=True)
        return np.asarray(~warps | (self.touched < known) | (self.touched == 0))

    def _barrier_time(self) -> int:
        """Return the time of a barrier; once the clock has stopped, a time after all accesses."""
        return self.now if self.now < LAST_TIME else LAST_TIME + 1

    def _least_of_others(self, warps: Array) -> Array:
        others = np.where(np.eye(self._shape[1], dtype=bool), AFTER_ALL, warps)
        least: Array = others.min(axis=2)
        return least

    # Rule 3

    def synchronize_lanes(self, warps: Array, groups: Mapping[tuple[int, int], Array]) -> None:
        """Synchronize lanes at a `bar.warp.sync`.

        Parameters
        ----------
        warps : ndarray of bool
            `[block, warp]`: warps in which all lanes synchronize.
        groups : dict
            Other warps, by block and warp: which lanes synchronize with which, bool `[lane, lane]`.
        """
        time = self._barrier_time()
        self._own = self._own.copy()
        self._own[warps] = time
        if groups and self._pairs is None:
            self._pairs = np.zeros((*self._shape, LANES, LANES), np.int64)
        alike: dict[bytes, list[tuple[int, int]]] = {}
        for at, together in groups.items():
            known = b"" if self._pairs is None else self._pairs[at].tobytes()
            alike.setdefault(together.tobytes() + known + self._own[at].tobytes(), []).append(at)
        for same in alike.values():
            self._join_lanes(same, groups[same[0]], time)
        if self.causality.active:
            self.causality.synchronize_whole(warps)
            for (block, warp), together in groups.items():
                self.causality.synchronize_lanes(block, warp, together)
        self._renew()

    def _join_lanes(self, warps: list[tuple[int, int]], together: Array, time: int) -> None:
        """Rules 3 and 4, for warps with equal clocks."""
        if self._pairs is not None:
            known = np.maximum(self._pairs[warps[0]], self._own[warps[0]])
            joined = np.where(together[:, :, None], known[None], 0).max(axis=1)
            joined[together] = time
            block, warp = np.transpose(warps)
            self._pairs[block, warp] = np.maximum(known, joined)

    @property
    def partial(self) -> bool:
        """Whether some threads of a block have synchronized without the others."""
        return self._warps is not None or self._pairs is not None

    def _renew(self) -> None:
        self._both = np.minimum(self._others, self._own) if self._shape[1] > 1 else self._own
        self.floor = int(self._both.min(initial=AFTER_ALL))
        self._moment_now = self._alike = None
        self.tick()

    @property
    def alike(self) -> bool:
        """See above; False as well where that is not looked at."""
        held = self.causality.held
        if self._alike is None:
            tables = [x for x in (self._others, self._own, self._warps) if x is not None]
            self._alike = self._pairs is None and all(bool((x == x[:1]).all()) for x in tables)
        if self._alike and self._held_alike[0] != held.changes:
            self._held_alike = held.changes, held.alike
        return self._alike and self._held_alike[1]

    def site(self, word: Any) -> Site | None:
        """Return the line of an access, of this batch or an earlier one."""
        return self._history.site(word)

    # Rule 5

    def moment(self) -> Moment:
        """Return a snapshot of the clocks of all threads."""
        if self._moment_now is None:
            warps = (self._others if self._warps is None else self._warps).copy()
            pairs = None if self._pairs is None else self._pairs.copy()
            self._moment_now = Moment(self.causality.columns, self.now, warps, self._own.copy(), pairs, None)
        held = self.causality.held if self.causality.active else None
        return replace(self._moment_now, time=self._barrier_time(), held=held, alike=self.alike)

    def clock_of(self, block: int, warp: int, lanes: list[int]) -> VectorClock:
        """Return the joined clock of lanes of a warp, now."""
        return self.moment().of(block, warp, lanes)

    def passed_by(self, threads: Array) -> Passed:
        """Return what threads, bool `[block, warp, lane]`, pass on now, joined by cluster."""
        return self.moment().passed_by(threads)

    def of_accesses(self, words: Array, places: tuple[Array, Array] | None = None) -> Passed:
        """Return clocks of asynchronous accesses, words `[n]`, alone: nothing else that their threads did."""
        return Passed(self.causality.columns.of_accesses(words, places))

    def observe(self, threads: Array, words: Array) -> None:
        """Let threads, block, warp and lane of each, `[n, 3]`, acquire asynchronous accesses, words `[n]`."""
        if not len(words):
            return
        begin = np.flatnonzero(np.append(True, words[1:] != words[:-1]))  # lanes of a warp observe the same one
        runs, each = words[begin], np.diff(begin, append=len(words))
        row, column = self.causality.columns.places(runs, new=True)
        if (column == column[0]).all():
            self.causality.acquire(threads, self.of_accesses(runs, (row, column)))
            return
        for agent in np.unique(column):
            of = column == agent
            its = self.of_accesses(runs[of], (row[of], column[of]))
            self.causality.acquire(threads[np.repeat(of, each)], its)

    def observe_of_warps(self, lanes: Array, words: Array) -> None:
        """Let lanes, bool `[block, warp, lane]`, acquire the asynchronous accesses of their warps, `[block, warp]`.

        The word 0 is none.
        """
        threads = lanes & (words != 0)[..., None]
        first = np.flatnonzero(threads[0].any(axis=-1))
        its = np.ascontiguousarray(words[:, first])
        alike = self.causality.held.in_lockstep and alike_in_blocks(threads)
        if not (alike and repeats(its.reshape(-1), len(its), 1 << int(BLOCK_BIT))):
            some = np.argwhere(threads)
            self.observe(some, words[some[:, 0], some[:, 1]])
            return
        _, column = self.causality.columns.places(its[0], new=True)
        for agent in np.unique(column):
            of, which = column == agent, np.zeros((1, *threads.shape[1:]), bool)
            which[0, first[of]] = threads[0, first[of]]
            passed = Passed(self.causality.columns.of_first(its[0, of]))
            self.causality.acquire_together(np.broadcast_to(which, threads.shape), passed)

    def acquired(self, warps: Array, until: Array, lanes: Array) -> Array:
        """Return which other warps the clocks that warps have acquired order before them, `[block, warp, other]`.

        Parameters
        ----------
        warps : ndarray of bool
            The pairs that are asked about, `[block, warp, other]`.
        until : ndarray of int
            All that an other warp did before this time has to be ordered, `[block, other]`.
        lanes : ndarray of bool
            Whose clocks count: one lane of a warp is enough.
        """
        found: Array = np.zeros(warps.shape, bool)
        if not self.causality.active:
            return found
        for block, warp in np.argwhere(warps.any(axis=-1)).tolist():
            known = self.causality.held.known_to((block, warp, np.flatnonzero(lanes[block, warp])))
            if known is not None:
                others = np.flatnonzero(warps[block, warp])
                words = self._keys[block, others] | (until[block, others] - 1).astype(_U)[:, None] << TIME_BIT
                found[block, warp, others] = known.covers(words.reshape(-1)).reshape(words.shape).all(axis=-1)
        return found

    def clock_at_arrival(self, block: int, warps: Array, when: Array, ordered_until: Array) -> VectorClock:
        """Return the joined clock of warps of a block, bool `[block, warp]`, at arrival: see `synchronize_warps`."""
        until = np.where(warps[block][:, None], ordered_until[block], 0).max(axis=0)
        until[warps[block]] = when[block][warps[block]]
        return VectorClock(self._first, until[None], low=block)

    def fence(self, lanes: Array, order: MemoryOrder, scope: ThreadScope) -> None:
        """Let lanes, bool `[block, warp, lane]`, execute a fence."""
        self.causality.fence(lanes, self.moment(), order, scope)
        self.tick()

    def fence_proxy(self, lanes: Array, spaces: Sequence[str]) -> None:
        """Let lanes, bool `[block, warp, lane]`, execute a `fence.proxy.async` for spaces (`asynchronous_rules`)."""
        for some in self.causality.parts(lanes, by_warp=True):
            passed = self.passed_by(some)
            if passed.clocks is not None:
                crossed = self.causality.columns.without_times(dict.fromkeys(spaces, passed.clocks.uncrossed()))
                beyond = {
                    row: VectorClock(self._first, self._no_times, crossed=dict.fromkeys(spaces, clock.uncrossed()))
                    for row, clock in passed.beyond.items()
                }
                self.causality.acquire_together(some, Passed(crossed, beyond))
        self.tick()

    def cross_further(self, lanes: Array, space: str, further: str) -> None:
        """Let what has crossed to one space for lanes, bool `[block, warp, lane]`, cross to another for each (A20)."""
        if self.causality.active:
            self.causality.cross_further(lanes, space, further)

    def over(self, passed: Passed) -> Passed:
        """Return what an arrival passes on to another block whatever its scope: what another clock knows is over (A9).

        These are reads of threads, and asynchronous operations.
        """
        beyond = {
            row: VectorClock(self._first, self._no_times, agents=clock.agents, crossed={READS: clock.uncrossed()})
            for row, clock in passed.beyond.items()
        }
        return Passed(None if passed.clocks is None else passed.clocks.over(), beyond)

    def returned(self, passed: Passed) -> Passed:
        """Return what a `.relaxed` arrival of a cluster says about reads of threads, whose values were used (A18)."""
        clocks = passed.clocks
        if clocks is not None:
            clocks = self.causality.columns.without_times({RETURNED: clocks.uncrossed()})
        beyond = {
            row: VectorClock(self._first, self._no_times, crossed={RETURNED: clock.uncrossed()})
            for row, clock in passed.beyond.items()
        }
        return Passed(clocks, beyond)

    def still_reading(self, words: Array, who: Agents) -> Array:
        """Return which reads, words `[n, m]`, threads do not know to be over (A9)."""
        left, far = self.uncrossed(words, who, READS), asynchronous(words)
        return np.asarray(far if left is None else far | left)

    def uncrossed(self, words: Array, who: Agents, space: str, *, operations: bool = False) -> Array | None:
        """Return which generic accesses, words `[n, m]`, have not crossed to the async proxy of a space for threads.

        None if all have. With `operations`, accesses of asynchronous operations have to cross as well.
        """
        if (first := _alike(words)) is not None:
            found = self.uncrossed(first, who, space, operations=operations)
            return found if found is None else np.broadcast_to(found, words.shape).copy()
        bad = words != 0 if operations else (words != 0) & ~asynchronous(words)
        if not bad.any():
            return None
        if self.causality.active and not operations:  # most have, when all threads of the block had reached a time
            until = self.causality.held.crossed_until((who.block, who.warp, who.lane), space).astype(_U)[:, None]
            own = words >> BLOCK_BIT == who.words[:, None] >> BLOCK_BIT
            bad &= ~own | (time_of(words) >= until)
            if not bad.any():
                return None
        lane, column = np.nonzero(bad)
        if self.causality.active:
            threads = who.block[lane], who.warp[lane], who.lane[lane]
            bad[lane, column] = ~self.causality.held.covers(threads, words[lane, column], space)
        return bad if bad.any() else None

    def act(
        self, cells: SyncCells, who: Agents, offset: Array, order: MemoryOrder, scope: ThreadScope, *,
        reads: bool, writes: Array | None,
    ) -> None:  # fmt: skip
        """Let threads access memory strongly, one after another: see `Causality.act`."""
        moment = self.moment() if order in ("release", "acq_rel") else None
        threads = (who.block, who.warp, who.lane)
        self._encounters.note(cells, threads, offset, self.now)
        self.causality.act(cells, threads, offset, order, scope, moment, reads=reads, writes=writes)

    def unfenced(self, other: Any, own: Any) -> SyncCells | None:
        """Return the memory through which the threads of two accesses communicated without fences (`Encounters`)."""
        mine, its = ((block_of(x) - self._first, *thread_of(x)) for x in (own, other))
        return self._encounters.unfenced(mine, its, int(time_of(other)))

    # Whether accesses are ordered

    def ends_reads(self, writes: GrainRuns, who: Agents, reads: GrainRuns, readers: Array) -> Array | None:
        """Return which reads, words `[m]`, writes do not end: see `base.ends_reads`; None if that is not known."""
        return self.causality.known.ends_reads(writes, who, reads, readers, self.floor, self.causality.held)

    def surely_ordered(self, table: GrainTable, grains: GrainRuns, who: Agents) -> bool:
        """Whether a quick check proves that all accesses in a table, by granule, happen before what threads do now."""
        if self.causality.active:
            return self.causality.known.ordered(table, grains, who, self.floor, self.causality.held)
        bits: Any = {"thread": THREAD_BIT, "block": BLOCK_BIT, "time": TIME_BIT, "last": LAST_TIME}
        return ordered(table, grains, who.words, self.floor, **bits)

    def unordered(self, others: Array, who: Agents, *, races: bool = True) -> Array | None:
        """Return which accesses of others are unordered with what threads do now.

        Parameters
        ----------
        others : ndarray of uint64
            `[n, m]`, m for each thread.
        who : Agents
        races : bool
            Whether to omit strong accesses that do not race (rule 6).

        Returns
        -------
        ndarray of bool or None
            `[n, m]`; None if all are ordered.
        """
        if (first := _alike(others)) is not None:
            found = self.unordered(first, who, races=races)
            return found if found is None else np.broadcast_to(found, others.shape).copy()
        mine = who.words[:, None]
        bad = ((others ^ mine) >> THREAD_BIT != 0) & (others != 0)
        if not bad.any():
            return None
        known = self._both[who.block, who.warp].astype(_U)[:, None]
        elsewhere = others >> BLOCK_BIT != mine >> BLOCK_BIT
        bad &= (time_of(others) >= known) | elsewhere
        if races and (mine & STRONG).any():
            bad &= outside_scopes(others, mine, self.scopes)
        lane, column = np.nonzero(bad)
        if not len(lane):
            return None
        bad[lane, column] = self.standing(who).unordered(others[lane, column], lane)
        return bad if bad.any() else None

    def standing(self, who: Agents) -> Standing:
        """Return what threads know, until the next event."""
        warp = who.block, who.warp
        others, causality = self._others if self._warps is None else self._warps, self.causality
        held, known = (causality.held, causality.known) if causality.active else (None, None)
        return Standing(who.words, warp, (*warp, who.lane), others, self._own, self._pairs, held, known)
