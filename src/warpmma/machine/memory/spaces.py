"""State spaces: one interface to global, shared and local memory.

The rules:

1. `touch` finds what lanes access: a piece of memory (`Allocation`), and a `Touch` of those lanes whose addresses are
   aligned and in bounds. It reports all others. Lanes of one access may touch several pieces.
2. Loads, stores and atomics are made of that, once for all spaces. A lane that touches nothing loads 0 and stores
   nothing. A write to read-only memory is a hazard.
3. A space has a scope: the threads that see the same bytes. Memory of one thread needs no order: it ignores how strong
   an access is, and has no atomics.
4. Unwritten bytes of shared and local memory are poison; those of global memory are, too, where poison is followed, and
   otherwise a load reports them at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ..._arrays import Array
from ...operations import MemoryOrder, MemoryScope
from ..base import Poison, Site, acting, spread
from ..order import ThreadScope, VectorClocks
from ..report import Reporter
from .accesses import Touch
from .allocation import Allocation
from .global_memory import GlobalMemory


class Space(ABC):
    """A state space, as a batch of blocks accesses it.

    Attributes
    ----------
    name : str
        "global", "shared" or "local".
    scope : ThreadScope
        The threads that see the same bytes.
    keeps_poison : bool
        Whether unwritten bytes are poison even where poison is not followed (rule 4).
    """

    name: ClassVar[str]
    scope: ThreadScope
    keeps_poison: ClassVar[bool] = True

    _reporter: Reporter

    @abstractmethod
    def touch(
        self, site: Site, address: Array, size: int, lanes: Array, alignment: int
    ) -> Iterator[tuple[Allocation, Touch]]:
        """Return the pieces of memory that lanes access, and what of each (rule 1).

        Parameters
        ----------
        site : Site
        address : ndarray of uint
            `[block, warp, lane]`.
        size : int
            Bytes of a lane.
        lanes : ndarray of bool
        alignment : int
            Addresses have to be multiples of it.
        """

    @abstractmethod
    def contents(self) -> Iterator[Array]:
        """Return all bytes that the batch may have accessed."""

    def writeable(self, allocation: Allocation, touch: Touch) -> bool:
        """Whether a piece of memory can be written; if not, report it."""
        return True

    def load(
        self, site: Site, address: Array, size: int, lanes: Array, *, alignment: int = 0, element: int = 0,
        order: MemoryOrder = "weak", scope: MemoryScope = "gpu", travels: bool = False,
    ) -> tuple[Array, Poison | None]:  # fmt: skip
        """Load bytes.

        Parameters
        ----------
        site, address, size, lanes
            As for `touch`.
        alignment, element : int
            What addresses are multiples of, and bytes of an element; by default the size.
        order, scope : str
            How strong the load is.
        travels : bool
            Whether poison is returned without a report.

        Returns
        -------
        data : ndarray of uint8
            `[block, warp, lane, size]`; 0 in lanes that touch nothing.
        poison : Poison or None
            Of `[block, warp, lane, size]`; None if there is none.
        """
        data: Array | None = None
        poison: Poison | None = None
        for allocation, touch in self.touch(site, address, size, lanes, alignment or size):
            found, bad = allocation.load(touch.strong(order, scope), element or size, travels=travels)
            if len(found) == lanes.size:  # all lanes, in one piece
                if bad is not None:
                    bad = Poison(bad.bits.reshape(*lanes.shape, size), bad.origin)
                return found.reshape(*lanes.shape, size), bad
            if data is None:
                data = spread(found, touch.lanes)
            else:
                data[touch.lanes] = found
            if bad is not None:
                poison = bad.on(touch.lanes, data.shape, poison)
        return np.zeros((*lanes.shape, size), np.uint8) if data is None else data, poison

    def store(
        self, site: Site, address: Array, data: Array, lanes: Array, *, alignment: int = 0,
        order: MemoryOrder = "weak", scope: MemoryScope = "gpu", poison: Poison | None = None,
    ) -> None:  # fmt: skip
        """Store bytes `[block, warp, lane, size]` and their poison; the other parameters are as for `load`."""
        size = data.shape[-1]
        for allocation, touch in self.touch(site, address, size, lanes, alignment or size):
            if self.writeable(allocation, touch):
                held = None if poison is None else poison.of(touch.lanes)
                allocation.store(touch.strong(order, scope), acting(data, touch.lanes), held)


class GlobalSpace(Space):
    """The global memory of a launch, as a batch accesses it.

    Parameters
    ----------
    memory : GlobalMemory
    clocks : VectorClocks
        Of the batch.
    """

    name = "global"
    scope = ThreadScope.GPU
    keeps_poison = False

    def __init__(self, memory: GlobalMemory, clocks: VectorClocks, reporter: Reporter) -> None:
        self._memory, self._clocks, self._reporter = memory, clocks, reporter

    def touch(
        self, site: Site, address: Array, size: int, lanes: Array, alignment: int
    ) -> Iterator[tuple[Allocation, Touch]]:
        """See `Space.touch`."""
        return self._memory.touched(self._clocks, site, address, size, lanes, alignment)

    def whole(
        self, site: Site, address: Array, lanes: Array, at: Array, size: int, runs: int
    ) -> tuple[Allocation, Touch] | None:  # fmt: skip
        """See `GlobalMemory.whole`."""
        return self._memory.whole(self._clocks, site, address, lanes, at, size, runs)

    def contents(self) -> Iterator[Array]:
        """Return the bytes of every array that was accessed."""
        return self._memory.contents()

    def writeable(self, allocation: Allocation, touch: Touch) -> bool:
        """Whether an array can be written; if not, report it."""
        if allocation.data.flags.writeable:
            return True
        says = f"a store to {self._memory.name_of(allocation)}, which is read-only"
        self._reporter.report("bounds", touch.site, touch.lanes, touch.address, says)
        return False
