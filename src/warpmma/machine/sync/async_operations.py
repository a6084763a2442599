"""Asynchronous operations: copies that proceed while their threads continue, their groups, and what completes them.

The rules (PTX ISA 9.1, 9.7.9.25.3 and 9.7.9.25.4; rules "A" are those of `machine.report.asynchronous_rules`):

1. An operation is issued by a thread. It reads its sources and writes its destinations at any time between its issue
   and its completion: until then both are pending (`allocation`). What it writes is computed when it is issued;
   reductions combine when they complete.
2. `cp.async` and `cp.async.bulk` have groups of their own (`Groups`). `commit_group` makes a group of the thread's
   operations that are not in a group yet. `wait_group n` completes all groups of the thread except the last n,
   `wait_all` all of its operations.
3. An operation without a group signals an mbarrier when it completes: it counts its bytes there. An arrival
   (`cp.async.mbarrier.arrive`) completes after the earlier `cp.async` of its thread, and signals by arriving.
4. Operations complete as late as they may: those of groups when their thread waits; those that signal when all threads
   poll without success, the oldest first, and with it those that the same phase of its mbarrier waits for. So a thread
   that looks once and goes on finds a copy pending, and a stage that is used again too early is still in use. Kernels
   in Python run in lockstep and cannot poll: there operations complete when a thread looks. With a seed other than 0,
   operations also complete at random: one in four when it is issued, every second time that a thread looks, and every
   second one when all poll without success.
5. What an operation has written is an access of what completes it (A1): of the thread's groups; of its thread, if that
   waits for a `cp.async`; of the mbarrier that it signals. A thread that observes the completion is ordered behind the
   operation, and behind nothing else that its thread did (A6, A7).
6. `wait_group.read` completes the reading alone: sources may be overwritten, and destinations stay pending until a
   later wait, or until the thread exits.
7. If a thread exits before it has waited for a `cp.async` that no mbarrier completes, that is a hazard; for copies in
   bulk, which an H200 completes, with the policy "strict" only (A16).
8. Byte i of what a lane writes is byte i of its source; bytes beyond the source are 0. Where poison is followed, a
   write that changes a source that is still to be read makes poison of the bytes that the lane writes from there. What
   a reduction adds has no poison: there the write is reported.
9. When the last thread of a block ends, no operation of another block may still have to signal an mbarrier there (A18).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from ..._arrays import Array, all_ones
from ..base import Origin, Poison, Site
from ..memory import Allocation, Content, Loan, Overwritten, Touch, content
from ..order import Completes, VectorClocks
from ..report import Reporter

Groups = Literal["cp.async", "cp.async.bulk"]
"""The kind of groups that an operation can join, named after its instruction."""

Touched = tuple[Allocation, Touch]


Combine = Callable[[Allocation, Touch, Array], None]
"""What a reduction does with its data when it completes, instead of writing them."""


class Signal(NamedTuple):
    """What the completion of an operation does to mbarriers."""

    touch: Touch  # the mbarrier of each lane
    send: Callable[[Touch], None]  # counts bytes, or arrives, for some of the lanes
    fit: Callable[[Touch], bool]  # whether no phase is complete before the last of some of the lanes
    agents: Array  # the number of the mbarrier of each lane as an agent, `[n]`

    def numbers(self) -> Array:
        """Return `agents` as `[block, warp, lane]`."""
        found: Array = np.zeros(self.touch.lanes.shape, np.int64)
        found[self.touch.lanes] = self.agents
        return found

    def at(self, offsets: Array) -> Array:
        """Return the lanes that signal some mbarriers."""
        found: Array = np.zeros(self.touch.lanes.shape, bool)
        found[self.touch.lanes] = np.isin(self.touch.offset, offsets)
        return found


@dataclass(eq=False, kw_only=True)
class AsyncOperation:
    """An operation that lanes have issued.

    Attributes
    ----------
    sources, targets : list of (Allocation, Touch)
        What it still has to read, and what it writes.
    after : list of AsyncOperation
        What completes first: of an arrival.
    over, read, visible : bool
        Whether it is complete for all lanes; whether nothing of it is still to read, and no lane need wait for that;
        whether all of its data are visible. Those of a long pipeline stay until its last wait.
    """

    site: Site
    address: Array  # where it writes, `[block, warp, lane]`, for reports
    lanes: Array  # lanes that issued it
    active: Array  # lanes for which it is not complete
    sources: list[Touched]
    targets: list[Touched]
    data: Content  # what it writes, `[n, size]`, for each of `lanes`
    groups: Groups | None  # the groups that it can join; None if it signals an mbarrier
    before: Array | None  # how many groups its thread had committed when it was issued; None if it signals an mbarrier
    poison: Poison | None  # of what it writes
    awaited: Array  # lanes that need not wait: an mbarrier completes it, or its sources have been read
    early: Array  # lanes whose data are visible before their thread has waited
    combine: Combine | None = None
    signal: Signal | None = None
    numbers: Array | None = None  # of the mbarrier of each lane, as an agent
    after: Sequence[AsyncOperation] = field(default_factory=list)
    over: bool = False
    read: bool = False
    visible: bool = False

    def end(self, done: Array) -> None:
        """Note that it is complete for some lanes."""
        self.active = self.active & ~done
        self.over = not self.active.any()
        if self.over:
            self.forget()

    def forget(self) -> None:
        """Forget its data: all of them are written, or never will be."""
        if isinstance(self.data, Loan):
            self.data.end()

    def publish(self, done: Array, how: Completes) -> None:
        """Make its data visible for some lanes (rule 5)."""
        for allocation, touch in self.targets:
            some = touch.of(done)
            if not some.number:
                continue
            whole = some.number == len(self.data)
            which = None if whole else some.lanes[self.lanes]
            if self.combine is not None:
                self.combine(allocation, some.now(), content(self.data) if which is None else content(self.data)[which])
                if how is not Completes.THREAD:
                    by = some.completed(how, self.agents(how, some))
                    allocation.shadow.credits(by.strong("relaxed", "gpu"))  # others may combine with the same elements
                continue
            by = some.now() if how is Completes.THREAD else some.completed(how, self.agents(how, some))
            poison = self.poison if which is None else self.poison and self.poison.of(which)
            allocation.complete(by, self.data, poison, which)

    def agents(self, how: Completes, touch: Touch) -> Array | None:
        """Return the numbers of the mbarriers that complete it for the lanes of an access, if they do."""
        return self.numbers[touch.lanes] if how is Completes.MBARRIER and self.numbers is not None else None

    def overwritten(self, source: Touch, bad: Array, origin: Origin) -> None:
        """Make poison of what it writes from bytes of a source, bool `[n, size]` (rule 8)."""
        bits = np.zeros(self.data.shape, np.uint8)
        bits[source.lanes[self.lanes], : source.size] = all_ones(bad, np.uint8)
        self.poison = Poison(bits, origin).plus(self.poison)

    def has_read(self, done: Array, left: Array, how: Completes = Completes.THREAD) -> None:
        """End the reading of some lanes; others, `left`, are still to read."""
        for i, (allocation, touch) in enumerate(self.sources):
            if done.any():
                some = touch.of(done)
                by = some.now() if how is Completes.THREAD else some.completed(how, self.agents(how, some))
                allocation.shadow.has_read(by)
            rest = touch.of(left)
            allocation.shadow.still_to_read(touch, rest)
            self.sources[i] = allocation, rest
        self.sources = [(allocation, touch) for allocation, touch in self.sources if touch.number]


class AsyncOperations:
    """The asynchronous operations of a batch of blocks.

    Parameters
    ----------
    reporter : Reporter
    clocks : VectorClocks
    seed : int
        0: operations complete as late as they may (rule 4).
    """

    def __init__(self, reporter: Reporter, clocks: VectorClocks, seed: int) -> None:
        self._reporter, self._clocks = reporter, clocks
        self._pending: list[AsyncOperation] = []
        self._signalling: list[AsyncOperation] = []  # those of them that signal mbarriers
        self._commits: dict[Groups, Array] = {}  # how many groups each thread has committed
        self.told: Callable[[str, AsyncOperation, Array], None] | None = None  # a timeline, if one is recorded
        self._random = np.random.default_rng((seed, clocks.blocks.start)) if seed else None

    @property
    def signals(self) -> bool:
        """Whether any operation is still to signal an mbarrier."""
        return bool(self._signalling)

    def luck(self, odds: float) -> bool:
        """Draw whether something happens early (rule 4); never without a seed."""
        return self._random is not None and self._random.random() < odds

    def issue(
        self, site: Site, address: Array, targets: Iterable[Touched], data: Content, lanes: Array,
        sources: list[Touched], groups: Groups | None, poison: Poison | None = None, *, signal: Signal | None = None,
        combine: Combine | None = None, part: bool = False, overwritten: Overwritten | None = None,
    ) -> AsyncOperation:  # fmt: skip
        """Begin an operation of lanes.

        Parameters
        ----------
        site : Site
        address : ndarray of int
            Where it writes, `[block, warp, lane]`.
        targets : iterable of (Allocation, Touch)
            What the lanes may write of that.
        data : ndarray of uint8 or Loan
            What it writes, `[n, size]`, for each of the lanes.
        lanes : ndarray of bool
        sources : list of (Allocation, Touch)
            What it reads.
        groups : str or None
            The groups that it can join; None if it signals an mbarrier.
        poison : Poison, optional
            Of the data.
        signal : Signal, optional
        combine : callable, optional
            Of a reduction, which reserves nothing: others may combine with the same elements meanwhile.
        part : bool
            Whether an arrival completes it (`arrival`).
        overwritten : callable, optional
            What is told that others write a source meanwhile; by default byte i of a source is byte i of the data.

        Returns
        -------
        AsyncOperation
        """
        written: list[Touched] = []
        there: Array = np.zeros(lanes.shape, bool)
        for allocation, touch in targets:
            if combine is None:
                all_of_it = touch.number == len(data)
                allocation.shadow.reserves(touch, data if all_of_it else content(data)[touch.lanes[lanes]])
            else:
                allocation.shadow.will_combine(touch)
            written.append((allocation, touch))
            there = there | touch.lanes
        read = [(allocation, some) for allocation, touch in sources if (some := touch.of(there)).number]
        whole = len(data) == np.count_nonzero(there)
        operation = AsyncOperation(
            site=site, address=address.astype(np.int64), lanes=there, active=there, sources=read, targets=written,
            data=data if whole else content(data)[there[lanes]], groups=groups,
            poison=poison if whole or poison is None else poison.of(there[lanes]),
            before=None if groups is None else self._committed(groups, lanes),
            awaited=np.full(lanes.shape, groups is None),
            early=np.zeros(lanes.shape, bool), combine=combine, signal=signal,
            numbers=None if signal is None else signal.numbers(), over=not there.any(),
        )  # fmt: skip
        if combine is not None:
            overwritten = partial(report_overwritten, self._reporter)
        for allocation, touch in read:
            allocation.shadow.will_read(touch, overwritten or operation.overwritten)
        self._pending.append(operation)
        if signal is not None:
            self._signalling.append(operation)
        self._tell("issue", operation, there)
        if groups != "cp.async" and not part and self.luck(0.25):
            self._hasten(operation)
        return operation

    def copies(self, lanes: Array) -> list[AsyncOperation]:
        """Return the pending `cp.async` of lanes."""
        return [x for x in self._pending if x.groups == "cp.async" and (x.active & lanes).any()]

    def arrival(
        self, site: Site, address: Array, lanes: Array, signal: Signal, after: Sequence[AsyncOperation]
    ) -> None:  # fmt: skip
        """Begin an operation of lanes that completes others first, and then signals for them (rule 3)."""
        for operation in after:
            operation.awaited = operation.awaited | lanes
            numbers = np.full(lanes.shape, -1) if operation.numbers is None else operation.numbers
            operation.numbers = np.where(lanes & (numbers < 0), signal.numbers(), numbers)
        self._pending.append(
            AsyncOperation(
                site=site, address=address.astype(np.int64), lanes=lanes, active=lanes, sources=[], targets=[],
                data=np.zeros((0, 0), np.uint8), groups=None, before=None, poison=None, awaited=lanes,
                early=np.zeros(lanes.shape, bool), signal=signal, after=after, numbers=signal.numbers(),
                over=not lanes.any(),
            )
        )  # fmt: skip
        self._signalling.append(self._pending[-1])
        self._tell("issue", self._pending[-1], lanes)
        if any(x.groups is None for x in after) and self.luck(0.25):
            self._hasten(self._pending[-1])

    # Rules 2 and 6

    def commit(self, lanes: Array, groups: Groups) -> None:
        """Make a group of each thread's operations that are not in one yet."""
        self._commits[groups] = self._committed(groups, lanes) + lanes

    def _committed(self, groups: Groups, lanes: Array) -> Array:
        """Return how many groups each thread has committed, which are as many as `lanes`."""
        if groups not in self._commits:
            self._commits[groups] = np.zeros(lanes.shape, np.int32)
        return self._commits[groups]

    def wait(self, lanes: Array, last: int, groups: Groups, *, read: bool = False) -> None:
        """Complete all but the last groups of each thread; if `last` is -1, also operations without a group.

        With `read`, complete the reading alone (rule 6).
        """
        for operation in self._pending:
            if operation.groups != groups or (read and operation.read and self.told is None):
                continue
            done = operation.active & lanes
            if last >= 0:  # it is in a group, and so many others were committed since
                done &= self._committed(groups, lanes) - operation.before > last
            if read:
                self._end_reading(operation, done)
            else:
                self._waited(operation, done)
        self._forget_completed()

    def _waited(self, operation: AsyncOperation, done: Array) -> None:
        """Complete an operation whose threads wait for it; they observe the part that was completed otherwise."""
        if not done.any():
            return
        if operation.groups == "cp.async.bulk":  # the async proxy's, which need not cross to it
            known, how = done, Completes.GROUPS
            self._complete(operation, done, how)
        elif operation.numbers is None:
            known, how = operation.early, Completes.GROUPS
            self._complete(operation, done & ~known, Completes.THREAD)
        else:  # the mbarrier of an arrival may complete it as well
            known, how = operation.numbers >= 0, Completes.MBARRIER
            self._complete(operation, done & ~known, Completes.THREAD)
            self._complete(operation, done & known, how)
        for _, touch in operation.targets:
            self._observed(touch.of(done & known), how, operation)
        operation.end(done)
        operation.has_read(done, operation.active)

    # Rule 4

    def signal_one(self, offsets: Array) -> bool:
        """Complete the oldest operation that signals one of some mbarriers, by their offsets; False if none does."""
        for operation in self._signalling:
            assert operation.signal is not None
            done = operation.active & operation.signal.at(offsets)
            if done.any():
                self._signalled(operation, done)
                self._forget_completed()
                return True
        return False

    def hasten(self, rounds: int, phases: Callable[[Array], Array]) -> bool:
        """Complete the oldest operation: all threads have polled without success, so many times in a row.

        Of those that signal the same mbarriers, complete as many as their phases wait for, given a function that counts
        the phases of mbarriers. After many rounds complete all operations. Return whether any was completed.
        """
        some = False
        for operation in self._to_hasten():
            if rounds <= _PATIENT and self._random is not None and not self.luck(0.5):
                continue
            if operation.signal is None or rounds > _PATIENT:
                some |= self._hasten(operation)
            else:
                offsets = np.unique(operation.signal.touch.of(operation.active).offset)
                before = phases(offsets)
                while len(offsets) and self.signal_one(offsets):
                    still = phases(offsets) == before
                    some, offsets, before = True, offsets[still], before[still]
            if some and rounds <= _PATIENT:
                break
        return some

    def _to_hasten(self) -> list[AsyncOperation]:
        """Return the operations that may complete now, the oldest first; with a seed all, as luck is drawn for each."""
        if self._random is not None:
            return self._pending.copy()
        return [x for x in self._pending if x.signal is not None or not (x.visible or x.numbers is not None)]

    def _hasten(self, operation: AsyncOperation) -> bool:
        """Complete an operation before anybody waits for it; False if there is nothing to do."""
        if operation.signal is not None and operation.active.any():
            self._signalled(operation, operation.active)
            self._forget_completed()
            return True
        if operation.visible or operation.numbers is not None:
            return False
        left, operation.visible = operation.active & ~operation.early, True
        some = bool(left.any())
        if some:
            operation.publish(left, Completes.GROUPS)
            operation.early = operation.early | left
        operation.forget()
        return some

    def finish(self) -> None:
        """Complete what may still write to global memory: the batch ends."""
        for operation in self._pending:
            if operation.signal is None and operation.groups == "cp.async.bulk":
                self._hasten(operation)
        self._pending, self._signalling = [], []

    def _signalled(self, operation: AsyncOperation, done: Array) -> None:
        """Complete an operation for some lanes, and signal their mbarriers."""
        assert operation.signal is not None
        touch = operation.signal.touch.of(done)
        for part in (done,) if operation.signal.fit(touch) else _one_by_one(done):
            for earlier in operation.after:
                self._complete(earlier, earlier.active & part, Completes.MBARRIER)
            self._complete(operation, part, Completes.MBARRIER)
            operation.signal.send(touch.of(part))

    def _complete(self, operation: AsyncOperation, done: Array, how: Completes) -> None:
        if done.any():
            operation.publish(done & ~operation.early, how)
            operation.end(done)
            operation.has_read(done, operation.active, how)
            self._tell("complete", operation, done)

    def _tell(self, what: str, operation: AsyncOperation, lanes: Array) -> None:
        if self.told is not None:
            self.told(what, operation, lanes)

    def _end_reading(self, operation: AsyncOperation, done: Array) -> None:
        """End the reading of operations in bulk for some lanes, which observe that (rule 6)."""
        if not done.any():
            return
        operation.awaited = operation.awaited | done
        sources = [touch.of(done) for _, touch in operation.sources]
        operation.has_read(done, operation.active & ~done, Completes.GROUPS)
        operation.read = not operation.sources and not (operation.active & ~operation.awaited).any()
        for touch in sources:
            self._observed(touch, Completes.GROUPS, operation)
        self._tell("read", operation, done)

    def _observed(self, touch: Touch, how: Completes, operation: AsyncOperation) -> None:
        """Let threads know that what they access as of an operation is over (rule 5)."""
        if touch.number and self._reporter.tracking:
            by = touch.completed(how, operation.agents(how, touch))
            self._clocks.observe(np.argwhere(touch.lanes), by.who.words)

    # Rules 7 and 9

    def outlived(self, block: int, blocks_of: Callable[[Array], Array]) -> Array:
        """Return the words of threads of other blocks whose operations still have to signal an mbarrier of a block.

        A function tells the blocks of offsets.
        """
        found = [np.zeros(0, np.uint64)]
        for operation in self._signalling:
            if operation.signal is not None and not operation.after:
                touch = operation.signal.touch.of(operation.active)
                found.append(touch.who.words[(blocks_of(touch.offset) == block) & (touch.who.block != block)])
        return np.concatenate(found)

    def exited(self, lanes: Array) -> None:
        """Let threads exit."""
        for operation in self._pending:
            left = operation.active & lanes & ~operation.awaited
            bulk = operation.groups == "cp.async.bulk"
            says = f"the thread exits without waiting for its {operation.groups}"
            self._reporter.report("pending", operation.site, left, operation.address, says, rule="A16" if bulk else "")
            if left.any() and not bulk:
                operation.end(left)
                operation.has_read(np.zeros_like(left), operation.active)
        self._forget_completed()

    def _forget_completed(self) -> None:
        if any(operation.over for operation in self._pending):
            self._pending = [operation for operation in self._pending if not operation.over]
            self._signalling = [operation for operation in self._signalling if not operation.over]


def report_overwritten(reporter: Reporter, source: Touch, bad: Array, origin: Origin) -> None:
    """Report that others write bytes of a source, bool `[n, size]`, where it is open what the operation still reads."""
    lanes: Array = np.zeros(source.lanes.shape, bool)
    lanes[source.lanes] = bad.any(axis=1)
    reporter.decides(origin, source.site, lanes)


def _one_by_one(lanes: Array) -> Iterator[Array]:
    """Yield each of some lanes alone."""
    for at in map(tuple, np.argwhere(lanes).tolist()):
        one: Array = np.zeros(lanes.shape, bool)
        one[at] = True
        yield one


_PATIENT = 16  # rounds in which one operation at a time completes
