"""The barrier of a cluster: `barrier.cluster`, of which a thread arrives first and waits later.

The rules (PTX ISA 9.1, 9.7.13.4: `barrier.cluster`), of a block that is a cluster of its own:

1. It is complete when all threads of the block that have not exited have arrived. Then those who wait go on, and
   threads may arrive anew.
2. A thread arrives and waits by turns: to arrive twice, or to wait without having arrived, is a hazard.
3. What was done before it is complete lies before what follows in all threads (`barriers`): also what was done between
   an arrival and the wait, which nothing promises.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ..base import Site
from ..report import Reporter
from .barriers import Barriers

_NUMBER = 16  # behind those of a block


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
        self._arrived: Array = np.zeros(shape, bool)  # and not waited yet

    def arrive(self, site: Site, lanes: Array, *, aligned: bool) -> int:
        """Let threads arrive; return how many blocks have met."""
        twice = lanes & self._arrived
        self._reporter.report("barrier", site, twice, detail="it has arrived, and not waited since")
        lanes = lanes & ~twice
        self._arrived = self._arrived | lanes
        return self._barriers.come(site, lanes, _NUMBER, None, wait=False, aligned=aligned)

    def wait(self, site: Site, lanes: Array) -> None:
        """Let threads wait until all have arrived."""
        self._reporter.report("barrier", site, lanes & ~self._arrived, detail="it waits, and has not arrived before")
        lanes = lanes & self._arrived
        self._arrived = self._arrived & ~lanes
        coming = self._barriers.coming(_NUMBER)
        if coming is not None and (coming & lanes).any():
            self._barriers.wait(_NUMBER, coming & lanes)
