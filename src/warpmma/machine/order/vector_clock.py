"""Vector clocks: up to which time each other thread's accesses happen before what a thread does next.

The rules:

1. A clock has a time for every warp of a batch of blocks: all accesses of the warp before that time happen before what
   the clock's owner does. For some warps it has later times for single lanes. It also has such clocks of earlier
   batches.
2. Joining two clocks takes the later time per thread.
3. A clock is immutable; a thread that acquires another one gets a new clock. So releasing a clock needs no copy.
4. It also has a time for each agent of asynchronous operations that its owner has observed (`access_words`); for each
   space the clock of what has crossed from the generic to the async proxy there; and the clock of reads that are over
   though nothing else is ordered (`READS`). The rules of these are in `asynchronous_rules`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..._arrays import Array
from ...registers import LANES
from .access_words import BLOCK_BIT, THREAD_BIT, THREADS, agents_of, asynchronous, time_of


READS = "reads"
"""Names, beside the spaces, the clock of reads that are over."""


@dataclass(frozen=True, eq=False)
class VectorClock:
    """Times of the threads of a batch of blocks, and of earlier ones.

    Attributes
    ----------
    first : int
        Number of the first block of the batch in the grid.
    until : ndarray of int
        Of each warp, `[block, warp]`.
    lanes : dict of (int, int) to ndarray of int
        Of the lanes of some warps, by block and warp, `[lane]`.
    older : dict of int to VectorClock
        Of earlier batches, by their first blocks; these have no older ones themselves.
    agents : dict of int to int
        Times of agents, by their numbers.
    crossed : dict of str to VectorClock
        By space, or `READS`.
    """

    first: int
    until: Array
    lanes: Mapping[tuple[int, int], Array] = field(default_factory=dict)
    older: Mapping[int, VectorClock] = field(default_factory=dict)
    agents: Mapping[int, int] = field(default_factory=dict)
    crossed: Mapping[str, VectorClock] = field(default_factory=dict)

    @cached_property
    def _every(self) -> Array:
        """Of each lane, `[block, warp, lane]`."""
        every = np.repeat(self.until[..., None], LANES, axis=2)
        for at, times in self.lanes.items():
            every[at] = np.maximum(every[at], times)
        return every

    def covers(self, words: Array) -> Array:
        """Return which accesses, access words `[n]`, happen before what the owner does."""
        far = asynchronous(words)
        if not far.any():
            return self._covers_threads(words)
        result = np.zeros(len(words), bool)
        if not far.all():
            result[~far] = self._covers_threads(words[~far])
        if self.agents:
            some, which = np.unique(agents_of(words[far]), return_inverse=True)
            until = np.array([self.agents.get(agent, 0) for agent in some.tolist()], np.int64)
            result[far] = time_of(words[far]).astype(np.int64) < until[which.reshape(-1)]
        return result

    def _covers_threads(self, words: Array) -> Array:
        block, time = (words >> BLOCK_BIT).astype(np.int64) - 1, time_of(words).astype(np.int64)
        warp, lane = np.divmod((words >> THREAD_BIT & THREADS).astype(np.int64), LANES)
        place = block - self.first
        here = (place >= 0) & (place < len(self.until))
        if self.lanes:
            until = self._every[np.where(here, place, 0), warp, lane]
        else:
            until = self.until[np.where(here, place, 0), warp]
        result: Array = here & (time < until)
        for clock in self.older.values():
            if not result.all():
                result |= clock._covers_threads(words)
        return result

    def uncrossed(self) -> VectorClock:
        """Return the same clock without what has crossed."""
        return replace(self, crossed={}) if self.crossed else self

    def holds(self, other: VectorClock) -> bool:
        """Return whether no time of another clock is later."""
        if other is self:
            return True
        if not all(self.agents.get(agent, 0) >= time for agent, time in other.agents.items()):
            return False
        if not all(space in self.crossed and self.crossed[space].holds(x) for space, x in other.crossed.items()):
            return False
        return self._holds_threads(other)

    def _holds_threads(self, other: VectorClock) -> bool:
        if other.first != self.first:
            older = self.older.get(other.first)
            return (
                older is not None
                and older._holds_threads(other)
                and all(self._holds_threads(x) for x in other.older.values())
            )
        return (
            bool((self.until >= other.until).all())
            and all(bool((times <= self._of(at)).all()) for at, times in other.lanes.items())
            and all(self._holds_threads(x) for x in other.older.values())
        )

    def _of(self, at: tuple[int, int]) -> Any:
        """Return the times of the lanes of a warp, or the one time of all of them."""
        until = self.until[at]
        return np.maximum(self.lanes[at], until) if at in self.lanes else until

    def __or__(self, other: VectorClock) -> VectorClock:
        """Join two clocks (rule 2)."""
        if self.holds(other):
            return self
        if other.first >= self.first and other.holds(self):
            return other
        if other.first > self.first:
            return other | self
        older = dict(self.older)
        news = [*other.older.values(), *([other] if other.first != self.first else [])]
        for new in news:
            plain = VectorClock(new.first, new.until, new.lanes)
            older[new.first] = older[new.first] | plain if new.first in older else plain
        agents, crossed = _latest([self.agents, other.agents]), _crossings([self, other])
        if other.first != self.first:
            return VectorClock(self.first, self.until, self.lanes, older, agents, crossed)
        until = np.maximum(self.until, other.until)
        return VectorClock(self.first, until, self._lanes_with(other, until), older, agents, crossed)

    def _lanes_with(self, other: VectorClock, until: Array) -> dict[tuple[int, int], Array]:
        """Join the times of single lanes; keep the warps in which some are later than `until`."""
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


def joined(some: Iterable[VectorClock | None]) -> VectorClock | None:
    """Join several clocks; None stands for one without times."""
    every = [clock for clock in dict.fromkeys(some) if clock is not None]
    if len(every) > _FEW and all(x.first == every[0].first and not x.older for x in every):
        return _joined_at_once(every)
    result: VectorClock | None = None
    for clock in every:
        result = clock if result is None else result | clock
    return result


_FEW = 2


def _joined_at_once(every: list[VectorClock]) -> VectorClock:
    """Join many clocks of one batch that have no older ones."""
    until = np.maximum.reduce([x.until for x in every])
    times: dict[tuple[int, int], Array] = {}
    for clock in every:
        for at, of in clock.lanes.items():
            times[at] = np.maximum(times[at], of) if at in times else of
    lanes = {at: np.maximum(of, until[at]) for at, of in times.items() if (of > until[at]).any()}
    agents = _latest([x.agents for x in every if x.agents])
    return VectorClock(every[0].first, until, lanes, {}, agents, _crossings(every))


def _latest(some: list[Mapping[int, int]]) -> Mapping[int, int]:
    """Return the latest times of agents."""
    if len(some) == 1 or (len(some) == 2 and not some[1]):
        return some[0]
    found: dict[int, int] = {}
    for each in some:
        for agent, time in each.items():
            if time > found.get(agent, 0):
                found[agent] = time
    return found


def _crossings(some: list[VectorClock]) -> Mapping[str, VectorClock]:
    """Join what has crossed to the async proxy, by space."""
    clocks: dict[str, list[VectorClock | None]] = {}
    for each in some:
        for space, clock in each.crossed.items():
            clocks.setdefault(space, []).append(clock)
    found = {space: joined(of) for space, of in clocks.items()}
    return {space: clock for space, clock in found.items() if clock is not None}


@dataclass(frozen=True, eq=False)
class Moment:
    """The clocks of the threads of a batch at a time; `of` makes the clock of any of them.

    Attributes
    ----------
    warps : ndarray of int
        From barriers: up to which time other warps of the block are ordered, `[block, warp, other warp]`; or one time
        for all of them, `[block, warp]`.
    """

    time: int  # each thread's own accesses before it are ordered
    warps: Array
    own: Array  # the same for the lanes of the own warp, `[block, warp]`
    pairs: Array | None  # the same for each of them, `[block, warp, lane, other lane]`
    held: Array  # the clock that each thread had acquired, `[block, warp, lane]`

    def of(self, first: int, block: int, warp: int, lanes: list[int]) -> VectorClock:
        """Return the joined clock of lanes of a warp."""
        until = np.zeros(self.own.shape, np.int64)
        until[block] = self.warps[block, warp]
        until[block, warp] = self.own[block, warp]
        times = np.full(LANES, self.own[block, warp])
        if self.pairs is not None:
            times = np.maximum(times, self.pairs[block, warp, lanes].max(axis=0))
        times[lanes] = self.time
        clock = VectorClock(first, until, {(block, warp): times})
        return joined([*dict.fromkeys(self.held[block, warp, lanes].tolist()), clock]) or clock
