"""The shadow of memory in which hazards are looked for: who accessed each byte, and who may access it now.

The rules:

1. Two threads race if both access a byte, one of them writes it, and neither access happens before the other
   (`happens_before`). The race is found at the second access; the first is named with its line.
2. A thread that stores the same value as another thread, unordered, does not race: that is the hazard "same value". The
   same holds when several lanes do so in one store and, where poison is followed, when a thread stores what another has
   read there.
3. A `cp.async` may write its bytes, and read its source, from its issue until it has been waited for. Meanwhile, an
   access to the bytes, or a write to the source, is the hazard "pending". Afterwards it is as if the thread had written
   the bytes when it waited: other threads may read them after a barrier that follows.
4. A load reads unwritten memory if a part of an element was never written, or all elements of a lane were not. If only
   some of several elements are unwritten, such as padding, these are poison, which is reported where it is read
   (`warp_register`). Where poison travels, loads from shared and local memory only give poison; it is reported when it
   matters.
5. If several lanes write a byte at once, the data of one stay (`memory_engine.store`). Lanes of a warp that store
   different values are the hazard "lane order"; warps that leave different values race. Copies to one place race, too,
   unless they bring the same bytes to global memory: CUTLASS lets all lanes of a warp execute one store of a tensor.
6. Where poison is followed (rule 5 of `hazards`), a load reports nothing: bytes that are unwritten, pending, or written
   by an unordered thread are poison. Poison is stored and loaded with its bytes. An atomic combines unwritten and
   stored poison (`updating`), and reports the rest at once. A write to the source of a pending copy is not reported
   either: what the copy writes of bytes that it changes is poison (`async_operations`).
7. An atomic reads and writes as one strong access (`happens_before`); lanes that meet take turns (`atomic_order`).
8. Poison that a launch leaves in global memory decides something: the host reads it. Bytes that the launch has loaded
   since are a workspace; what became of them there was followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._arrays import Array, all_ones
from ...isa import WarpgroupInstruction
from ...operations import Copy
from ..base import GrainRuns, Origin, Poison, PoisonBytes, Site, get, store_order, words_at
from ..order import (
    RETURNED,
    STRONG,
    WARP_BIT,
    Agents,
    Completes,
    Key,
    SyncCells,
    ThreadScope,
    VectorClock,
    VectorClocks,
    asynchronous,
    block_of,
    blocks_of,
    completed_by,
    outside_scopes,
    thread_of,
    time_of,
)
from ..report import Reporter
from .accesses import Taken, Touch
from .loans import Content, content
from .shadow_memory import Grains, Look, Note, Overwritten, Shadow, Watch, WrittenGrains, poison_of

_LANE_ORDER = "another lane of the warp stores something else there in this very access: PTX leaves open which stays"
UNWRITTEN = "unwritten memory is read"
_OBSERVES = {
    Completes.MBARRIER: "wait at the mbarrier", Completes.GROUPS: "wait_group",
    Completes.WARPGROUP: "wgmma.wait_group",
}  # fmt: skip
_FENCES = {
    ThreadScope.GPU: ("__threadfence()", "fence.acq_rel.gpu"),
    ThreadScope.CLUSTER: ("__threadfence()", "fence.acq_rel.cluster"),
    ThreadScope.CTA: ("__threadfence_block()", "fence.acq_rel.cta"),
}
"""Fences of CUDA C++ and of PTX, by the scope of the memory in which threads meet."""


class _Source:
    """What an asynchronous operation still has to read, what is told of writes to it, and where it is, if asked for."""

    __slots__ = ("overwritten", "span", "touch")

    def __init__(self, touch: Touch, overwritten: Overwritten) -> None:
        self.touch, self.overwritten = touch, overwritten
        self.span: tuple[int, tuple[int, int]] | None = None  # the bytes of a grain, and the grains

    def meets(self, span: tuple[int, int], grains: Grains) -> bool:
        """Whether others between some grains of a block may have grains of it."""
        if self.span is None or self.span[0] != grains.grain:
            mine = grains.at(self.touch.offset, self.touch.size)
            self.span = grains.grain, grains.span(mine)
        first, last = self.span[1]
        return first < span[1] and span[0] < last


class AccessShadow(Shadow):
    """The shadow of a piece of memory in which hazards are looked for.

    Parameters
    ----------
    reporter : Reporter
    data : ndarray of uint8
        The bytes.
    written : bool or WrittenGrains
        Whether all of it has been written, or what of it has.
    scope : ThreadScope
        The threads that can access it.
    cause : str
        What reports say about unwritten bytes.
    phase : int
        Offset of the first byte from a multiple of 32.
    element : callable
        Names the element at an address, of an access of a number of bytes.
    key : (str, int)
        Which piece of memory it is, in every run of a launch.
    block : int
        Bytes of each block, if it is the memory of several; 0 if not.
    stands_for : int
        Blocks for which one block stands: see `Grains`.
    """

    def __init__(
        self, reporter: Reporter, data: Array, *, written: bool | WrittenGrains, scope: ThreadScope, cause: str,
        phase: int, element: Callable[[int, int], str], key: Key, block: int = 0, stands_for: int = 1,
    ) -> None:  # fmt: skip
        self._key, self._space = key, "global" if scope == ThreadScope.GPU else "shared"
        self._data, self._phase = data, phase
        self.grains = Grains(
            data.size, written=written, scope=scope, phase=phase, block=block, stands_for=stands_for
        )  # fmt: skip
        self._sources: list[_Source] = []  # of pending copies and products
        self._seen: dict[str, Look] = {}
        self._watched: dict[str, Watch] = {}
        self._held: PoisonBytes | None = None  # made when poison is stored
        self._sync_cells = SyncCells(scope)
        self._reporter, self._cause, self._element = reporter, cause, element

    in_lockstep = False

    @property
    def written(self) -> WrittenGrains | bool:
        """See `Shadow`."""
        return self.grains.known

    def loads(self, touch: Touch, element: int, *, travels: bool) -> Poison | None:
        """See `Shadow`; where poison travels it is not reported (rule 4)."""
        for look in self._seen.values():
            look(touch)
        grains = self.grains.at(touch.offset, touch.size)
        if self._reporter.follows:
            poison = self._followed(touch, grains)
        else:
            self._check_pending(touch, grains)
            poison = self._unwritten(touch, grains, element, travels=travels)
            self._check_writer(touch, grains, None)
            self._check_proxy(touch, grains)
        self._note_read(touch, grains)
        if touch.order != "weak":
            self._observe(touch, grains)
            self._act(touch, reads=True, writes=None)
        return poison

    def loads_quietly(self, touch: Touch) -> bool:
        """See `Shadow`."""
        if self._seen or self._held is not None or self._reporter.known is not None or touch.size % self.grains.grain:
            return False
        grains, writer = self.grains.at(touch.offset, touch.size), self.grains.writer
        if self.grains.pending_at(grains) is not None or not self.grains.all_written(grains):
            return False
        if writer is not None:
            before = self._all_before(touch, self.grains.last_write)
            if not before and not touch.clocks.surely_ordered(writer, grains, touch.who):
                return False
            words = words_at(writer, grains) if touch.proxy else np.zeros(0, np.uint64)
            if ((words != 0) & ~asynchronous(words)).any():  # they may have to cross
                return False
        self._note_read(touch.now(), grains)
        return True

    def writers(self, touch: Touch) -> Array | None:
        """See `Shadow`."""
        writer = self.grains.writer
        return None if writer is None else words_at(writer, self.grains.at(touch.offset, touch.size))

    # Rule 6

    def _followed(self, touch: Touch, grains: GrainRuns) -> Poison | None:
        """Return the poison of a load."""
        held = self._held_by(touch)
        pending = self.grains.pending_at(grains)
        written, known = self.grains.written, self._reporter.known
        unwritten = not self.grains.all_written(grains)
        racing, stale = self._racing_writer(touch, grains), self._uncrossed(touch, grains)
        nothing = held is None and pending is None and racing is None and stale is None and known is None
        if nothing and not unwritten:
            return None
        found: list[Poison] = []

        def add(kind: str, bad: Array, detail: str, other: Site | None = None, rule: str = "") -> None:
            """Add poison of grains `[n, m]`, or of bytes."""
            if bad.any():
                bits = np.repeat(all_ones(bad, np.uint8), touch.size // bad.shape[1], axis=1)
                found.append(Poison(bits, self._origin(kind, touch, bad, detail, other, rule)))

        if held is not None:
            found.append(held)
        if pending is not None:
            add("pending", pending != 0, *self._pending_says(touch, pending))
        if unwritten and written is not None:
            add("unwritten", ~written[grains.all], self._cause or UNWRITTEN)
        if racing is not None:
            add("race", racing[0], *self._race_says(touch, *racing, "wrote"))
        if stale is not None:
            add("proxy", stale[0], *self._proxy_says(touch, *stale))
        if known is not None:
            for bad, word, site in known.reads(self._key, touch.offset, touch.size, touch.who, touch.clocks.blocks):
                who, between = self._other(touch, word, touch.who.words[np.argwhere(bad)[0, 0]])
                add("race", bad, f"{who} writes it later, {_at(site)}, and {between}", site)
        if not found:
            return None
        most = max(found, key=lambda x: np.count_nonzero(x.bits))  # one origin is kept: that of most bytes
        return Poison(np.bitwise_or.reduce([x.bits for x in found]), most.origin)

    def _origin(
        self, kind: str, touch: Touch, bad: Array, detail: str, other: Site | None = None, rule: str = ""
    ) -> Origin:  # fmt: skip
        """Return the origin of poison in lanes of `[n, m]`."""
        where = self._where(touch, bad)
        name = self._namer(touch)
        return self._reporter.origin(kind, touch.site, where, detail, other, touch.address, name, rule)

    def _where(self, touch: Touch, bad: Array) -> Array:
        """Return which lanes `[block, warp, lane]` are those of `[n, m]`."""
        where = np.zeros(touch.lanes.shape, bool)
        where[touch.lanes] = bad.any(axis=1)
        return where

    def _namer(self, touch: Touch) -> Callable[[int], str]:
        element, size = self._element, touch.size
        return lambda address: element(address, size)

    def keeps(self, touch: Touch, poison: Poison | None, *, stores: bool = True) -> None:
        """See `Shadow`."""
        if self._held is None and poison is None:
            return
        if self._held is None:
            self._held = PoisonBytes(len(self._data))
        bits = np.zeros((len(touch.offset), touch.size), np.uint8) if poison is None else poison.bits
        origin = 0 if poison is None or poison.origin is None else poison.origin.number
        self._held.write(touch.offset, bits, origin, touch.lanes if stores else None, self._phase)

    def stores(self, touch: Touch, data: Array | None) -> Array | None:
        """See `Shadow`; without data, of any data."""
        grains, last = self._claim(touch, data)
        self.grains.note_written(grains)
        return last

    def stored(self, touch: Touch, data: Array, last: Array | None) -> None:
        """See `Shadow`."""
        if last is not None:  # rule 5
            kept, again = self._kept(touch, data)
            lost = (self._bytes(touch) != kept).any(axis=1)
            self._report_at_once(touch, np.where(lost[:, None], last, np.uint64(0)), "writes something else there")
            other = (kept != data).any(axis=1) & ~lost
            self._report("lane order", touch, other[:, None], _LANE_ORDER)
            same = (again & ~lost & ~other)[:, None]
            self._report("same value", touch, same, "another thread does so in this very access")
        if touch.order != "weak":
            self._act(touch, reads=False, writes=np.ones(len(touch.offset), bool))

    def _kept(self, touch: Touch, data: Array) -> tuple[Array, Array]:
        """Return for each lane the bytes that its warp leaves where it stores, and whether another stores after it."""
        order = store_order(touch.lanes, touch.size)

        def last(where: Array) -> Array:
            """Return the lane that stores last where each lane does."""
            place = np.unique(where, return_inverse=True)[1].reshape(-1)
            found = np.empty(len(place), np.int64)
            found[place[order]] = order
            return found[place]

        warp = np.unique(touch.who.words >> np.uint64(WARP_BIT), return_inverse=True)[1].reshape(-1)
        in_warp = last(warp * (1 + int(touch.offset.max())) + touch.offset)
        return data[in_warp], last(touch.offset) != np.arange(len(order))

    # Rule 7

    def updates(
        self, touch: Touch, element: int, *, decides: bool = True, contests: bool = True
    ) -> tuple[Poison | None, Array | None]:  # fmt: skip
        """See `Shadow`."""
        grains = self.grains.at(touch.offset, touch.size)
        self._check_pending(touch, grains)
        self._check_sources(touch, grains, None)
        poison = self._held_by(touch)
        if poison is not None and poison.origin is not None and decides:
            self._reporter.decides(poison.origin, touch.site, self._where(touch, poison.bits))
        self._check_writer(touch, grains, None)
        self._check_readers(touch, grains, None)
        contested = self._contested(touch, grains, touch.size // element) if contests else None
        last = self.grains.note_write(grains, touch.who.words, touch.time)
        apart = None if last is None else outside_scopes(last, touch.who.words[:, None], touch.clocks.scopes)
        if last is not None and apart is not None and apart.any():
            self._report_at_once(touch, np.where(apart, last, np.uint64(0)), "changes it")
        if (unwritten := self._unwritten(touch, grains, element, travels=not decides)) is not None:
            poison = unwritten.plus(poison)
        self.grains.note_written(grains)
        return poison, contested

    def _held_by(self, touch: Touch) -> Poison | None:
        """Return the poison that is stored in what lanes access."""
        if self._held is None or (found := self._held.at(touch.offset, touch.size, self._phase)) is None:
            return None
        return Poison(found[0], self._reporter.numbered(found[1]))

    def report_left(self, start: int) -> None:
        """Report poison that is left in memory, which begins at an address, when a launch ends (rule 8)."""
        if self._held is None:
            return
        where, origins = self._held.left()
        if not len(where):
            return
        grains = self.grains.at(where, 1)
        words = (
            np.zeros(len(where), np.uint64)
            if self.grains.writer is None
            else words_at(self.grains.writer, grains)[:, 0]
        )
        for origin in np.unique(origins).tolist():
            which = origins == origin
            self._reporter.left(self._reporter.numbered(origin), words[which], where[which] + start, self._element)

    def updated(self, touch: Touch, element: int, taken: Taken) -> None:
        """See `Shadow`."""
        number = len(touch.offset)
        if taken.order is not None:  # the last turn's write stays
            places = _places(touch)[:, ::element].reshape(-1)[taken.order]
            words = np.repeat(touch.who.words, touch.size // element)[taken.order]
            self.grains.note_write(self.grains.at(places, element), words, touch.time)
        lanes = taken.open.reshape(number, -1)
        self._report("order", touch, lanes, "other threads change it too, unordered: which comes first is open")
        if touch.order != "weak":
            order = taken.order if element == touch.size else None
            self._act(touch, reads=True, writes=np.asarray(taken.wrote.reshape(number, -1).any(axis=1)), turns=order)

    def _act(self, touch: Touch, *, reads: bool, writes: Array | None, turns: Array | None = None) -> None:
        """Acquire and release clocks (`causality`), in some order."""
        who, offset = touch.who, touch.offset
        if turns is not None:
            who, offset, writes = who.some(turns), offset[turns], None if writes is None else writes[turns]
        touch.clocks.act(self._sync_cells, who, offset, touch.order, touch.scope, reads=reads, writes=writes)

    def _contested(self, touch: Touch, grains: GrainRuns, elements: int) -> Array:
        """Return which elements of lanes, `[n, elements]`, an unordered atomic of another thread changed last."""
        contested = None
        if self.grains.writer is not None and not self._all_before(touch, self.grains.last_write):
            contested = touch.clocks.unordered(words_at(self.grains.writer, grains), touch.who, races=False)
        if contested is None:
            return np.zeros((len(grains.first), elements), bool)
        times = -(-elements // grains.each)
        return np.asarray(np.repeat(contested, times, axis=1).reshape(len(contested), elements, -1).any(axis=2))

    # Rule 3

    def reserves(self, touch: Touch, data: Content) -> None:
        """See `Shadow`."""
        self._check_proxy(touch, self.grains.at(touch.offset, touch.size))
        self._check_proxy_readers(touch, self.grains.at(touch.offset, touch.size))
        to_global = self._space == "global"
        grains, last = self._claim(touch, data if to_global else None)
        if last is not None:
            if to_global:
                same = self._alike(touch, content(data))[:, None] & (last != 0)
                self._report("same value", touch, same, "another lane copies the same bytes to it in this very access")
                last = np.where(same, np.uint64(0), last)
            self._report_at_once(touch, last, "copies to it")
        self.grains.note_pending(grains, touch.who.words)

    def _alike(self, touch: Touch, data: Array) -> Array:
        """Return which lanes bring the same bytes as all lanes that write to the same place or beside it."""
        place, which = np.unique(touch.offset, return_inverse=True)
        first = np.full(len(place), len(data))
        np.minimum.at(first, which, np.arange(len(data)))
        other = np.zeros(len(place), bool)
        other[which[(data != data[first[which]]).any(axis=1)]] = True
        near = np.diff(place) < touch.size
        other[1:] |= near
        other[:-1] |= near
        return np.asarray(~other[which])

    def completes(self, touch: Touch) -> None:
        """See `Shadow`."""
        grains = self.grains.at(touch.offset, touch.size)
        self.grains.settle(grains)
        self.grains.note_write(grains, touch.who.words, touch.time)
        self.grains.note_written(grains)

    def will_combine(self, touch: Touch) -> None:
        """See `Shadow`."""
        self._check_proxy(touch, self.grains.at(touch.offset, touch.size))

    def credits(self, touch: Touch) -> None:
        """See `Shadow`."""
        self.grains.note_write(self.grains.at(touch.offset, touch.size), touch.who.words, touch.time)

    def will_read(self, touch: Touch, overwritten: Overwritten) -> None:
        """See `Shadow`."""
        self._sources.append(_Source(touch, overwritten))

    def has_read(self, touch: Touch) -> None:
        """See `Shadow`."""
        self._note_read(touch, self.grains.at(touch.offset, touch.size))

    def still_to_read(self, source: Touch, left: Touch) -> None:
        """See `Shadow`."""
        at = next(i for i, x in enumerate(self._sources) if x.touch is source)
        if not len(left.offset):
            del self._sources[at]
        elif left is not source:
            self._sources[at] = _Source(left, self._sources[at].overwritten)

    def watches(self, what: str, *, reads: Look | None = None, writes: Watch | None = None) -> None:
        """See `Shadow`."""
        self._seen = {**self._seen, what: reads} if reads is not None else _without(self._seen, what)
        self._watched = {**self._watched, what: writes} if writes is not None else _without(self._watched, what)

    def end(self) -> None:
        """See `Shadow`."""
        self.grains.end()

    def forgets(self, touch: Touch) -> None:
        """See `Shadow`; to other accesses this is a write of the bytes."""
        grains, _ = self._claim(touch, None)
        self.grains.forget(grains)

    def unordered_in(self, place: range, but: Sequence[range], block: int, clock: VectorClock) -> Array:
        """Return the words of other blocks' accesses to bytes that do not happen before what a clock's owner does.

        Parameters
        ----------
        place : range
            Offsets of the bytes, which are those of a block.
        but : sequence of range
            Bytes of these that do not count.
        block : int
            Of the grid.
        clock : VectorClock
        """
        counts: Array = np.zeros(self.grains.count, bool)
        counts[place.start // self.grains.grain : place.stop // self.grains.grain] = True
        for each in but:
            counts[each.start // self.grains.grain : -(-each.stop // self.grains.grain)] = False
        writes = [] if self.grains.writer is None else [self.grains.writer]
        found = np.zeros(0, np.uint64)
        for tables, reads in ((writes, False), (self.grains.read(0, exact=False), True)):
            if not tables:
                continue
            words = np.unique(np.concatenate([table.of(np.flatnonzero(counts)) for table in tables]))
            words = words[(words != 0) & ~asynchronous(words)]
            words = words[blocks_of(words) != block]
            words = words[~clock.covers(words)]
            if reads and not self._reporter.strict and (over := clock.crossed.get(RETURNED)) is not None:
                words = words[~over.covers(words)]
            found = np.union1d(found, words)
        return found

    # Rules 1 and 2

    def _claim(self, touch: Touch, data: Content | None) -> tuple[GrainRuns, Array | None]:
        """Check that no other thread accesses bytes, and note the writers.

        Returns the grains, and for those that several lanes write at once the word of the lane that wins, 0 elsewhere.
        """
        grains = self.grains.at(touch.offset, touch.size)
        self._check_pending(touch, grains)
        self._check_sources(touch, grains, data)
        self._check_writer(touch, grains, data)
        self._check_readers(touch, grains, data)
        last = self.grains.note_write(grains, touch.who.words, touch.time)
        return grains, None if last is None else np.where(last == touch.who.words[:, None], np.uint64(0), last)

    def _note_read(self, touch: Touch, grains: GrainRuns) -> None:
        if touch.later:
            return
        clocks = touch.clocks
        self.grains.note_read(grains, touch.who.words, touch.time, clocks.floor, exact=clocks.partial)

    def _racing_writer(self, touch: Touch, grains: GrainRuns) -> tuple[Array, Array] | None:
        """Return the grains that an unordered thread wrote last, `[n, m]`, and the words of the writers; or None."""
        writer = self.grains.writer
        if writer is None or self._all_before(touch, self.grains.last_write):
            return None
        if touch.clocks.surely_ordered(writer, grains, touch.who):
            return None
        words = words_at(writer, grains)
        bad = touch.clocks.unordered(words, touch.who)
        if bad is None:
            return None
        lane, place = np.nonzero(bad)
        which, readers = self.grains.observations(lane, place, grains)
        if len(which):
            late = touch.clocks.unordered(readers[:, None], touch.who.some(lane[which]), races=False)
            which = which if late is None else which[~late[:, 0]]
            bad[lane[which], place[which]] = False
        return (bad, words) if bad.any() else None

    def _observe(self, touch: Touch, grains: GrainRuns) -> None:
        """Note which unordered writes of others a strong read finds (rule 7 of `happens_before`)."""
        writer = self.grains.writer
        if writer is None or self._all_before(touch, self.grains.last_write):
            return
        words = words_at(writer, grains)
        found = touch.clocks.unordered(words, touch.who, races=False)
        if found is None:
            return
        found &= ~outside_scopes(words, touch.who.words[:, None], touch.clocks.scopes)
        if (which := found.any(axis=1)).any():
            some, seen = GrainRuns(grains.first[which], grains.each), np.where(found, words, np.uint64(0))[which]
            self.grains.note_observed(some, touch.who.words[which], seen)

    def _check_writer(self, touch: Touch, grains: GrainRuns, data: Content | None) -> None:
        if (racing := self._racing_writer(touch, grains)) is None:
            return
        bad, words = racing
        if data is not None:
            same = bad & self._by_grain(self._bytes(touch) == content(data), grains)
            bad &= ~same
            self._report_same(touch, same & ~np.any(bad, axis=1, keepdims=True), words, "stored")
        self._report_race(touch, bad, words, "wrote")

    def _uncrossed(self, touch: Touch, grains: GrainRuns) -> tuple[Array, Array] | None:
        """Return the grains that threads wrote last without a proxy fence before the async proxy comes; or None."""
        writer = self.grains.writer
        if not touch.proxy or writer is None:
            return None
        words = words_at(writer, grains)
        bad = touch.clocks.uncrossed(words, touch.who, self._space)
        if bad is not None and (pending := self.grains.pending_at(grains)) is not None:
            bad &= pending == 0  # no thread has written them
        if bad is not None and not self._reporter.strict:
            bad &= ~_copied(touch.clocks, words, bad)
        return None if bad is None or not bad.any() else (bad, words)

    def _check_proxy(self, touch: Touch, grains: GrainRuns) -> None:
        if (stale := self._uncrossed(touch, grains)) is not None:
            self._report("proxy", touch, stale[0], *self._proxy_says(touch, *stale))

    def _check_proxy_readers(self, touch: Touch, grains: GrainRuns) -> None:
        """Report reads of threads that the async proxy overwrites without a proxy fence between (A12)."""
        if not touch.proxy or not self._reporter.strict:
            return
        clocks = touch.clocks
        for readers in self.grains.read(clocks.floor, exact=False):
            if (bad := clocks.uncrossed(words_at(readers, grains), touch.who, self._space)) is not None:
                lane, place = np.argwhere(bad)[0]
                word = words_at(readers, grains)[lane, place]
                other = clocks.site(word)
                says = f"warp {thread_of(word)[0]} read it {_at(other)}, and no fence.proxy.async lies between"
                self._report("proxy", touch, bad, says, other, rule="A12")

    def _proxy_says(self, touch: Touch, bad: Array, words: Array) -> tuple[str, Site | None, str]:
        """Describe the first write that has not crossed to the async proxy, and return its line and the rule."""
        lane, place = np.argwhere(bad)[0]
        warp, _ = thread_of(words[lane, place])
        other = touch.clocks.site(words[lane, place])
        rule = "A23" if other is not None and isinstance(other.instruction, Copy) else "A5"
        says = "no fence.proxy.async lies on the way to this access"
        return f"warp {warp} wrote it {_at(other)}, and {says}", other, rule

    def _check_readers(self, touch: Touch, grains: GrainRuns, data: Content | None) -> None:
        clocks = touch.clocks
        if self._all_before(touch, self.grains.last_read) or self._ends_reads(touch, grains):
            return
        bad = words = None
        some = clocks.causality.active and not (touch.who.words & STRONG).any()  # mbarriers are changed all the time
        for table in self.grains.read(clocks.floor, exact=clocks.partial, some=some, grains=grains):
            if clocks.surely_ordered(table, grains, touch.who):
                continue
            held = words_at(table, grains)
            found = clocks.unordered(held, touch.who)
            found = self._still_reading(clocks, found, held, touch.who)
            if found is not None:
                words = held if words is None or bad is None else np.where(bad, words, held)
                bad = found if bad is None else bad | found
        if bad is not None and words is not None:
            self._late(touch, bad, words, data)
        lane, place, readers = self.grains.meetings(grains)
        found = clocks.unordered(readers[:, None], touch.who.some(lane)) if len(lane) else None
        found = self._still_reading(clocks, found, readers[:, None], touch.who.some(lane))
        if found is not None:
            bad, words = np.zeros(grains.shape, bool), np.zeros(grains.shape, np.uint64)
            hit = found[:, 0]
            bad[lane[hit], place[hit]], words[lane[hit], place[hit]] = True, readers[hit]
            self._late(touch, bad, words, data)

    def _ends_reads(self, touch: Touch, grains: GrainRuns) -> bool:
        """Whether a quick check proves that a write ends all reads that it meets (rule 4 of `shadow_memory`)."""

        def ends(note: Note) -> Array | None:
            return touch.clocks.ends_reads(grains, touch.who, note.grains, note.words)

        if not touch.clocks.causality.active or not self.grains.ended(grains, ends):
            return False
        return all(touch.clocks.surely_ordered(readers, grains, touch.who) for readers in self.grains.readers)

    def _still_reading(self, clocks: VectorClocks, bad: Array | None, words: Array, who: Agents) -> Array | None:
        """Return which reads that are unordered with writes, `[n, m]`, are not known to be over (A9)."""
        if bad is None or clocks.scopes.cluster == 1 or self._reporter.strict:
            return bad
        return bad & clocks.still_reading(words, who)

    def _late(self, touch: Touch, bad: Array, words: Array, data: Content | None) -> None:
        """Report a write of what others have read, or note the bytes that it changes (`late_writes`).

        That an asynchronous operation read them is reported: the operation, not its thread, makes the access.
        """
        if (late := self._reporter.late) is None or (far := bad & asynchronous(words)).any():
            self._report_race(touch, bad if late is None else far, words, "read")
            if late is None:
                return
            bad = bad & ~far
        changed = np.repeat(bad, self.grains.grain, axis=1)
        if data is not None:
            changed &= self._bytes(touch) != content(data)
            same = bad & ~changed.reshape(*bad.shape, -1).any(axis=2)
            self._report_same(touch, same, words, "read")
        if changed.any():
            late.note(self._key, touch.site, touch.clocks, touch.who, touch.offset, changed)

    def _all_before(self, touch: Touch, last: int) -> bool:
        """Whether the last access happens before all that may follow."""
        return last < 0 or (self.grains.one_block and last < touch.clocks.floor)

    def _report_race(self, touch: Touch, bad: Array, words: Array, did: str) -> None:
        if bad.any():
            self._report("race", touch, bad, *self._race_says(touch, bad, words, did))

    def _race_says(self, touch: Touch, bad: Array, words: Array, did: str) -> tuple[str, Site | None, str]:
        """Describe the first race of grains `[n, m]` with accesses; return the line of that one, too, and the rule."""
        lane, place = np.argwhere(bad)[0]
        who, between = self._other(touch, words[lane, place], touch.who.words[lane])
        other = touch.clocks.site(words[lane, place])
        rule = "A7" if asynchronous(words[lane, place]) else ""
        return f"{who} {did} it {_at(other)}, and {between}", other, rule

    def _report_at_once(self, touch: Touch, words: Array, does: str) -> None:
        if not words.any():
            return
        lane, place = np.argwhere(words)[0]
        word, own = words[lane, place], touch.who.words[lane]
        if word >> WARP_BIT == own >> WARP_BIT:
            self._report("race", touch, words != 0, f"another lane of the warp {does} in this very access")
        else:
            who, _ = self._other(touch, word, own)
            self._report("race", touch, words != 0, f"{who} writes it in this very access", touch.site)

    def _report_same(self, touch: Touch, same: Array, words: Array, did: str) -> None:
        if same.any():
            lane, place = np.argwhere(same)[0]
            who, _ = self._other(touch, words[lane, place], touch.who.words[lane])
            other = touch.clocks.site(words[lane, place])
            self._report("same value", touch, same, f"{who} has {did} it {_at(other)}", other)

    def _other(self, touch: Touch, word: Any, own: Any) -> tuple[str, str]:
        """Name the other of two agents, and the synchronisation that is missing between them."""
        warp, lane = thread_of(word)
        if (how := completed_by(word)) is not Completes.THREAD:
            block = f" of {self._reporter.block_named(block_of(word))}" * (block_of(word) != block_of(own))
            return f"an asynchronous operation{block}", f"no {_OBSERVES[how]} lies between"
        if block_of(word) != block_of(own):
            who, between = f"warp {warp} of {self._reporter.block_named(block_of(word))}", "blocks are unordered"
            if touch.clocks.scopes.cluster > 1 and self._space == "shared":
                between = "nothing orders that: no barrier.cluster, and no mbarrier or fence of scope .cluster"
        elif warp != thread_of(own)[0]:
            who, between = f"warp {warp}", "no barrier lies between"
        else:
            who, between = f"lane {lane} of its own warp", "no bar.warp.sync lies between"
        if (met := touch.clocks.unfenced(word, own)) is not None:  # such code does not lack a barrier
            function, fence = _FENCES[met.scope]
            between = f"an atomic or volatile access orders them only with {function} ({fence}) on both sides"
        return who, between

    # Rules 3 and 4

    def _check_pending(self, touch: Touch, grains: GrainRuns) -> None:
        words = self.grains.pending_at(grains)
        if words is not None:
            self._report("pending", touch, words != 0, *self._pending_says(touch, words))

    def _pending_says(self, touch: Touch, words: Array) -> tuple[str, Site | None, str]:
        """Describe the first pending copy of `[n, m]`, and return its line, and the rule."""
        lane, place = np.argwhere(words)[0]
        word = words[lane, place]
        other, (warp, _) = touch.clocks.site(word), thread_of(word)
        says = f"the copy of warp {warp} {_at(other)} may still write it, and was not waited for"
        return says, other, _pending_rule(other)

    def _check_sources(self, touch: Touch, grains: GrainRuns, data: Content | None) -> None:
        for look in self._watched.values():
            look(touch, None if data is None else self._bytes(touch) != content(data))
        for source, overwritten in self._met(grains):
            bad = grains.among(self.grains.at(source.offset, source.size))
            if not bad.any():
                continue
            says = f"{_reader(source.site)} may still read it, and was not waited for"
            if not self._reporter.follows:
                self._report("pending", touch, bad, says, source.site, _pending_rule(source.site))
                continue
            written = _places(touch) if data is None else _places(touch)[self._bytes(touch) != content(data)]
            changed = np.isin(_places(source), written)
            if changed.any():
                rule = _pending_rule(source.site)
                overwritten(source, changed, self._origin("pending", touch, bad, says, source.site, rule))

    def _met(self, grains: GrainRuns) -> Iterator[tuple[Touch, Overwritten]]:
        """Yield the sources of pending copies that may have some grains, run by run."""
        if not self._sources:
            return
        span = self.grains.span(grains)
        for source in self._sources:
            if not source.meets(span, self.grains):
                continue
            whole, parts = source.touch, source.touch.parts()
            if whole.runs > 1 and not grains.among(self.grains.at(whole.offset, whole.size)).any():
                continue
            for touch in parts:
                yield touch, source.overwritten

    def _unwritten(self, touch: Touch, grains: GrainRuns, element: int, *, travels: bool) -> Poison | None:
        """Return unwritten elements as poison; report it, unless it travels (rule 4)."""
        if (unwritten := self._unwritten_elements(touch, grains, element)) is None:
            return None
        poison, bad = unwritten
        bits = np.repeat(all_ones(poison, np.uint8), element, axis=1)
        if travels:
            return Poison(bits, self._origin("unwritten", touch, poison, UNWRITTEN))
        self._report("unwritten", touch, bad[:, None], self._cause)
        return Poison(bits, None)

    def _unwritten_elements(self, touch: Touch, grains: GrainRuns, element: int) -> tuple[Array, Array] | None:
        """Return what `poison_of` does of an access; None if all of it is written."""
        if self.grains.written is None or self.grains.all_written(grains):
            return None
        written = self.grains.written[grains.all]
        return None if written.all() else poison_of(np.repeat(written, self.grains.grain, axis=1), element)

    def _bytes(self, touch: Touch) -> Array:
        """Return the bytes that are touched, `[n, size]`."""
        return get(self._data, touch.offset, touch.size, self._phase)

    def _by_grain(self, equal: Array, grains: GrainRuns) -> Array:
        """Whether all bytes of grains are equal: `[n, m]` of `[n, size]`."""
        return np.asarray(np.all(equal.reshape(*grains.shape, -1), axis=2))

    def _report(
        self, kind: str, touch: Touch, bad: Array, detail: str, other: Site | None = None, rule: str = ""
    ) -> None:  # fmt: skip
        """Report lanes of `[n, m]`."""
        if bad.any():
            where = self._where(touch, bad)
            self._reporter.report(kind, touch.site, where, touch.address, detail, other, self._namer(touch), rule=rule)


def _without(known: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: x for key, x in known.items() if key != name}


def _pending_rule(site: Site | None) -> str:
    """Return the rule of the pending operation of a line; `cp.async`, which is older, has none."""
    return "" if site is None or isinstance(site.instruction, Copy) else "A8"


def _reader(site: Site) -> str:
    """Name what reads a source."""
    product = isinstance(site.instruction, WarpgroupInstruction)
    return f"the product (wgmma at {site.place})" if product else f"the copy {_at(site)}"


def _places(touch: Touch) -> Array:
    """Return the offsets of the bytes that lanes access, `[n, size]`."""
    return np.asarray(touch.offset[:, None] + np.arange(touch.size))


def _at(site: Site | None) -> str:
    return f"at {site.what}" if site else "at a line that was not noted"


def _copied(clocks: VectorClocks, words: Array, bad: Array) -> Array:
    """Return which of some writes are those of `cp.async` that their threads have waited for (A23)."""
    times, written = time_of(words), words[bad]
    moments, first = np.unique(times[bad], return_index=True)
    sites = [clocks.site(word) for word in written[first]]
    copies = [
        at
        for at, site in zip(moments.tolist(), sites, strict=True)
        if site is not None and isinstance(site.instruction, Copy)
    ]
    return np.asarray(bad & np.isin(times, copies))
