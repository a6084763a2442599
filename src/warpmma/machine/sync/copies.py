"""Copies under way: `cp.async` and `cp.async.bulk`, their groups, and those who wait for them.

The rules (PTX ISA 9.1, 9.7.9.25.3 and 9.7.9.25.4):

1. A copy belongs to the thread that issued it. `commit_group` makes a group of the thread's copies that are in none.
2. `wait_group n` waits for all groups of the thread but its last n, `wait_all` for all its copies.
3. What it reads is read somewhere between its issue and its wait, and so is what it writes written (`allocation`).
4. A copy that its thread has not waited for when it exits is a hazard, unless an mbarrier waits for it.
5. Groups of `cp.async.bulk` are others than those of `cp.async`. A wait for reading alone lets go their sources; what
   they write is written at a later wait, or when the thread exits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from ..._arrays import Array
from ..base import Site
from ..memory import Allocation, SharedMemory, Touch
from ..report import Reporter

Kind = Literal["async", "bulk", "counted"]
"""Of `cp.async`, of groups in bulk, or counted by an mbarrier."""


@dataclass
class _UnderWay:
    """A copy under way.

    Attributes
    ----------
    site : Site
    address : ndarray of int
        Where to, `[block, warp, lane]`.
    write : callable
        Writes what was copied, for some lanes.
    active : ndarray of bool
        For which lanes.
    groups : ndarray of int
        Groups that the thread has committed since the copy's own; -1 while the copy is in no group.
    sources : list of (Allocation, Touch)
        What it reads.
    bound : ndarray of bool
        Lanes for which nobody else needs to wait for it: an mbarrier does, or its source has been read.
    kind : str
    """

    site: Site
    address: Array
    write: Callable[[Array], None]
    active: Array
    groups: Array
    sources: list[tuple[Allocation, Touch]]
    bound: Array
    kind: Kind = "async"


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
        where = address.astype(np.int64)
        self.add(site, where, active, sources, partial(self._write, site, where, data), "async")

    def _write(self, site: Site, address: Array, data: Array, lanes: Array) -> None:
        self._shared.complete(site, address, data, lanes)

    def add(
        self, site: Site, address: Array, lanes: Array, sources: list[tuple[Allocation, Touch]],
        write: Callable[[Array], None], kind: Kind,
    ) -> Bound:  # fmt: skip
        """Let copies of lanes be under way, to what was reserved for them; return them for an mbarrier."""
        for allocation, touch in sources:
            allocation.sources.append(touch)
        groups, bound = np.full(lanes.shape, -1, np.int32), np.full(lanes.shape, kind == "counted")
        copy = _UnderWay(site, address, write, lanes, groups, sources, bound, kind)
        self._under_way.append(copy)
        return Bound(lanes, [copy])

    def commit(self, lanes: Array, kind: Kind = "async") -> None:
        """Rule 1."""
        for copy in self._under_way:
            if copy.kind == kind:
                copy.groups = copy.groups + lanes

    def wait(self, lanes: Array, groups: int, kind: Kind = "async", *, read: bool = False) -> None:
        """Complete copies of all but the last so many groups of each thread; -1 for all, committed or not (rule 2).

        Of those that need to be `read` only, rule 5.
        """
        for copy in self._under_way:
            if copy.kind == kind:
                done = copy.active & lanes & (copy.groups >= groups)
                if read:
                    self._has_read(copy, done)
                else:
                    self._finish(copy, done)
        self._under_way = [copy for copy in self._under_way if copy.active.any()]

    def _finish(self, copy: _UnderWay, done: Array) -> None:
        """Write what copies have brought to some lanes."""
        if done.any():
            copy.write(done)
            for allocation, touch in copy.sources:
                allocation.has_read(touch.of(done).now())
            copy.active = copy.active & ~done
            self._settle(copy, copy.active)

    def _has_read(self, copy: _UnderWay, done: Array) -> None:
        """Let go the sources of copies of some lanes."""
        if done.any():
            for allocation, touch in copy.sources:
                allocation.has_read(touch.of(done).now())
            copy.bound = copy.bound | done
            self._settle(copy, copy.active & ~done)

    def bind(self, lanes: Array) -> Bound:
        """Return the copies of lanes that are under way, for an mbarrier that waits for them."""
        copies = [copy for copy in self._under_way if copy.kind == "async" and (copy.active & lanes).any()]
        for copy in copies:
            copy.bound = copy.bound | lanes
        return Bound(lanes, copies)

    def complete(self, bound: Bound) -> None:
        """Complete copies that an mbarrier waited for, but for those that their threads have waited for."""
        for copy in bound.copies:
            self._finish(copy, copy.active & bound.lanes)
        self._under_way = [copy for copy in self._under_way if copy.active.any()]

    def _settle(self, copy: _UnderWay, lanes: Array) -> None:
        """Keep of what a copy reads what is still to be read: for lanes."""
        for i, (allocation, touch) in enumerate(copy.sources):
            number = next(k for k, x in enumerate(allocation.sources) if x is touch)
            left = touch.of(lanes)
            copy.sources[i] = (allocation, left)
            if len(left.offset):
                allocation.sources[number] = left
            else:
                del allocation.sources[number]
        copy.sources = [(allocation, touch) for allocation, touch in copy.sources if len(touch.offset)]

    def exited(self, lanes: Array) -> None:
        """Rules 4 and 5."""
        for copy in self._under_way:
            left = copy.active & lanes & ~copy.bound
            name = "cp.async" if copy.kind == "async" else "cp.async.bulk"
            self._reporter.report(
                "pending", copy.site, left, copy.address, f"the thread ends, and has not waited for its {name}"
            )
            if left.any():
                copy.active = copy.active & ~left
                self._settle(copy, copy.active)
            if copy.kind == "bulk":
                self._finish(copy, copy.active & lanes)
        self._under_way = [copy for copy in self._under_way if copy.active.any()]
