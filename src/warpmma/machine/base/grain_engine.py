"""Shadow memory: the functions that look up and note accesses of all lanes at once, native where it is built.

Each function is a rule of `allocation`, `shadow_memory` or `happens_before`, or a question that is mostly answered by
yes. The NumPy form gives the same results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import Array

try:
    from ... import _native
except ImportError:  # installed without a compiler
    _native = None  # type: ignore[assignment]


GRAINS: Any = getattr(_native, "grains", None)
"""The native engine's grains; None where NumPy does it all, an installation without a compiler."""


@dataclass(eq=False, slots=True)
class GrainRuns:
    """The grains that lanes touch: for each lane, a number of consecutive ones."""

    first: Array  # the first grain of each lane, `[n]`
    each: int  # grains of a lane

    @property
    def all(self) -> Array:
        """Every grain, `[n, each]`."""
        return self.first[:, None] + np.arange(self.each) if self.each > 1 else self.first[:, None]

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of `all`."""
        return len(self.first), self.each

    @property
    def size(self) -> int:
        """The number of grains, counted once for every lane that touches them."""
        return len(self.first) * self.each

    def apart(self, other: GrainRuns) -> bool:
        """Whether all of these are below or above all others."""
        if not self.size or not other.size:
            return True
        behind = self.first.min() >= other.first.max() + other.each
        return bool(behind or self.first.max() + self.each <= other.first.min())

    def finer(self, times: int) -> GrainRuns:
        """Return the same grains after each was split into a number of smaller ones."""
        return GrainRuns(self.first * times, self.each * times)


def ordered(
    table: Array, grains: GrainRuns, words: Array, floor: int, *, thread: Any, block: Any, time: Any, last: int
) -> bool:
    """Whether each access in a table is none, the thread's own, or one of its block before a time.

    Parameters
    ----------
    table : ndarray of uint64
        Access words, by grain (`access_words`).
    grains : GrainRuns
    words : ndarray of uint64
        Access words of the threads, `[n]`.
    floor : int
        The time.
    thread, block, time : int
        The lowest bit of the thread, the block and the time in a word; the time is at most `last`.
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


class Bits(NamedTuple):
    """Where the parts of an access word begin; the time is at most `last`."""

    thread: int
    block: int
    time: int
    last: int


class KnownRows(NamedTuple):
    """What threads know of the accesses of their own blocks.

    Attributes
    ----------
    first : int
        What the words of the first block of the batch have as block.
    threads : int
        Of a block.
    mbarrier : int
        By which bits the block in the words of mbarriers differs from that of threads.
    row : ndarray of int64
        Of each thread of the batch; -1 if it is not known yet.
    times : ndarray of uint32
        `[row, number]`: up to which time accesses are ordered, of each thread of the block and then of each number of
        an mbarrier.
    """

    first: int
    threads: int
    mbarrier: int
    row: Array
    times: Array


def ordered_by(table: Array, grains: GrainRuns, words: Array, floor: int, bits: Bits, known: KnownRows) -> Array | None:
    """Whether each access in a table is none, the thread's own, or one of its block before a time or a known one.

    Parameters
    ----------
    table : ndarray of uint64
        Access words, by grain (`access_words`).
    grains : GrainRuns
    words : ndarray of uint64
        Access words of the threads, `[n]`.
    floor : int
        The time.
    bits : Bits
    known : KnownRows

    Returns
    -------
    ndarray of int64 or None
        The lanes whose rows have to be known for that, none if all accesses are ordered; None if some are not.
    """
    if hasattr(GRAINS, "ordered_by"):
        missing = np.empty(len(words), np.int64)
        found = GRAINS.ordered_by(
            table, grains.first, grains.each, words, *bits, max(floor, 0), *known[:4], known.times.reshape(-1),
            known.times.shape[1], missing,
        )  # fmt: skip
        return None if found < 0 else missing[:found]
    others, mine = table[grains.all], words[:, None]
    numbers = np.uint64((1 << bits.block - bits.thread) - 1)
    differ, number = others ^ mine, (others >> np.uint64(bits.thread) & numbers).astype(np.int64)
    time = (others >> np.uint64(bits.time) & np.uint64(bits.last)).astype(np.int64)
    block = differ >> np.uint64(bits.block)
    of_thread, of_mbarrier = (block == 0) & (number < known.threads), block == np.uint64(known.mbarrier)
    open_ = (others != 0) & (differ >> np.uint64(bits.thread) != 0) & ~(of_thread & (time < floor))
    place = (words >> np.uint64(bits.block)).astype(np.int64) - known.first
    row = known.row[place * known.threads + (words >> np.uint64(bits.thread) & numbers).astype(np.int64)]
    until = known.times[np.maximum(row, 0)[:, None], number + np.where(of_mbarrier, known.threads, 0)]
    has_row = (row >= 0)[:, None]
    if (open_ & ~((of_thread | of_mbarrier) & (~has_row | (time < until)))).any():
        return None
    return np.flatnonzero((open_ & ~has_row).any(axis=1))


def words_at(table: Array, grains: GrainRuns) -> Array:
    """Return the words of grains, `[n, each]`: a view of `[n, 1]` where those of each lane are the same."""
    if grains.each > 1 and hasattr(GRAINS, "uniform"):
        one = np.empty(len(grains.first), np.uint64)
        if GRAINS.uniform(table, grains.first, grains.each, one):
            return np.broadcast_to(one[:, None], grains.shape)
    return np.asarray(table[grains.all])


def note(table: Array, grains: GrainRuns, words: Array) -> bool:
    """Write words `[n]` of grains, the last one if several touch a grain; return whether none was overwritten."""
    if GRAINS is not None:
        return bool(GRAINS.note(table, grains.first, grains.each, words))
    where = grains.all
    table[where] = words[:, None]
    return bool((table[where] == words[:, None]).all())


def count_readers(
    tables: tuple[Array, ...], grains: GrainRuns, words: Array, *, thread: Any, warp: Any, block: Any
) -> None:
    """Count readers, words `[n]`, by rule 3 of `shadow_memory`."""
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
            other[place[elsewhere]] = word[elsewhere]  # of several at once, one of another block


def all_set(flags: Array, grains: GrainRuns) -> bool:
    """Whether the flags of all grains are set."""
    if GRAINS is not None:
        return bool(GRAINS.all_set(flags, grains.first, grains.each))
    return bool(flags[grains.all].all())


def none(table: Array, grains: GrainRuns) -> bool:
    """Whether a table has no word for any of the grains."""
    if GRAINS is not None:
        return bool(GRAINS.none(table, grains.first, grains.each))
    return not table[grains.all].any()


def fill(table: Array, grains: GrainRuns, value: int | bool) -> None:
    """Write one value for all grains into a table of words or flags."""
    if GRAINS is not None:
        GRAINS.fill(table, grains.first, grains.each, value)
    else:
        table[grains.all] = value
