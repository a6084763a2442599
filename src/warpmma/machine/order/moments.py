"""Moments: the clocks of all threads of a batch at one time, from which the clocks of any of them are made.

The rules:

1. The clock of a thread has what it did itself before the moment; what barriers have ordered before it, by warp, or by
   lane within its own warp; and what it has acquired.
2. The clock of several threads is their joined one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._arrays import Array
from ...registers import LANES
from ..base import alike_in_blocks
from .access_words import LAST_TIME
from .acquired_clocks import AcquiredClocks
from .cluster_clocks import ClusterClocks, ClusterColumns, Passed, combined
from .vector_clock import VectorClock, joined

_MOST_MADE = 1024


@dataclass(frozen=True, eq=False)
class Moment:
    """The clocks of the threads of a batch at a time.

    Attributes
    ----------
    columns : ClusterColumns
    time : int
        Each thread's own accesses before it are ordered.
    warps : ndarray of int
        From barriers: up to which time other warps of the block are ordered, `[block, warp, other warp]`; or one time
        for all of them, `[block, warp]`.
    own : ndarray of int
        The same for the lanes of the own warp, `[block, warp]`.
    pairs : ndarray of int or None
        The same for each of them, `[block, warp, lane, other lane]`.
    held : AcquiredClocks or None
        None if no thread has acquired anything.
    alike : bool
        Whether all of these are the same in all blocks.
    """

    columns: ClusterColumns
    time: int
    warps: Array
    own: Array
    pairs: Array | None
    held: AcquiredClocks | None
    alike: bool = False
    _made: dict[tuple[int, int, tuple[int, ...]], VectorClock] | None = None  # of a kept one: clocks of lanes

    def keeping(self, held: AcquiredClocks | None) -> Moment:
        """Return the same with what threads had acquired then, which does not change any more."""
        return replace(self, held=held, _made={})

    def of(self, block: int, warp: int, lanes: list[int]) -> VectorClock:
        """Return the joined clock of lanes of a warp: of a kept moment the same one again, since writes repeat it."""
        if self._made is None:
            return self._of(block, warp, lanes)
        key = block, warp, tuple(lanes)
        if (clock := self._made.get(key)) is None:
            if len(self._made) >= _MOST_MADE:
                self._made.clear()
            clock = self._made[key] = self._of(block, warp, lanes)
        return clock

    def _of(self, block: int, warp: int, lanes: list[int]) -> VectorClock:
        until = np.empty((1, self.own.shape[1]), np.int64)
        until[0] = self.warps[block, warp]
        until[0, warp] = self.own[block, warp]
        times = np.full(LANES, self.own[block, warp])
        if self.pairs is not None:
            times = np.maximum(times, self.pairs[block, warp, lanes].max(axis=0))
        times[lanes] = self.time
        clock = VectorClock(self.columns.first, until, {(block, warp): times}, low=block)
        known = None if self.held is None else self.held.known_to((block, warp, lanes))
        return joined([known, clock]) or clock

    def passed_by(self, threads: Array) -> Passed:
        """Return what some threads pass on, bool `[block, warp, lane]`, joined by cluster."""
        held = Passed() if self.held is None else self.held.joined(threads)
        warps, own = self.warps, self.own
        if self.alike and alike_in_blocks(threads):  # the first block stands for all
            threads, warps, own = threads[:1], warps[:1], own[:1]
        marked: Array = np.any(threads, axis=-1)
        known: Array = np.zeros(own.shape, np.int64)  # of each warp, for the joined threads of its block
        for warp in np.flatnonzero(marked.any(axis=0)).tolist():
            blocks = np.flatnonzero(marked[:, warp])
            until = warps[blocks, warp].reshape(len(blocks), -1)
            until = np.repeat(until, known.shape[1] // until.shape[1], axis=1)
            until[:, warp] = own[blocks, warp]
            known[blocks] = np.maximum(known[blocks], until)
        times = np.repeat(np.minimum(known, LAST_TIME + 1).astype(np.int32)[..., None], LANES, axis=2)
        if self.pairs is not None:
            for block, warp in np.argwhere(marked).tolist():
                of_lanes = self.pairs[block, warp, threads[block, warp]].max(axis=0)
                np.maximum(times[block, warp], of_lanes, out=times[block, warp], casting="unsafe")
        times[threads] = self.time
        mine = ClusterClocks(self.columns, times.reshape(-1, self.columns.shape[1]))
        if held.clocks is None:
            return Passed(mine, held.beyond)
        rows = np.ones(self.columns.shape[0], bool)
        return Passed(combined([(mine, rows), (held.clocks, rows)]), held.beyond)
