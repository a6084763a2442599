"""Undoing a launch: what it changes in global memory, kept so that it can run once more (`order.late_writes`).

The rules:

1. A page of global memory is kept before the launch first writes it, at most 1 GiB in all; after that the launch cannot
   be undone, and late writes are reported, those until then too.
2. Undoing restores these pages, which bytes were written, memory that kernels have freed, and frees what they have
   allocated.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ..base import LARGEST, SPARE, move, new_pages
from ..report import Reporter
from .address_space import AddressSpace, Region
from .shadow_memory import WrittenGrains

_PAGE = 12  # bits of an offset within a page
MOST_KEPT = 1 << 30
"""Bytes of pages that are kept of a launch, at most."""

_NOT_UNDONE = (
    "it changes bytes that an unordered thread has read before; whether that read decides something is unknown, "
    "because the launch has changed too much to be undone"
)


class Budget:
    """How much is kept of a launch (rule 1).

    Parameters
    ----------
    reporter : Reporter

    Attributes
    ----------
    left : int
        Bytes that may still be kept; negative once the launch cannot be undone.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter, self.left = reporter, MOST_KEPT

    def take(self, size: int) -> bool:
        """Count bytes that are to be kept; return whether they may be."""
        self.left -= size
        if self.left < 0 and (late := self._reporter.late) is not None:
            self._reporter.late = None
            if late:  # what was noted until now
                self._reporter.report_launch("race", late.first, _NOT_UNDONE)
        return self.left >= 0


class KeptPages:
    """Pages of a region, as they were before a launch wrote them.

    Parameters
    ----------
    budget : Budget
        Of the launch.
    region : Region
    """

    def __init__(self, budget: Budget, region: Region) -> None:
        self._pieces: list[Array] = []
        self._budget, self._data, self._written = budget, region.data, region.written
        if isinstance(region.written, WrittenGrains):
            self._written = WrittenGrains(region.written.grain, region.written.flags.copy())
        self._kept: Array | None = None  # bool, by page; made at the first write
        self._pages: list[tuple[Array, Array]] = []  # where whole pages begin, `[n]`, and their bytes
        self._tail: Array | None = None  # the last page, if it is not a whole one
        self._room = np.zeros(0, np.uint8)  # for more pages
        self._all = False

    def keep(self, offset: Array, size: int) -> None:
        """Keep the pages that accesses at offsets `[n]` are about to write."""
        if self._all or not len(offset):
            return
        if self._kept is None:
            self._kept = np.zeros(-(-len(self._data) >> _PAGE), bool)
        pages = new_pages(self._kept, offset, size, _PAGE)
        if not len(pages):
            return
        self._all = bool(self._kept.all())
        whole = len(self._data) >> _PAGE << _PAGE
        if len(self._data) > whole and (last := pages == whole).any():
            pages = pages[~last]
            if self._budget.take(len(self._data) - whole):
                self._tail = self._data[whole:].copy()
        if len(pages) and self._budget.take(len(pages) << _PAGE):
            self._take(pages)

    def _take(self, pages: Array) -> None:
        """Keep whole pages, in pieces of memory that grow with what is kept."""
        size = len(pages) << _PAGE
        if len(self._room) < size:
            kept = sum(len(data) for _, data in self._pages)
            self._room = SPARE.take(max(size, min(kept, LARGEST)))
            self._pieces.append(self._room)
        into, self._room = self._room[:size], self._room[size:]
        move(self._data, pages, into, np.arange(0, size, 1 << _PAGE), 1 << _PAGE)
        self._pages.append((pages, into))

    def restore(self, region: Region) -> None:
        """Write the pages back."""
        for pages, data in self._pages:
            move(data, np.arange(0, len(data), 1 << _PAGE), self._data, pages, 1 << _PAGE)
        if self._tail is not None:
            self._data[len(self._data) - len(self._tail) :] = self._tail
        region.written = self._written

    def end(self) -> None:
        """Give back memory; nothing can be restored any more."""
        SPARE.give_back(self._pieces)
        self._pages, self._pieces, self._room = [], [], np.zeros(0, np.uint8)


class Undoing:
    """What one run of a launch changes in global memory.

    Parameters
    ----------
    reporter : Reporter
    space : AddressSpace
    """

    def __init__(self, reporter: Reporter, space: AddressSpace) -> None:
        self._space, self._budget = space, Budget(reporter)
        self._regions: list[tuple[Region, KeptPages]] = []
        self._allocated: list[Region] = []
        self._released: list[Region] = []

    @property
    def possible(self) -> bool:
        """Whether all that the launch has changed was kept."""
        return self._budget.left >= 0

    def pages(self, region: Region) -> KeptPages:
        """Return where pages of a region are kept, which the launch accesses for the first time."""
        made = KeptPages(self._budget, region)
        self._regions.append((region, made))
        return made

    def allocated(self, region: Region) -> None:
        """Note that the launch has allocated a region."""
        self._allocated.append(region)

    def released(self, region: Region) -> None:
        """Note that the launch has freed a region."""
        if region in self._allocated:
            self._allocated.remove(region)
        else:
            self._released.append(region)

    def undo(self) -> None:
        """Restore everything, after the launch has given back what was placed for it alone."""
        for region, pages in self._regions:
            pages.restore(region)
        for region in self._allocated:
            self._space.remove(region)
        for region in self._released:
            self._space.restore(region)
        self.end()

    def end(self) -> None:
        """Give back memory: the launch is not undone."""
        for _, pages in self._regions:
            pages.end()
        self._regions.clear()
