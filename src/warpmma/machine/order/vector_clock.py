"""What one thread knows of others that met it at no barrier: up to when all that each of them did lies before.

The rules:

1. Of every warp of a batch of blocks a time is known, before which all accesses of its lanes lie before what the knower
   does; of some warps more is known of single lanes. Of batches that ran earlier the same.
2. Who learns what another knows knows of each thread whichever is later.
3. It never changes: who learns more holds another one. So what threads release can be kept as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..._arrays import Array
from ...registers import LANES


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of the threads of a batch of blocks, and of earlier ones.

    Attributes
    ----------
    first : int
        Number of the first block of the batch in the grid.
    until : ndarray of int
        Of each warp, `[block, warp]`.
    lanes : dict of (int, int) to ndarray of int
        Of the lanes of some warps, by block and warp, `[lane]`.
    older : dict of int to Known
        Of earlier batches, by their first blocks; these have no older ones themselves.
    """

    first: int
    until: Array
    lanes: Mapping[tuple[int, int], Array] = field(default_factory=dict)
    older: Mapping[int, Known] = field(default_factory=dict)

    @cached_property
    def _every(self) -> Array:
        """Of each lane, `[block, warp, lane]`."""
        every = np.repeat(self.until[..., None], LANES, axis=2)
        for at, times in self.lanes.items():
            every[at] = np.maximum(every[at], times)
        return every

    def covers(self, block: Array, thread: Array, time: Array) -> Array:
        """Tell which accesses lie before what the knower does.

        Parameters
        ----------
        block, thread, time : ndarray of int
            `[n]`; the block's number in the grid, the thread's in the block.
        """
        warp, lane = np.divmod(thread, LANES)
        place = block - self.first
        here = (place >= 0) & (place < len(self.until))
        if self.lanes:
            until = self._every[np.where(here, place, 0), warp, lane]
        else:
            until = self.until[np.where(here, place, 0), warp]
        result: Array = here & (time < until)
        for known in self.older.values():
            if not result.all():
                result |= known.covers(block, thread, time)
        return result

    def holds(self, other: Known) -> bool:
        """Tell whether it knows all that another one of the same batch does."""
        if other is self:
            return True
        if other.first != self.first:
            older = self.older.get(other.first)
            return older is not None and older.holds(other) and all(self.holds(x) for x in other.older.values())
        return (
            bool((self.until >= other.until).all())
            and all(bool((times <= self._of(at)).all()) for at, times in other.lanes.items())
            and all(self.holds(x) for x in other.older.values())
        )

    def _of(self, at: tuple[int, int]) -> Any:
        """Of the lanes of a warp, or of all of them together."""
        until = self.until[at]
        return np.maximum(self.lanes[at], until) if at in self.lanes else until

    def __or__(self, other: Known) -> Known:
        """Return what both know."""
        if self.holds(other):
            return self
        if other.first >= self.first and other.holds(self):
            return other
        if other.first > self.first:
            return other | self
        older = dict(self.older)
        news = [*other.older.values(), *([other] if other.first != self.first else [])]
        for new in news:
            plain = Known(new.first, new.until, new.lanes)
            older[new.first] = older[new.first] | plain if new.first in older else plain
        if other.first != self.first:
            return Known(self.first, self.until, self.lanes, older)
        until = np.maximum(self.until, other.until)
        return Known(self.first, until, self._lanes_with(other, until), older)

    def _lanes_with(self, other: Known, until: Array) -> dict[tuple[int, int], Array]:
        """Of which warps both know more than `until` of single lanes, and what."""
        mine, its = self.lanes, other.lanes
        if not mine and not its:
            return {}
        places = [*mine, *(at for at in its if at not in mine)]
        times = np.stack([*mine.values(), *(its[at] for at in its if at not in mine)])
        both = [i for i, at in enumerate(places[: len(mine)]) if at in its]
        if both:
            times[both] = np.maximum(times[both], [its[places[i]] for i in both])
        of_warps = until[tuple(np.transpose(places))][:, None]
        more = (times > of_warps).any(axis=1).tolist()
        np.maximum(times, of_warps, out=times)
        return {at: times[i] for i, at in enumerate(places) if more[i]}


def joined(some: Iterable[Known | None]) -> Known | None:
    """Return what several know; None if that is nothing."""
    every = [known for known in dict.fromkeys(some) if known is not None]
    if len(every) > _FEW and all(x.first == every[0].first and not x.older for x in every):
        return _at_once(every)
    result: Known | None = None
    for known in every:
        result = known if result is None else result | known
    return result


_FEW = 2


def _at_once(every: list[Known]) -> Known:
    """Return what many know of their own batch alone."""
    until = np.maximum.reduce([x.until for x in every])
    times: dict[tuple[int, int], Array] = {}
    for known in every:
        for at, of in known.lanes.items():
            times[at] = np.maximum(times[at], of) if at in times else of
    lanes = {at: np.maximum(of, until[at]) for at, of in times.items() if (of > until[at]).any()}
    return Known(every[0].first, until, lanes)
