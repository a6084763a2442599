"""The barrier of a cluster: `barrier.cluster`, at which a thread arrives first and waits later.

The rules (PTX ISA 9.1, 9.7.13.4, and rule A17 of `asynchronous_rules`):

1. It is complete when all threads of the cluster that have not exited have arrived. Then waiting threads continue, and
   threads that have waited may arrive again.
2. A thread arrives and waits alternately: arriving twice, or waiting without having arrived, is a hazard.
3. What a thread does before it arrives happens before what threads do after they wait. What lies between an arrival and
   its wait is ordered with nothing. An arrival with `.relaxed` passes on what the fences of its thread released, alone;
   and that what its thread has read has returned, which counts at the end of a block (A18).
4. If no thread can run any more, or the kernel ends, waiting for threads that never arrive is a hazard.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ..base import Lanes, Site
from ..order import Passed, VectorClocks
from ..report import Reporter

_MASKED = "this thread is masked off; all threads of the warp must execute it together"


class ClusterBarrier:
    """The barrier of every cluster of a batch.

    Parameters
    ----------
    lanes : Lanes
    clocks : VectorClocks
    reporter : Reporter

    Attributes
    ----------
    arrived : ndarray of bool
        Threads that have arrived and not waited since, `[block, warp, lane]`.
    """

    def __init__(self, lanes: Lanes, clocks: VectorClocks, reporter: Reporter) -> None:
        self._lanes, self._clocks, self._reporter = lanes, clocks, reporter
        self._size = clocks.scopes.cluster
        self.arrived: Array = np.zeros(lanes.shape, bool)
        self._complete = self.arrived.copy()  # those whose barrier is complete
        self._waiting = self.arrived.copy()
        self._when = np.zeros(lanes.shape[:2], np.int64)  # the time of the last arrival of each warp
        self._relaxed = self.arrived.copy()  # threads whose last arrival was `.relaxed`
        self._released = Passed()  # by what has arrived
        self._done = Passed()  # by what had arrived when it was last complete
        self._site: Site | None = None

    # Rules 1 and 2

    def arrive(self, site: Site, lanes: Array, *, aligned: bool, releases: bool) -> int:
        """Let threads arrive; return in how many blocks the barrier is complete."""
        if aligned:
            missing = self._lanes.alive & ~lanes & ~self._lanes.whole(lanes)[..., None]
            self._reporter.report("barrier", site, missing, detail=_MASKED)
            lanes = lanes | missing
        twice = lanes & self.arrived
        self._reporter.report("barrier", site, twice, detail="it has arrived and not waited since")
        lanes = lanes & ~twice
        if not lanes.any():
            return 0
        self.arrived = self.arrived | lanes
        self._site = site
        if self._reporter.tracking:
            self._release(lanes, releases=releases)
        return self.exited()

    def exited(self) -> int:
        """Complete barriers at which all threads that have not exited have arrived; return in how many blocks."""
        here = self.arrived & ~self._complete
        came = (here | ~self._lanes.alive).all(axis=(1, 2)).reshape(-1, self._size).all(axis=1)
        done = np.repeat(came & here.any(axis=(1, 2)).reshape(-1, self._size).any(axis=1), self._size)
        if not done.any():
            return 0
        rows = done[:: self._size]
        self._done = self._done.only(~rows) | self._released.only(rows)
        self._released = self._released.only(~rows)
        now = here & done[:, None, None]
        self._complete = self._complete | now
        waiting = self._waiting & now
        self._waiting = self._waiting & ~now
        self._lanes.release(waiting)
        self._leave(waiting)
        return int(done.sum())

    def wait(self, site: Site, lanes: Array) -> None:
        """Let threads wait until all have arrived."""
        self._reporter.report("barrier", site, lanes & ~self.arrived, detail="it waits without having arrived")
        lanes = lanes & self.arrived
        late = lanes & ~self._complete
        self._leave(lanes & ~late)
        if late.any():
            self._site = site
            self._waiting = self._waiting | late
            self._lanes.wait(late)

    # Rule 3

    def _release(self, lanes: Array, *, releases: bool) -> None:
        self._when[lanes.any(axis=-1)] = self._clocks.now
        self._relaxed = self._relaxed & ~lanes if releases else self._relaxed | lanes
        causality, scope = self._clocks.causality, self._clocks.scopes.of("cluster")
        if releases:
            self._released |= self._clocks.passed_by(lanes)
        else:
            self._released |= self._clocks.returned(self._clocks.passed_by(lanes))
            if causality.active:
                self._released |= causality.fenced(lanes, scope)
        self._clocks.tick()

    def _leave(self, lanes: Array) -> None:
        """Let threads pass a complete barrier."""
        if not lanes.any():
            return
        self.arrived, self._complete = self.arrived & ~lanes, self._complete & ~lanes
        if not self._reporter.tracking:
            return
        # Threads of a block that pass together, with no access since they arrived, are as after a barrier of the block.
        whole = np.asarray((lanes | ~self._lanes.alive).all(axis=(1, 2)) & lanes.any(axis=(1, 2)))
        whole &= ~(lanes & self._relaxed).any(axis=(1, 2))
        whole &= (self._clocks.touched < self._when).all(axis=1)
        if whole.any():
            self._clocks.synchronize_blocks(whole)
        if self._size == 1:
            lanes = lanes & ~whole[:, None, None]
        self._clocks.causality.acquire(np.argwhere(lanes), self._done)
        self._clocks.tick()

    # Rule 4

    def stand(self, lanes: Array, acts: Site | None, where: str = "") -> None:
        """Report and release threads that wait for others that never arrive: see `Barriers.stand`."""
        blocks = (self._waiting & lanes).any(axis=(1, 2)).reshape(-1, self._size).any(axis=1)
        clusters = np.repeat(blocks, self._size)[:, None, None]
        if not clusters.any() or self._site is None:
            return
        if acts is None:
            says = "no thread can run" if where else "the kernel ends"
        else:
            says = f"the waiting threads are to act at {acts.what}"
        missing = self._lanes.alive & ~self.arrived & clusters
        why = f"{says}, and it has not arrived: all threads of the cluster must arrive at its barrier"
        absent = self.absent()
        why += f"; {absent}" * bool(absent) + f". {where}" * bool(where)
        self._reporter.report("barrier", self._site, missing, detail=why, other=acts)
        free = self._waiting & clusters
        self.arrived, self._waiting = self.arrived & ~free, self._waiting & ~free
        self._lanes.release(free)

    def absent(self) -> str:
        """Name the blocks that the barriers of others wait for, and where no thread has arrived; "" for none."""
        waits = np.repeat(self._waiting.any(axis=(1, 2)).reshape(-1, self._size).any(axis=1), self._size)
        running, arrived = (x.any(axis=(1, 2)) for x in (self._lanes.alive, self.arrived))
        some = np.flatnonzero(waits & running & ~arrived).tolist()
        named = ", ".join(self._reporter.block_named(self._clocks.blocks[block]) for block in some[:_MOST])
        more = f" and {len(some) - _MOST} more blocks" * (len(some) > _MOST)
        return f"no thread of {named}{more} has come to the barrier of its cluster" if some else ""


_MOST = 4  # blocks that a report names
