"""Causality: what threads learn of others through fences, strong accesses and what they leave in memory.

The rules (PTX ISA 9.1, 8.7 to 8.10: release and acquire patterns, observation, causality order):

1. A release is a `.release` write, or a fence and a strong write of the same thread behind it: it leaves there what its
   thread knew at the write, or at the fence. A later strong store leaves something else, or nothing; an atomic keeps
   what is there and adds its own.
2. An acquire is an `.acquire` read, or a strong read and a fence of the same thread behind it: its thread knows from
   then on what it found there.
3. Writes and reads have scopes, and so have fences: what is found counts only if each of them holds both threads. Of a
   place it is known, therefore, what any thread may find there, and what threads of each block.
4. Who meets at a barrier knows what any of them has learned (`happens_before`, rule 4).
5. Of lanes that act at once those of one warp at one place count as one: each finds what was there before all of them.
6. Where threads of a block execute `fence.sc` of a wide scope and then all meet, a strong write of any of them behind
   that leaves what the others knew at their fences, too. For a thread that finds it, and then executes `fence.sc`,
   comes behind these fences in the one order of all such: otherwise its read would lie before the write that it found.
   Who acquires otherwise is taken for one of these.
7. `.volatile` is relaxed in the scope of the system. `fence.sc` is as good as `fence.acq_rel`, for memory is
   sequentially consistent here. A plain store where something was left leaves it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._arrays import Array
from ...operations import MemoryOrder, MemoryScope
from ...registers import LANES
from .vector_clock import Known, joined

_CELL = 4  # bytes: atomics of fewer share what is left there
NEAR: tuple[MemoryScope, ...] = ("cta", "cluster")


@dataclass(frozen=True, eq=False)
class Moment:
    """What the threads of a batch knew at a time.

    Attributes
    ----------
    time : int
        What each thread itself did before lies before.
    warps : ndarray of int
        Of barriers: up to when lies all that other warps of the block did before, `[block, warp, other warp]`; or the
        same for all others, `[block, warp]`.
    own : ndarray of int
        The same of the lanes of its own warp, `[block, warp]`.
    pairs : ndarray of int or None
        The same of each, `[block, warp, lane, other lane]`.
    held : ndarray of object
        What each had learned, `[block, warp, lane]`.
    """

    time: int
    warps: Array
    own: Array
    pairs: Array | None
    held: Array

    def of(self, first: int, block: int, warp: int, lanes: list[int]) -> Known:
        """Return what lanes of a warp knew."""
        until = np.zeros(self.own.shape, np.int64)
        until[block] = self.warps[block, warp]
        until[block, warp] = self.own[block, warp]
        times = np.full(LANES, self.own[block, warp])
        if self.pairs is not None:
            times = np.maximum(times, self.pairs[block, warp, lanes].max(axis=0))
        times[lanes] = self.time
        known = Known(first, until, {(block, warp): times})
        return joined([*dict.fromkeys(self.held[block, warp, lanes].tolist()), known]) or known


@dataclass(eq=False)
class _Left:
    """What was left at a place since it was stored to: by releases whose scope is all threads, by all of a block.

    It only grows: a store begins another one.
    """

    far: Known | None = None
    near: dict[int, Known | None] = field(default_factory=dict)
    _both: dict[int, Known | None] = field(default_factory=dict)

    def found(self, block: int, *, wide: bool) -> Known | None:
        """Return what threads of a block find there, by a read or fence of a wide scope or of the block's own."""
        if not wide:
            return self.near.get(block)
        if block not in self._both:
            self._both[block] = joined([self.near.get(block), self.far])
        return self._both[block]

    def leave(self, block: int, near: Known, far: Known | None) -> None:
        """Leave more."""
        self.far, self.near[block] = joined([self.far, far]), joined([self.near.get(block), near])
        self._both.clear()


_Heard = dict[_Left, tuple["Known | None", "Known | None"]]
"""Where a thread read strongly, and what it found there: with a fence of its block's scope, and of a wide one."""


@dataclass(eq=False)
class Signals:
    """What was left in a piece of memory.

    Attributes
    ----------
    private : bool
        Whether it is one block's: shared memory.
    left : dict
        By place.
    """

    private: bool = False
    left: dict[int, _Left] = field(default_factory=dict)
    _cells: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    _stale: bool = False

    def put(self, cell: int, left: _Left | None) -> None:
        """Let something be left at a place from now on, or nothing."""
        self._stale |= (cell in self.left) != (left is not None)
        if left is not None:
            self.left[cell] = left
        else:
            self.left.pop(cell, None)

    def there(self, cells: Array) -> Array:
        """Tell where something was left."""
        if self._stale:
            self._cells, self._stale = np.sort(np.array(list(self.left), np.int64)), False
        if not len(self._cells):
            return np.zeros(len(cells), bool)
        at = np.minimum(np.searchsorted(self._cells, cells), len(self._cells) - 1)
        return np.asarray(self._cells[at] == cells)


class Causality:
    """What the threads of a batch of blocks have learned.

    Parameters
    ----------
    blocks : range
        Their numbers in the grid.
    shape : (int, int)
        Blocks, and warps of each.

    Attributes
    ----------
    active : bool
        Whether any thread has released or learned anything: nothing else is looked at before.
    held : ndarray of object
        What each has learned, Known or None, `[block, warp, lane]`.
    """

    def __init__(self, blocks: range, shape: tuple[int, int]) -> None:
        self._first, self._shape = blocks.start, (*shape, LANES)
        self.active = False
        self.held: Array = np.empty(0, object)

    def _begin(self) -> None:
        if not self.active:
            self.active = True
            self.held, self._last, self._fence, self._near_fence = (
                np.full(self._shape, None, object) for _ in range(4)
            )
            self._sc = np.full(self._shape, None, object)
            # By block: its fences of rule 6 when it met last, or what lies before them.
            self._met: dict[int, Array | list[Known]] = {}
            self._has_met = np.zeros(self._shape[0], bool)
            self._found: dict[tuple[int, ...], _Heard] = {}
            self._heard = np.zeros(self._shape, bool)  # strong reads found something, and no fence has come yet
            self._fenced = np.zeros(self._shape, bool)
            self._learned, self._sc_since = (np.zeros(self._shape[0], bool) for _ in range(2))  # since the block met

    def snapshot(self) -> Array:
        """Return what each holds now, as it will stay; nothing is there before anything was learned."""
        return self.held.copy() if self.active else np.full(self._shape, None, object)

    # Rules 1 and 2

    def fence(self, lanes: Array, moment: Moment, order: MemoryOrder, scope: MemoryScope) -> None:
        """Let lanes, `[block, warp, lane]`, execute a fence."""
        self._begin()
        if order != "release":
            wide = scope not in NEAR
            for at in map(tuple, np.argwhere(lanes & self._heard).tolist()):
                for near, far in self._found[at].values():
                    self._learn(at, far if wide else near)
                if wide:
                    del self._found[at]
            self._heard &= ~(lanes & wide)
        if order != "acquire":
            moment = Moment(moment.time, moment.warps, moment.own, moment.pairs, self.snapshot())
            self._near_fence[lanes] = moment
            if scope not in NEAR:
                self._fence[lanes] = moment
                if order == "sc":
                    self._sc[lanes] = moment
                    self._sc_since |= lanes.any(axis=(1, 2))
            self._fenced |= lanes

    def act(
        self, signals: Signals, who: tuple[Array, Array, Array], offset: Array, order: MemoryOrder, scope: MemoryScope,
        moment: Moment | None, *, reads: bool, writes: Array | None,
    ) -> None:  # fmt: skip
        """Let threads access memory strongly, one after another.

        Parameters
        ----------
        signals : Signals
            Of the piece of memory.
        who : tuple of ndarray of int
            Block, warp and lane of each, `[n]`.
        offset : ndarray of int
            `[n]`.
        order, scope : str
        moment : Moment or None
            Now, if it is a release.
        reads : bool
            Whether it is a load or an atomic.
        writes : ndarray of bool or None
            Which of them write, `[n]`; None for a load.
        """
        cells = offset // _CELL
        acts = signals.there(cells)
        if writes is not None:
            if moment is not None:
                self._begin()
                acts = acts | writes
            elif self.active:
                acts = acts | ((self._fenced[who] | self._has_met[who[0]]) & writes)
        if not acts.any():
            return
        self._begin()
        for block, warp, lanes, cell, wrote in self._groups(who, cells, acts, writes):
            left = signals.left.get(cell)
            if reads and left is not None:
                self._find(block, warp, lanes, left, order, scope)
            if wrote:
                self._leave(signals, left, cell, block, warp, wrote, order, scope, moment, keeps=reads)

    def _groups(
        self, who: tuple[Array, Array, Array], cells: Array, acts: Array, writes: Array | None
    ) -> Iterator[tuple[int, int, list[int], int, list[int]]]:
        """Rule 5."""
        chosen = np.flatnonzero(acts)
        block, warp, lane = (x[chosen] for x in who)
        cell, wrote = cells[chosen], np.zeros(len(chosen), bool) if writes is None else writes[chosen]
        same = (np.diff(block) == 0) & (np.diff(warp) == 0) & (np.diff(cell) == 0)
        ends = [*(np.flatnonzero(~same) + 1).tolist(), len(chosen)]
        for begin, end in zip([0, *ends], ends, strict=False):
            some = lane[begin:end]
            yield int(block[begin]), int(warp[begin]), some.tolist(), int(cell[begin]), some[wrote[begin:end]].tolist()

    def _find(
        self, block: int, warp: int, lanes: list[int], left: _Left, order: MemoryOrder, scope: MemoryScope
    ) -> None:
        far = left.found(block, wide=scope not in NEAR)
        if far is None:
            return
        near = left.found(block, wide=False)
        for lane in lanes:
            at = (block, warp, lane)
            if order in ("acquire", "acq_rel"):
                self._learn(at, far)
            else:
                self._found.setdefault(at, {})[left] = (near, far)
                self._heard[at] = True

    def _learn(self, at: tuple[int, ...], known: Known | None) -> None:
        if known is not None and self._last[at] is not known:
            self._last[at] = known
            self.held[at] = joined([self.held[at], known])
            self._learned[at[0]] = True

    def _leave(
        self, signals: Signals, left: _Left | None, cell: int, block: int, warp: int, lanes: list[int],
        order: MemoryOrder, scope: MemoryScope, moment: Moment | None, *, keeps: bool,
    ) -> None:  # fmt: skip
        near = far = None
        if moment is not None and order in ("release", "acq_rel"):
            near = moment.of(self._first, block, warp, lanes)
            far = None if scope in NEAR else near
        for fences, is_far in ((self._near_fence, False), (self._fence, True)):
            for fence in dict.fromkeys(fences[block, warp, lanes].tolist()):
                if fence is not None:
                    those = [lane for lane in lanes if fences[block, warp, lane] is fence]
                    known = fence.of(self._first, block, warp, those)
                    near = joined([near, known])
                    far = joined([far, known]) if is_far and scope not in NEAR else far
        if block in self._met:
            near = joined([near, *self._fences_met(block)])
            far = far if scope in NEAR else joined([far, *self._fences_met(block)])
        if not keeps and left is not None:
            left = None
            signals.put(cell, None)
        if near is not None:
            if left is None:
                left = _Left()
                signals.put(cell, left)
            left.leave(block, near, far)

    def _fences_met(self, block: int) -> list[Known]:
        """Return what lies before the fences of a block that has met since (rule 6)."""
        met = self._met[block]
        if not isinstance(met, list):
            known = []
            for warp in range(len(met)):
                for fence in dict.fromkeys(met[warp].tolist()):
                    if fence is not None:
                        lanes = [lane for lane, x in enumerate(met[warp].tolist()) if x is fence]
                        known.append(fence.of(self._first, block, warp, lanes))
            whole = joined(known)
            met = self._met[block] = [] if whole is None else [whole]
        return met

    # Rule 4

    def meet_all(self, blocks: Array) -> None:
        """All threads of blocks meet, bool `[block]`."""
        for block in np.flatnonzero(blocks & self._sc_since).tolist():
            self._met[block], self._has_met[block] = self._sc[block].copy(), True
        self._sc_since &= ~blocks
        for block in np.flatnonzero(blocks & self._learned).tolist():
            self.held[block] = joined(dict.fromkeys(self.held[block].reshape(-1).tolist()))
        self._learned &= ~blocks

    def meet(self, waiting: Array, arriving: Array, held: Array | None) -> None:
        """Let some threads of a block learn what those knew who arrived, bool `[block, warp, lane]`, and held then."""
        for block in np.flatnonzero(waiting.any(axis=(1, 2))).tolist():
            come = self.held[block][arriving[block]].tolist()
            if held is not None:
                come = [*come, *held[block][arriving[block] & ~waiting[block]].tolist()]
            known = joined(dict.fromkeys(come))
            if known is not None:
                for warp, lane in np.argwhere(waiting[block]).tolist():
                    self._learn((block, warp, lane), known)

    def tell(self, lanes: list[Any], block: int, known: Known) -> None:
        """Let threads of a block know something, by warp and lane."""
        self._begin()
        for warp, lane in lanes:
            self._learn((block, warp, lane), known)

    def learn(self, threads: Array, known: Known) -> None:
        """Let threads know something: block, warp and lane of each, `[n, 3]`."""
        self._begin()
        where = tuple(threads.T)
        held, memo = self.held[where], {}
        for old in dict.fromkeys(held.tolist()):
            memo[old] = joined([old, known])
        new = np.empty(len(held), object)
        new[:] = [memo[old] for old in held.tolist()]
        self.held[where] = new
        self._learned[where[0]] = True

    def meet_lanes(self, block: int, warp: int, together: Array) -> None:
        """Lanes of a warp meet, each those that bool `[lane, lane]` says."""
        before = self.held[block, warp].tolist()
        if any(known is not None for known in before):
            for lane in np.flatnonzero(together.any(axis=1)).tolist():
                known = joined(dict.fromkeys(before[other] for other in np.flatnonzero(together[lane]).tolist()))
                self._learn((block, warp, lane), known)

    # The questions

    def has_fenced(self, who: tuple[int, int, int]) -> bool:
        """Whether a thread has executed a fence that releases."""
        return self.active and bool(self._fenced[who])

    def ordered(self, who: tuple[Array, Array, Array], block: Array, thread: Array, time: Array) -> Array:
        """Tell which accesses, `[n]`, lie before what threads do now, by what these have learned."""
        result = np.zeros(len(time), bool)
        if self.active:
            held = self.held[who].tolist()
            which = np.fromiter(map(id, held), np.int64, len(held))
            order = np.argsort(which, kind="stable")
            for some in np.split(order, np.flatnonzero(np.diff(which[order])) + 1) if held else ():
                known = held[some[0]]
                if known is not None:
                    result[some] = known.covers(block[some], thread[some], time[some])
        return result
