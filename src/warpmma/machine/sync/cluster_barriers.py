"""The barrier of a cluster: `barrier.cluster`, at which a thread arrives first and waits later.

The rules (PTX ISA 9.1, 9.7.13.4: `barrier.cluster`), for a cluster of one block (`thread_scopes`):

1. It is complete when all threads of the block that have not exited have arrived. Then waiting threads continue, and
   threads may arrive again.
2. A thread arrives and waits alternately: arriving twice, or waiting without having arrived, is a hazard.
3. Everything before its completion happens before what follows in all threads (`barriers`), including accesses between
   an arrival and its wait, for which PTX promises no order.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ..base import Site
from ..report import Reporter
from .barriers import Barriers

_NUMBER = 16  # after the barriers of a block


class ClusterBarrier:
    """The barrier of every block of a batch.

    Parameters
    ----------
    barriers : Barriers
    reporter : Reporter
    shape : (int, int, int)
        Blocks, warps, lanes.
    """

    def __init__(self, barriers: Barriers, reporter: Reporter, shape: tuple[int, int, int]) -> None:
        self._barriers, self._reporter = barriers, reporter
        self._arrived: Array = np.zeros(shape, bool)  # and have not waited yet

    def arrive(self, site: Site, lanes: Array, *, aligned: bool) -> int:
        """Let threads arrive; return in how many blocks the barrier is complete."""
        twice = lanes & self._arrived
        self._reporter.report("barrier", site, twice, detail="it has arrived and not waited since")
        lanes = lanes & ~twice
        self._arrived = self._arrived | lanes
        return self._barriers.arrive_unchecked(site, lanes, _NUMBER, None, wait=False, aligned=aligned)

    def wait(self, site: Site, lanes: Array) -> None:
        """Let threads wait until all have arrived."""
        self._reporter.report("barrier", site, lanes & ~self._arrived, detail="it waits without having arrived")
        lanes = lanes & self._arrived
        self._arrived = self._arrived & ~lanes
        arrived = self._barriers.arrived_at(_NUMBER)
        if arrived is not None and (arrived & lanes).any():
            self._barriers.wait(_NUMBER, arrived & lanes)
