"""Acquired clocks: what each thread of a batch knows by synchronization, beside what it did itself and barriers.

The rules:

1. What a thread has learned within its cluster is the row of its cluster in some `ClusterClocks`; threads that know the
   same share these. What it has learned by memory is a `VectorClock`. It knows what either says.
2. A thread that acquires a clock joins it to its own. Threads of different clusters that acquire one, and had different
   clocks, share the joined one afterwards: each cluster's row is that of its thread. So clusters that do the same, one
   after the other, come to share clocks again.
3. As long as the threads of each block acquire what those of the first do, the first block stands for all: its clocks
   have one row (rule 6 of `cluster_clocks`). That ends when threads acquire a clock that is not said to be the same in
   all blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._arrays import Array
from ...registers import LANES
from ..base import alike_in_blocks
from .cluster_clocks import ClusterClocks, ClusterColumns, Passed, combined
from .vector_clock import VectorClock, joined

_MOST = 64  # clocks that are kept until those without a thread are dropped


class AcquiredClocks:
    """The clocks that threads have acquired.

    Parameters
    ----------
    columns : ClusterColumns
    row : ndarray of int
        Of the cluster of each thread.

    Attributes
    ----------
    columns : ClusterColumns
    changes : int
        How often threads have learned something.
    in_lockstep : bool
        Whether the first block stands for all (rule 3).
    beyond : ndarray of object
        What each thread has learned by memory, a `VectorClock` or None, in the shape of `row`: `[block, warp, lane]`,
        or `[n]` for some threads (`of`).
    """

    def __init__(self, columns: ClusterColumns, row: Array) -> None:
        self.columns, self._row = columns, row
        self.in_lockstep = False
        self._which: Array = np.zeros(row.shape, np.int32)  # in `_clocks`, of each thread; or of the first block's
        self._clocks: list[ClusterClocks | None] = [None]
        self.beyond: Array = np.full(row.shape, None, object)
        self._any_beyond = False
        self.changes = 0

    @classmethod
    def none(cls, columns: ClusterColumns, blocks: int) -> AcquiredClocks:
        """Return those of a batch whose threads have acquired nothing."""
        block = np.arange(blocks)[:, None, None]
        made = cls(columns, np.broadcast_to(columns.rows(block), (blocks, columns.warps, LANES)))
        if blocks > 1 and columns.cluster == 1:
            made._which, made.in_lockstep = made._which[:1], True
        return made

    def of(self, threads: Any) -> AcquiredClocks:
        """Return the clocks of some threads, by index, as they are now."""
        some = AcquiredClocks(self.columns, self._row[threads])
        some.in_lockstep = self.in_lockstep and threads is ...
        some._which, some._clocks = (self._which if some.in_lockstep else self._every[threads]).copy(), self._clocks
        some._any_beyond = self._any_beyond
        if self._any_beyond:
            some.beyond = self.beyond[threads].copy()
        return some

    def copy(self) -> AcquiredClocks:
        """Return the clocks of all threads, as they are now."""
        return self.of(...)

    @property
    def _every(self) -> Array:
        """The number in `_clocks` of each thread: a view."""
        return np.broadcast_to(self._which, self._row.shape)

    # What threads know

    def covers(self, threads: tuple[Array, ...], words: Array, space: str = "") -> Array:
        """Return which accesses, words `[n]`, happen before what threads do, by index, `[n]` each.

        With a `space`, or `READS`: which are known to have crossed, or to be over.
        """
        which, row = self._every[threads], self._row[threads]
        result: Array = np.zeros(len(words), bool)
        for number in _distinct(which):
            clock = self._clocks[number]
            if clock is not None and space:
                clock = clock.crossed.get(space)
            if clock is not None:
                some = which == number
                if some.all():
                    result = clock.covers(words, row)
                else:
                    result[some] = clock.covers(words[some], row[some])
        if self._any_beyond:
            for memory, some in _alike(self.beyond[threads]):
                clock_beyond = memory.crossed.get(space) if space else memory
                if clock_beyond is not None:
                    result[some] |= clock_beyond.covers(words[some])
        return result

    def crossed_until(self, threads: tuple[Array, ...], space: str) -> Array:
        """Return before which time accesses of all threads of the own block have crossed to a space, `[n]`.

        For threads by block, warp and lane, `[n]` each. `covers` knows of more: each thread has a time of its own.
        """
        which, until = self._every[threads], np.zeros(len(threads[0]), np.int64)
        for number in _distinct(which):
            clock = self._clocks[number]
            if clock is not None and (crossed := clock.crossed.get(space)) is not None:
                some = which == number
                until[some] = crossed.least[threads[0][some]]
        return until

    def known_to(self, threads: Any) -> VectorClock | None:
        """Return the joined clock of some threads of a block, by index."""
        which, row = self._every[threads].reshape(-1), self._row[threads].reshape(-1)
        found: list[VectorClock | None] = []
        for number in _distinct(which):
            if (clock := self._clocks[number]) is not None:
                found.append(clock.of(int(row[0])))
        if self._any_beyond:
            found.extend(dict.fromkeys(self.beyond[threads].reshape(-1).tolist()))
        return joined(found)

    def joined(self, threads: Array) -> Passed:
        """Return what some threads know, bool in the shape of all, joined by cluster."""
        first = self.in_lockstep and alike_in_blocks(threads)
        which, row = self._which[threads[:1]] if first else self._every[threads], self._row[threads]
        parts = []
        for number in _distinct(which):
            if (clock := self._clocks[number]) is not None:
                rows: Array = np.full(self.columns.shape[0], first)
                if not first:
                    rows[row[which == number]] = True
                parts.append((clock, rows))
        beyond: dict[int, VectorClock] = {}
        if self._any_beyond:
            for memory, some in _alike(self.beyond[threads]):
                for of in np.unique(row[some]).tolist():
                    beyond[of] = beyond[of] | memory if of in beyond else memory
        return Passed(combined(parts) if parts else None, beyond)

    def crossed(self, threads: Array, space: str) -> list[tuple[Array, ClusterClocks]]:
        """Return what has crossed to a space for threads, bool in the shape of all: `[n, 3]` of them, and the clock."""
        found = []
        for number in _distinct(self._every[threads]):
            clock = self._clocks[number]
            if clock is not None and space in clock.crossed:
                found.append((np.argwhere(threads & (self._every == number)), clock.crossed[space]))
        return found

    def crossed_beyond(self, threads: Array, space: str) -> list[tuple[tuple[int, ...], VectorClock]]:
        """Return the same of what single threads have learned by memory: each thread and its clock."""
        places = map(tuple, np.argwhere(threads).tolist()) if self._any_beyond else ()
        return [(at, clock.crossed[space]) for at in places if (clock := self.beyond[at]) and space in clock.crossed]

    def apart(self, warps: Array) -> Array:
        """Return which of some warps, bool `[block, warp]`, have lanes that know different things."""
        which = self._every[warps]
        found: Array = np.zeros(warps.shape, bool)
        found[warps] = (which != which[:, :1]).any(axis=1)
        if self._any_beyond:
            beyond = self.beyond[warps]
            found[warps] |= (beyond != beyond[:, :1]).any(axis=1)
        return found

    @property
    def alike(self) -> bool:
        """Whether the threads of each block know of it what those of the first know of theirs, in their cluster."""
        if self._any_beyond or self.columns.cluster > 1 or (self._which != self._which[:1]).any():
            return False
        return all(clock is None or clock.alike for clock in map(self._clocks.__getitem__, _distinct(self._which[:1])))

    # What they learn

    def acquire(self, threads: tuple[Array, ...], clock: ClusterClocks) -> bool:
        """Let threads, by index, acquire clocks (rule 2); return whether any learns something."""
        if self.in_lockstep:
            self._which, self.in_lockstep = self._every.copy(), False
        which, row, news = self._which[threads], self._row[threads], False
        for some, own in self._roles(which, row):
            new = clock if own is None else own | clock
            if new is not own:
                news = True
                self._give(threads if some is None else tuple(x[some] for x in threads), new)
        return news

    def acquire_together(self, threads: Array, clock: ClusterClocks) -> bool:
        """Let threads, bool in the shape of all, acquire clocks; return whether any learns something."""
        if not (self.in_lockstep and len(clock.times) == 1 and clock.alike and alike_in_blocks(threads)):
            return self.acquire(np.nonzero(threads), clock)
        news, before, clocks = False, self._which, self._clocks  # `_give` may renumber them
        for number in _distinct(before[threads[:1]]):
            own = clocks[number]
            new = clock if own is None else own | clock
            if new is not own:
                news = True
                self._give(threads[:1] & (before == number), new)
        return news

    def share(self, threads: Array) -> bool:
        """Let threads, bool in the shape of all, know what any of their cluster does; False if they do already."""
        if self.in_lockstep and not alike_in_blocks(threads):
            self._which, self.in_lockstep = self._every.copy(), False
        which = self._which[threads[:1] if self.in_lockstep else threads]
        if not self._any_beyond and (which == which[0]).all():
            return False
        passed, row = self.joined(threads), self._row
        if passed.clocks is not None:
            self._give(threads[:1] if self.in_lockstep else threads, passed.clocks)
        for of, clock in passed.beyond.items():
            self.changes += 1
            self.beyond[threads & (row == of)] = clock
        return True

    def acquire_beyond(self, threads: Any, clock: VectorClock) -> None:
        """Let threads, by index, acquire a clock of other clusters or of earlier batches."""
        self._any_beyond = True
        self.changes += 1
        held = self.beyond[threads]
        if not isinstance(held, np.ndarray):
            self.beyond[threads] = joined([held, clock])
            return
        memo = {old: joined([old, clock]) for old in dict.fromkeys(held.tolist())}
        new = np.empty(len(held), object)
        new[:] = [memo[old] for old in held.tolist()]
        self.beyond[threads] = new

    def _roles(self, which: Array, row: Array) -> Iterator[tuple[Array | None, ClusterClocks | None]]:
        """Yield threads that are to share a clock, by place, None for all, and their clocks in one (rule 2)."""
        numbers, clocks = _distinct(which), self._clocks  # `_give` may renumber them
        if len(numbers) == 1:
            yield None, clocks[numbers[0]]
            return
        pairs, place = np.unique(row.astype(np.int64) * len(clocks) + which, return_inverse=True)
        rows, of = np.divmod(pairs, len(clocks))
        role = np.arange(len(pairs)) - np.searchsorted(rows, rows)  # the how many-th clock of its cluster
        for number in range(int(role.max()) + 1):
            its = role == number
            parts = []
            for one in np.unique(of[its]).tolist():
                if (clock := clocks[one]) is not None:
                    chosen: Array = np.zeros(self.columns.shape[0], bool)
                    chosen[rows[its & (of == one)]] = True
                    parts.append((clock, chosen))
            own = combined(parts) if parts else None
            if len(parts) == 1 and (of[its] == of[its][0]).all():
                own = parts[0][0]
            yield np.flatnonzero(its[place.reshape(-1)]), own

    def _give(self, threads: Any, clock: ClusterClocks) -> None:
        if len(self._clocks) > _MOST:
            used, which = np.unique(np.append(0, self._which), return_inverse=True)
            self._which = which.reshape(-1)[1:].reshape(self._which.shape).astype(np.int32)
            self._clocks = [self._clocks[number] for number in used.tolist()]  # others may look at the old ones
        self.changes += 1
        self._which[threads] = len(self._clocks)
        self._clocks.append(clock)

    def rows_of(self, place: Array) -> Iterator[tuple[ClusterClocks | None, VectorClock | None, Array]]:
        """Yield the clocks of threads, by their places in the batch `[n]`, and which of these have them, `[m]`."""
        which = self._which.reshape(-1)[place % self._which.size]
        for number in _distinct(which):
            some = np.flatnonzero(which == number)
            if not self._any_beyond:
                yield self._clocks[number], None, some
                continue
            beyond = self.beyond.reshape(-1)[place[some]].tolist()
            for memory in dict.fromkeys(beyond):
                yield self._clocks[number], memory, some[[x is memory for x in beyond]]


def _distinct(which: Array) -> list[int]:
    """Return the different numbers among some."""
    if not which.size:
        return []
    first = which.reshape(-1)[0]
    return [int(first)] if (which == first).all() else np.flatnonzero(np.bincount(which.reshape(-1))).tolist()


def _alike(beyond: Array) -> Iterator[tuple[VectorClock, Array]]:
    """Yield each clock among some, `[n]`, and which they are, `[m]`."""
    clocks = beyond.tolist()
    which = np.fromiter(map(id, clocks), np.int64, len(clocks))
    order = np.argsort(which, kind="stable")
    for some in np.split(order, np.flatnonzero(np.diff(which[order])) + 1) if clocks else ():
        if (clock := clocks[some[0]]) is not None:
            yield clock, some
