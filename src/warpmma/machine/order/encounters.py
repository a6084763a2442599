"""Where threads meet through memory: what a race is told by, which would be none with fences.

Threads that access one place strongly, by an atomic or a volatile load, have met there, as those do who take a lock or
look at a flag. That orders nothing without fences (`causality`), and a barrier is not what such code lacks.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ...registers import LANES
from .causality import Causality, Signals

_CELL = 4  # bytes


class Encounters:
    """Where each thread of a batch accessed memory strongly last, and when.

    Parameters
    ----------
    shape : (int, int)
        Blocks, and warps of each.
    causality : Causality
        Which knows of fences.
    """

    def __init__(self, shape: tuple[int, int], causality: Causality) -> None:
        self._shape, self._causality = (*shape, LANES), causality
        self._memory: Array | None = None

    def note(self, signals: Signals, who: tuple[Array, Array, Array], offset: Array, time: int) -> None:
        """Note that threads, block, warp and lane of each, access a piece of memory strongly."""
        if self._memory is None:
            self._memory = np.empty(self._shape, object)
            self._cell, self._when = (np.full(self._shape, -1, np.int64) for _ in range(2))
        self._memory[who], self._cell[who], self._when[who] = signals, offset // _CELL, time

    def unfenced(self, own: tuple[int, int, int], other: tuple[int, int, int], time: int) -> Signals | None:
        """Return the memory in which two threads met last without fences of both; None if they did not.

        The other one did so behind what it did at a time. Of threads of earlier batches that is not known: then it is
        enough that this one accessed memory strongly.

        Parameters
        ----------
        own, other : (int, int, int)
            Block of the batch, warp and lane; the block of the other is negative in earlier batches.
        time : int
        """
        if self._memory is None:
            return None
        found: Signals | None = self._memory[own]
        if other[0] >= 0:
            met = found is self._memory[other] and self._cell[own] == self._cell[other] and self._when[other] > time
            if not met or (self._causality.has_fenced(own) and self._causality.has_fenced(other)):
                return None
        return found
