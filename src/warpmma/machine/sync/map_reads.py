"""Reads of tensor maps: which copies may still read a map that is about to change (A21).

The rules:

1. A copy reads its map at any time between its issue and its completion. Its reading is over for those that are ordered
   behind a `wait_group`, with or without `.read`, of its thread that includes the group which the thread has committed
   since, though a load joins no group (measured); or behind a phase of the mbarrier that counts its bytes.
2. Who changes a byte of the map, a thread or a copy in bulk, has to be ordered behind that. Policy "strict" also
   reports a write of the same bytes. A wait with `.read` does not protect the map from a plain store of its thread that
   ptxas moves in front of it (A29, `program.early_stores`).
3. Groups of a thread complete in order, and so do phases of an mbarrier: of the copies of one thread with one map, only
   the last one at each mbarrier is kept, and the last one that joins a group.
4. When a batch of blocks ends, its copies are complete (A15). To later batches, each thread has read the maps when it
   issued the copies: a thread that writes one then races with it, unless the threads are ordered.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..._arrays import Array
from ..base import Site
from ..memory import Allocation, Touch
from ..order import THREAD_BIT, Agents, Completes, VectorClocks, at_time, thread_of
from ..report import Reporter
from .async_operations import Signal

_BYTES = 128
_U = np.uint64


@dataclass(eq=False)
class _Read:
    """The last read of a map by copies of a thread that complete in the same way."""

    touch: Touch  # of all threads that issued copies then
    lane: int  # which of these it is
    group: int  # how many groups the thread had committed before
    phases: tuple[int, ...]  # access words of the mbarriers that count its bytes, when it was issued
    ended: int = 0  # access word of its thread, when it had waited for the group
    waited: Site | None = None  # where, if it waited for the reading alone

    @property
    def word(self) -> int:
        """The access word of its thread, when it was issued."""
        return int(self.touch.who.words[self.lane])


@dataclass(eq=False)
class _Maps:
    """The maps in a piece of memory that copies have read, by offset: the reads of each, by thread and mbarriers.

    The memory refers to this, so that this does not refer to the memory.
    """

    reporter: Reporter
    clocks: VectorClocks
    early: frozenset[tuple[Site, Site]]  # `early_stores`
    reads: dict[int, dict[tuple[int, ...], _Read]] = field(default_factory=dict)
    offsets: Array = field(default_factory=lambda: np.zeros(0, np.int64))  # of the maps, sorted

    def put(self, offset: int, read: _Read) -> _Read | None:
        """Keep a read, and return the one that it replaces (rule 3)."""
        if offset not in self.reads:
            self.reads[offset] = {}
            self.offsets = np.array(sorted(self.reads), np.int64)
        agents = tuple(x >> int(THREAD_BIT) for x in (read.word, *read.phases))
        before = self.reads[offset].get(agents)
        self.reads[offset][agents] = read
        return before

    # Rule 2

    def changed(self, touch: Touch, changed: Array | None) -> None:
        """Report lanes that change bytes of maps, bool `[n, size]`, None for all, which copies may still read."""
        if not len(touch.offset):
            return
        first = int(np.searchsorted(self.offsets, touch.offset.min() - _BYTES, "right"))
        last = int(np.searchsorted(self.offsets, touch.offset.max() + touch.size, "left"))
        for offset in self.offsets[first:last].tolist():
            hit = (touch.offset < offset + _BYTES) & (touch.offset + touch.size > offset)
            if changed is not None and not self.reporter.strict:
                places = touch.offset[:, None] + np.arange(touch.size)
                hit &= (changed & (places >= offset) & (places < offset + _BYTES)).any(axis=1)
            if hit.any():
                self._check(list(self.reads[offset].values()), touch, np.flatnonzero(hit))

    def _check(self, reads: list[_Read], touch: Touch, which: Array) -> None:
        """Report those of some lanes, by number, that are not ordered behind all reads of a map."""
        who, number = touch.who.some(which), max(len(x.phases) for x in reads)
        ends = np.array([[x.ended, *x.phases, *[0] * (number - len(x.phases))] for x in reads], _U)
        over: Array = np.zeros((len(which), len(reads)), bool)
        for column, words in enumerate(ends.T):
            known = np.broadcast_to(words, over.shape)
            late = self.clocks.unordered(known, who, races=False)
            if late is not None and column == 0 and self.clocks.scopes.cluster > 1 and not self.reporter.strict:
                late = late & self.clocks.still_reading(known, who)  # A9
            if column == 0 and self.early:
                late = self._early(reads, touch, who, late)
            over |= (known != 0) if late is None else (known != 0) & ~late
        if over.all():
            return
        read = reads[np.argwhere(~over)[0, 1]]
        where: Array = np.zeros(touch.lanes.shape, bool)
        where[tuple(np.argwhere(touch.lanes)[which[~over.all(axis=1)]].T)] = True
        site, (warp, _) = read.touch.site, thread_of(read.word)
        rule = "A21"
        advice = "wait at its mbarrier, or by cp.async.bulk.commit_group and wait_group.read 0, before the map changes"
        if read.waited is not None and (read.waited, touch.site) in self.early:
            rule = "A29"
            advice = f"ptxas moves this store before the wait at {read.waited.place}; put a fence or a barrier between"
        detail = f"the copy of warp {warp} at {site.what} may still read this tensor map: {advice}"
        self.reporter.report("pending", touch.site, where, touch.address, detail, site, rule=rule)

    def _early(self, reads: list[_Read], touch: Touch, who: Agents, late: Array | None) -> Array | None:
        """Return which reads are late, `[n, m]`, also those whose wait comes after the store in machine code (A29)."""
        moved = np.array([x.waited is not None and (x.waited, touch.site) in self.early for x in reads])
        if touch.proxy or not moved.any():
            return late
        words = np.array([x.word for x in reads], _U)
        own = moved & (words >> THREAD_BIT == (who.words >> THREAD_BIT)[:, None])
        return np.asarray(own if late is None else late | own)


class MapReads:
    """The reads of tensor maps by copies of a batch of blocks.

    Parameters
    ----------
    reporter : Reporter
    clocks : VectorClocks
    shape : (int, int, int)
        Blocks, warps and lanes.
    early : frozenset of (Site, Site)
        See `Program.early_stores`.
    """

    def __init__(
        self, reporter: Reporter, clocks: VectorClocks, shape: tuple[int, int, int],
        early: frozenset[tuple[Site, Site]] = frozenset(),
    ) -> None:  # fmt: skip
        self._reporter, self._clocks, self._early = reporter, clocks, early
        self._committed: Array = np.zeros(shape, np.int64)
        self._maps: dict[int, tuple[Allocation, _Maps]] = {}  # by the identity of a piece of memory
        self._of_thread: dict[tuple[int, ...], dict[int, _Read]] = {}  # reads that no wait for a group has ended

    def note(self, allocation: Allocation, touch: Touch, signals: list[Signal]) -> None:
        """Note that copies of lanes, which signal mbarriers or join groups, read maps in a piece of memory."""
        if id(allocation) not in self._maps:
            self._maps[id(allocation)] = allocation, _Maps(self._reporter, self._clocks, self._early)
            allocation.shadow.watches("maps", writes=self._maps[id(allocation)][1].changed)
        _, maps = self._maps[id(allocation)]
        phases = [self._words(x, touch) for x in signals]
        for i, (at, offset) in enumerate(zip(np.argwhere(touch.lanes).tolist(), touch.offset.tolist(), strict=True)):
            thread = tuple(at)
            mine = tuple(int(x[thread]) for x in phases if x[thread])
            read = _Read(touch, i, int(self._committed[thread]), mine)
            of_thread = self._of_thread.setdefault(thread, {})
            of_thread.pop(id(maps.put(offset, read)), None)
            of_thread[id(read)] = read

    def _words(self, signal: Signal, touch: Touch) -> Array:
        """Return access words of the mbarriers that lanes signal, `[block, warp, lane]`; 0 where they signal none."""
        found: Array = np.zeros(touch.lanes.shape, _U)
        lanes = touch.lanes & signal.touch.lanes
        who = Agents(touch.who.words[lanes[touch.lanes]], touch.who.first)
        found[lanes] = who.completed(Completes.MBARRIER, signal.numbers()[lanes]).words
        return found

    # Rule 1

    def commit(self, lanes: Array) -> None:
        """Let lanes, bool `[block, warp, lane]`, commit a group."""
        self._committed += lanes

    def wait(self, lanes: Array, last: int, reading: Site | None = None) -> None:
        """Let lanes, bool `[block, warp, lane]`, wait for all but the last groups of each; where, if with `.read`."""
        for thread in [x for x in self._of_thread if lanes[x]]:
            mine = self._of_thread[thread]
            over = [x for x in mine.values() if x.group < self._committed[thread] - last]
            time = self._clocks.tick() if over else 0
            for read in over:
                read.ended, read.waited = int(at_time(_U(read.word), time)), reading
                del mine[id(read)]
            if not mine:
                del self._of_thread[thread]

    # Rule 4

    def finish(self) -> None:
        """Note the reads as those of threads, which the batch ends."""
        for allocation, maps in self._maps.values():
            allocation.shadow.watches("maps")
            for offset, reads in maps.reads.items():
                for x in reads.values():
                    who = x.touch.who.some(np.array([x.lane]))
                    allocation.shadow.has_read(replace(x.touch, offset=np.array([offset]), who=who))
