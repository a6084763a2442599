"""Barriers in shared memory, by phases: `mbarrier`.

The rules (PTX ISA 9.1, 9.7.13.15; rows in `operations.mbarrier_forms`):

1. PTX leaves the layout of the 64 bits open. Here, from the lowest bit: the pending arrivals, the arrivals expected in
   a phase, the pending bytes, the phase, and whether it is an mbarrier at all. Lanes that meet at one take turns in the
   order of their numbers.
2. What threads do before they arrive happens before what threads do after they see the phase complete. Lanes of a warp
   that arrive at once all act before any of them.
3. Copies that arrive complete with the phase: until then, accesses to what they write or read are pending; afterwards
   it is as if their threads had written it just before the phase completed.
4. `init` is a store like any other: other threads must be ordered with it. `inval` is strong, as arrivals are, and so
   ordered with them: libraries let one lane of a warp invalidate an mbarrier at which the others have arrived. A word
   that holds no mbarrier, more arrivals than expected, a last arrival with `.noComplete`, and more than 2^20 - 1 bytes
   are hazards of the kind "barrier".
5. Bulk copies and counted stores are pending until a thread tests whether the phase is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, cast

import numpy as np

from ..._arrays import Array
from ...operations import Mbarrier, row
from ..base import Site
from ..block import Batch, Results, touches
from ..memory import Allocation, Taken, Touch, Turns
from ..sync import MOST, PHASE_BIT, VALID_BIT, MbarrierState, Pending
from .load_store import address, read

_SIZE = 8


def mbarrier(batch: Batch, site: Site, row: Mbarrier, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute one."""
    if row.action == "pending_count":
        (state,) = read(batch, site, operands, lanes)
        return (batch.made((state & np.uint64(MOST)).astype(np.uint32), lanes, site),)
    at = address(batch, site, operands[0], lanes)
    numbers = [read(batch, site, [x], lanes)[0] for x in operands[1:] if x is not None]
    if row.action in ("init", "inval"):
        return _begin(batch, site, row, at, numbers, lanes)
    found: Array = np.zeros(lanes.shape, np.uint64)
    for space, memory, touch in touches(batch, site, row.space, at, _SIZE, lanes, _SIZE):
        if space is not batch.shared:
            batch.reporter.report("barrier", site, touch.lanes, at, "an mbarrier has to be in shared memory")
            continue
        strong = touch.strong("relaxed", row.scope)
        if row.action == "wait":
            batch.phases.count(touch)
            data, poison = memory.load(strong, _SIZE)
            batch.decide(site, poison and poison.on(touch.lanes, (*lanes.shape, _SIZE)), lanes)
            found[touch.lanes] = _waited(batch, row, touch, data.view(np.uint64)[:, 0], numbers[0])
        else:
            data, _ = memory.update(strong, _SIZE, partial(_arrivals, batch, row, touch, numbers))
            found[touch.lanes] = data.view(np.uint64)[:, 0]
    if row.action == "wait":
        return (batch.made(found != 0, lanes, site),)
    return (batch.made(found, lanes, site),) if row.results else ()


def _begin(batch: Batch, site: Site, row: Mbarrier, at: Array, numbers: Sequence[Array], lanes: Array) -> Results:
    """Make or end one (rule 4)."""
    count = numbers[0].astype(np.int64) if numbers else np.zeros(lanes.shape, np.int64)
    if row.action == "init":
        bad = lanes & ((count < 1) | (count > MOST))
        batch.reporter.report("barrier", site, bad, at, f"it expects 0 arrivals, or more than {MOST}")
        count = np.clip(count, 1, MOST)
    words = np.zeros(lanes.shape, np.uint64)
    if row.action == "init":
        some, where = np.unique(count, return_inverse=True)
        made = [MbarrierState(n, n, 0, 0, 1).word for n in some.tolist()]
        words = np.array(made, np.uint64)[where].reshape(lanes.shape)
    for _, memory, touch in touches(batch, site, row.space, at, _SIZE, lanes, _SIZE):
        touch = touch if row.action == "init" else touch.strong("relaxed", "cta")
        memory.store(touch, words[touch.lanes].reshape(-1, 1).view(np.uint8))
        for offset in touch.offset.tolist():
            batch.phases.forget(offset)
    return ()


def transacted(batch: Batch, site: Site, at: Array, sizes: Array, lanes: Array, pending: Pending) -> None:
    """Let mbarriers at addresses count bytes of copies, which are done with the phase (rule 5).

    Parameters
    ----------
    batch : Batch
    site : Site
    at : ndarray of uint
        `[block, warp, lane]`, in shared memory.
    sizes : ndarray of int
        Bytes of each lane.
    """
    numbers = [sizes.astype(np.uint32)]
    for _, memory, touch in touches(batch, site, "shared", at, _SIZE, lanes, _SIZE):
        for offset in np.unique(touch.offset).tolist():
            some: Array = np.zeros(lanes.shape, bool)
            some[touch.lanes] = touch.offset == offset
            count = partial(_count, batch, memory, touch.of(some), numbers)
            batch.phases.wait_for(offset, Pending(some, pending.operations), count)


def _count(batch: Batch, memory: Allocation, touch: Touch, numbers: Sequence[Array]) -> None:
    """Count bytes."""
    touch = touch.now().strong("relaxed", "cta")
    memory.update(touch, _SIZE, partial(_arrivals, batch, _transaction(), touch, numbers))


@cache
def _transaction() -> Mbarrier:
    return cast(Mbarrier, row("mbarrier.complete_tx.shared.b64"))


# Arrivals


def _arrivals(batch: Batch, row: Mbarrier, touch: Touch, numbers: Sequence[Array], turns: Turns) -> Taken:
    """Let lanes arrive, or announce bytes, in their order."""
    if row.action == "copy":
        batch.phases.bind(touch)
    if batch.reporter.tracking and row.orders and row.action in ("arrive", "copy"):
        batch.phases.arrive(touch)
    count = numbers[0][touch.lanes].astype(np.int64) if numbers else np.ones(len(touch.offset), np.int64)
    if row.action == "arrive" and row.last and not (row.expects or row.drop):
        taken = _at_once(batch, touch, count, turns)
        if taken is not None:
            return taken
    words, given = turns.held.view(np.uint64)[:, 0].tolist(), count.tolist()
    found, wrong = [], np.zeros(len(given), bool)
    place, offset = turns.place.tolist(), touch.offset.tolist()
    for turn, (where, number) in enumerate(zip(place, given, strict=True)):
        word = words[where]
        found.append(word)
        state = MbarrierState.of(word)
        after = _after(row, state, number)
        if after is None:
            wrong[turn] = True
            continue
        if after.pending == 0 and after.bytes == 0:
            after = after._replace(phase=1 - after.phase, pending=after.expected)
            batch.phases.complete(offset[turn])
        words[where] = after.word
    if wrong.any():
        lanes: Array = np.zeros(touch.lanes.shape, bool)
        lanes[touch.lanes] = wrong
        batch.reporter.report("barrier", touch.site, lanes, touch.address, _WRONG)
    left = np.array(words, np.uint64).reshape(-1, 1).view(np.uint8)
    seen = np.array(found, np.uint64).reshape(-1, 1).view(np.uint8)
    return Taken(seen, left, ~wrong, np.zeros(len(given), bool), None)


def _at_once(batch: Batch, touch: Touch, count: Array, turns: Turns) -> Taken | None:
    """Let lanes arrive together, if no phase is complete before its last arrival; None where one is."""
    words, place = turns.held.view(np.uint64)[:, 0], turns.place
    pending = (words & np.uint64(MOST)).astype(np.int64)
    total = np.bincount(place, count, len(words)).astype(np.int64)
    if (count < 1).any() or (pending < total).any() or (words >> np.uint64(VALID_BIT) == 0).any():
        return None
    order = np.argsort(place, kind="stable")
    summed = np.cumsum(count[order])
    first = np.searchsorted(place[order], np.arange(len(words)))  # of each barrier; everybody has some
    before = np.empty_like(count)
    before[order] = summed - count[order] - (summed - count[order])[first][place[order]]
    found, left = words[place] - before.astype(np.uint64), words - total.astype(np.uint64)
    for where in np.flatnonzero(pending == total).tolist():
        state = MbarrierState.of(int(left[where]))
        if state.bytes == 0:
            left[where] = state._replace(phase=1 - state.phase, pending=state.expected).word
            batch.phases.complete(int(touch.offset[order[first[where]]]))
    number = len(count)
    seen, kept = (x.reshape(-1, 1).view(np.uint8) for x in (found, left))
    return Taken(seen, kept, np.ones(number, bool), np.zeros(number, bool), None)


def _after(row: Mbarrier, state: MbarrierState, number: int) -> MbarrierState | None:
    """Return the state after an arrival; None for a hazard (rule 4)."""
    if not state.valid:
        return None
    if row.action in ("expect_tx", "complete_tx"):
        change, count = (number if row.action == "expect_tx" else -number), 0
    elif row.action == "copy":
        change, count = 0, int(row.counts)
    else:
        change, count = (number, 1) if row.expects else (0, number)
    pending, bytes_ = state.pending - count, state.bytes + change
    arrives = row.action not in ("expect_tx", "complete_tx")
    if pending < 0 or abs(bytes_) > MOST or (arrives and state.pending == 0 and row.action != "copy"):
        return None
    if not row.last and pending == 0:
        return None
    expected = state.expected - count * row.drop
    if not arrives and pending > 0:
        return state._replace(bytes=bytes_)
    return state._replace(pending=pending, bytes=bytes_, expected=expected)


def _waited(batch: Batch, row: Mbarrier, touch: Touch, words: Array, asked: Array) -> Array:
    """Return which lanes see a complete phase, and order them after what happened before it."""
    lanes: Array = np.zeros(touch.lanes.shape, bool)
    invalid = words >> np.uint64(VALID_BIT) == 0
    lanes[touch.lanes] = invalid
    batch.reporter.report("barrier", touch.site, lanes, touch.address, _WRONG)
    phase = asked[touch.lanes].astype(np.uint64)
    wanted = phase & np.uint64(1) if row.parity else phase >> np.uint64(PHASE_BIT) & np.uint64(1)
    complete: Array = (words >> np.uint64(PHASE_BIT) & np.uint64(1)) != wanted
    if row.orders and batch.reporter.tracking:
        batch.phases.observe(touch, complete)
    return np.asarray(complete | invalid)


_WRONG = "there is no mbarrier, or more arrivals or bytes than it can expect in this phase"
