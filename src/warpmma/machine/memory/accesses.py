"""What lanes access in a piece of memory at one time, and the turns that atomics take there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..._arrays import Array
from ...operations import MemoryOrder, MemoryScope
from ..base import Site
from ..order import Agents, ThreadScope, VectorClocks


@dataclass(eq=False, kw_only=True, slots=True)
class Touch:
    """An access of lanes to a piece of memory, at one time.

    Attributes
    ----------
    site : Site
    time : int
    clocks : VectorClocks
    address : ndarray of int
        `[block, warp, lane]`, for reports.
    lanes : ndarray of bool
        The lanes that take part, n in all.
    offset : ndarray of int
        The first byte of each, `[n]`.
    size : int
        Bytes of each.
    who : Agents
    order : str
    scope : ThreadScope
        How strong the accesses are.
    """

    site: Site
    time: int
    clocks: VectorClocks
    address: Array
    lanes: Array
    offset: Array
    size: int
    who: Agents
    order: MemoryOrder = "weak"
    scope: ThreadScope = ThreadScope.GPU

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

    def strong(self, order: MemoryOrder, scope: MemoryScope) -> Touch:
        """Return the same access with an order; a "weak" one is not strong."""
        if order == "weak":
            return self
        of = ThreadScope.of(scope)
        return replace(self, who=self.who.strong(of), order=order, scope=of)


class Turns(NamedTuple):
    """Turns that lanes take at elements.

    Attributes
    ----------
    place : ndarray of int
        The element of each turn: one turn for each element of a lane's vector.
    held : ndarray of uint8
        The values, `[element, byte]`.
    contested : ndarray of bool
        Elements that an unordered atomic of another thread changed last.
    """

    place: Array
    held: Array
    contested: Array


class Taken(NamedTuple):
    """The outcome of turns.

    Attributes
    ----------
    found, left : ndarray of uint8
        The value that each turn has read, `[turn, byte]`, and the final values, `[element, byte]`.
    wrote : ndarray of bool
        Turns that wrote something.
    open : ndarray of bool
        Turns whose order mattered.
    order : ndarray of int or None
        The order of the turns; None for the given one.
    """

    found: Array
    left: Array
    wrote: Array
    open: Array
    order: Array | None
