"""Barriers of a block: counted arrivals, and threads that wait for them.

The rules (PTX ISA 9.1, 9.7.13: `bar`, `barrier`, `bar.warp.sync`; CUDA C++ Programming Guide on exited threads):

1. A block has 16 barriers. Threads arrive at one by its number; with `sync` they wait, with `arrive` they continue.
   With `red` they wait as well, and when the barrier is complete each gets a reduction of all predicates: how many are
   true, whether all are, or whether any is.
2. A barrier with a number of threads is complete when that many have arrived. Without one, it is complete when all
   threads of the block that have not exited have arrived. What an exited thread did is unordered with what follows the
   barrier, unless lanes of its warp arrive.
3. Lanes that have exited, or are not threads, arrive with their warp: counts are multiples of 32.
4. With `.aligned`, which `bar` implies, all threads of a warp that have not exited arrive at once; if some are masked
   off, that is a hazard. Without it, threads arrive one by one.
5. A complete barrier releases the threads that wait, orders everything before it (`happens_before`), and can be used
   again.
6. It is a hazard if threads arrive twice before the barrier is complete, or with different numbers of threads; or if
   they arrive at a barrier that others, unordered with them, use or have used: which threads synchronize is then
   undefined. But a thread that has arrived without waiting, and then waits at the same barrier, counts twice, as on an
   H100: FlashAttention-3 does so. A barrier of 32 threads is a separate one for each warp.
7. A waiting thread does nothing else. If no thread can run any more, or the kernel ends, waiting for threads that never
   arrive is a hazard. In a kernel in Python, which runs in lockstep, waiting threads may compute in registers, which no
   other thread sees; before they access memory or arrive at another barrier, all must have arrived, in source order, or
   it is the same hazard.
8. `bar.warp.sync` waits for the lanes of its mask that have not exited; if some of these are masked off, or the mask
   does not name the executing lane, that is a hazard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ..._arrays import Array
from ...errors import OperandError, shown
from ...registers import LANES
from ..base import Lanes, Site
from ..order import AcquiredClocks, VectorClock, VectorClocks
from ..report import Reporter

_BARRIERS, _MOST = 16, 1024  # barriers and threads of a block


class Awaited:
    """A value that lanes receive when a barrier is complete.

    Parameters
    ----------
    reduction : {"popc", "and", "or"}
    lanes : ndarray of bool
        The lanes that wait for it, `[block, warp, lane]`.

    Attributes
    ----------
    bits : ndarray of uint32 or bool
        `[block, warp, lane]`.
    there : ndarray of bool
        Lanes that have received it.
    then : callable or None
        Called with the bits and the lanes that have received them.
    """

    def __init__(self, reduction: str, lanes: Array) -> None:
        self.reduction, self.lanes = reduction, lanes
        self.bits: Array = np.zeros(lanes.shape, np.uint32 if reduction == "popc" else bool)
        self.there: Array = np.zeros(lanes.shape, bool)
        self.then: Callable[[Array, Array], None] | None = None

    def give(self, brought: Array, true: Array, blocks: Array) -> bool:
        """Give it to the lanes of blocks whose barrier is complete; return whether others still wait."""
        value = {"popc": true.astype(np.uint32), "and": true == brought, "or": true > 0}[self.reduction]
        lanes = self.lanes & blocks[:, None, None]
        self.bits = np.where(lanes, value[:, None, None], self.bits)
        self.there, self.lanes = self.there | lanes, self.lanes & ~lanes
        if self.then is not None and lanes.any():
            self.then(self.bits, lanes)
        return bool(self.lanes.any())


@dataclass
class _State:
    """One barrier of every block.

    Attributes
    ----------
    arrived, waiting, again : ndarray of bool
        `[block, warp, lane]`; `again` are threads that count twice.
    when, ordered : ndarray of int
        For each warp that has arrived: see `VectorClocks.arrive`.
    parts : dict of int to VectorClock
        By block, the clock of lanes that arrived without the rest of their warp.
    brought, true : ndarray of int
        How many threads arrived with `red`, and how many of them with a true predicate, `[block]`.
    """

    arrived: Array
    waiting: Array
    again: Array
    expected: Array  # number of threads, `[block]`; 0 for all, -1 if none has arrived yet
    when: Array
    ordered: Array
    last_arrival: Array  # when the warps that last completed it arrived, `[block, warp]`; 0 for others
    site: Site  # where threads arrived last
    brought: Array
    true: Array
    whole: Array  # warps that arrived as a whole, for which `when` and `ordered` hold, `[block, warp]`
    held: list[tuple[Array, AcquiredClocks]] = field(default_factory=list)  # what threads knew when they arrived
    parts: dict[int, VectorClock] = field(default_factory=dict)
    awaited: list[Awaited] = field(default_factory=list)  # the values that waiting threads are to receive


class Barriers:
    """The barriers of a batch of blocks.

    Attributes
    ----------
    late : Awaited or None
        The value of the last `red`, if some threads still wait for it.
    """

    def __init__(self, lanes: Lanes, clocks: VectorClocks, reporter: Reporter) -> None:
        self._lanes, self._clocks, self._reporter = lanes, clocks, reporter
        self._states: dict[int, _State] = {}
        self.late: Awaited | None = None

    def arrive(
        self, site: Site, lanes: Array, number: int, threads: int | None, *, wait: bool, aligned: bool,
        awaited: Awaited | None = None, predicate: Array | None = None,
    ) -> int:  # fmt: skip
        """Let threads arrive; return in how many blocks the barrier is complete.

        Parameters
        ----------
        site : Site
        lanes : ndarray of bool
        number : int
            Number of the barrier.
        threads : int or None
            How many must arrive; None for all.
        wait : bool
            Whether they wait.
        aligned : bool
            Whether warps arrive as a whole.
        awaited : Awaited or None
            The value that they receive when the barrier is complete.
        predicate : ndarray of bool or None
            What each contributes to it.

        Raises
        ------
        OperandError
            No such barrier, or a number of threads that is not a multiple of 32.
        """
        if not 0 <= number < _BARRIERS:
            raise OperandError(f"{site.mnemonic}: barrier {shown(number)}; a block has barriers 0 to {_BARRIERS - 1}")
        if threads is not None and (not 0 < threads <= _MOST or threads % LANES):
            raise OperandError(
                f"{site.mnemonic}: {shown(threads)} threads; expected a multiple of {LANES}, {_MOST} at most"
            )
        if (
            wait and threads is None and awaited is None and lanes is self._lanes.exists and self._idle(number)
        ):  # all threads at once
            self._clocks.synchronize_blocks(np.ones(len(lanes), bool))
            return len(lanes)
        if aligned:  # rule 4
            part = ~self._lanes.whole(lanes)
            if part.any():
                missing = self._lanes.alive & ~lanes & part[..., None]
                self._reporter.report("barrier", site, missing, detail=_MASKED)
                lanes = lanes | missing
        whole = self._lanes.whole(lanes).all()
        if threads == LANES and wait and whole and awaited is None:
            self._clocks.synchronize_lanes(np.any(lanes, axis=-1), {})  # rule 6
            return int(np.count_nonzero(np.any(lanes, axis=-1)))
        if threads == self._lanes.shape[1] * LANES and wait and lanes is self._lanes.exists:
            threads = None  # all threads at once
        state = self._state(site, number)
        again = state.arrived & ~state.waiting & lanes & (wait and threads is not None)  # rule 6
        self._check(site, state, lanes, again, number, threads or 0)
        blocks: Array = np.any(lanes, axis=(1, 2))
        state.expected[blocks], state.site = threads or 0, site
        state.arrived |= lanes
        state.again |= again
        self._keep_clocks(state, lanes, counted=threads is not None)
        if awaited is not None and predicate is not None:
            state.awaited.append(awaited)
            state.brought += np.count_nonzero(lanes, axis=(1, 2))
            state.true += np.count_nonzero(lanes & predicate, axis=(1, 2))
        if wait:
            state.waiting |= lanes
            self._lanes.wait(lanes)
        return self._complete(state)

    def arrived(self) -> Iterator[tuple[int, Array]]:
        """Yield the numbers of barriers, and the threads that have arrived."""
        yield from ((number, state.arrived) for number, state in self._states.items())

    def _idle(self, number: int) -> bool:
        """Whether no thread has arrived at a barrier since it was last complete."""
        state = self._states.get(number)
        return state is None or bool((state.expected < 0).all())

    def _keep_clocks(self, state: _State, lanes: Array, *, counted: bool) -> None:
        """Keep the clocks of arriving threads."""
        clocks = self._clocks
        if clocks.causality.active:
            state.held.append((lanes, clocks.causality.held.copy()))
        if not counted:
            return
        part = ~self._lanes.whole(lanes)
        warps: Array = np.any(lanes, axis=-1) & ~part
        time, ordered = clocks.arrive()
        state.when[warps], state.ordered[warps], state.whole[warps] = time, ordered[warps], True
        for block, warp in np.argwhere(part).tolist():
            known = clocks.clock_of(block, warp, np.flatnonzero(lanes[block, warp]).tolist())
            state.parts[block] = state.parts[block] | known if block in state.parts else known

    def _state(self, site: Site, number: int) -> _State:
        if number not in self._states:
            blocks, warps, _ = shape = self._lanes.shape
            self._states[number] = _State(
                arrived=np.zeros(shape, bool), waiting=np.zeros(shape, bool), again=np.zeros(shape, bool),
                expected=np.full(blocks, -1),
                when=np.zeros((blocks, warps), np.int64), ordered=np.zeros((blocks, warps, warps), np.int64),
                last_arrival=np.zeros((blocks, warps), np.int64), site=site, brought=np.zeros(blocks, np.int64),
                true=np.zeros(blocks, np.int64), whole=np.zeros((blocks, warps), bool),
            )  # fmt: skip
        return self._states[number]

    def _check(self, site: Site, state: _State, lanes: Array, again: Array, number: int, threads: int) -> None:
        """Rule 6."""
        twice = state.arrived & lanes & ~again
        self._reporter.report(
            "barrier", site, twice, other=state.site,
            detail=f"it has already arrived at barrier {number}, at {state.site.place}, which is not complete",
        )  # fmt: skip
        odd = (state.expected >= 0) & (state.expected != threads)
        says = "all threads" if not threads else f"{threads} threads"
        self._reporter.report(
            "barrier", site, lanes & odd[:, None, None], other=state.site,
            detail=f"barrier {number} takes {says} here, and another number at {state.site.place}",
        )  # fmt: skip
        if threads:
            _, ordered = self._clocks.arrive()
            own = np.eye(ordered.shape[1], dtype=bool)
            arriving: Array = np.any(lanes, axis=-1)
            open_ = (ordered < state.last_arrival[:, None]) & ~own & arriving[..., None]
            open_ &= self._reporter.tracking  # otherwise what an mbarrier orders is unknown
            unordered: Array = np.any(open_ & ~self._clocks.acquired(open_, state.last_arrival, lanes), axis=-1)
            self._reporter.report(
                "barrier", site, lanes & unordered[..., None], other=state.site,
                detail=f"others have met at barrier {number}, at {state.site.place}, and nothing orders "
                "that before its arrival: which threads meet is open",
            )  # fmt: skip
            many = self._count(state.arrived | lanes, state.again | again) > threads
            self._reporter.report(
                "barrier", site, lanes & many[:, None, None], other=state.site,
                detail=f"more than {threads} threads arrive at barrier {number}: which threads meet is open",
            )  # fmt: skip

    def _count(self, *arrivals: Array) -> Array:
        """Rule 3: arrivals in each block."""
        dead = ~self._lanes.alive
        counts = ((x | dead) & np.any(x, axis=-1, keepdims=True) for x in arrivals)
        return np.asarray(sum(np.count_nonzero(x, axis=(1, 2)) for x in counts))

    def _complete(self, state: _State) -> int:
        """Rules 2 and 5."""
        alive = self._lanes.alive
        enough = self._count(state.arrived, state.again) >= state.expected
        all_arrived = (state.arrived | ~alive).all(axis=(1, 2))
        done = (state.expected > 0) & enough | (state.expected == 0) & all_arrived
        if not done.any():
            return 0
        waiting = state.waiting & done[:, None, None]
        self._lanes.release(waiting)
        every = done & (state.expected == 0)
        absent = ~np.any(state.arrived, axis=-1) & every[:, None]
        whole = every & self._clocks.quiet(absent).all(axis=1)
        if whole.any():
            self._clocks.synchronize_blocks(whole)
        part = done & ~whole
        if (every & ~whole).any():  # accesses of warps that have exited are unordered with the rest
            time, ordered = self._clocks.arrive()
            state.when[every], state.ordered[every], state.whole[every] = (
                time,
                ordered[every],
                np.any(state.arrived[every], axis=-1),
            )
        if part.any():
            self._join_clocks(state, waiting, part)
        state.awaited = [x for x in state.awaited if x.give(state.brought, state.true, done)]
        self._clear(state, done)
        return int(done.sum())

    def _join_clocks(self, state: _State, waiting: Array, part: Array) -> None:
        """Join the clocks of arrived threads into those of waiting ones, in blocks where not all threads arrived."""
        clocks, arrived = self._clocks, state.arrived & part[:, None, None]
        waits: Array = waiting & part[:, None, None]
        if clocks.causality.active:
            clocks.causality.synchronize_threads(waits, arrived, state.held)
        whole = state.whole & part[:, None]
        warps: Array = np.any(waits, axis=-1) & self._lanes.whole(waits)
        clocks.synchronize_warps(warps, whole, state.when, state.ordered)
        for block, known in state.parts.items():
            if part[block]:
                clocks.causality.acquire_lanes(np.argwhere(waits[block]).tolist(), block, known)
        for block, warp in np.argwhere(np.any(waits, axis=-1) & ~warps).tolist():
            known = clocks.clock_at_arrival(block, whole, state.when, state.ordered)
            clocks.causality.acquire_lanes(
                [(warp, lane) for lane in np.flatnonzero(waits[block, warp]).tolist()], block, known
            )
        state.last_arrival[part] = np.where(whole, state.when, 0)[part]

    def _clear(self, state: _State, blocks: Array) -> None:
        """Reset a barrier in blocks."""
        state.arrived[blocks], state.waiting[blocks], state.again[blocks] = False, False, False
        state.expected[blocks] = -1
        state.brought[blocks] = state.true[blocks] = 0
        state.whole[blocks] = False
        state.held = [(lanes, held) for lanes, held in state.held if (lanes & state.arrived).any()]
        state.parts = {block: known for block, known in state.parts.items() if not blocks[block]}

    def exited(self) -> int:
        """Release threads that waited only for exited threads; return in how many blocks the barrier is complete."""
        return sum(self._complete(state) for state in self._states.values() if (state.expected >= 0).any())

    # Rule 7

    def stand(self, lanes: Array, acts: Site | None, where: str = "") -> None:
        """Report and release threads that wait for others that never arrive.

        Parameters
        ----------
        lanes : ndarray of bool
            The lanes whose barriers are checked.
        acts : Site or None
            The instruction that they are about to execute; None at the end.
        where : str
            Where all threads are, if known.
        """
        for number, state in self._states.items():
            blocks: Array = np.any(state.waiting & lanes, axis=(1, 2))
            if not blocks.any():
                continue
            missing = self._lanes.alive & ~state.arrived & blocks[:, None, None]
            if acts is None:
                says = "no thread can run" if where else "the kernel ends"
            else:
                says = f"the waiting threads are to act at {acts.what}"
            threads = int(state.expected[blocks].max())
            expected = f"{threads} threads must arrive at barrier {number}" if threads else _MASKED
            why = f"{says}, and it has not arrived: {expected}"
            if not missing.any():
                missing = state.waiting & blocks[:, None, None]
                why = f"it waits for {threads} threads at barrier {number}; the block has fewer"
            why += f". {where}" * bool(where)
            self._reporter.report("barrier", state.site, missing, detail=why, other=acts)
            self._lanes.release(state.waiting & blocks[:, None, None])
            state.awaited = [x for x in state.awaited if x.give(state.brought, state.true, blocks)]
            self._clear(state, blocks)

    # Rule 8

    def warp(self, site: Site, lanes: Array, mask: Array) -> None:
        """Let lanes execute `bar.warp.sync`; `mask` is uint32 `[block, warp, lane]`."""
        alive = self._lanes.alive
        outside = lanes & (mask >> np.arange(LANES, dtype=np.uint32) & 1 == 0)
        self._reporter.report("divergent", site, outside, detail="its membermask does not name the lane itself")
        if (mask[lanes] == _ALL).all():
            whole = self._lanes.whole(lanes)
            self._reporter.report("divergent", site, lanes & ~whole[..., None], detail=_UNNAMED)
            self._clocks.synchronize_lanes(lanes.any(axis=-1) & whole, {})
            return
        named = (mask[..., None] >> np.arange(LANES, dtype=np.uint32)) & 1 != 0
        missing = (named & (alive & ~lanes)[..., None, :]).any(axis=-1)
        self._reporter.report("divergent", site, lanes & missing, detail=_UNNAMED)
        groups = {}
        for block, warp in np.argwhere(lanes.any(axis=-1)).tolist():
            here = lanes[block, warp]
            groups[block, warp] = named[block, warp] & here[:, None] & here
        self._clocks.synchronize_lanes(np.zeros(lanes.shape[:2], bool), groups)


_ALL = np.uint32(0xFFFFFFFF)
_MASKED = "this thread is masked off; all threads of the block must arrive"
_UNNAMED = "its membermask names lanes that are masked off"
