"""Copies under way: `cp.async`, its groups, and those who wait for them.

The rules (PTX ISA 9.1, 9.7.9.25.3):

1. A copy belongs to the thread that issued it. `commit_group` makes a group of the thread's copies that are in none.
2. `wait_group n` waits for all groups of the thread but its last n, `wait_all` for all its copies.
3. What it reads is read somewhere between its issue and its wait, and so is what it writes written (`allocation`).
4. A copy that its thread has not waited for when it exits is a hazard, unless an mbarrier waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .allocation import Allocation
from .hazards import Reporter
from .shared_memory import SharedMemory
from .site import Site
from .touching import Touch

__all__ = ["Bound", "Copies"]

Array = npt.NDArray[Any]


@dataclass
class _UnderWay:
    """A `cp.async` under way.

    Attributes
    ----------
    site : Site
    address : ndarray of int
        Where to, `[block, warp, lane]`.
    data : ndarray of uint8
        What, `[block, warp, lane, size]`.
    active : ndarray of bool
        For which lanes.
    groups : ndarray of int
        Groups that the thread has committed since the copy's own; -1 while the copy is in no group.
    sources : list of (Allocation, Touch)
        What it reads.
    bound : ndarray of bool
        Lanes for which an mbarrier waits for it.
    """

    site: Site
    address: Array
    data: Array
    active: Array
    groups: Array
    sources: list[tuple[Allocation, Touch]]
    bound: Array


class Bound(NamedTuple):
    """Copies that an mbarrier waits for: those of some lanes, `[block, warp, lane]`, that they began before."""

    lanes: Array
    copies: list[_UnderWay]


class Copies:
    """The copies of a batch of blocks.

    Parameters
    ----------
    shared : SharedMemory
    reporter : Reporter
    """

    def __init__(self, shared: SharedMemory, reporter: Reporter) -> None:
        self._shared, self._reporter = shared, reporter
        self._under_way: list[_UnderWay] = []

    def start(
        self, site: Site, address: Array, data: Array, lanes: Array, sources: list[tuple[Allocation, Touch]]
    ) -> None:
        """Begin copies of lanes: of data, `[block, warp, lane, size]`, to addresses in shared memory."""
        active = self._shared.reserve(site, address, data.shape[-1], lanes)
        for allocation, touch in sources:
            allocation.sources.append(touch)
        groups = np.full(active.shape, -1, np.int32)
        bound = np.zeros(active.shape, bool)
        self._under_way.append(_UnderWay(site, address.astype(np.int64), data, active, groups, sources, bound))

    def commit(self, lanes: Array) -> None:
        """Rule 1."""
        for copy in self._under_way:
            copy.groups = copy.groups + lanes

    def wait(self, lanes: Array, groups: int) -> None:
        """Complete copies of all but the last so many groups of each thread; -1 for all, committed or not (rule 2)."""
        for copy in self._under_way:
            done = copy.active & lanes & (copy.groups >= groups)
            self._finish(copy, done)
        self._under_way = [copy for copy in self._under_way if copy.active.any()]

    def _finish(self, copy: _UnderWay, done: Array) -> None:
        """Write what copies have brought to some lanes."""
        if done.any():
            self._shared.complete(copy.site, copy.address, copy.data, done)
            for allocation, touch in copy.sources:
                allocation.has_read(touch.of(done).now())
            copy.active = copy.active & ~done
            self._settle(copy)

    def bind(self, lanes: Array) -> Bound:
        """Return the copies of lanes that are under way, for an mbarrier that waits for them."""
        copies = [copy for copy in self._under_way if (copy.active & lanes).any()]
        for copy in copies:
            copy.bound = copy.bound | lanes
        return Bound(lanes, copies)

    def complete(self, bound: Bound) -> None:
        """Complete copies that an mbarrier waited for, but for those that their threads have waited for."""
        for copy in bound.copies:
            self._finish(copy, copy.active & bound.lanes)
        self._under_way = [copy for copy in self._under_way if copy.active.any()]

    def _settle(self, copy: _UnderWay) -> None:
        """Keep of what a copy reads what is still to be read."""
        for i, (allocation, touch) in enumerate(copy.sources):
            number = next(k for k, x in enumerate(allocation.sources) if x is touch)
            left = touch.of(copy.active)
            copy.sources[i] = (allocation, left)
            if len(left.offset):
                allocation.sources[number] = left
            else:
                del allocation.sources[number]
        copy.sources = [(allocation, touch) for allocation, touch in copy.sources if len(touch.offset)]

    def exited(self, lanes: Array) -> None:
        """Rule 4."""
        for copy in self._under_way:
            left = copy.active & lanes & ~copy.bound
            self._reporter.report(
                "pending", copy.site, left, copy.address, "the thread ends, and has not waited for its cp.async"
            )
            if left.any():
                copy.active = copy.active & ~left
                self._settle(copy)
        self._under_way = [copy for copy in self._under_way if copy.active.any()]
