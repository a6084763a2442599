"""Who runs next: a program counter for every lane.

The rules:

1. Every lane has a place in the program. Lanes of a warp that stand at one place go together, and warps do, over all
   blocks of a batch. A branch parts lanes; they have met again when they stand at one place.
2. Who runs and stands at the lowest place is next: so those who are behind catch up, and lanes that parted in an `if`
   or a loop meet where it ends.
3. Lanes that run and have not had a turn for long are next in spite of that: nobody waits for ever for one who is
   further on in the program. CUDA promises such progress to every thread from sm_70 on.
4. Who waits at a barrier is passed over, and who has exited. Where nobody runs and some wait, what they wait for does
   not come (`barriers`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .barriers import Barriers
from .lanes import Lanes

__all__ = ["Schedule"]

Array = npt.NDArray[Any]

_PATIENCE = 4096  # turns
_NOWHERE = np.iinfo(np.int64).max


class Schedule:
    """The places of all lanes of a batch of blocks.

    Parameters
    ----------
    lanes : Lanes
    barriers : Barriers
    """

    def __init__(self, lanes: Lanes, barriers: Barriers) -> None:
        self._lanes, self._barriers = lanes, barriers
        self._at = np.zeros(lanes.shape, np.int64)
        self._together: int | None = 0  # the place of all who are alive, where they have one
        self._turn, self._last = 0, np.zeros(lanes.shape, np.int64)

    def next(self) -> tuple[int, Array] | None:
        """Return the next place and who goes on there; None when all have exited."""
        lanes = self._lanes
        while True:
            if self._together is not None and not lanes.any_waiting:
                return (self._together, lanes.alive) if lanes.alive.any() else None
            self._part()
            runs = lanes.alive & ~lanes.waiting
            if runs.any():
                return self._choose(runs)
            if not lanes.any_waiting:
                return None
            self._barriers.stand(lanes.waiting, None)

    def _choose(self, runs: Array) -> tuple[int, Array]:
        """Rules 2 and 3."""
        self._turn += 1
        place = int(np.where(runs, self._at, _NOWHERE).min())
        age = np.where(runs, self._turn - self._last, 0)
        if age.max() > _PATIENCE:
            place = int(self._at.reshape(-1)[int(age.argmax())])
        chosen = runs & (self._at == place)
        self._last[chosen] = self._turn
        if (self._at[self._lanes.alive] == place).all() and not self._lanes.any_waiting:
            self._together = place
            return place, self._lanes.alive
        return place, chosen

    def _part(self) -> None:
        if self._together is not None:
            self._at[...] = self._together
            self._last[...] = self._turn
            self._together = None

    def go(self, lanes: Array, to: int) -> None:
        """Let those who were chosen go on to a place."""
        if self._together is not None and lanes is self._lanes.alive:
            self._together = to
        else:
            self._part()
            self._at[lanes] = to
