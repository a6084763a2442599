"""Known times: what the clocks that threads have acquired say of their own blocks, as rows of a table.

Most accesses are ordered. Where clocks that threads have acquired order them, asking each clock about each access takes
far longer than the access. The rules:

1. A row has the times of one clock for one block: for each thread of it, then for each number that an mbarrier of it
   may have as an agent, then for the groups of each thread, and then for each of its warpgroups. Row 0 knows nothing:
   it is that of threads that have acquired no clock.
2. A row is made when a check needs it. Who replaces the clock of a thread also forgets its row.
3. A check proves that all accesses are ordered, or says nothing: what other blocks did is in no row.
4. If there is no room for more rows, all are forgotten. If one check needs more than there may be, it says nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._arrays import Array
from ...registers import LANES
from ..base import WARPGROUP_BITS, Bits, GrainRuns, GrainTable, KnownRows, ends_reads, ordered_by
from .access_words import BLOCK_BIT, LAST_TIME, THREAD_BIT, THREADS, TIME_BIT, Agents, Completes, time_of
from .acquired_clocks import AcquiredClocks
from .cluster_clocks import ClusterClocks, ClusterColumns
from .vector_clock import VectorClock

_BITS = Bits(int(THREAD_BIT), int(BLOCK_BIT), int(TIME_BIT), LAST_TIME)
_NUMBER_BITS = int(BLOCK_BIT) - int(THREAD_BIT)
# By which bits the block differs in the words of an agent other than a thread; in the order of the columns.
_OF = {
    int(Agents(np.zeros(1, np.uint64), 0).completed(how).words[0] >> BLOCK_BIT): how
    for how in (Completes.MBARRIER, Completes.GROUPS, Completes.WARPGROUP)
}
_MBARRIERS, _WARPGROUPS = int(THREADS) + 1, (int(THREADS) >> WARPGROUP_BITS) + 1  # columns of a row
_UNKNOWN = -1
_MOST = 4096  # rows; for many blocks, more
_CLOCKS = 16  # of all blocks, for which there is room


class KnownTimes:
    """The rows of the threads of a batch of blocks.

    Parameters
    ----------
    columns : ClusterColumns
        Of the clocks of the batch.
    blocks : int
    """

    def __init__(self, columns: ClusterColumns, blocks: int) -> None:
        self._columns, self._first, self._blocks = columns, columns.first, blocks
        self._threads = columns.warps * LANES
        self._shape = blocks, columns.warps, LANES
        self._row: Array | None = None  # made when it is needed, as is the table
        self._times: Any = None

    def forget(self, threads: Any) -> None:
        """Forget the rows of threads, given by an index of `[block, warp, lane]` (rule 2)."""
        if self._row is not None:
            self._row[threads] = _UNKNOWN

    def ordered(self, table: GrainTable, grains: GrainRuns, who: Agents, floor: int, held: AcquiredClocks) -> bool:
        """Whether a check proves that all accesses in a table happen before what threads do now.

        Parameters
        ----------
        table : GrainTable
            Access words.
        grains : GrainRuns
        who : Agents
        floor : int
            All accesses of a thread's block before this time are ordered.
        held : AcquiredClocks
            Of the threads of the batch.
        """
        return self._proved(who, held, lambda known: ordered_by(table, grains, who.words, floor, _BITS, known))

    def ends_reads(
        self, writes: GrainRuns, who: Agents, reads: GrainRuns, readers: Array, floor: int, held: AcquiredClocks
    ) -> Array | None:  # fmt: skip
        """Return which reads, words `[m]`, writes do not end: see `base.ends_reads`; None if no check proves that.

        The other parameters are as for `ordered`.
        """
        kept: Array | None = None

        def check(known: KnownRows) -> Array | None:
            nonlocal kept
            found = ends_reads(writes, who.words, reads, readers, floor, _BITS, known)
            if found is None:
                return None
            kept, missing = found
            return missing

        return kept if self._proved(who, held, check) else None

    def _proved(self, who: Agents, held: AcquiredClocks, check: Callable[[KnownRows], Array | None]) -> bool:
        """Make the rows that a check misses, until it misses none; False if it fails, or there is no room."""
        row = self._rows()
        while True:
            mbarrier, groups, warpgroup = _OF
            missing = check(KnownRows(self._first + 1, self._threads, mbarrier, groups, warpgroup, row, self._times))
            if missing is None:
                return False
            if not len(missing):
                return True
            place = who.block * self._threads + who.warp * LANES + who.lane
            if not self._make(place[missing], place, held):
                return False

    def open(self, threads: tuple[Array, ...], words: Array, held: AcquiredClocks) -> tuple[Array, Array]:
        """Return which accesses, words `[n]`, no row proves ordered, and which of them no row can tell.

        Parameters
        ----------
        threads : tuple of ndarray of int
            Block, warp and lane of those that ask, `[n]`.
        words : ndarray of uint64
        held : AcquiredClocks
            As for `ordered`.
        """
        block, warp, lane = threads
        apart = (words >> BLOCK_BIT) ^ (block + (self._first + 1)).astype(np.uint64)
        asked: Array = np.isin(apart, np.array([0, *_OF], np.uint64), invert=True)
        if asked.all():
            return asked, asked
        place, row = block * self._threads + warp * LANES + lane, self._rows()
        missing = row[place] < 0
        if missing.any() and not self._make(place[missing], place, held):
            return np.ones(len(words), bool), np.ones(len(words), bool)
        column = (words >> THREAD_BIT & THREADS).astype(np.int64)
        for its, how in _OF.items():
            if (some := apart == np.uint64(its)).any():
                column[some] = self._column(how, column[some])
        return asked | (time_of(words) >= self._times[row[place], np.where(asked, 0, column)]), asked

    def _rows(self) -> Array:
        """Return the row of each thread of the batch."""
        if self._row is None:
            self._row = np.full(self._shape, _UNKNOWN, np.int64)
            self._restart()
        return self._row.reshape(-1)

    def _make(self, place: Array, every: Array, held: AcquiredClocks, *, again: bool = False) -> bool:
        """Make the rows of threads, of all that are asked about if there is no room; False if it is not enough."""
        row = self._rows()
        for clock, beyond, some in held.rows_of(place):
            where = place[some]
            if clock is None and beyond is None:
                row[where] = 0
                continue
            blocks = where // self._threads
            if (first := self._start(clock, beyond)) < 0:
                if again:
                    return False
                row[:] = _UNKNOWN
                self._restart()
                return self._make(every, every, held, again=True)
            new = np.flatnonzero(np.bincount(blocks))
            new = new[~self._written[first + new]]
            if len(new):
                self._write(first, new, clock, beyond)
            row[where] = first + blocks
        return True

    def _start(self, clock: ClusterClocks | None, beyond: VectorClock | None) -> int:
        """Return the row of a clock for the first block of the batch; -1 if there is no room."""
        if (first := self._of.get((clock, beyond), -1)) < 0 and self._count + self._blocks <= len(self._times):
            first = self._of[clock, beyond] = self._count
            self._count += self._blocks
        return first

    def _write(self, first: int, blocks: Array, clock: ClusterClocks | None, beyond: VectorClock | None) -> None:
        """Write the rows of a clock for blocks of the batch (rule 1)."""
        rows, its = first + blocks, self._columns
        every, numbers = len(rows) == self._blocks, its.shape[1]
        where: Any = slice(first, first + self._blocks) if every else rows
        self._written[where] = True
        self._times[where, self._threads :] = 0
        times = np.zeros((its.shape[0], numbers), np.int32) if clock is None or not clock.times.size else clock.every
        of_threads = times[:, :numbers].reshape(self._blocks, -1)
        self._times[where, : self._threads] = of_threads if every else of_threads[blocks]
        # The columns of agents that no clock of the batch has are 0 in all rows.
        for column, (how, rank, number) in enumerate(its.agents, numbers):
            some = slice(None) if its.cluster == 1 else blocks % its.cluster == rank
            known = times[its.rows(blocks[some]), column] if column < times.shape[1] else 0
            self._times[rows[some], self._column(how, number)] = known
        if beyond is not None:
            for row, block in zip(rows.tolist(), blocks.tolist(), strict=True):
                self._join(self._times[row], beyond, block)

    def _join(self, times: Array, clock: VectorClock, block: int) -> None:
        threads = np.minimum(clock.of_block(self._first, block), LAST_TIME + 1).astype(np.uint32)
        np.maximum(times[: self._threads], threads, out=times[: self._threads])
        for agent, time in clock.agents.items():
            if (how := _OF.get(agent >> _NUMBER_BITS ^ self._first + 1 + block)) is not None:
                at = self._column(how, agent & int(THREADS))
                times[at] = max(int(times[at]), time)

    def _column(self, how: int, number: Any) -> Any:
        """Return the column of an agent other than a thread, or of several, `[n]` (rule 1)."""
        if how == Completes.MBARRIER:
            return self._threads + number
        if how == Completes.GROUPS:
            return self._threads + _MBARRIERS + number
        return 2 * self._threads + _MBARRIERS + (number >> WARPGROUP_BITS)

    def _restart(self) -> None:
        """Begin with no rows but the first (rule 1); others are cleared when they are written."""
        if self._times is None:
            rows = max(_MOST, _CLOCKS * self._blocks) + 1
            self._times = np.empty((rows, 2 * self._threads + _MBARRIERS + _WARPGROUPS), np.uint32)
            self._times[0] = 0
        self._written: Array = np.zeros(len(self._times), bool)
        self._of: dict[tuple[ClusterClocks | None, VectorClock | None], int] = {}
        self._count = 1
