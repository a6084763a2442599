"""Shadow memory: the functions that look up and note accesses of all lanes at once, native where it is built.

Each function is a rule of `allocation`, `shadow_memory` or `happens_before`, or a question that is mostly answered by
yes. The NumPy form gives the same results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._arrays import Array

try:
    from ... import _native
except ImportError:  # installed without a compiler
    _native = None  # type: ignore[assignment]


GRAINS: Any = getattr(_native, "grains", None)
"""The native engine's grains; None where NumPy does it all, an installation without a compiler."""


@dataclass(frozen=True, slots=True)
class GrainRuns:
    """What lanes touch: so many grains each, one after the other.

    Attributes
    ----------
    first : ndarray of int64
        The first of each lane, `[n]`.
    each : int
        How many.
    """

    first: Array
    each: int

    @property
    def all(self) -> Array:
        """Every grain, `[n, each]`."""
        return self.first[:, None] + np.arange(self.each) if self.each > 1 else self.first[:, None]

    @property
    def shape(self) -> tuple[int, int]:
        """Of `all`."""
        return len(self.first), self.each

    @property
    def size(self) -> int:
        """How many grains these are together, one that several touch as often."""
        return len(self.first) * self.each

    def apart(self, other: GrainRuns) -> bool:
        """Whether all of these lie before or behind all others."""
        if not self.size or not other.size:
            return True
        behind = self.first.min() >= other.first.max() + other.each
        return bool(behind or self.first.max() + self.each <= other.first.min())

    def finer(self, times: int) -> GrainRuns:
        """Return the same, where each grain has become so many."""
        return GrainRuns(self.first * times, self.each * times)


def ordered(
    table: Array, grains: GrainRuns, words: Array, floor: int, *, thread: Any, block: Any, time: Any, last: int
) -> bool:
    """Whether all that a table has of grains is nothing, the thread's own, or of its block and before a time.

    Parameters
    ----------
    table : ndarray of uint64
        Words of accesses, by grain (`happens_before`).
    grains : GrainRuns
    words : ndarray of uint64
        Of those who ask, `[n]`.
    floor : int
        The time.
    thread, block, time : int
        Where in a word the thread begins, the block, and the time, which is at most `last`.
    """
    if GRAINS is not None:
        return bool(GRAINS.ordered(
            table, grains.first, grains.each, words, int(thread), int(block), int(time), last, max(floor, 0)
        ))  # fmt: skip
    others = table[grains.all]
    differ = others ^ words[:, None]
    before = ((differ >> np.uint64(block)) == 0) & (
        (others >> np.uint64(time) & np.uint64(last)) < np.uint64(max(floor, 0))
    )
    return bool(((others == 0) | (differ >> np.uint64(thread) == 0) | before).all())


def note(table: Array, grains: GrainRuns, words: Array) -> bool:
    """Note words `[n]` of grains, of several the last; whether each stands where it was noted."""
    if GRAINS is not None:
        return bool(GRAINS.note(table, grains.first, grains.each, words))
    where = grains.all
    table[where] = words[:, None]
    return bool((table[where] == words[:, None]).all())


def count_readers(
    tables: tuple[Array, ...], grains: GrainRuns, words: Array, *, thread: Any, warp: Any, block: Any
) -> None:
    """Count readers in: rule 3 of `shadow_memory`, of words `[n]`."""
    last, lane, other = tables
    if GRAINS is not None:
        GRAINS.count_readers(last, lane, other, grains.first, grains.each, words, int(thread), int(warp), int(block))
        return
    where = grains.all
    every = np.broadcast_to(words[:, None], where.shape)
    before = last[where]
    last[where] = every
    now = last[where]
    for known in (before, every):
        another = ((known ^ now) >> thread != 0) & (known != 0)
        if not another.any():
            continue
        same_warp = (known ^ now) >> warp == 0
        mine = another & same_warp
        lane[where[mine]] = known[mine]
        far = another & ~same_warp
        if far.any():
            place, word, here = where[far], known[far], now[far] >> block
            held, elsewhere = other[place], word >> block != here
            keep = (held != 0) & (held >> block != here) & ~elsewhere
            other[place] = np.where(keep, held, word)
            other[place[elsewhere]] = word[elsewhere]  # of several at once, too, one of another block


def all_set(flags: Array, grains: GrainRuns) -> bool:
    """Whether all of some flags are set, by grain."""
    if GRAINS is not None:
        return bool(GRAINS.all_set(flags, grains.first, grains.each))
    return bool(flags[grains.all].all())


def none(table: Array, grains: GrainRuns) -> bool:
    """Whether a table of words has nothing of grains."""
    if GRAINS is not None:
        return bool(GRAINS.none(table, grains.first, grains.each))
    return not table[grains.all].any()


def fill(table: Array, grains: GrainRuns, value: int | bool) -> None:
    """Put a value into a table, of words or flags."""
    if GRAINS is not None:
        GRAINS.fill(table, grains.first, grains.each, value)
    else:
        table[grains.all] = value
