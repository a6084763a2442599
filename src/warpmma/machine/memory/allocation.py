"""A piece of memory: bytes, and their shadow (`shadow_memory`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._arrays import Array, all_ones
from ..base import Poison, Site, bounds, get, put, store
from ..order import Key, ThreadScope
from ..report import Reporter
from .access_shadow import AccessShadow
from .accesses import Taken, Touch, Turns
from .loans import LEAST, Content, Loan
from .lockstep_shadow import LockstepShadow
from .shadow_memory import Shadow, WrittenGrains
from .undoing import KeptPages


class Allocation:
    """A piece of memory.

    Parameters
    ----------
    reporter, data, written, scope, cause, phase, element, key, block
        As for `AccessShadow`.

    Attributes
    ----------
    shadow : Shadow
    pages : KeptPages or None
        Where pages are kept before they are written, if a launch may be undone.
    sites : dict of int to Site
        The lines that have accessed it, by identity: kept for global memory.
    """

    def __init__(
        self, reporter: Reporter, data: Array, *, written: bool | WrittenGrains, scope: ThreadScope, cause: str = "",
        phase: int = 0, element: Callable[[int, int], str] = lambda address, size: "", key: Key = ("", 0),
        block: int = 0,
    ) -> None:  # fmt: skip
        self.data, self.phase = data, phase
        self.sites: dict[int, Site] = {}
        self.pages: KeptPages | None = None
        self._block, self._loans = block, list[Loan]()
        self.shadow = Shadow(written)
        if not reporter.tracking:
            return
        blocks = len(data) // block if block and scope == ThreadScope.CTA else 1

        def tracked(reporter: Reporter, some: int) -> AccessShadow:
            return AccessShadow(
                reporter, data if some == blocks else data[: some * block], written=written, scope=scope, cause=cause,
                phase=phase, element=element, key=key, block=block, stands_for=blocks // some,
            )  # fmt: skip

        self.shadow = tracked(reporter, 1) if blocks == 1 else LockstepShadow(reporter, blocks, block, tracked)

    def load(self, touch: Touch, element: int, *, travels: bool = False) -> tuple[Array, Poison | None]:
        """Return bytes `[n, size]`, and which of their bits are poison, or None if none are.

        Poison is reported, unless it travels or is followed.
        """
        poison = self.shadow.loads(touch, element, travels=travels)
        return get(self.data, touch.offset, touch.size, self.phase), poison

    def load_quietly(self, touch: Touch) -> Array | None:
        """Return bytes `[n * runs, size]` that have no poison; None if that, or a report, is not excluded."""
        return get(self.data, touch.offset, touch.size, self.phase) if self.shadow.loads_quietly(touch) else None

    def lend(self, touch: Touch) -> tuple[Content, Poison | None]:
        """Load, by bytes, what an operation is to write when it completes: bytes `[n, size]`, large ones as a loan."""
        if touch.size < LEAST:
            return self.load(touch, 1)
        poison = self.shadow.loads(touch, 1, travels=False)
        self._loans = [x for x in self._loans if x.open]
        self._loans.append(loan := Loan(self.data, touch.offset, touch.size, self.phase, self._block))
        return loan, poison

    def store(self, touch: Touch, data: Array, poison: Poison | None = None) -> None:
        """Write bytes `[n, size]`, and their poison."""
        self._keep(touch)
        last = self.shadow.stores(touch, data)
        store(self.data, touch.offset, data, touch.lanes, self.phase)
        self.shadow.stored(touch, data, last)
        self.shadow.keeps(touch, poison)

    def _keep(self, touch: Touch) -> None:
        """Keep what is about to be overwritten, if a launch may be undone; and what of it is lent."""
        if self.pages is not None:
            self.pages.keep(touch.offset, touch.size)
        if self._loans:
            written = bounds(touch.offset, touch.size, self._block)
            for loan in self._loans:
                if loan.open and loan.meets(written):
                    loan.bytes()

    def update(
        self, touch: Touch, element: int, turns: Callable[[Turns], Taken], *, given: Poison | None = None,
        decides: bool = True, contests: bool = True,
    ) -> tuple[Array, Poison | None]:  # fmt: skip
        """Let lanes change elements in turns; return what each found, and the poison of that.

        `given` is the poison of their operands. If it `decides` nothing, elements that are changed by poison or hold it
        become poison as a whole, in every lane that changes them. Without `contests`, no element is said to be
        contested: turns at an mbarrier, which count, do not ask.
        """
        self._keep(touch)
        poison, contested = self.shadow.updates(touch, element, decides=decides, contests=contests)
        if touch.size == element and bool((touch.offset[1:] > touch.offset[:-1]).all()):
            places, place = touch.offset, np.arange(len(touch.offset))
        else:
            offset = (touch.offset[:, None] + np.arange(0, touch.size, element)).reshape(-1)
            places, place = np.unique(offset, return_inverse=True)
        place, several = place.reshape(-1), np.zeros(len(places), bool)
        if contested is not None:
            several[place[contested.reshape(-1)]] = True
        taken = turns(Turns(place, get(self.data, places, element, self.phase), several))
        put(self.data, places, taken.left, self.phase)
        self.shadow.updated(touch, element, taken)
        if not decides and (given is not None or poison is not None):
            some = [x for x in (given, poison) if x is not None]
            bad = np.logical_or.reduce([x.bits.reshape(len(place), element).any(axis=1) for x in some])
            of_place = np.zeros(len(places), bool)
            np.logical_or.at(of_place, place, bad)
            bits = np.repeat(all_ones(of_place[place], np.uint8), element).reshape(len(touch.offset), touch.size)
            poison = Poison(bits, some[0].origin)
            self.shadow.keeps(touch, poison, stores=False)
        return taken.found.reshape(len(touch.offset), touch.size), poison

    def complete(
        self, touch: Touch, data: Content, poison: Poison | None = None, which: Array | None = None
    ) -> None:  # fmt: skip
        """Write what an asynchronous operation has brought, bytes `[n, size]`, to what it has reserved.

        `which` are the lanes of the data that write; all, if it is None.
        """
        self._keep(touch)
        self.shadow.completes(touch)
        if isinstance(data, Loan):
            data.write(self.data, touch.offset, which, self.phase)
        else:
            put(self.data, touch.offset, data if which is None else data[which], self.phase)
        self.shadow.keeps(touch, poison, stores=False)
