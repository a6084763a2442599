"""Asynchronous operations: copies that proceed while their threads continue, their groups, and what completes them.

The rules (PTX ISA 9.1, 9.7.9.25.3 and 9.7.9.25.4):

1. An operation is issued by a thread. It reads its sources and writes its destinations at any time between its issue
   and its completion: until then both are pending (`allocation`).
2. `cp.async` and `cp.async.bulk` have groups of their own (`Groups`). `commit_group` makes a group of the thread's
   operations that are not in a group yet. `wait_group n` completes all groups of the thread except the last n,
   `wait_all` all of its operations.
3. An operation without a group is completed by the mbarrier that counts its bytes. A `cp.async` may also be
   completed by an mbarrier, if its thread binds it (`cp.async.mbarrier.arrive`).
4. What an operation has written becomes visible when it is completed, as if its thread had written it at that time: to
   the thread that waits; to others, when they are ordered behind that.
5. `wait_group.read` completes the reading alone: sources may be overwritten, and destinations stay pending until a
   later wait, or until the thread exits.
6. If a thread exits before it has waited for an operation that no mbarrier completes, that is a hazard.
7. Byte i of what a lane writes is byte i of its source; bytes beyond the source are 0. Where poison is followed, a
   write that changes a source that is still to be read makes poison of the bytes that the lane writes from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ..._arrays import Array, all_ones
from ..base import Origin, Poison, Site
from ..memory import Allocation, Touch
from ..report import Reporter

Groups = Literal["cp.async", "cp.async.bulk"]
"""The kind of groups that an operation can join, named after its instruction."""

Touched = tuple[Allocation, Touch]


@dataclass(eq=False)
class AsyncOperation:
    """An operation that lanes have issued.

    Attributes
    ----------
    site : Site
    sources, targets : list of (Allocation, Touch)
        What it still has to read, and what it writes.
    """

    site: Site
    address: Array  # where it writes, `[block, warp, lane]`, for reports
    lanes: Array  # lanes that issued it
    active: Array  # lanes for which it is not complete
    sources: list[Touched]
    targets: list[Touched]
    data: Array  # what it writes, `[n, size]`, for each of `lanes`
    groups: Groups | None  # the groups that it can join; None if an mbarrier counts it
    committed: Array  # how many groups the thread has committed since the operation's own; -1 before that
    poison: Poison | None  # of what it writes
    awaited: Array  # lanes that need not wait: an mbarrier completes it, or its sources have been read

    def publish(self, done: Array) -> None:
        """Make its data visible for some lanes (rule 4)."""
        for allocation, touch in self.targets:
            some = touch.of(done)
            if len(some.offset):
                if len(some.offset) == len(self.data):
                    allocation.complete(some.now(), self.data, self.poison)
                    continue
                which = some.lanes[self.lanes]
                allocation.complete(some.now(), self.data[which], self.poison and self.poison.of(which))

    def overwritten(self, source: Touch, bad: Array, origin: Origin) -> None:
        """Make poison of what it writes from bytes of a source, bool `[n, size]` (rule 7)."""
        bits = np.zeros(self.data.shape, np.uint8)
        bits[source.lanes[self.lanes], : source.size] = all_ones(bad, np.uint8)
        self.poison = Poison(bits, origin).plus(self.poison)

    def has_read(self, done: Array, left: Array) -> None:
        """End the reading of some lanes; others, `left`, are still to read."""
        for i, (allocation, touch) in enumerate(self.sources):
            if done.any():
                allocation.shadow.has_read(touch.of(done).now())
            rest = touch.of(left)
            allocation.shadow.still_to_read(touch, rest)
            self.sources[i] = allocation, rest
        self.sources = [(allocation, touch) for allocation, touch in self.sources if len(touch.offset)]


class Pending(NamedTuple):
    """Operations for an mbarrier to complete, and the lanes, `[block, warp, lane]`, that issued them."""

    lanes: Array
    operations: list[AsyncOperation]


class AsyncOperations:
    """The asynchronous operations of a batch of blocks."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._pending: list[AsyncOperation] = []

    def issue(
        self, site: Site, address: Array, targets: Iterable[Touched], data: Array, lanes: Array,
        sources: list[Touched], groups: Groups | None, poison: Poison | None = None,
    ) -> Pending:  # fmt: skip
        """Begin an operation of lanes.

        Parameters
        ----------
        site : Site
        address : ndarray of int
            Where it writes, `[block, warp, lane]`.
        targets : iterable of (Allocation, Touch)
            What the lanes may write of that.
        data : ndarray of uint8
            What it writes, `[n, size]`, for each of the lanes.
        lanes : ndarray of bool
        sources : list of (Allocation, Touch)
            What it reads.
        groups : str or None
            The groups that it can join; None if an mbarrier counts it.
        poison : Poison, optional
            Of the data.

        Returns
        -------
        Pending
            For an mbarrier.
        """
        written: list[Touched] = []
        there: Array = np.zeros(lanes.shape, bool)
        for allocation, touch in targets:
            allocation.shadow.reserves(touch)
            written.append((allocation, touch))
            there |= touch.lanes
        read = [(allocation, some) for allocation, touch in sources if len((some := touch.of(there)).offset)]
        whole = len(data) == np.count_nonzero(there)
        operation = AsyncOperation(
            site=site, address=address.astype(np.int64), lanes=there, active=there, sources=read, targets=written,
            data=data if whole else data[there[lanes]], groups=groups,
            poison=poison if whole or poison is None else poison.of(there[lanes]),
            committed=np.full(lanes.shape, -1, np.int32), awaited=np.full(lanes.shape, groups is None),
        )  # fmt: skip
        for allocation, touch in read:
            allocation.shadow.will_read(touch, operation.overwritten)
        self._pending.append(operation)
        return Pending(there, [operation])

    def commit(self, lanes: Array, groups: Groups) -> None:
        """Make a group of each thread's operations that are not in one yet."""
        for operation in self._pending:
            if operation.groups == groups:
                operation.committed = operation.committed + lanes

    def wait(self, lanes: Array, last: int, groups: Groups, *, read: bool = False) -> None:
        """Complete all but the last groups of each thread; if `last` is -1, also operations without a group.

        With `read`, complete the reading alone (rule 5).
        """
        for operation in self._pending:
            if operation.groups == groups:
                done = operation.active & lanes & (operation.committed >= last)
                if read:
                    self._end_reading(operation, done)
                else:
                    self._complete(operation, done)
        self._forget_completed()

    def of(self, lanes: Array) -> Pending:
        """Return the pending `cp.async` of lanes, for an mbarrier to complete."""
        some = [x for x in self._pending if x.groups == "cp.async" and (x.active & lanes).any()]
        for operation in some:
            operation.awaited = operation.awaited | lanes
        return Pending(lanes, some)

    def complete(self, pending: Pending) -> None:
        """Complete an mbarrier's operations, except those that their threads have waited for themselves."""
        for operation in pending.operations:
            self._complete(operation, operation.active & pending.lanes)
        self._forget_completed()

    def exited(self, lanes: Array) -> None:
        """Let threads exit (rules 5 and 6)."""
        for operation in self._pending:
            left = operation.active & lanes & ~operation.awaited
            says = f"the thread exits without waiting for its {operation.groups}"
            self._reporter.report("pending", operation.site, left, operation.address, says)
            if left.any():
                operation.active = operation.active & ~left
                operation.has_read(np.zeros_like(left), operation.active)
            if operation.groups == "cp.async.bulk":
                self._complete(operation, operation.active & lanes)
        self._forget_completed()

    def _complete(self, operation: AsyncOperation, done: Array) -> None:
        if done.any():
            operation.publish(done)
            operation.active = operation.active & ~done
            operation.has_read(done, operation.active)

    def _end_reading(self, operation: AsyncOperation, done: Array) -> None:
        if done.any():
            operation.awaited = operation.awaited | done
            operation.has_read(done, operation.active & ~done)

    def _forget_completed(self) -> None:
        self._pending = [operation for operation in self._pending if operation.active.any()]
