"""Vector clocks: up to which time each other thread's accesses happen before what a thread does next.

The rules:

1. A clock has a time for every warp of a batch of blocks: all accesses of the warp before that time happen before what
   the clock's owner does. For some warps it has later times for single lanes. It also has such clocks of earlier
   batches. There are rows of times for a range of blocks; all times of other blocks are 0. Few rows have a time for
   each lane.
2. Joining two clocks takes the later time per thread.
3. A clock is immutable; a thread that acquires another one gets a new clock. So releasing a clock needs no copy.
4. It also has a time for each agent of asynchronous operations that its owner has observed (`access_words`); for each
   space the clock of what has crossed from the generic to the async proxy there; and the clocks of reads that are over
   though nothing else is ordered (`READS`, `RETURNED`). The rules of these are in `asynchronous_rules`.
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

READS, RETURNED = "reads", "returned"
"""Name, beside the spaces, the clocks of reads that are over: as signals say, and because their values were used."""


@dataclass(frozen=True, eq=False)
class VectorClock:
    """Times of the threads of a batch of blocks, and of earlier ones.

    Attributes
    ----------
    first : int
        Number of the first block of the batch in the grid.
    until : ndarray of int
        Of each warp of some blocks in a row, `[block, warp]`, or of each lane, `[block, warp, lane]`; 0 for all others.
    lanes : dict of (int, int) to ndarray of int
        Of the lanes of some warps, by block and warp, `[lane]`; none where `until` has them.
    older : dict of int to VectorClock
        Of earlier batches, by their first blocks; these have no older ones themselves.
    agents : dict of int to int
        Times of agents, by their numbers.
    crossed : dict of str to VectorClock
        By space, or `READS`.
    low : int
        The block of the batch that the first row of `until` belongs to.
    """

    first: int
    until: Array
    lanes: Mapping[tuple[int, int], Array] = field(default_factory=dict)
    older: Mapping[int, VectorClock] = field(default_factory=dict)
    agents: Mapping[int, int] = field(default_factory=dict)
    crossed: Mapping[str, VectorClock] = field(default_factory=dict)
    low: int = 0

    @cached_property
    def _every(self) -> Array:
        """Of each lane, `[block, warp, lane]`, in the rows of `until`."""
        if self.until.ndim == _FINE:
            return self.until
        every = np.repeat(_by_lane(self.until), LANES, axis=2)
        for (block, warp), times in self.lanes.items():
            of = every[block - self.low, warp]
            np.maximum(of, times, out=of)
        return every

    @cached_property
    def _by_warp(self) -> VectorClock:
        """The same clock with times of warps."""
        if self.until.ndim != _FINE:
            return self
        until = self.until.min(axis=2)
        more = np.argwhere((self.until > until[..., None]).any(axis=2)).tolist()
        lanes = {(row + self.low, warp): self.until[row, warp] for row, warp in more}
        return replace(self, until=until, lanes=lanes)

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
        place = block - (self.first + self.low)
        here = (place >= 0) & (place < len(self.until))
        if not here.any():
            until = np.zeros(len(words), np.int64)
        elif self.lanes or self.until.ndim == _FINE:
            until = self._every[np.where(here, place, 0), warp, lane]
        else:
            until = self.until[np.where(here, place, 0), warp]
        result: Array = here & (time < until)
        for clock in self.older.values():
            if not result.all():
                result |= clock._covers_threads(words)
        return result

    def of_block(self, first: int, block: int) -> Array:
        """Return the times of the threads of a block, `[thread]`, of the batch whose first block is `first`."""
        row = block - self.low
        if first != self.first or not 0 <= row < len(self.until):
            return np.zeros(self.until.shape[1] * LANES, np.int64)
        if self.until.ndim == _FINE or "_every" in self.__dict__:
            return np.asarray(self._every[row]).reshape(-1)
        times = np.repeat(self.until[row], LANES)
        for warp in range(self.until.shape[1]) if self.lanes else ():
            if (of := self.lanes.get((block, warp))) is not None:
                every = times[warp * LANES : (warp + 1) * LANES]
                np.maximum(every, of, out=every)
        return times

    def uncrossed(self) -> VectorClock:
        """Return the same clock without what has crossed."""
        return replace(self, crossed={}) if self.crossed else self

    def holds(self, other: VectorClock) -> bool:
        """Return whether no time of another clock is later."""
        if other is self:
            return True
        for agent, time in other.agents.items():
            if self.agents.get(agent, 0) < time:
                return False
        for space, clock in other.crossed.items():
            if space not in self.crossed or not self.crossed[space].holds(clock):
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
            self._holds_rows(other)
            and all(bool((times <= self._of(at)).all()) for at, times in other.lanes.items())
            and all(self._holds_threads(x) for x in other.older.values())
        )

    def _holds_rows(self, other: VectorClock) -> bool:
        """Return whether no time in the rows of another clock of the same batch is later."""
        its, start = other.until, other.low - self.low
        if not len(its):
            return True
        first, last, inside = start, start + len(its), its
        if first < 0 or last > len(self.until):
            first, last = max(first, 0), min(last, len(self.until))
            if first >= last:
                return not its.any()
            if its[: first - start].any() or its[last - start :].any():  # outside of these rows
                return False
            inside = its[first - start : last - start]
        if self.until.ndim == its.ndim:
            return bool((self.until[first:last] >= inside).all())
        mine = [self.of_block(self.first, self.low + row) for row in range(first, last)]
        return bool((np.reshape(mine, (last - first, -1, LANES)) >= _by_lane(inside)).all())

    def _of(self, at: tuple[int, int]) -> Any:
        """Return the times of the lanes of a warp, or the one time of all of them."""
        block, warp = at[0] - self.low, at[1]
        if not 0 <= block < len(self.until):
            return 0
        until = self.until[block, warp]
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
            plain = VectorClock(new.first, new.until, new.lanes, low=new.low)
            older[new.first] = older[new.first] | plain if new.first in older else plain
        agents, crossed = _latest([self.agents, other.agents]), _crossings([self, other])
        if other.first != self.first:
            return VectorClock(self.first, self.until, self.lanes, older, agents, crossed, self.low)
        if self._fits(other):
            until = np.maximum(self.until, other.until)
            return VectorClock(self.first, until, {}, older, agents, crossed, self.low)
        one, another = _alike([self, other])
        low, until = _latest_of_two(one, another)
        lanes = one._lanes_with(another, low, until)
        return VectorClock(self.first, until, lanes, older, agents, crossed, low)

    def _fits(self, other: VectorClock) -> bool:
        """Whether both have times of lanes in the same rows of a batch."""
        same = self.until.shape == other.until.shape and self.until.ndim == _FINE
        return same and self.low == other.low and self.first == other.first

    def _lanes_with(self, other: VectorClock, low: int, until: Array) -> Mapping[tuple[int, int], Array]:
        """Join the times of single lanes; keep the warps in which some are later than `until`, from a block on."""
        mine, its = self.lanes, other.lanes
        if not mine and not its:
            return {}
        places = [*mine, *(at for at in its if at not in mine)]
        times = np.stack([*mine.values(), *(its[at] for at in its if at not in mine)])
        both = [i for i, at in enumerate(places[: len(mine)]) if at in its]
        if both:
            times[both] = np.maximum(times[both], [its[places[i]] for i in both])
        block, warp = np.transpose(places)
        of_warps = until[block - low if low else block, warp][:, None]
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
_FINE = 3  # dimensions of times of lanes
_MOST_FINE = 16  # rows of these


def _joined_at_once(every: list[VectorClock]) -> VectorClock:
    """Join many clocks of one batch that have no older ones."""
    agents, crossed = _latest([x.agents for x in every if x.agents]), _crossings(every)
    every = [x for x in every if len(x.until)] or every[:1]
    if all(every[0]._fits(x) for x in every):
        until = np.maximum.reduce([x.until for x in every])
        return VectorClock(every[0].first, until, {}, {}, agents, crossed, every[0].low)
    every = _alike(every)
    low, until = _latest_rows(every)
    times: dict[tuple[int, int], Array] = {}
    for clock in every:
        for at, of in clock.lanes.items():
            times[at] = np.maximum(times[at], of) if at in times else of
    lanes = {}
    for (block, warp), of in times.items():
        if (of > (of_warp := until[block - low, warp])).any():
            lanes[block, warp] = np.maximum(of, of_warp)
    return VectorClock(every[0].first, until, lanes, {}, agents, crossed, low)


def _alike(some: list[VectorClock]) -> list[VectorClock]:
    """Return clocks of one batch that all have times of lanes, if they have few rows in all, or all times of warps."""
    for each in some:
        if each.until.ndim == _FINE:
            break
    else:
        return some
    known = [x for x in some if len(x.until)]
    rows = max(x.low + len(x.until) for x in known) - min(x.low for x in known) if known else 0
    if rows > _MOST_FINE:
        return [x._by_warp for x in some]
    return [x if x.until.ndim == _FINE else replace(x, until=x._every, lanes={}) for x in some]


def _latest_rows(some: list[VectorClock]) -> tuple[int, Array]:
    """Join the times in rows: return the block of the first row, and the rows."""
    known = [x for x in some if len(x.until)]
    if not known:
        return some[0].low, some[0].until
    low, many = known[0].low, len(known[0].until)
    if all(x.low == low and len(x.until) == many for x in known):
        return low, known[0].until if len(known) == 1 else np.maximum.reduce([x.until for x in known])
    low, high = min(x.low for x in known), max(x.low + len(x.until) for x in known)
    until = np.zeros((high - low, *known[0].until.shape[1:]), np.int64)
    for each in known:
        rows = until[each.low - low : each.low - low + len(each.until)]
        np.maximum(rows, each.until, out=rows)
    return low, until


def _latest_of_two(one: VectorClock, other: VectorClock) -> tuple[int, Array]:
    """Join the times of two clocks: mostly one has many rows, and the other few of these."""
    if len(one.until) < len(other.until):
        one, other = other, one
    if not len(other.until):
        return one.low, one.until
    low, mine, its = one.low, len(one.until), len(other.until)
    start = other.low - low
    if 0 <= start <= mine - its:
        until = one.until.copy()
    else:
        low = min(low, other.low)
        start, high = other.low - low, max(one.low + mine, other.low + its)
        until = np.zeros((high - low, *one.until.shape[1:]), np.int64)
        until[one.low - low : one.low - low + mine] = one.until
    rows = until[start : start + its]
    np.maximum(rows, other.until, out=rows)
    return low, until


def _by_lane(until: Array) -> Array:
    """Return times as `[block, warp, lane]`, one lane for all where they are those of warps."""
    return until if until.ndim == _FINE else until[..., None]


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
    have = [each for each in some if each.crossed]
    if len(have) < _FEW:
        return have[0].crossed if have else {}
    clocks: dict[str, list[VectorClock | None]] = {}
    for each in have:
        for space, clock in each.crossed.items():
            clocks.setdefault(space, []).append(clock)
    found = {space: joined(of) for space, of in clocks.items()}
    return {space: clock for space, clock in found.items() if clock is not None}
