"""Shadow memory: tables of words by grain, and what looks up and notes accesses of all lanes at once there.

Each function is a rule of `allocation`, `shadow_memory` or `happens_before`, or a question that is mostly answered by
yes. It is native where the engine is built; the NumPy form gives the same results.

A table is kept by pages: a copy in bulk writes one word for all of its grains, so a page has one word until its grains
differ. The native functions read and write such pages at once; the NumPy form gives each grain its own word first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import Array
from .spare import SPARE

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
    span: tuple[int, int] | None = None  # between which grains of a block they are, once that was asked

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

    def among(self, other: GrainRuns) -> Array:
        """Return which of these grains are among others, bool in the shape of `all`."""
        if not self.size or not other.size:
            return np.zeros(self.shape, bool)
        least, end = int(other.first.min()), int(other.first.max()) + other.each
        there: Array = np.zeros(end - least + 2, bool)  # a place before and behind them for those that are elsewhere
        set_flags(there, GrainRuns(other.first - (least - 1), other.each), True)
        return np.asarray(there[np.clip(self.all, least - 1, end) - (least - 1)])

    def finer(self, times: int) -> GrainRuns:
        """Return the same grains after each was split into a number of smaller ones."""
        return GrainRuns(self.first * times, self.each * times)


_FEW = 8  # one grain in so many
PAGE = int(getattr(GRAINS, "page", 128))
"""Grains of a page."""
MIXED = np.uint64((1 << 64) - 1)
"""The word of a page whose grains differ: no access has it."""


class GrainTable:
    """A word for each grain, by pages.

    Parameters
    ----------
    words : ndarray of uint64
        One for each grain.

    Attributes
    ----------
    words : ndarray of uint64
        Of grains in pages that are mixed.
    pages : ndarray of uint64
        The word of all grains of a page, or `MIXED`.
    """

    def __init__(self, words: Array) -> None:
        self.words = words
        self._piece: Array | None = None
        self.pages = np.full(-(-len(words) // PAGE), MIXED, np.uint64)

    @classmethod
    def empty(cls, count: int) -> GrainTable:
        """Return a table without accesses."""
        piece = SPARE.take(count * 8)
        made = cls(piece[: count * 8].view(np.uint64))  # words of pages that are not mixed mean nothing
        made.pages[:], made._piece = 0, piece
        return made

    def end(self) -> None:
        """Give back the memory: the table is not used any more."""
        if self._piece is not None:
            SPARE.give_back([self._piece])
            self._piece = None

    def finer(self, times: int) -> GrainTable:
        """Return the table after each grain was split into a number of smaller ones."""
        made = GrainTable.empty(len(self.words) * times)
        made.pages[:] = np.repeat(self.pages, times)[: len(made.pages)]
        for number in np.flatnonzero(self.pages == MIXED).tolist():
            of_page = self.words[number * PAGE : (number + 1) * PAGE]
            made.words[number * PAGE * times :][: len(of_page) * times] = np.repeat(of_page, times)
        self.end()
        return made

    def repeated(self, blocks: int, step: int) -> GrainTable:
        """Return the table of as many blocks, in which a block has the words of this one, each more by a step."""
        words, made = self.every(), GrainTable.empty(len(self.words) * blocks)
        more = np.arange(blocks, dtype=np.uint64)[:, None] * np.uint64(step)
        if len(some := np.flatnonzero(words)) * _FEW < len(words):  # mostly mbarriers alone: leave pages as they are
            places = some + np.arange(blocks)[:, None] * len(words)
            note(made, GrainRuns(places.reshape(-1), 1), (words[some] + more).reshape(-1))
        else:
            made.words.reshape(blocks, -1)[:] = np.where(words != 0, words + more, np.uint64(0))
            made.pages[:] = MIXED
        self.end()
        return made

    def every(self) -> Array:
        """Return the words of all grains; from now on each has its own."""
        for number in np.flatnonzero(self.pages != MIXED).tolist():
            self.words[number * PAGE : (number + 1) * PAGE] = self.pages[number]
        self.pages[:] = MIXED
        return self.words

    def of(self, grains: Array) -> Array:
        """Return the words of some grains, by number, in an array of the same shape."""
        one = self.pages[grains // PAGE]
        mixed = one == MIXED
        return np.asarray(np.where(mixed, self.words[grains], one) if mixed.any() else one)


def ordered(
    table: GrainTable, grains: GrainRuns, words: Array, floor: int, *, thread: Any, block: Any, time: Any, last: int
) -> bool:
    """Whether each access in a table is none, the thread's own, or one of its block before a time.

    Parameters
    ----------
    table : GrainTable
        Access words (`access_words`).
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
            table.words, table.pages, grains.first, grains.each, words, int(thread), int(block), int(time), last,
            max(floor, 0),
        ))  # fmt: skip
    others = table.of(grains.all)
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


WARPGROUP_BITS = 7
"""Bits of the number of a warpgroup's first thread that are 0."""


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
    groups : int
        The same of the bulk groups of threads.
    warpgroup : int
        The same of warpgroups, which have the number of their first thread.
    row : ndarray of int64
        Of each thread of the batch; -1 if it is not known yet.
    times : ndarray of uint32
        `[row, number]`: up to which time accesses are ordered, of each thread of the block, then of each number of an
        mbarrier, then of the groups of each thread, and then of each warpgroup that a block may have.
    """

    first: int
    threads: int
    mbarrier: int
    groups: int
    warpgroup: int
    row: Array
    times: Array


def ordered_by(
    table: GrainTable, grains: GrainRuns, words: Array, floor: int, bits: Bits, known: KnownRows
) -> Array | None:
    """Whether each access in a table is none, the thread's own, or one of its block before a time or a known one.

    Parameters
    ----------
    table : GrainTable
        Access words (`access_words`).
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
    if GRAINS is not None:
        missing = np.empty(len(words), np.int64)
        found = GRAINS.ordered_by(
            table.words, table.pages, grains.first, grains.each, words, *_proof(floor, bits, known), missing
        )
        return None if found < 0 else missing[:found]
    found, asks = _before(table.of(grains.all), words[:, None], floor, bits, known)
    return np.flatnonzero(asks.any(axis=1)) if (found | asks).all() else None


def _proof(floor: int, bits: Bits, known: KnownRows) -> tuple[Any, ...]:
    """Return what the native functions take as what is known."""
    return *bits, max(floor, 0), *known[:6], known.times.reshape(-1), known.times.shape[1]


def _before(others: Array, mine: Array, floor: int, bits: Bits, known: KnownRows) -> tuple[Array, Array]:
    """Return which accesses happen before what threads do, and which a row would tell that the thread has not."""
    numbers = np.uint64((1 << bits.block - bits.thread) - 1)
    differ, number = others ^ mine, (others >> np.uint64(bits.thread) & numbers).astype(np.int64)
    time = (others >> np.uint64(bits.time) & np.uint64(bits.last)).astype(np.int64)
    block = differ >> np.uint64(bits.block)
    of_thread, of_mbarrier = (block == 0) & (number < known.threads), block == np.uint64(known.mbarrier)
    of_groups = (block == np.uint64(known.groups)) & (number < known.threads)
    of_warpgroup = block == np.uint64(known.warpgroup)
    open_ = (others != 0) & (differ >> np.uint64(bits.thread) != 0) & ~(of_thread & (time < floor))
    place = (mine >> np.uint64(bits.block)).astype(np.int64) - known.first
    row = known.row[place * known.threads + (mine >> np.uint64(bits.thread) & numbers).astype(np.int64)]
    mbarriers, groups = known.threads, known.threads + int(numbers) + 1
    warpgroups = groups + known.threads
    told = of_thread | of_mbarrier | of_groups | of_warpgroup
    column = np.select(
        [of_mbarrier, of_groups, of_warpgroup],
        [mbarriers + number, groups + number, warpgroups + (number >> WARPGROUP_BITS)], number,
    )  # fmt: skip
    until = known.times[np.maximum(row, 0), np.where(told, column, 0)]
    return ~open_ | (told & (row >= 0) & (time < until)), open_ & told & (row < 0)


def ends_reads(
    writes: GrainRuns, words: Array, reads: GrainRuns, readers: Array, floor: int, bits: Bits, known: KnownRows
) -> tuple[Array, Array] | None:
    """Return which reads writes of others do not end, and the lanes of writes whose rows have to be known for that.

    A write ends the reads of its grains, which happen before it. None if one does not, or may not; if only a part of a
    read's grains is written; or if two writes have a grain.

    Parameters
    ----------
    writes, reads : GrainRuns
        `[n]` and `[m]`.
    words, readers : ndarray of uint64
        Access words of the threads that write and read, `[n]` and `[m]`.
    floor, bits, known
        As for `ordered_by`.

    Returns
    -------
    (ndarray of bool, ndarray of int64) or None
        `[m]`, and the lanes.
    """
    if GRAINS is not None:
        missing, kept = np.empty(len(words), np.int64), np.empty(len(readers), bool)
        found = GRAINS.ends_reads(
            writes.first, writes.each, words, reads.first, reads.each, readers, *_proof(floor, bits, known), missing,
            kept,
        )  # fmt: skip
        return None if found < 0 else (kept, missing[:found])
    order = np.argsort(writes.first, kind="stable")
    first, words, begin = writes.first[order], words[order], reads.first
    if not len(first) or (np.diff(first) < writes.each).any():
        return None
    at = np.maximum(np.searchsorted(first, begin, "right") - 1, 0)
    end, until, behind = begin + reads.each, first[at] + writes.each, np.append(first, np.iinfo(np.int64).max)[at + 1]
    inside = (begin >= first[at]) & (end <= until)
    apart = np.where(begin < first[at], end <= first[at], (begin >= until) & (end <= behind))
    if not (inside | apart).all():
        return None
    found, asks = _before(readers[inside], words[at[inside]], floor, bits, known)
    return (~inside, np.unique(order[at[inside][asks]])) if (found | asks).all() else None


def words_at(table: GrainTable, grains: GrainRuns) -> Array:
    """Return the words of grains, `[n, each]`: a view of `[n, 1]` where those of each lane are the same."""
    if GRAINS is None:
        return table.of(grains.all)
    one = np.empty(len(grains.first), np.uint64)
    if grains.each and GRAINS.uniform(table.words, table.pages, grains.first, grains.each, one):
        return np.broadcast_to(one[:, None], grains.shape) if grains.each > 1 else one[:, None]
    every = np.empty(grains.shape, np.uint64)
    GRAINS.words_of(table.words, table.pages, grains.first, grains.each, every.reshape(-1))
    return every


def note(table: GrainTable, grains: GrainRuns, words: Array) -> bool:
    """Write words `[n]` of grains, the last one if several touch a grain; return whether none was overwritten."""
    if GRAINS is not None:
        return bool(GRAINS.note(table.words, table.pages, grains.first, grains.each, words))
    where, every = grains.all, table.every()
    every[where] = words[:, None]
    return bool((every[where] == words[:, None]).all())


def count_readers(
    tables: tuple[GrainTable, ...], grains: GrainRuns, words: Array, *, thread: Any, warp: Any, block: Any
) -> None:
    """Count readers, words `[n]`, by rule 3 of `shadow_memory`."""
    if GRAINS is not None:
        GRAINS.count_readers(
            *(x.words for x in tables), *(x.pages for x in tables), grains.first, grains.each, words, int(thread),
            int(warp), int(block),
        )  # fmt: skip
        return
    last, lane, other = (x.every() for x in tables)
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


def repeats(values: Array, blocks: int, step: int) -> bool:
    """Whether values of 64 bits, `[n]`, are those of a first block, more by a step in each one that follows."""
    if len(values) % blocks:
        return False
    words = values.view(np.uint64)
    if GRAINS is not None:
        return bool(GRAINS.repeats(words, blocks, step))
    more = np.arange(blocks, dtype=np.uint64)[:, None] * np.uint64(step)
    rows = words.reshape(blocks, -1)
    return bool((rows == rows[:1] + more).all())


def alike_in_blocks(of_blocks: Array) -> bool:
    """Whether all blocks have the same, `[block, ...]`, of a multiple of 8 bytes each."""
    if of_blocks.strides[0] == 0:
        return True
    if of_blocks.flags.c_contiguous:
        return repeats(of_blocks.reshape(-1).view(np.int64), len(of_blocks), 0)
    return bool((of_blocks == of_blocks[:1]).all())


def all_set(flags: Array, grains: GrainRuns) -> bool:
    """Whether the flags of all grains are set."""
    if GRAINS is not None:
        return bool(GRAINS.all_set(flags, grains.first, grains.each))
    return bool(flags[grains.all].all())


def set_flags(flags: Array, grains: GrainRuns, value: bool) -> None:
    """Set or clear the flags of all grains."""
    if GRAINS is not None:
        GRAINS.set(flags, grains.first, grains.each, value)
    else:
        flags[grains.all] = value


def none(table: GrainTable, grains: GrainRuns) -> bool:
    """Whether a table has no word for any of the grains."""
    if GRAINS is not None:
        return bool(GRAINS.none(table.words, table.pages, grains.first, grains.each))
    return not table.of(grains.all).any()


def fill(table: GrainTable, grains: GrainRuns, value: int) -> None:
    """Write one word for all grains into a table."""
    if GRAINS is not None:
        GRAINS.fill(table.words, table.pages, grains.first, grains.each, value)
    else:
        table.every()[grains.all] = value
