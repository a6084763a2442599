"""Barriers in shared memory, by phases: `mbarrier`.

The rules (PTX ISA 9.1, 9.7.13.15; rows in `operations.mbarrier_forms`, states and events in `mbarrier_state`, the order
in `report.asynchronous_rules`):

1. PTX leaves the layout of the 64 bits open; here it is that of an H200 (`MbarrierState`). Lanes that meet at one take
   turns in the order of their numbers.
2. What threads do before they arrive happens before what threads do after they see the phase complete. Lanes of a warp
   that arrive at once all act before any of them.
3. `cp.async.mbarrier.arrive` arrives when the earlier `cp.async` of its thread are complete; without `.noinc` the phase
   expects one arrival more at once. It releases what these have copied, and nothing else.
4. `init` is a store like any other: other threads must be ordered with it. `inval` is strong, as arrivals are, and so
   ordered with them: libraries let one lane of a warp invalidate an mbarrier at which the others have arrived. A thread
   that arrives or looks has to be ordered behind the init, also if others have arrived since. Faults (`FAULTS`) are
   hazards of the kind "barrier".
5. Operations that signal an mbarrier complete when threads look at it (rule 4 of `async_operations`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..._arrays import Array
from ...operations import Mbarrier, MemoryScope
from ..base import Site, get
from ..block import Batch, Results, touches
from ..memory import Allocation, Taken, Touch, Turns
from ..order import Completes, thread_of, time_of
from ..sync import (
    FAULTS,
    MOST,
    PENDING_BIT,
    PHASE_BIT,
    VALID_BIT,
    Event,
    Events,
    MbarrierState,
    Signal,
    applied,
    applied_to_all,
    bytes_of,
    expected_of,
    pending_of,
)
from .load_store import address, read

_SIZE = 8
_SCOPE: MemoryScope = "cluster"  # of accesses to the 64 bits, however far their orders reach
_FAR = "an mbarrier of another block of the cluster, where only arrivals and counts of bytes may be; a GPU traps"
_BESIDE = " (another lane does the same in this very access)"
_RULES = {"zero": "A11", "again": "A11", "nothing": "A11"}
_PHASE, _PENDING, _MOST, _ONE = (np.uint64(x) for x in (PHASE_BIT, PENDING_BIT, MOST, 1))


def mbarrier(batch: Batch, site: Site, row: Mbarrier, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute one."""
    if row.action == "pending_count":
        (state,) = read(batch, site, operands, lanes)
        return (batch.made(pending_of(state).astype(np.uint32), lanes, site),)
    at = address(batch, site, operands[0], lanes)
    own = row.action in ("init", "inval", "wait")
    numbers = [read(batch, site, [x], lanes)[0] for x in operands[1:] if x is not None]
    if row.action in ("init", "inval"):
        return _begin(batch, site, row, at, numbers, lanes)
    found: Array = np.zeros(lanes.shape, np.uint64)
    for memory, touch in _places(batch, site, row.space, at, lanes, own=own):
        strong = touch.atomic(_SCOPE)
        if row.action == "wait":
            phase = numbers[0][touch.lanes].astype(np.uint64)
            wanted = phase & _ONE if row.parity else phase >> _PHASE
            _come(batch, memory, touch, wanted)
            data, poison = memory.load(strong, _SIZE)
            batch.decide(site, poison and poison.on(touch.lanes, (*lanes.shape, _SIZE)), lanes)
            _check_init(batch, touch)
            found[touch.lanes] = _waited(batch, row, touch, data.view(np.uint64)[:, 0], wanted)
            continue
        count = numbers[0][touch.lanes].astype(np.int64) if numbers else np.ones(len(touch.offset), np.int64)
        if row.action == "copy":
            if not row.counts:
                turns = partial(_changed, batch, touch, Events.of(len(count), raises=1), _nothing)
                memory.update(strong, _SIZE, turns, contests=False)
            arrivals = _Arrivals(batch, memory, lambda touch: Events.of(len(touch.offset), arrivals=1))
            after = batch.async_operations.copies(touch.lanes)
            batch.async_operations.arrival(site, at, touch.lanes, arrivals.signal(touch), after)
        else:
            turns = partial(_arrivals, batch, row, touch, count)
            data, _ = memory.update(strong, _SIZE, turns, contests=False)
            found[touch.lanes] = data.view(np.uint64)[:, 0]
        _check_init(batch, touch)
    if row.action == "wait":
        return (batch.made(found != 0, lanes, site),)
    return (batch.made(found, lanes, site),) if row.results else ()


def _places(
    batch: Batch, site: Site, space: str, at: Array, lanes: Array, *, own: bool
) -> list[tuple[Allocation, Touch]]:
    """Return the mbarriers at addresses, which have to be in shared memory; if `own`, in that of the thread's block."""
    found = []
    for memory, allocation, touch in touches(batch, site, space, at, _SIZE, lanes, _SIZE):
        if memory is not batch.shared:
            batch.reporter.report("barrier", site, touch.lanes, at, "an mbarrier has to be in shared memory")
            continue
        if own and batch.clocks.scopes.cluster > 1:
            far = batch.shared.blocks_of(touch.offset) != np.nonzero(touch.lanes)[0]
            if far.any():
                batch.reporter.report("bounds", site, _lanes_of(touch, far), at, _FAR)
                touch = touch.of(touch.lanes & ~_lanes_of(touch, far))
        found.append((allocation, touch))
    return found


def _begin(batch: Batch, site: Site, row: Mbarrier, at: Array, numbers: Sequence[Array], lanes: Array) -> Results:
    """Make or end one (rule 4)."""
    words = np.zeros(lanes.shape, np.uint64)
    if row.action == "init":
        count = numbers[0].astype(np.int64)
        _fault(batch, site, lanes & ((count < 1) | (count > MOST)), at, "init")
        some, where = np.unique(count & MOST, return_inverse=True)
        made = [MbarrierState(n, n, 0, int(n == 0), 1).word for n in some.tolist()]
        words = np.array(made, np.uint64)[where].reshape(lanes.shape)
    for memory, touch in _places(batch, site, row.space, at, lanes, own=True):
        before, again = _words(memory, touch), np.ones(len(touch.offset), bool)
        again[np.unique(touch.offset, return_index=True)[1]] = False
        if row.action == "init":
            known = batch.phases.known(touch.offset)
            there = _valid(before) & known
            _fault(batch, site, _lanes_of(touch, there), at, "again")
            _fault(batch, site, _lanes_of(touch, again & ~there), at, "again", _BESIDE)
            memory.store(touch, words[touch.lanes].reshape(-1, 1).view(np.uint8))
            batch.phases.begin(touch.offset, touch.who.words)
        else:
            _fault(batch, site, _lanes_of(touch, ~_valid(before)), at, "nothing")
            _fault(batch, site, _lanes_of(touch, again & _valid(before)), at, "nothing", _BESIDE)
            memory.store(touch.atomic(_SCOPE), (before & ~_ONE).reshape(-1, 1).view(np.uint8))
            batch.phases.forget(touch.offset)
    return ()


def _check_init(batch: Batch, touch: Touch) -> None:
    """Report lanes that are not ordered behind the init of their mbarrier (rule 4)."""
    if not batch.reporter.tracking or not len(touch.offset):
        return
    words = batch.phases.inits(touch.offset)
    if batch.clocks.scopes.cluster == 1 and int(time_of(words).max(initial=0)) < batch.clocks.floor:
        return
    bad = batch.clocks.unordered(words[:, None], touch.who, races=False)
    if bad is None:
        return
    word = words[np.flatnonzero(bad[:, 0])[0]]
    other, (warp, lane) = batch.clocks.site(word), thread_of(word)
    line = "" if other is None else f" at {other.what}"
    says = f"lane {lane} of warp {warp} initialises this mbarrier{line}, and nothing orders that before this access"
    batch.reporter.report("race", touch.site, _lanes_of(touch, bad[:, 0]), touch.address, says, other)


def signal(batch: Batch, site: Site, at: Array, sizes: Array, lanes: Array) -> list[Signal]:
    """Return the signals of operations that count bytes at mbarriers, by the piece of memory.

    Parameters
    ----------
    batch : Batch
    site : Site
    at : ndarray of uint
        `[block, warp, lane]`, in the shared memory of the cluster.
    sizes : ndarray of int
        Bytes of each lane.
    """

    def events(touch: Touch) -> Events:
        return Events.of(len(touch.offset), expects=-sizes[touch.lanes].astype(np.int64))

    places = _places(batch, site, "shared::cluster", at, lanes, own=False)
    return [_Arrivals(batch, memory, events).signal(touch) for memory, touch in places]


# Arrivals


@dataclass(frozen=True, eq=False)
class _Arrivals:
    """What operations do to mbarriers in a piece of memory when they complete: they count bytes, or arrive."""

    batch: Batch
    memory: Allocation
    events: Callable[[Touch], Events]

    def signal(self, touch: Touch) -> Signal:
        """Return the signal of operations of some lanes."""
        return Signal(touch, self.send, self.fit, self.batch.shared.mbarriers(touch.offset))

    def send(self, touch: Touch) -> None:
        """Let the operations of some lanes complete."""
        words = touch.completed(Completes.MBARRIER, self.batch.shared.mbarriers(touch.offset)).who.words
        touch, phases = touch.now().atomic(_SCOPE), self.batch.phases

        def bring(which: Array) -> None:
            phases.bring(touch, which, words)

        before = bring if self.batch.reporter.tracking else _nothing
        turns = partial(_changed, self.batch, touch, self.events(touch), before)
        self.memory.update(touch, _SIZE, turns, contests=False)

    def fit(self, touch: Touch) -> bool:
        """Whether no phase is complete before the last of some lanes."""
        events, states = self.events(touch), _words(self.memory, touch)
        if (touch.offset[1:] > touch.offset[:-1]).all():  # each lane has an mbarrier of its own
            pending, awaited = pending_of(states) - events.arrivals, bytes_of(states) + events.expects
        else:
            _, first, place = np.unique(touch.offset, return_index=True, return_inverse=True)
            pending, awaited = pending_of(states)[first], bytes_of(states)[first]
            np.subtract.at(pending, place.reshape(-1), events.arrivals)
            np.add.at(awaited, place.reshape(-1), events.expects)
        return bool(((pending > 0) | ((pending == 0) & (awaited >= 0))).all())


Before = Callable[[Array], None]
"""What is done for lanes, by their places in an access, before their events change an mbarrier."""


def _nothing(which: Array) -> None:
    pass


def _arrivals(batch: Batch, row: Mbarrier, touch: Touch, count: Array, turns: Turns) -> Taken:
    """Let lanes arrive, or count bytes, in their order."""
    before, arrives = _nothing, row.action == "arrive"
    if arrives and batch.reporter.tracking:
        before = partial(batch.phases.arrive, touch, scope=row.scope, releases=row.orders)
    if arrives and not row.expects:
        if (none := count == 0).any():
            _fault(batch, touch.site, _lanes_of(touch, none), touch.address, "zero")
        shared = len(turns.held) < len(turns.place)
        if shared and row.last and not row.drop and (taken := _at_once(batch, touch, count, turns, before)) is not None:
            return taken
    return _changed(batch, touch, _events(row, count), before, turns)


def _events(row: Mbarrier, numbers: Array) -> Events:
    """Return what an instruction does to the states of mbarriers."""
    if row.action != "arrive":
        return Events.of(len(numbers), expects=numbers if row.action == "expect_tx" else -numbers)
    arrivals, expects = (1, numbers) if row.expects else (numbers, 0)
    return Events.of(len(numbers), arrivals=arrivals, expects=expects, drops=arrivals if row.drop else 0, last=row.last)


def _changed(batch: Batch, touch: Touch, events: Events, before: Before, turns: Turns) -> Taken:
    """Apply one event of each lane, in the order of the lanes; if each has an mbarrier of its own, all at once."""
    words, place = turns.held.view(np.uint64)[:, 0], turns.place
    number = len(place)
    if len(words) == number and (done := applied_to_all(words[place], events)) is not None:
        before(np.arange(number))
        _enter(batch, touch, events, np.arange(number))
        batch.phases.complete(touch.offset[done[1]])
        left = np.empty(number, np.uint64)
        left[place] = done[0]
        seen, kept = (x.reshape(-1, 1).view(np.uint8) for x in (words[place], left))
        return Taken(seen, kept, np.ones(number, bool), np.zeros(number, bool), None)
    return _one_by_one(batch, touch, events, before, turns)


def _one_by_one(batch: Batch, touch: Touch, events: Events, before: Before, turns: Turns) -> Taken:
    """Apply one event of each lane, in order. For lanes of a warp at one mbarrier, `before` comes at the first."""
    words, place = turns.held.view(np.uint64)[:, 0].tolist(), turns.place.tolist()
    together = np.stack([touch.who.block, touch.who.warp, touch.offset], axis=1)
    _, together = np.unique(together, axis=0, return_inverse=True)
    found, faults, done = [], dict[str, list[int]](), set[int]()
    for turn, (where, group) in enumerate(zip(place, together.reshape(-1).tolist(), strict=True)):
        found.append(words[where])
        if group not in done:
            done.add(group)
            before(np.flatnonzero(together.reshape(-1) == group))
        event = events.at(turn)
        if event in _NOTHING:
            continue
        outcome = applied(MbarrierState.of(words[where]), event)
        if outcome.fault:
            faults.setdefault(outcome.fault, []).append(turn)
        words[where] = outcome.state.word if outcome.state.valid else words[where]
        _enter(batch, touch, events, np.array([turn]))
        if outcome.completed:
            batch.phases.complete(touch.offset[[turn]])
    wrong = np.zeros(len(found), bool)
    for fault, which in faults.items():
        wrong[which] = True
        state = MbarrierState.of(words[place[which[0]]])
        counted = f" ({state}; {batch.phases.ledger(int(touch.offset[which[0]]))})" if state.valid else ""
        bad: Array = np.zeros(len(found), bool)
        bad[which] = True
        _fault(batch, touch.site, _lanes_of(touch, bad), touch.address, fault, counted)
    left = np.array(words, np.uint64).reshape(-1, 1).view(np.uint8)
    seen = np.array(found, np.uint64).reshape(-1, 1).view(np.uint8)
    return Taken(seen, left, ~wrong, np.zeros(len(found), bool), None)


_NOTHING = (Event(), Event(last=False))


def _enter(batch: Batch, touch: Touch, events: Events, which: Array) -> None:
    """Enter events of lanes, by place, into the ledgers of their mbarriers."""
    arrivals, bytes_ = events.arrivals[which], events.expects[which]
    for did, numbers in (("arrives", arrivals), ("expects", bytes_), ("brings", -bytes_)):
        if (some := numbers > 0).any():
            batch.phases.count(touch.offset[which[some]], did, touch.site, numbers[some])


def _at_once(batch: Batch, touch: Touch, count: Array, turns: Turns, before: Before) -> Taken | None:
    """Let lanes arrive together, if no phase is complete before its last arrival; None where one is."""
    words, place = turns.held.view(np.uint64)[:, 0], turns.place
    pending = pending_of(words)
    total = np.bincount(place, count, len(words)).astype(np.int64)
    if (count < 1).any() or (pending < total).any() or not _valid(words).all():
        return None
    order = np.argsort(place, kind="stable")
    summed = np.cumsum(count[order])
    first = np.searchsorted(place[order], np.arange(len(words)))  # of each barrier; everybody has some
    earlier = np.empty_like(count)
    earlier[order] = summed - count[order] - (summed - count[order])[first][place[order]]
    found, left = _with_pending(words[place], pending[place] - earlier), _with_pending(words, pending - total)
    before(np.arange(len(place)))
    offsets = touch.offset[order[first]]
    batch.phases.count(offsets, "arrives", touch.site, total)
    done = (pending == total) & (bytes_of(left) == 0)
    left[done] = _with_pending(left[done] ^ _ONE << _PHASE, expected_of(left[done]))
    batch.phases.complete(offsets[done])
    number = len(count)
    seen, kept = (x.reshape(-1, 1).view(np.uint8) for x in (found, left))
    return Taken(seen, kept, np.ones(number, bool), np.zeros(number, bool), None)


# Waits


def _come(batch: Batch, memory: Allocation, touch: Touch, wanted: Array) -> None:
    """Complete operations that signal the mbarriers at which lanes look, if it is their time (rule 5)."""
    operations = batch.async_operations
    parity = _parity(memory, touch)
    if operations.signals and (not batch.poison_travels or operations.luck(0.5)):
        while (late := parity == wanted).any() and operations.signal_one(np.unique(touch.offset[late])):
            parity = _parity(memory, touch)
    batch.phases.looked(touch, parity == wanted)


def _words(memory: Allocation, touch: Touch) -> Array:
    return get(memory.data, touch.offset, _SIZE, memory.phase).view(np.uint64)[:, 0]


def _parity(memory: Allocation, touch: Touch) -> Array:
    return np.asarray(_words(memory, touch) >> _PHASE)


def _with_pending(words: Array, pending: Array) -> Array:
    """Return states with other pending arrivals."""
    return np.asarray(words & ~(_MOST << _PENDING) | (-pending & MOST).astype(np.uint64) << _PENDING)


def _valid(words: Array) -> Array:
    return np.asarray(words >> np.uint64(VALID_BIT) & _ONE == 1)


def _waited(batch: Batch, row: Mbarrier, touch: Touch, words: Array, wanted: Array) -> Array:
    """Return which lanes see a complete phase, and order them after what happened before it."""
    invalid = ~_valid(words)
    if invalid.any():
        _fault(batch, touch.site, _lanes_of(touch, invalid), touch.address, "absent")
    complete: Array = words >> _PHASE != wanted
    if batch.reporter.tracking:
        batch.phases.observe(touch, complete, row.scope, acquires=row.orders)
    return np.asarray(complete | invalid)


def _lanes_of(touch: Touch, some: Array) -> Array:
    """Return some lanes of an access, bool `[n]`, as `[block, warp, lane]`."""
    lanes: Array = np.zeros(touch.lanes.shape, bool)
    lanes[touch.lanes] = some
    return lanes


def _fault(batch: Batch, site: Site, bad: Array, at: Array, fault: str, more: str = "") -> None:
    batch.reporter.report("barrier", site, bad, at, FAULTS[fault] + more, rule=_RULES.get(fault, ""))
