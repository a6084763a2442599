"""What blocks in lockstep access in their shared memory: the first block's part stands for those of all.

It is the access of all lanes as well (`Touch`): what asks for the offsets or agents of all has them made. The rules:

1. An access is alike if the same lanes of each block of the batch access the same places of their block's memory.
2. Accesses that are made of it, such as the same one at a later time, are alike, too, unless they are those of lanes
   that differ between blocks, or of mbarriers at different places.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ..base import alike_in_blocks, repeats
from ..order import AFTER_ALL, BLOCK_BIT, THREADS, Agents, Completes
from .accesses import Touch

_MBARRIERS = int(THREADS) + 1  # numbers of them in a block: `Agents.completed`


class LockstepTouch(Touch):
    """An access that is alike in all blocks.

    Parameters
    ----------
    part : Touch
        The first block's part, of one access of each lane.
    lanes, address : ndarray
        Of all blocks, as for `Touch`.
    blocks, step : int
        Blocks, and bytes of the memory of each.
    """

    __slots__ = ("_agents", "_every", "blocks", "part", "step")

    def __init__(self, part: Touch, *, lanes: Array, address: Array, blocks: int, step: int) -> None:
        self.part, self.blocks, self.step = part, blocks, step
        self._every: Array | None = None
        self._agents: Agents | None = None
        self.site, self.time, self.clocks, self.size = part.site, part.time, part.clocks, part.size
        self.address, self.lanes, self.runs = address, lanes, 1
        self.order, self.scope, self.proxy, self.later = part.order, part.scope, part.proxy, part.later

    @property
    def number(self) -> int:
        """See `Touch`."""
        return len(self.part.offset) * self.blocks

    @property
    def offset(self) -> Array:  # type: ignore[override]
        """See `Touch`."""
        if self._every is None:
            self._every = (np.arange(0, self.blocks * self.step, self.step)[:, None] + self.part.offset).reshape(-1)
        return self._every

    @property
    def who(self) -> Agents:  # type: ignore[override]
        """See `Touch`."""
        if self._agents is None:
            self._agents = Agents(self.of_blocks(self.part.who.words).reshape(-1), self.part.who.first)
        return self._agents

    def of_blocks(self, words: Array) -> Array:
        """Return access words of the first block, `[m]`, as those of each, `[block, m]`."""
        return np.asarray((np.arange(self.blocks, dtype=np.uint64) << BLOCK_BIT)[:, None] + words)

    def _with(self, part: Touch, lanes: Array | None = None) -> LockstepTouch:
        """Return an access of the same or fewer lanes whose first block's part is given (rule 2)."""
        lanes = self.lanes if lanes is None else lanes
        return LockstepTouch(part, lanes=lanes, address=self.address, blocks=self.blocks, step=self.step)

    def first(self, blocks: int, step: int) -> Touch | None:
        """See `Touch`."""
        return self.part

    def of(self, lanes: Array) -> Touch:
        """See `Touch`."""
        if lanes.all():
            return self
        both = self.lanes & lanes
        if not alike_in_blocks(both):
            return super().of(lanes)
        part = self.part.of(lanes[:1])
        return self if part is self.part else self._with(part, both)

    def now(self) -> Touch:
        """See `Touch`."""
        return self._with(self._part_now())

    def _part_now(self) -> Touch:
        part = self.part._copy(self.part.who)
        part.time = self.clocks.tick(self.site)
        part.who = self.clocks.who_of_first(part.time, self.part.lanes, len(self.part.offset))
        return part

    def completed(self, how: Completes, numbers: Array | None = None) -> Touch:
        """See `Touch`."""
        if numbers is not None and not repeats(numbers, self.blocks, _MBARRIERS):
            return self._copy(self.who).completed(how, numbers)
        part, its = self._part_now(), None if numbers is None else numbers[: len(self.part.offset)]
        part.who, part.time, part.later = part.who.completed(how, its), AFTER_ALL, False
        return self._with(part)

    def in_async_proxy(self) -> Touch:
        """See `Touch`."""
        return self._with(self.part.in_async_proxy())

    def until_complete(self) -> Touch:
        """See `Touch`."""
        return self._with(self.part.until_complete())

    def mark(self, words: Array, by: Touch) -> None:
        """See `Touch`."""
        if isinstance(by, LockstepTouch):
            warp, lane = np.unique(self.part.who.warp, return_index=True)
            words[:, warp] = self.of_blocks(by.part.who.words[lane])
        else:
            super().mark(words, by)
