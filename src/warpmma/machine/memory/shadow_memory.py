"""Shadow memory: for each byte, whether it was written, who wrote it last, and who has read it since.

The rules:

1. A grain is the largest number of bytes of which all accesses so far were multiples: at first 16. When a smaller
   access comes, grains are split. So no access shares a grain with bytes that it does not access, and large accesses
   are cheap.
2. Of writers, the last is kept.
3. Of readers, three are kept: the last; the last in another lane of that reader's warp; and the last of another warp,
   preferably of another block. So if any other thread has read a grain, a writer finds one. If only some threads of a
   block are ordered, all readers of shared memory are kept, or the last 1024 reads if mbarriers or fences order them,
   or if it is that of a cluster. In global memory an unordered reader may be replaced by an ordered one.
4. Reads are only noted. They are counted in when a write comes to where they were, or when there are many; if all of
   them happen before everything that may follow, they are dropped. Those that happen before a write of all their grains
   are dropped, too: who is unordered with them is unordered with that write. Reads of one grain are counted in in their
   order.
5. For each grain, the pending copy that will write it is kept until the copy is complete.
6. Of threads that have observed the last write of a grain, all are kept, with their first read of it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import NamedTuple

import numpy as np

from ..._arrays import Array
from ..base import (
    GrainRuns,
    GrainTable,
    Origin,
    Poison,
    all_set,
    bounds,
    count_readers,
    fill,
    none,
    note,
    set_flags,
    words_at,
)
from ..order import AFTER_ALL, BLOCK_BIT, THREAD_BIT, WARP_BIT, ThreadScope
from .accesses import Taken, Touch
from .loans import Content

_FIRST = 16
_LARGE, _MOST_LARGE = 256, 64  # grains of a lane in a large access, and how many of these are remembered
_FEW_NOTES, _MOST_NOTES = 16, 1024
_PLACES = 16  # accesses whose grains are kept
_MOST_NOTED = 1 << 23, 1 << 22  # entries in notes: of memory of all blocks, and of one block
_U = np.uint64

Overwritten = Callable[[Touch, Array, Origin], None]
"""What is told which bytes of a source, bool `[n, size]`, are written while a copy may still read them."""

Look = Callable[[Touch], None]
"""What sees loads."""

Watch = Callable[[Touch, Array | None], None]
"""What sees accesses before they write, and which bytes each changes, bool `[n, size]`; None where all may change."""


class Note(NamedTuple):
    """Reads at one time: grains of lanes, access words `[n]`, and between which grains of a block they are."""

    grains: GrainRuns
    words: Array
    time: int
    span: tuple[int, int]

    def meets(self, span: tuple[int, int]) -> bool:
        """Whether others between some grains may have grains of these."""
        return self.span[0] < span[1] and span[0] < self.span[1]


class WrittenGrains(NamedTuple):
    """The written bytes of a piece of memory: a flag for every grain, and the bytes of a grain."""

    grain: int
    flags: Array


class Shadow:
    """State kept beside the bytes of a piece of memory: an `Allocation` informs it of every access.

    It alone decides what an access means for later ones, which hazards it has, and what it loads as poison. This one
    looks for no hazards; `AccessShadow` does.

    Parameters
    ----------
    written : bool or WrittenGrains
        Whether all has been written, or what has. After any write of a launch that looks for no hazards, all counts as
        written.
    """

    in_lockstep = True
    """Whether it takes accesses that are alike in all blocks as those of the first one (`lockstep_touch`)."""

    def __init__(self, written: WrittenGrains | bool) -> None:
        self._written = written

    @property
    def written(self) -> WrittenGrains | bool:
        """What has been written; True for all."""
        return self._written

    def loads(self, touch: Touch, element: int, *, travels: bool) -> Poison | None:
        """Note a load, of elements of so many bytes; return its poison, `[n, size]`, or None if there is none."""
        return None

    def loads_quietly(self, touch: Touch) -> bool:
        """Note weak loads of several runs if nothing is to be said about them and they have no poison.

        Return False if that is not known; then nothing is noted.
        """
        touch.now()
        return True

    def writers(self, touch: Touch) -> Array | None:
        """Return the words of the last writers of what lanes access, by grain, `[n, m]`; None without writers."""
        return None

    def keeps(self, touch: Touch, poison: Poison | None, *, stores: bool = True) -> None:
        """Replace the poison bits of bytes that lanes have stored or, if not `stores`, put."""

    def stores(self, touch: Touch, data: Array) -> Array | None:
        """Note that lanes are to store bytes `[n, size]`; return what `stored` needs."""
        self._written = True
        return None

    def stored(self, touch: Touch, data: Array, last: Array | None) -> None:
        """Note that lanes have stored."""

    def updates(
        self, touch: Touch, element: int, *, decides: bool = True, contests: bool = True
    ) -> tuple[Poison | None, Array | None]:  # fmt: skip
        """Note that lanes are to change elements; return their poison, and which are contested, `[n, elements]`.

        Poison that is stored there is reported if it `decides` something. Without `contests`, contested elements are
        not looked for.
        """
        self._written = True
        return None, None

    def updated(self, touch: Touch, element: int, taken: Taken) -> None:
        """Note that lanes have changed elements."""

    def reserves(self, touch: Touch, data: Content) -> None:
        """Note that an asynchronous operation writes bytes, `[n, size]`, until it `completes`."""

    def completes(self, touch: Touch) -> None:
        """Note that an asynchronous operation writes what it reserved."""
        self._written = True

    def will_combine(self, touch: Touch) -> None:
        """Note that an asynchronous reduction will change bytes."""

    def credits(self, touch: Touch) -> None:
        """Note that what completes an asynchronous operation, not its thread, has changed bytes just now."""

    def will_read(self, touch: Touch, overwritten: Overwritten) -> None:
        """Note that an asynchronous operation reads bytes, until `still_to_read` ends or shrinks that.

        `overwritten` is told which of them, bool `[n, size]`, others write meanwhile.
        """

    def has_read(self, touch: Touch) -> None:
        """Note that an asynchronous operation may have read bytes until now."""

    def still_to_read(self, source: Touch, left: Touch) -> None:
        """Note what an asynchronous operation still has to read of what `will_read` named, perhaps nothing."""

    def watches(self, what: str, *, reads: Look | None = None, writes: Watch | None = None) -> None:
        """Let functions see loads, and writes before they happen; those of a name replace earlier ones."""

    def report_left(self, start: int) -> None:
        """Report poison that is left when a launch ends in memory that begins at an address."""

    def end(self) -> None:
        """Give back memory: there are no more accesses."""

    def forgets(self, touch: Touch) -> None:
        """Mark bytes as unwritten again."""


def poison_of(written: Array, element: int) -> tuple[Array, Array]:
    """Return which elements are poison, and which lanes load unwritten memory (rule 4 of `access_shadow`).

    Parameters
    ----------
    written : ndarray of bool
        `[..., byte]`.
    element : int
        Bytes of one.

    Returns
    -------
    poison, bad : ndarray of bool
        `[..., element]` and `[...]`.
    """
    elements = written.reshape(*written.shape[:-1], -1, element)
    some, whole = elements.any(axis=-1), elements.all(axis=-1)
    return np.asarray(~whole), np.asarray((some & ~whole).any(axis=-1) | ~some.any(axis=-1))


class Grains:
    """The shadow of a piece of memory, by grains.

    Parameters
    ----------
    size : int
        In bytes.
    written : bool or WrittenGrains
        Whether all of it was written; or what was, which is updated in place.
    scope : ThreadScope
        The threads that can access a grain.
    phase : int
        Offset of the first byte in the first grain.
    block : int
        Bytes of each block, if it is the memory of several; 0 if not.
    stands_for : int
        Blocks for which this one stands: so many reads are noted at once.

    Attributes
    ----------
    grain, count : int
        Bytes of one, and how many there are.
    writer : GrainTable or None
        Access words; None before the first write.
    written : ndarray of bool or None
        By grain; None if all is written.
    last_write, last_read : int
        Times; -1 if there was none.
    """

    def __init__(
        self, size: int, *, written: bool | WrittenGrains, scope: ThreadScope, phase: int = 0, block: int = 0,
        stands_for: int = 1,
    ) -> None:  # fmt: skip
        known = written if isinstance(written, WrittenGrains) else None
        self._size = size
        self.grain, self.one_block = _FIRST if known is None else known.grain, scope <= ThreadScope.CTA
        self.count, self._phase = -(-(size + phase) // _FIRST) * (_FIRST // self.grain), phase
        self._block, self._scope, self._stands_for = block, scope, stands_for
        self._places: dict[int, tuple[Array, int, int, GrainRuns]] = {}  # by the identity of offsets
        self.writer: GrainTable | None = None
        self.written = None if written is True else np.zeros(self.count, bool) if known is None else known.flags
        self.readers: tuple[GrainTable, ...] = ()
        self._surely_written: set[tuple[int, bytes]] = set()  # large accesses, by grains of a lane and the first ones
        self._pending: GrainTable | None = None
        self._under_way = 0
        self._notes: list[Note] = []
        self._noted = 0
        self._exact: list[Note] = []
        self._observed: list[tuple[GrainRuns, Array, Array]] = []  # grains, readers `[n]`, and writers `[n, m]`
        self._to_observe = _MOST_NOTED[self.one_block]  # grains, until observations of earlier writes are dropped
        self.last_write = self.last_read = -1

    def at(self, offset: Array, size: int) -> GrainRuns:
        """Return the grains of accesses of a size at offsets `[n]`."""
        if size % self.grain:
            self._cut(gcd(size, self.grain))
        if (held := self._places.get(id(offset))) is not None and held[1:3] == (size, self.grain):
            return held[3]
        first = (offset + self._phase if self._phase else offset) >> self.grain.bit_length() - 1
        runs = GrainRuns(first, max(1, size // self.grain))
        if len(self._places) >= _PLACES:
            self._places.clear()
        self._places[id(offset)] = offset, size, self.grain, runs  # an access asks often, and another of its lanes
        return runs

    def repeated(self, blocks: int) -> Grains:
        """Return the grains of so many blocks, each in the state of this one, which is not used any more."""
        made = Grains(self._size * blocks, written=True, scope=self._scope, block=self._size)
        made.grain, made.count = self.grain, self.count * blocks
        if self.written is not None:
            made.written = np.tile(self.written, blocks)

        def runs(grains: GrainRuns) -> GrainRuns:
            start = np.arange(blocks)[:, None] * self.count
            return GrainRuns((start + grains.first).reshape(-1), grains.each, grains.span)

        def words(of_one: Array) -> Array:
            block = np.arange(blocks, dtype=_U)[:, None] << BLOCK_BIT
            return np.asarray((of_one + block).reshape(-1))

        for name in ("writer", "_pending"):
            table: GrainTable | None = getattr(self, name)
            setattr(made, name, None if table is None else table.repeated(blocks, 1 << int(BLOCK_BIT)))
        made.readers = tuple(x.repeated(blocks, 1 << int(BLOCK_BIT)) for x in self.readers)
        made._notes, made._exact = (
            [Note(runs(x.grains), words(x.words), x.time, x.span) for x in notes]
            for notes in (self._notes, self._exact)
        )
        made._under_way, made._noted = self._under_way * blocks, self._noted
        made.last_write, made.last_read = self.last_write, self.last_read
        return made

    @property
    def known(self) -> WrittenGrains | bool:
        """What has been written; True for all."""
        return self.written is None or WrittenGrains(self.grain, self.written)

    def end(self) -> None:
        """Give back the tables: there are no more accesses."""
        for table in (self.writer, self._pending, *self.readers):
            if table is not None:
                table.end()
        self.writer = self._pending = None
        self.readers = ()
        self._places.clear()

    def _cut(self, grain: int) -> None:
        """Rule 1."""
        times = self.grain // grain
        self._surely_written.clear()
        self.grain, self.count = grain, self.count * times
        if self.writer is not None:
            self.writer = self.writer.finer(times)
        if self.written is not None:
            self.written = np.repeat(self.written, times)
        if self._pending is not None:
            self._pending = self._pending.finer(times)
            self._under_way *= times
        self.readers = tuple(x.finer(times) for x in self.readers)
        self._notes, self._exact = (
            [self._note(x.grains.finer(times), x.words, x.time) for x in notes] for notes in (self._notes, self._exact)
        )
        self._observed = [
            (grains.finer(times), x, np.repeat(seen, times, axis=1)) for grains, x, seen in self._observed
        ]

    # Rule 2

    def note_write(self, grains: GrainRuns, words: Array, time: int) -> Array | None:
        """Note the writers; return the last writer of each grain if several lanes write one at once, otherwise None."""
        if self.writer is None:
            self.writer = GrainTable.empty(self.count)
        self.last_write = max(self.last_write, time)
        return None if note(self.writer, grains, words) else words_at(self.writer, grains)

    def note_written(self, grains: GrainRuns) -> None:
        """Note that grains are written."""
        if self.written is not None and not self._known_as_written(grains):
            set_flags(self.written, grains, True)

    def all_written(self, grains: GrainRuns) -> bool:
        """Whether all of some grains are written."""
        if self.written is None or self._known_as_written(grains):
            return True
        if not all_set(self.written, grains):
            return False
        if grains.each >= _LARGE:
            if len(self._surely_written) >= _MOST_LARGE:
                self._surely_written.clear()
            self._surely_written.add((grains.each, grains.first.tobytes()))
        return True

    def _known_as_written(self, grains: GrainRuns) -> bool:
        """Whether an earlier look has found these very grains written: loops come to a stage again and again."""
        return grains.each >= _LARGE and (grains.each, grains.first.tobytes()) in self._surely_written

    def forget(self, grains: GrainRuns) -> None:
        """Note that grains are unwritten."""
        if self.written is None:
            self.written = np.ones(self.count, bool)
        self._surely_written.clear()
        set_flags(self.written, grains, False)

    def mark(self, start: int, stop: int, written: bool) -> None:
        """Note whether the bytes between two offsets are written."""
        first, last = start + self._phase if start else 0, stop + self._phase
        if stop == self._size:  # bytes before and after the memory do not matter
            last = self.count * self.grain
        if (grain := gcd(self.grain, first, last)) < self.grain:
            self._cut(grain)
        if self.written is None:
            self.written = np.ones(self.count, bool)
        self._surely_written.clear()
        self.written[first // grain : last // grain] = written

    # Rule 5

    def note_pending(self, grains: GrainRuns, words: Array) -> None:
        """Note the copies that will write grains."""
        if self._pending is None:
            self._pending = GrainTable.empty(self.count)
        note(self._pending, grains, words)
        self._under_way += grains.size

    def settle(self, grains: GrainRuns) -> None:
        """Note that copies are complete."""
        if self._pending is not None:
            fill(self._pending, grains, 0)
            self._under_way -= grains.size

    def pending_at(self, grains: GrainRuns) -> Array | None:
        """Return the pending copies of grains, words `[n, m]`; None if there are none."""
        if not self._under_way or self._pending is None or none(self._pending, grains):
            return None
        return words_at(self._pending, grains)

    # Rules 3 and 4

    def note_read(self, grains: GrainRuns, words: Array, time: int, floor: int, *, exact: bool) -> None:
        """Note the readers; reads before `floor` no longer matter.

        If only some threads are ordered (`exact`), all reads are kept.
        """
        if self.one_block and self.last_read < floor:
            self._forget_notes()
        self.last_read = max(self.last_read, time)
        self._notes.append(self._note(grains, words, time))
        if exact and self.one_block:
            self._keep(floor)
        else:
            self._noted += len(grains.first) * self._stands_for
            if self._noted >= _MOST_NOTED[self.one_block] or len(self._notes) >= _MOST_NOTES:
                self._read()

    def _note(self, grains: GrainRuns, words: Array, time: int) -> Note:
        return Note(grains, words, time, self.span(grains))

    def span(self, grains: GrainRuns) -> tuple[int, int]:
        """Return between which grains of a block some are."""
        if not len(grains.first):
            return self.count, grains.each
        if grains.span is None:
            grains.span = bounds(grains.first, grains.each, self._block // self.grain)
        return grains.span

    def ended(self, grains: GrainRuns, ends: Callable[[Note], Array | None]) -> bool:
        """Drop the noted reads that a write of grains ends; False if it does not end all that it meets.

        `ends` returns which of a note's reads the write does not meet, or None if it meets some that it may not end.
        """
        span = self.span(grains)
        left: list[tuple[list[Note], int, Array]] = []
        for notes in (self._notes, self._exact):
            for at, one in enumerate(notes):
                if one.meets(span):
                    if (kept := ends(one)) is None:
                        return False
                    if not kept.all():
                        left.append((notes, at, kept))
        for notes, at, kept in reversed(left):
            old = notes[at]
            if kept.any():
                runs = GrainRuns(old.grains.first[kept], old.grains.each)
                notes[at] = Note(runs, old.words[kept], old.time, old.span)
            else:
                del notes[at]
        return True

    def read(
        self, floor: int, *, exact: bool, some: bool = False, grains: GrainRuns | None = None
    ) -> tuple[GrainTable, ...]:  # fmt: skip
        """Return the readers of some grains, or of all: three tables of words, or none; `meetings` has the others.

        If only some threads are ordered, all reads are kept, or with `some` the last ones.
        """
        if (exact or some) and self.one_block:
            self._keep(floor, None if exact else _MOST_NOTES)
        elif (exact or some) and self._block:  # of a cluster: what is old in one block is not in the others
            self._keep(0, _MOST_NOTES)
        else:
            self._read(None if grains is None else self.span(grains))
        return self.readers

    def _keep(self, floor: int, most: int | None = None) -> None:
        """Keep all reads since `floor`, or so many; those of operations, which never become old, in the tables."""
        far = [x for x in self._notes if x.time == AFTER_ALL]
        kept = [x for x in (*self._exact, *self._notes) if floor <= x.time < AFTER_ALL]
        old = 0 if most is None else max(len(kept) - most, 0)
        self._exact, self._notes = kept[old:], [*kept[:old], *far]
        self._read()

    def meetings(self, grains: GrainRuns) -> tuple[Array, Array, Array]:
        """Return all kept reads of some grains, `[n, m]`: lane, place and word of each."""
        if not self._exact:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, _U)
        flat, span = grains.all.reshape(-1), self.span(grains)
        found: list[tuple[Array, Array]] = []
        for one in self._exact:
            mine, its = _common(flat, one.grains) if one.meets(span) else (flat[:0], flat[:0])
            if len(mine):
                each = one.grains.each
                found.append((mine, (one.words if each == 1 else np.repeat(one.words, each))[its]))
        mine = np.concatenate([x for x, _ in found]) if found else np.zeros(0, np.int64)
        words = np.concatenate([x for _, x in found]) if found else np.zeros(0, _U)
        if grains.each == 1:  # there may be many more pairs than grains
            return mine, np.zeros(len(mine), np.int64), words
        lane, place = np.divmod(np.arange(len(flat)), grains.each)
        return lane[mine], place[mine], words

    # Rule 6

    def note_observed(self, grains: GrainRuns, words: Array, seen: Array) -> None:
        """Note that threads, words `[n]`, have observed the writes `[n, m]` of grains; 0 for none."""
        self._observed.append((grains, words, seen))
        self._to_observe -= grains.size
        if self._to_observe <= 0 or len(self._observed) >= _MOST_NOTES:
            self._condense()

    def observations(self, lane: Array, place: Array, grains: GrainRuns) -> tuple[Array, Array]:
        """Return who has observed the last writes of grains, given by lane and place: which of these, and the words."""
        if len(self._observed) >= _FEW_NOTES:
            self._condense()
        flat, found = grains.all[lane, place], [(np.zeros(0, np.int64), np.zeros(0, _U))]
        for known, words, seen in self._observed:
            mine, its = _common(flat, known)
            if len(mine) and self.writer is not None:
                last = seen.reshape(-1)[its] == self.writer.of(flat[mine])
                found.append((mine[last], words[its[last] // known.each]))
        return np.concatenate([x for x, _ in found]), np.concatenate([x for _, x in found])

    def _condense(self) -> None:
        """Keep the first observation of each thread of each last write."""
        flat = np.concatenate([grains.all.reshape(-1) for grains, *_ in self._observed])
        words = np.concatenate([np.repeat(words, grains.each) for grains, words, _ in self._observed])
        seen = np.concatenate([x.reshape(-1) for *_, x in self._observed])
        current = np.flatnonzero((seen != 0) & (seen == (0 if self.writer is None else self.writer.of(flat))))
        current = current[np.lexsort((words[current] >> THREAD_BIT, flat[current]))]  # of equal ones, in order
        grain, thread = flat[current], words[current] >> THREAD_BIT
        current = current[np.append(True, (np.diff(grain) != 0) | (thread[1:] != thread[:-1]))[: len(current)]]
        self._observed = [(GrainRuns(flat[current], 1), words[current], seen[current, None])]
        self._to_observe = max(_MOST_NOTED[self.one_block], len(current))

    def _read(self, span: tuple[int, int] | None = None) -> None:
        """Count in the notes, or those that may have grains of a span, and all earlier ones that these may meet."""
        counted, left = self._notes, list[Note]()
        if span is not None and self._block:
            counted = []
            for one in reversed(self._notes):
                if one.meets(span):
                    counted.append(one)
                    span = min(span[0], one.span[0]), max(span[1], one.span[1])
                else:
                    left.append(one)
            counted.reverse()
            left.reverse()
        if counted and not self.readers:
            self.readers = tuple(GrainTable.empty(self.count) for _ in range(3))
        for grains, words, _, _ in counted:
            count_readers(self.readers, grains, words, thread=THREAD_BIT, warp=WARP_BIT, block=BLOCK_BIT)
        self._notes, self._noted = left, sum(len(x.words) for x in left) * self._stands_for

    def _forget_notes(self) -> None:
        self._notes.clear()
        self._noted = 0


def _common(flat: Array, known: GrainRuns) -> tuple[Array, Array]:
    """Return the pairs of equal grains, by their place in `flat`, `[k]`, and in `known.all.reshape(-1)`."""
    held = known.all.reshape(-1)
    order = np.argsort(held, kind="stable")
    held = held[order]
    first, last = np.searchsorted(held, flat, "left"), np.searchsorted(held, flat, "right")
    many = last - first
    ends = np.cumsum(many)
    if not len(ends) or not ends[-1]:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    mine = np.repeat(np.arange(len(flat)), many)
    its = np.arange(len(mine)) + np.repeat(first - ends + many, many)
    return mine, order[its]
