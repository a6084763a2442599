"""What threads wait for at a barrier that gives them something: `bar.red`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._arrays import Array


class Awaited:
    """What lanes get when a barrier is complete.

    Parameters
    ----------
    reduction : {"popc", "and", "or"}
    lanes : ndarray of bool
        Who waits for it, `[block, warp, lane]`.

    Attributes
    ----------
    bits : ndarray of uint32 or bool
        `[block, warp, lane]`.
    there : ndarray of bool
        Who has it.
    then : callable or None
        What to do with the bits, and the lanes that have got them.
    """

    def __init__(self, reduction: str, lanes: Array) -> None:
        self.reduction, self.lanes = reduction, lanes
        self.bits: Array = np.zeros(lanes.shape, np.uint32 if reduction == "popc" else bool)
        self.there: Array = np.zeros(lanes.shape, bool)
        self.then: Callable[[Array, Array], None] | None = None

    def give(self, brought: Array, true: Array, blocks: Array) -> bool:
        """Give it to the lanes of blocks that have met; tell whether others still wait."""
        value = {"popc": true.astype(np.uint32), "and": true == brought, "or": true > 0}[self.reduction]
        lanes = self.lanes & blocks[:, None, None]
        self.bits = np.where(lanes, value[:, None, None], self.bits)
        self.there, self.lanes = self.there | lanes, self.lanes & ~lanes
        if self.then is not None and lanes.any():
            self.then(self.bits, lanes)
        return bool(self.lanes.any())
