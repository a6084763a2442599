"""Known times: what the clocks that threads have acquired say of their own blocks, as rows of a table.

Most accesses are ordered. Where clocks that threads have acquired order them, asking each clock about each access takes
far longer than the access. The rules:

1. A row has the times of one clock for one block: for each thread of it, and then for each number that an mbarrier of
   it may have as an agent. Row 0 knows nothing: it is that of threads that have acquired no clock.
2. A row is made when a check needs it. Who replaces the clock of a thread also forgets its row.
3. A check proves that all accesses are ordered, or says nothing: what other blocks did, or bulk groups, is in no row.
4. If there is no room for more rows, all are forgotten. If one check needs more than there may be, it says nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._arrays import Array
from ...registers import LANES
from ..base import Bits, GrainRuns, KnownRows, ordered_by
from .access_words import BLOCK_BIT, LAST_TIME, THREAD_BIT, THREADS, TIME_BIT, Agents, Completes, time_of
from .vector_clock import VectorClock

_BITS = Bits(int(THREAD_BIT), int(BLOCK_BIT), int(TIME_BIT), LAST_TIME)
_NUMBER_BITS = int(BLOCK_BIT) - int(THREAD_BIT)
_OF_MBARRIERS = int(Agents(np.zeros(1, np.uint64), 0).completed(Completes.MBARRIER).words[0] >> BLOCK_BIT)
_UNKNOWN = -1
_FEWEST, _MOST = 64, 4096  # rows


class KnownTimes:
    """The rows of the threads of a batch of blocks.

    Parameters
    ----------
    first : int
        Number of the first block of the batch in the grid.
    shape : (int, int)
        Blocks, and warps of each.
    """

    def __init__(self, first: int, shape: tuple[int, int]) -> None:
        self._first, self._shape, self._threads = first, (*shape, LANES), shape[1] * LANES
        self._row: Array | None = None  # made when it is needed
        self._width = self._threads + int(THREADS) + 1
        self._times: Array = np.zeros((0, self._width), np.uint32)
        self._count = 0

    def forget(self, threads: Any) -> None:
        """Forget the rows of threads, given by an index of `[block, warp, lane]` (rule 2)."""
        if self._row is not None:
            self._row[threads] = _UNKNOWN

    def ordered(self, table: Array, grains: GrainRuns, who: Agents, floor: int, held: Array) -> bool:
        """Whether a check proves that all accesses in a table happen before what threads do now.

        Parameters
        ----------
        table : ndarray of uint64
            Access words, by grain.
        grains : GrainRuns
        who : Agents
        floor : int
            All accesses of a thread's block before this time are ordered.
        held : ndarray of object
            The clock of each thread, or None, `[block, warp, lane]`.
        """
        row = self._rows()
        while True:
            known = KnownRows(self._first + 1, self._threads, _OF_MBARRIERS, row, self._times)
            missing = ordered_by(table, grains, who.words, floor, _BITS, known)
            if missing is None:
                return False
            if not len(missing):
                return True
            place = who.block * self._threads + who.warp * LANES + who.lane
            if not self._make(place[missing], place, held):
                return False

    def open(self, threads: tuple[Array, ...], words: Array, held: Array) -> tuple[Array, Array]:
        """Return which accesses, words `[n]`, no row proves ordered, and which of them no row can tell.

        Parameters
        ----------
        threads : tuple of ndarray of int
            Block, warp and lane of those that ask, `[n]`.
        words : ndarray of uint64
        held : ndarray of object
            As for `ordered`.
        """
        block, warp, lane = threads
        apart = (words >> BLOCK_BIT) ^ (block + (self._first + 1)).astype(np.uint64)
        asked = (apart != 0) & (apart != np.uint64(_OF_MBARRIERS))
        if asked.all():
            return asked, asked
        place, row = block * self._threads + warp * LANES + lane, self._rows()
        missing = row[place] < 0
        if missing.any() and not self._make(place[missing], place, held):
            return np.ones(len(words), bool), np.ones(len(words), bool)
        number = (words >> THREAD_BIT & THREADS).astype(np.int64) + np.where(apart != 0, self._threads, 0)
        return asked | (time_of(words) >= self._times[row[place], number]), asked

    def _rows(self) -> Array:
        """Return the row of each thread of the batch."""
        if self._row is None:
            self._row = np.full(self._shape, _UNKNOWN, np.int64)
            self._restart(_FEWEST)
        return self._row.reshape(-1)

    def _make(self, place: Array, every: Array, held: Array) -> bool:
        """Make the rows of threads, of all that are asked about if there is no room; False if it is not enough."""
        row = self._rows()
        clocks, blocks = held.reshape(-1)[place], place // self._threads
        starts = np.flatnonzero(np.append(True, (clocks[1:] != clocks[:-1]) | (blocks[1:] != blocks[:-1])))
        keys = [*zip(clocks[starts].tolist(), blocks[starts].tolist(), strict=True)]
        made = dict.fromkeys(key for key in keys if key[0] is not None)
        if self._count + len(made) > len(self._times):
            if len(made) >= _MOST:
                return False
            row[:] = _UNKNOWN
            self._restart(max(len(self._times), 2 * (len(made) + 1)))
            return self._make(every, every, held)
        numbers: dict[tuple[VectorClock | None, int], int] = {}
        for number, (clock, block) in enumerate(made, self._count):
            numbers[clock, block] = number
            self._write(self._times[number], clock, block)
        self._count += len(made)
        row[place] = np.repeat([numbers.get(key, 0) for key in keys], np.diff(starts, append=len(place)))
        return True

    def _write(self, times: Array, clock: VectorClock, block: int) -> None:
        """Write the row of a clock for a block of the batch (rule 1)."""
        times[:] = 0
        np.minimum(clock.of_block(self._first, block), LAST_TIME + 1, out=times[: self._threads], casting="unsafe")
        number = self._first + 1 + block ^ _OF_MBARRIERS
        for agent, time in clock.agents.items():
            if agent >> _NUMBER_BITS == number:
                times[self._threads + (agent & int(THREADS))] = time

    def _restart(self, rows: int) -> None:
        """Begin with no rows but the first (rule 1)."""
        self._times = np.zeros((rows, self._width), np.uint32)
        self._count = 1
