"""Cluster clocks: one vector clock for each cluster of a batch of blocks, as the rows of a table.

The rules:

1. Threads of a cluster learn of each other by mbarriers, barriers, asynchronous operations and proxy fences, and mostly
   those of all clusters do so at once. So the clocks that they pass on are made, joined and kept together. Row c is a
   vector clock of cluster c: it has times of that cluster alone, and only its threads are asked about it.
2. A row has a time for each thread of the cluster, by rank and number, and then one for each agent that has completed
   an operation there (`ClusterColumns`).
3. It also has, for each space, the clock of what has crossed to the async proxy, and that of reads that are over, as a
   `VectorClock` has.
4. What threads know of other clusters and of earlier batches comes by memory, thread by thread: that is a `VectorClock`
   beside the row (`acquired_clocks`). Where threads pass on what they know, `Passed` has both.
5. Cluster clocks are immutable.
6. Clusters that do the same know the same. If all rows are equal, there may be one that stands for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import Array
from ...registers import LANES
from .access_words import THREAD_BIT, THREADS, Completes, blocks_of, kinds_of, time_of
from .vector_clock import READS, VectorClock, joined

_NUMBERS = int(THREADS) + 1
_KIND = 1 << 62 - int(THREAD_BIT)  # of an agent's number (`agents_of`)


class ClusterColumns:
    """What the columns of all cluster clocks of a batch stand for.

    Parameters
    ----------
    blocks : range
        Their numbers in the grid.
    warps : int
        Of a block.
    cluster : int
        Blocks of a cluster.

    Attributes
    ----------
    first, cluster, warps : int
    shape : (int, int)
        Rows, and columns of threads.
    agents : list of (int, int, int)
        The agents of the further columns: what completes the operation (`Completes`), rank, and number in the block.
    """

    def __init__(self, blocks: range, warps: int, cluster: int) -> None:
        self.first, self.cluster, self.warps = blocks.start, cluster, warps
        self._blocks = len(blocks)
        self.shape = len(blocks) // cluster, cluster * warps * LANES
        self.agents: list[tuple[int, int, int]] = []
        self._column: Array = np.full((max(Completes) + 1, cluster, _NUMBERS), -1, np.int64)

    def rows(self, blocks: Any) -> Any:
        """Return the rows of blocks of the batch."""
        return blocks // self.cluster if self.cluster > 1 else blocks

    def places(self, words: Array, *, new: bool = False) -> tuple[Array, Array]:
        """Return the row and the column of accesses, words `[n]`; -1 where there is none.

        With `new`, agents that have no column yet get one.
        """
        block, number = blocks_of(words) - self.first, (words >> THREAD_BIT & THREADS).astype(np.int64)
        rank = block % self.cluster if self.cluster > 1 else np.zeros_like(block)
        column, kind = rank * (self.warps * LANES) + number, kinds_of(words)
        if (far := kind != 0).any():
            at = kind[far], rank[far], number[far]
            if new and (self._column[at] < 0).any():
                for agent in np.unique(np.stack(at), axis=1).T.tolist():
                    if self._column[tuple(agent)] < 0:
                        self._column[tuple(agent)] = self.shape[1] + len(self.agents)
                        self.agents.append(tuple(agent))
            column[far] = self._column[at]
        return np.where((block >= 0) & (block < self._blocks), self.rows(block), -1), column

    def without_times(self, crossed: Mapping[str, ClusterClocks]) -> ClusterClocks:
        """Return clocks of what has crossed, alone."""
        return ClusterClocks(self, np.zeros((1, 0), np.int32), crossed)

    def of_accesses(self, words: Array, places: tuple[Array, Array] | None = None) -> ClusterClocks:
        """Return clocks of accesses, words `[n]`, alone: nothing else that their agents did.

        `places` are their rows and columns, if they are known.
        """
        row, column = self.places(words, new=True) if places is None else places
        times = np.zeros((self.shape[0], self.shape[1] + len(self.agents)), np.int32)
        np.maximum.at(times, (row, column), time_of(words).astype(np.int32) + 1)
        return ClusterClocks(self, times)

    def of_first(self, words: Array) -> ClusterClocks:
        """Return the same of accesses of the first block, each one standing for those of all (rule 6)."""
        _, column = self.places(words, new=True)
        times = np.zeros((1, self.shape[1] + len(self.agents)), np.int32)
        np.maximum.at(times[0], column, time_of(words).astype(np.int32) + 1)
        return ClusterClocks(self, times)


@dataclass(frozen=True, eq=False)
class ClusterClocks:
    """A vector clock for each cluster of a batch.

    Attributes
    ----------
    columns : ClusterColumns
    times : ndarray of int32
        `[row, column]`; 0 for columns beyond. One row, if all are known to be equal (rule 6).
    crossed : dict of str to ClusterClocks
        By space, or `READS`; these have no such clocks themselves.
    """

    columns: ClusterColumns
    times: Array
    crossed: Mapping[str, ClusterClocks] = field(default_factory=dict)

    def covers(self, words: Array, rows: Array) -> Array:
        """Return which accesses, words `[n]`, happen before what threads of the clusters `rows` `[n]` do."""
        if not self.times.shape[1]:
            return np.zeros(len(words), bool)
        row, column = self.columns.places(words)
        known = (row == rows) & (column >= 0) & (column < self.times.shape[1])
        until = self.every[np.where(known, row, 0), np.where(known, column, 0)]
        return np.asarray(known & (time_of(words).astype(np.int64) < until))

    @property
    def every(self) -> Array:
        """The times, `[row, column]`: a view."""
        return np.broadcast_to(self.times, (self.columns.shape[0], self.times.shape[1]))

    @cached_property
    def least(self) -> Array:
        """The time before which accesses of all threads of a block happen before what its threads do, `[block]`."""
        (rows, threads), cluster = self.columns.shape, self.columns.cluster
        if self.times.shape[1] < threads:
            return np.zeros(rows * cluster, np.int64)
        of_blocks = self.times[:, :threads].reshape(len(self.times), cluster, -1).min(axis=2).astype(np.int64)
        return np.broadcast_to(of_blocks, (rows, cluster)).reshape(-1)

    @cached_property
    def alike(self) -> bool:
        """Whether all rows are equal."""
        same = len(self.times) == 1 or bool((self.times == self.times[:1]).all())
        return same and all(x.alike for x in self.crossed.values())

    def uncrossed(self) -> ClusterClocks:
        """Return the same clocks without what has crossed."""
        return ClusterClocks(self.columns, self.times) if self.crossed else self

    def only(self, rows: Array) -> ClusterClocks:
        """Return the clocks of some clusters, bool `[row]`; the others know nothing."""
        if rows.all():
            return self
        crossed = {space: clock.only(rows) for space, clock in self.crossed.items()}
        return ClusterClocks(self.columns, self.every * rows[:, None], crossed)

    def __or__(self, other: ClusterClocks) -> ClusterClocks:
        """Join them; if one knows all that the other does, that is the result."""
        if other is self:
            return self
        times = _latest(self.times, other.times)
        crossed = dict(self.crossed)
        for space, clock in other.crossed.items():
            crossed[space] = crossed[space] | clock if space in crossed else clock
        for one in (self, other):
            if one._is(times, crossed):
                return one
        return ClusterClocks(self.columns, times, crossed)

    def _is(self, times: Array, crossed: Mapping[str, ClusterClocks]) -> bool:
        same = len(crossed) == len(self.crossed) and all(x is self.crossed.get(space) for space, x in crossed.items())
        return same and times.shape == self.times.shape and np.array_equal(times, self.times)

    def over(self) -> ClusterClocks:
        """Return what is over, as far as these clocks know: operations of agents, and reads of threads (A9)."""
        times = self.times.copy()
        times[:, : self.columns.shape[1]] = 0
        return ClusterClocks(self.columns, times, {READS: self.uncrossed()})

    def of(self, row: int) -> VectorClock:
        """Return the clock of a cluster."""
        its, (_, threads) = self.columns, self.columns.shape
        low, until = row * its.cluster, np.zeros(threads, np.int64)
        every = self.every
        until[: self.times.shape[1]] = every[row, :threads]
        agents = {}
        for column in np.flatnonzero(every[row, threads:]).tolist():
            kind, rank, number = its.agents[column]
            block = its.first + 1 + low + rank
            agents[kind * _KIND | block * _NUMBERS | number] = int(every[row, threads + column])
        crossed = {space: clock.of(row) for space, clock in self.crossed.items()}
        rows = until.reshape(its.cluster, its.warps, LANES)
        return VectorClock(its.first, rows, agents=agents, crossed=crossed, low=low)


def combined(parts: Sequence[tuple[ClusterClocks, Array]]) -> ClusterClocks:
    """Join the rows, bool `[row]`, of several clocks."""
    if len(parts) == 1:
        return parts[0][0].only(parts[0][1])
    columns, width = parts[0][0].columns, max(clock.times.shape[1] for clock, _ in parts)
    one_row = all(len(clock.times) == 1 and rows.all() for clock, rows in parts)
    times = np.zeros((1 if one_row else columns.shape[0], width), np.int32)
    for clock, rows in parts:
        its = times[:, : clock.times.shape[1]]
        if rows.all():
            np.maximum(its, clock.times, out=its)
        else:
            its[rows] = np.maximum(its[rows], clock.every[rows])
    spaces = dict.fromkeys(space for clock, _ in parts for space in clock.crossed)
    of = {space: [(clock.crossed[space], rows) for clock, rows in parts if space in clock.crossed] for space in spaces}
    return ClusterClocks(columns, times, {space: combined(some) for space, some in of.items()})


def _latest(one: Array, other: Array) -> Array:
    """Join times; the wider table has the columns that are new."""
    if one.shape[1] < other.shape[1]:
        one, other = other, one
    if one.shape[1] == other.shape[1]:
        return np.maximum(one, other)
    times = np.array(np.broadcast_to(one, (max(len(one), len(other)), one.shape[1])))
    its = times[:, : other.shape[1]]
    np.maximum(its, other, out=its)
    return times


class Passed(NamedTuple):
    """What threads pass on (rule 4).

    Attributes
    ----------
    clocks : ClusterClocks or None
    beyond : dict of int to VectorClock
        What is known of other clusters and of earlier batches, by the row of the cluster to whose threads it comes.
    """

    clocks: ClusterClocks | None = None
    beyond: Mapping[int, VectorClock] = {}

    def __or__(self, other: Passed) -> Passed:
        clocks, beyond = self.clocks or other.clocks, self.beyond or other.beyond
        if self.clocks is not None and other.clocks is not None:
            clocks = self.clocks | other.clocks
        if self.beyond and other.beyond:
            both = {row: joined([self.beyond.get(row), other.beyond.get(row)]) for row in {**beyond, **other.beyond}}
            beyond = {row: clock for row, clock in both.items() if clock is not None}
        return Passed(clocks, beyond)

    def only(self, rows: Array) -> Passed:
        """Return what comes to some clusters, bool `[row]`."""
        if rows.all():
            return self
        if not rows.any():
            return Passed()
        beyond = {row: clock for row, clock in self.beyond.items() if rows[row]}
        return Passed(None if self.clocks is None else self.clocks.only(rows), beyond)
