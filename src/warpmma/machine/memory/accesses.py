"""What lanes access in a piece of memory at one time, and the turns that atomics take there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..._arrays import Array
from ...operations import MemoryOrder, MemoryScope
from ..base import Site
from ..order import AFTER_ALL, Agents, Completes, ThreadScope, VectorClocks


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

    def of(self, lanes: Array) -> Touch:
        """Return the access of those of its lanes that are among some."""
        some = lanes[self.lanes]
        if some.all():
            return self
        who = self.who.some(np.flatnonzero(some))
        return replace(self, lanes=self.lanes & lanes, offset=self.offset[some], who=who)

    def now(self) -> Touch:
        """Return the same access, made now."""
        time = self.clocks.tick(self.site)
        return replace(self, time=time, who=self.clocks.who(time, self.lanes, len(self.offset)))

    def completed(self, how: Completes, numbers: Array | None = None) -> Touch:
        """Return the same access, made now by what completes it: `Agents.completed`. No barrier orders that."""
        touch = self.now()
        return replace(touch, who=touch.who.completed(how, numbers), time=AFTER_ALL, later=False)

    def in_async_proxy(self) -> Touch:
        """Return the same access, made by the async proxy."""
        return replace(self, proxy=True)

    def until_complete(self) -> Touch:
        """Return the same read of the async proxy, which is noted as that of what completes it."""
        return replace(self.in_async_proxy(), later=True)

    def strong(self, order: MemoryOrder, scope: MemoryScope) -> Touch:
        """Return the same access with an order; a "weak" one is not strong."""
        if order == "weak":
            return self
        of = self.clocks.scopes.of(scope)
        return replace(self, who=self.who.strong(of), order=order, scope=of)

    def atomic(self, scope: MemoryScope) -> Touch:
        """Return the same access, strong, but without effect on clocks: those of an mbarrier are kept elsewhere."""
        return replace(self, who=self.who.strong(self.clocks.scopes.of(scope)))


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
