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
        self._budget, self._data, self._written = budget, region.data, region.written
        if isinstance(region.written, WrittenGrains):
            self._written = WrittenGrains(region.written.grain, region.written.flags.copy())
        self._kept: Array | None = None  # bool, by page; made at the first write
        self._runs: dict[int, Array] = {}  # pages beside each other, by the offset of the first
        self._all = False

    def keep(self, offset: Array, size: int) -> None:
        """Keep the pages that accesses at offsets `[n]` are about to write."""
        if self._all or not len(offset):
            return
        if len(self._data) <= 1 << _PAGE:
            self._all = True
            self._take(np.zeros(1, np.int64))
            return
        if self._kept is None:
            self._kept = np.zeros(-(-len(self._data) >> _PAGE), bool)
        first, last = int(offset.min()) >> _PAGE, (int(offset.max()) + size - 1) >> _PAGE
        if self._kept[first : last + 1].all():
            return
        starts, ends = offset >> _PAGE, (offset + (size - 1)) >> _PAGE
        pages = np.unique(np.concatenate([np.minimum(starts + i, ends) for i in range(int((ends - starts).max()) + 1)]))
        pages = pages[~self._kept[pages]]
        self._kept[pages] = True
        self._take(pages)

    def _take(self, pages: Array) -> None:
        for run in np.split(pages, np.flatnonzero(np.diff(pages) != 1) + 1):
            if len(run):
                data = self._data[int(run[0]) << _PAGE : (int(run[-1]) + 1) << _PAGE]
                if self._budget.take(len(data)):
                    self._runs[int(run[0]) << _PAGE] = data.copy()

    def restore(self, region: Region) -> None:
        """Write the pages back."""
        for start, data in self._runs.items():
            self._data[start : start + len(data)] = data
        region.written = self._written


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
