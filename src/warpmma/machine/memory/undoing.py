"""Undoing a launch: what it changes in global memory, kept so that it can run once more (`order.late_writes`).

The rules:

1. A page of global memory is kept before the launch first writes it. At most 1 GiB is kept; after that the launch cannot
   be undone, and a late write is reported at once.
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


class KeptPages:
    """Pages of a region, as they were before a launch wrote them.

    Parameters
    ----------
    undoing : Undoing
        Of the launch.
    region : Region
    """

    def __init__(self, undoing: Undoing, region: Region) -> None:
        self._undoing, self._data = undoing, region.data
        self._kept = np.zeros(-(-region.data.size >> _PAGE), bool)
        self._pages: dict[int, Array] = {}

    def keep(self, offset: Array, size: int) -> None:
        """Keep the pages that accesses at offsets `[n]` are about to write."""
        if not len(offset) or not self._undoing.possible:
            return
        first, last = int(offset.min()) >> _PAGE, (int(offset.max()) + size - 1) >> _PAGE
        if self._kept[first : last + 1].all():
            return
        starts, ends = offset >> _PAGE, (offset + (size - 1)) >> _PAGE
        pages = np.unique(np.concatenate([np.minimum(starts + i, ends) for i in range(int((ends - starts).max()) + 1)]))
        for page in pages[~self._kept[pages]].tolist():
            self._kept[page] = True
            self._pages[page] = self._data[page << _PAGE : (page + 1) << _PAGE].copy()
            self._undoing.kept(len(self._pages[page]))

    def restore(self) -> None:
        """Write the pages back."""
        for page, data in self._pages.items():
            self._data[page << _PAGE : (page << _PAGE) + len(data)] = data

    def drop(self) -> None:
        """Forget the pages."""
        self._pages.clear()


class Undoing:
    """What one run of a launch changes in global memory.

    Parameters
    ----------
    reporter : Reporter
    space : AddressSpace
    """

    def __init__(self, reporter: Reporter, space: AddressSpace) -> None:
        self._reporter, self._space = reporter, space
        self.possible = True
        self._bytes = 0
        self._regions: list[tuple[Region, KeptPages, WrittenGrains | bool]] = []
        self._allocated: list[Region] = []
        self._released: list[Region] = []

    def pages(self, region: Region) -> KeptPages:
        """Return where pages of a region are kept, which the launch accesses for the first time."""
        made = KeptPages(self, region)
        written = region.written
        if isinstance(written, WrittenGrains):
            written = WrittenGrains(written.grain, written.flags.copy())
        self._regions.append((region, made, written))
        return made

    def kept(self, size: int) -> None:
        """Count bytes that were kept (rule 1)."""
        self._bytes += size
        if self._bytes > MOST_KEPT:
            self.possible, self._reporter.late = False, None
            for _, pages, _ in self._regions:
                pages.drop()

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
        for region, pages, written in self._regions:
            pages.restore()
            region.written = written
        for region in self._allocated:
            self._space.remove(region)
        for region in self._released:
            self._space.restore(region)
