"""Late writes: stores that race with an earlier read, and what that read is worth then.

The rules:

1. A write that changes bytes which an unordered thread has read before makes that read depend on luck. The read is over
   by then: so the write is noted, and the launch is undone (`undoing`) and run once more. It runs as before, since
   poison changes no bits.
2. In that run, an earlier read of those bytes is poison unless its thread is ordered before the write, by what the
   writing thread knew when it wrote.
3. Times are those of a batch of blocks; reads of an earlier batch are earlier.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..._arrays import Array
from ..base import Site
from .access_words import THREAD_BIT, Agents, block_of, outside_scopes, time_of
from .happens_before import Standing, VectorClocks
from .thread_scopes import ThreadScopes

Key = tuple[str, int]
"""A piece of memory: "global" and where it begins, or "shared" and the first block of its batch."""


class LateWrite(NamedTuple):
    """A write of threads that races with earlier reads."""

    site: Site
    place: Array  # the offsets of the bytes that change, sorted
    by: Array  # the number of the thread that changes each
    threads: Standing  # what they knew
    scopes: ThreadScopes

    def reads(self, place: Array, who: Agents, blocks: range) -> tuple[Array, int] | None:
        """Return which bytes that threads of a batch read, `[n, size]`, it changes; and the word of one writer."""
        at = np.minimum(np.searchsorted(self.place, place), len(self.place) - 1)
        reader, byte = np.nonzero(self.place[at] == place)
        by = self.by[at[reader, byte]]
        words, its = self.threads.words[by], who.words[reader]
        if not len(words):
            return None
        first = block_of(words[0])
        later = time_of(words) > time_of(its) if first in blocks else np.full(len(words), first >= blocks.stop)
        late = later & outside_scopes(words, its, self.scopes) & self.threads.unordered(its, by)
        late &= words >> THREAD_BIT != its >> THREAD_BIT
        if not late.any():
            return None
        bad = np.zeros(place.shape, bool)
        bad[reader[late], byte[late]] = True
        return bad, int(words[late][0])


class LateWrites:
    """The late writes of a run of a launch."""

    def __init__(self) -> None:
        self._writes: dict[Key, list[LateWrite]] = {}
        self._index: dict[Key, tuple[Array, Array]] = {}  # offsets of the bytes of all, sorted, and whose each is

    def __bool__(self) -> bool:
        return bool(self._writes)

    @property
    def first(self) -> Site:
        """The line of one of them."""
        return next(iter(self._writes.values()))[0].site

    def note(self, key: Key, site: Site, clocks: VectorClocks, who: Agents, offset: Array, changed: Array) -> None:
        """Note that threads, n of them, change bytes `[n, size]` that others have read."""
        some = np.flatnonzero(changed.any(axis=1))
        by, byte = np.nonzero(changed[some])
        place = offset[some][by] + byte
        order = np.argsort(place, kind="stable")
        known = clocks.standing(who.some(some)).kept()
        self._writes.setdefault(key, []).append(LateWrite(site, place[order], by[order], known, clocks.scopes))

    def reads(
        self, key: Key, offset: Array, size: int, who: Agents, blocks: range
    ) -> Iterator[tuple[Array, int, Site]]:
        """Yield what each later write changes of a read: bytes `[n, size]`, the word of one writer, and its line."""
        if key not in self._writes:
            return
        writes = self._writes[key]
        if key not in self._index:
            places, numbers = np.concatenate([x.place for x in writes]), [len(x.place) for x in writes]
            order = np.argsort(places, kind="stable")
            self._index[key] = places[order], np.repeat(np.arange(len(writes)), numbers)[order]
        known, number = self._index[key]
        place = offset[:, None] + np.arange(size)
        first, end = (np.searchsorted(known, place, side).reshape(-1) for side in ("left", "right"))
        lengths = end - first
        if not (total := int(lengths.sum())):
            return
        at = np.repeat(first - np.cumsum(lengths) + lengths, lengths) + np.arange(total)
        for write in (writes[i] for i in np.unique(number[at]).tolist()):
            if (found := write.reads(place, who, blocks)) is not None:
                yield *found, write.site
