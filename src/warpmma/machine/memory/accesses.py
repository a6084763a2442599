"""What lanes access in a piece of memory at one time, and the turns that atomics take there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._arrays import Array
from ...operations import MemoryOrder, MemoryScope
from ..base import Site, repeats
from ..order import AFTER_ALL, BLOCK_BIT, Agents, Completes, ThreadScope, VectorClocks


@dataclass(eq=False, kw_only=True, slots=True)
class Touch:
    """An access of lanes to a piece of memory, at one time.

    Attributes
    ----------
    clocks : VectorClocks
    order : str
    """

    site: Site
    time: int
    clocks: VectorClocks
    address: Array  # `[block, warp, lane]`, for reports
    lanes: Array  # the lanes that take part, n in all
    offset: Array  # the first byte of each, `[n]`
    size: int  # bytes of each
    who: Agents
    order: MemoryOrder = "weak"
    scope: ThreadScope = ThreadScope.GPU  # how strong the accesses are
    proxy: bool = False  # whether it is an access of the async proxy
    later: bool = False  # whether the read is noted only when it completes (`completed`)
    runs: int = 1  # accesses of each lane, one after the other: then `offset` and `who` have n times as many, by lane

    def _copy(self, who: Agents) -> Touch:
        """Return the same access of other agents: there are many, and `dataclasses.replace` is slow."""
        return Touch(
            site=self.site, time=self.time, clocks=self.clocks, address=self.address, lanes=self.lanes,
            offset=self.offset, size=self.size, who=who, order=self.order, scope=self.scope, proxy=self.proxy,
            later=self.later, runs=self.runs,
        )  # fmt: skip

    @property
    def number(self) -> int:
        """The number of accesses."""
        return len(self.offset)

    def first(self, blocks: int, step: int) -> Touch | None:
        """Return the part of the first of so many blocks, of so many bytes each, if it stands for those of all.

        Then the other blocks' parts differ in the block alone (`lockstep_touch`).
        """
        words = self.who.words
        if not (repeats(self.offset, blocks, step) and repeats(words, blocks, 1 << int(BLOCK_BIT))):
            return None
        count = len(words) // blocks
        made = self._copy(Agents(words[:count], self.who.first))
        made.lanes, made.offset = self.lanes[:1], self.offset[:count]
        return made

    def parts(self) -> Iterator[Touch]:
        """Yield the first access of each lane, then the second, and so on."""
        if self.runs == 1:
            yield self
            return
        for k in range(self.runs):
            made = self._copy(self.who.some(np.arange(k, len(self.offset), self.runs)))
            made.offset, made.runs = self.offset[k :: self.runs], 1
            yield made

    def of(self, lanes: Array) -> Touch:
        """Return the access of those of its lanes that are among some."""
        if lanes.all() or (some := lanes[self.lanes]).all():
            return self
        of_runs = some if self.runs == 1 else np.repeat(some, self.runs)
        made = self._copy(self.who.some(np.flatnonzero(of_runs)))
        made.lanes, made.offset = self.lanes & lanes, self.offset[of_runs]
        return made

    def now(self) -> Touch:
        """Return the same access, made now."""
        for _ in range(self.runs):  # each is an event
            time = self.clocks.tick(self.site)
        number = len(self.offset) // self.runs
        who = self.clocks.who(time, self.lanes, number)
        made = self._copy(who if self.runs == 1 else who.some(np.repeat(np.arange(number), self.runs)))
        made.time = time
        return made

    def completed(self, how: Completes, numbers: Array | None = None) -> Touch:
        """Return the same access, made now by what completes it: `Agents.completed`. No barrier orders that."""
        made = self.now()
        numbers = numbers if numbers is None or self.runs == 1 else np.repeat(numbers, self.runs)
        made.who, made.time, made.later = made.who.completed(how, numbers), AFTER_ALL, False
        return made

    def mark(self, words: Array, by: Touch) -> None:
        """Write the words of what completes it, the same for all lanes of a warp, to its warps, `[block, warp]`."""
        words[self.who.block, self.who.warp] = by.who.words

    def in_async_proxy(self) -> Touch:
        """Return the same access, made by the async proxy."""
        made = self._copy(self.who)
        made.proxy = True
        return made

    def until_complete(self) -> Touch:
        """Return the same read of the async proxy, which is noted as that of what completes it."""
        made = self.in_async_proxy()
        made.later = True
        return made

    def strong(self, order: MemoryOrder, scope: MemoryScope) -> Touch:
        """Return the same access with an order; a "weak" one is not strong."""
        if order == "weak":
            return self
        of = self.clocks.scopes.of(scope)
        made = self._copy(self.who.strong(of))
        made.order, made.scope = order, of
        return made

    def atomic(self, scope: MemoryScope) -> Touch:
        """Return the same access, strong, but without effect on clocks: those of an mbarrier are kept elsewhere."""
        return self._copy(self.who.strong(self.clocks.scopes.of(scope)))


class Turns(NamedTuple):
    """Turns that lanes take at elements."""

    place: Array  # the element of each turn: one turn for each element of a lane's vector
    held: Array  # the values, `[element, byte]`
    contested: Array  # elements that an unordered atomic of another thread changed last


class Taken(NamedTuple):
    """The outcome of turns.

    Attributes
    ----------
    found, left : ndarray of uint8
        The value that each turn has read, `[turn, byte]`, and the final values, `[element, byte]`.
    """

    found: Array
    left: Array
    wrote: Array  # turns that wrote something
    open: Array  # turns whose order mattered
    order: Array | None  # the order of the turns; None for the given one
