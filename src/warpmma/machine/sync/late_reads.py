"""Late reads: loads that may be in flight when their thread signals, and copies in bulk that overtake them (A22).

The rules:

1. A load from shared memory reads until its value is used for the first time, or until its thread executes a
   `fence.proxy.async` of shared memory (`program.flights`), if the thread signals before that; otherwise until
   the load. A copy in bulk overwrites the place only if that happens before the copy is issued, or if the load has
   crossed to the async proxy by a fence of the copy's thread, or of another behind the signal (measured). Of what the
   generic proxy writes, this is not asked: it is in order with loads (measured).
2. The lanes of a warp that execute a load together wait for it together: a use by one lane ends it for all. It counts
   as late for the lanes that use the value themselves; for a load of a whole warp, in all.
3. A value that is never used after the signal is not read late: it does not matter.
4. Of each load and place, only the last late read is kept.
5. A load from the memory of another block of the cluster has to end before that block does (A18). Where only an arrival
   with `.relaxed` lies between, a load has ended whose value was used before it.
6. A wait for products counts as a use of the loads of a warp that are in flight then, if they take few wavefronts
   together: 8, or one for each 8 columns of D of the products that the warp has issued behind the last of them and
   waited for, 32 at most. At the peak rate 8 columns take 4 clocks, in which four warps read a wavefront each. So
   128 wavefronts behind m64n256, four steps, were never overtaken, but were in 96 % behind two; 8 behind m64n8 never,
   17 with four warpgroups in 0.1 %, 32 in 27 % and more (measured). Loads of other warps may hold them up: with four
   warps that only load, with conflicts, one wavefront is overtaken in 80 %. That is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ..._arrays import Array
from ...operations import Access
from ..base import Site
from ..memory import Touch, report_outlived
from ..order import RETURNED, VectorClock, VectorClocks, at_time, blocks_of, thread_of
from ..report import Reporter, wavefronts
from .warpgroup_products import WarpgroupProducts

_U = np.uint64
_SOON_BACK = 8, 32  # wavefronts of a warp: behind any product, and behind large ones (rule 6)
_COLUMNS = 8  # of D, that take as long as a wavefront of each of four warps
_BANKED = 1 << 20  # bytes: more than shared memory has; what is above in an address does not choose a bank
_MOST = 256  # late reads, until those that all happen before what follows are dropped


Overtaken = Callable[[Touch, Array, Site], None]
"""What reports lanes of a load, by place in a list of them, which something has overtaken, and where they use it."""


@dataclass(eq=False)
class _Flight:
    """A load that lanes have executed together."""

    touch: Touch
    open: Array  # lanes that have not used it, `[block, warp, lane]`
    began: Array  # how often each thread had signalled before, `[block, warp, lane]`
    issued: Array  # columns of D of the products that each warp had issued before, `[block, warp]`
    overtaken: list[tuple[Overtaken, Array]] = field(default_factory=list)  # and which lanes, by number

    @property
    def whole(self) -> bool:
        """Whether it is a load of a whole warp, whose lanes get what others have addressed."""
        return not isinstance(self.touch.site.instruction, Access)


@dataclass(eq=False)
class _Late:
    """A load that was in flight at a signal, and where its value was used first."""

    touch: Touch
    words: Array  # access words of its threads at that time, `[n]`
    used: Site
    order: Array  # of `touch.offset`


class LateReads:
    """The loads of a batch of blocks that may be in flight at signals.

    Parameters
    ----------
    reporter : Reporter
    clocks : VectorClocks
    products : WarpgroupProducts
    shape : (int, int, int)
        Blocks, warps and lanes.
    """

    def __init__(
        self, reporter: Reporter, clocks: VectorClocks, products: WarpgroupProducts, shape: tuple[int, int, int]
    ) -> None:
        self._reporter, self._clocks, self._products = reporter, clocks, products
        self._signals: Array = np.zeros(shape, np.int64)
        self._flights: dict[int, list[_Flight]] = {}  # by the number of the load
        self._late: dict[tuple[int, bytes], _Late] = {}
        self._loading: int | None = None

    # Rule 1

    def begin(self, load: int) -> None:
        """Note that what is read next is read by a load, by its number, until `end`."""
        self._loading = load

    def end(self) -> None:
        """Note that the load is executed."""
        self._loading = None

    def read(self, touch: Touch) -> None:
        """See a load from shared memory."""
        if self._loading is None or touch.proxy:
            return
        flights = [x for x in self._flights.get(self._loading, ()) if self._closed(x, touch.lanes)]
        begun = _Flight(touch, touch.lanes, self._signals.copy(), self._products.issued)
        self._flights[self._loading] = [*flights, begun]

    def _closed(self, flight: _Flight, lanes: Array) -> bool:
        """End a load for some lanes; return whether any is left."""
        flight.open = flight.open & ~lanes
        return bool(flight.open.any())

    def signal(self, lanes: Array) -> None:
        """Let lanes, bool `[block, warp, lane]`, signal."""
        self._signals += lanes

    def use(self, site: Site, loads: Sequence[int], lanes: Array) -> None:
        """Let lanes use the values of loads, by number."""
        for load in loads:
            if not (flights := self._flights.get(load)):
                continue
            warps = lanes.any(axis=-1, keepdims=True)
            for flight in flights:
                signalled = self._signals > flight.began
                if flight.whole:
                    late = flight.open & warps & signalled.any(axis=-1, keepdims=True)
                else:
                    late = flight.open & lanes & signalled
                if late.any():
                    self._use_late(load, flight, site, late)
            self._flights[load] = [x for x in flights if self._closed(x, np.broadcast_to(warps, lanes.shape))]

    def soon_back(self, loads: Sequence[int], lanes: Array) -> Array:
        """Return the lanes in warps whose loads that are in flight, of some by number, take few wavefronts (rule 6).

        It is asked after the wait for a product.
        """
        flights = [x for load in loads for x in self._flights.get(load, ())]
        taken: Array = np.zeros(lanes.shape[:2], np.int64)
        issued: Array = np.zeros(lanes.shape[:2], np.int64)
        for flight in flights:
            its = flight.touch.lanes.any(axis=-1) & (flight.open & lanes).any(axis=-1)
            address = np.where(flight.touch.lanes[its], flight.touch.address[its].astype(np.int64) % _BANKED, -1)
            taken[its] += wavefronts(address, flight.touch.size, not flight.whole)[1]
            issued = np.where(its, np.maximum(issued, flight.issued), issued)
        most = np.clip((self._products.complete - issued) // _COLUMNS, *_SOON_BACK)
        return np.asarray(lanes & (taken <= most)[..., None])

    def _use_late(self, load: int, flight: _Flight, site: Site, lanes: Array) -> None:
        """Note that lanes, which have signalled, use a value for the first time."""
        for report, mine in flight.overtaken:
            if (bad := lanes[flight.touch.lanes][mine]).any():
                report(flight.touch, np.flatnonzero(bad), site)
        touch, time = flight.touch.of(lanes), self._clocks.tick(site)
        key = load, touch.offset.tobytes()
        self._late[key] = _Late(touch, at_time(touch.who.words, time), site, np.argsort(touch.offset, kind="stable"))
        if len(self._late) > _MOST and self._clocks.scopes.cluster == 1:
            floor = self._clocks.floor
            self._late = {key: x for key, x in self._late.items() if x.touch.time >= floor}

    # Copies

    def written(self, touch: Touch, changed: Array | None) -> None:
        """Look at what an asynchronous operation is about to overwrite."""
        if not touch.proxy or not len(touch.offset):
            return
        for late in self._late.values():
            which, mine = _meetings(touch, late.touch, late.order)
            if not len(which):
                continue
            bad = self._clocks.unordered(late.words[mine][:, None], touch.who.some(which), races=False)
            if bad is not None:
                bad[:, 0] &= self._uncrossed(touch, which, late.touch, mine)
            if bad is not None and len(hit := np.flatnonzero(bad[:, 0])):
                self._report(touch, which[hit], late.touch, int(mine[hit[0]]), late.used)
        own = touch.who.words
        for flight in (x for flights in self._flights.values() for x in flights):
            which, mine = _meetings(touch, flight.touch, np.argsort(flight.touch.offset, kind="stable"))
            still = flight.open[flight.touch.lanes][mine]
            if len(which) and still.any():
                others = still & (at_time(own[which], 0) != at_time(flight.touch.who.words[mine], 0))
                others &= self._uncrossed(touch, which, flight.touch, mine)
                for _, before in flight.overtaken:  # one copy is enough to report
                    others &= ~np.isin(mine, before)
                if others.any():
                    flight.overtaken.append((partial(self._copied, touch, which[others], mine[others]), mine[others]))

    def _uncrossed(self, copy: Touch, which: Array, load: Touch, mine: Array) -> Array:
        """Return which lanes of a load, by number, have not crossed to the async proxy for lanes of a copy."""
        found = self._clocks.uncrossed(load.who.words[mine][:, None], copy.who.some(which), "shared")
        return np.zeros(len(which), bool) if found is None else found[:, 0]

    def _copied(self, copy: Touch, which: Array, mine: Array, load: Touch, bad: Array, used: Site) -> None:
        """Report lanes of a copy that has overtaken lanes of a load."""
        self._report(copy, which[bad], load, int(mine[bad[0]]), used)

    def _report(self, copy: Touch, which: Array, load: Touch, lane: int, used: Site) -> None:
        """Report lanes of a copy, by number, which overwrites what a lane of a load reads late."""
        where: Array = np.zeros(copy.lanes.shape, bool)
        where[tuple(np.argwhere(copy.lanes)[np.unique(which)].T)] = True
        warp, at = thread_of(load.who.words[lane])[0], load.site
        detail = (
            f"warp {warp} reads it at {at.what}, signals, and uses the value only then, at "
            f"{used.what}: the load may still be in flight; use the value, or execute "
            "fence.proxy.async, before the signal"
        )
        self._reporter.report("proxy", copy.site, where, copy.address, detail, at, rule="A22")

    # Rule 5

    def at_end(self, place: range, block: int, clock: VectorClock) -> list[tuple[int, Site]]:
        """Return late reads of a range of offsets, that of a block which ends, by other blocks: words and lines.

        Loads that are still in flight are noted: they are reported if they are used.
        """
        found: list[tuple[int, Site]] = []
        for late in self._late.values():
            words = late.words[self._apart(late.touch, place, block, clock)]
            if (returned := clock.crossed.get(RETURNED)) is not None:
                words = words[~returned.covers(words)]
            found += [(word, late.touch.site) for word in words[:1].tolist()]
        for flight in (x for flights in self._flights.values() for x in flights):
            mine = self._apart(flight.touch, place, block, clock)
            if len(mine := mine[flight.open[flight.touch.lanes][mine]]):
                flight.overtaken.append((partial(self._outlived, block, mine), mine))
        return found

    def _apart(self, load: Touch, place: range, block: int, clock: VectorClock) -> Array:
        """Return lanes of a load in other blocks than that of a place, by number, that a clock does not order."""
        words, inside = load.who.words, (load.offset >= place.start) & (load.offset < place.stop)
        which = np.flatnonzero(inside & (blocks_of(words) != block))
        return which[~clock.covers(words[which])]

    def _outlived(self, block: int, mine: Array, load: Touch, bad: Array, used: Site) -> None:
        """Report a load from a block of the grid that has ended before the value is used."""
        report_outlived(self._reporter, self._signals.shape, load.who.words[mine[bad[0]]], load.site, block)


def _meetings(copy: Touch, load: Touch, order: Array) -> tuple[Array, Array]:
    """Return the pairs of lanes of a copy and of a load, by number, that access the same bytes.

    `order` sorts the places of the load.
    """
    places = load.offset[order]
    first = np.searchsorted(places, copy.offset - load.size, "right")
    last = np.searchsorted(places, copy.offset + copy.size, "left")
    many = np.maximum(last - first, 0)
    which = np.repeat(np.arange(len(many)), many)
    return which, order[np.arange(len(which)) + np.repeat(first - (np.cumsum(many) - many), many)]
