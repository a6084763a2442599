"""Causality: how fences and strong accesses pass vector clocks between threads through memory.

The rules (PTX ISA 9.1, 8.7 to 8.10: release and acquire patterns, observation, causality order):

1. A release is a `.release` write, or a fence followed by a strong write of the same thread. It leaves the thread's
   clock, as of the write or the fence, in memory. A later strong store replaces or removes that clock; an atomic keeps
   it and joins its own to it.
2. An acquire is an `.acquire` read, or a strong read followed by a fence of the same thread: the thread joins the clock
   that it found to its own.
3. Writes, reads and fences have scopes (`thread_scopes`). A clock that was found counts only if each scope includes
   both threads. So clocks are kept by scope: those for any thread, for threads of one cluster, and of one block.
4. Threads that synchronize at a barrier get the joined clocks that any of them has acquired (`happens_before`, rule 4).
5. Lanes of one warp that access one cell at once count as one: each finds what was there before all of them.
6. If threads of a block execute `fence.sc` of the widest scope and all threads of the block then synchronize, a strong
   write of any of them leaves the clocks of all of these fences as well. A thread that finds them and then executes
   `fence.sc` comes after those fences in the total order of such fences: otherwise its read would precede the write
   that it found. Threads that acquire in another way are treated the same. On the other side, too, the strong read and
   the `fence.sc` may be of two threads of a block, if all its threads synchronize between; the fences that are found
   so are `fence.sc` alone.
7. `.volatile` is relaxed in the scope of the system. `fence.sc` equals `fence.acq_rel`, because memory is sequentially
   consistent here. A plain store leaves released clocks in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._arrays import Array
from ...operations import MemoryOrder
from ...registers import LANES
from ..base import alike_in_blocks
from .acquired_clocks import AcquiredClocks
from .cluster_clocks import ClusterColumns, Passed
from .known_times import KnownTimes
from .moments import Moment
from .thread_scopes import LEVELS, ThreadScope, ThreadScopes
from .vector_clock import VectorClock, joined

CELL = 4
"""Bytes: smaller atomics share the clocks of a cell."""

_WIDEST = LEVELS[-1]


ByScope = Mapping[ThreadScope, "VectorClock | None"]
"""Clocks by scope: those that count for an operation of the scope, and of no narrower one."""
Found = Mapping[ThreadScope, "VectorClock | Passed | None"]
"""What a fence of each scope acquires of what a thread has read or seen."""


@dataclass(eq=False)
class Released:
    """The clocks that threads have released to a cell, by scope and by set of threads (rule 3).

    They only grow; a store starts again. Blocks are numbers in the grid.
    """

    scopes: ThreadScopes
    clocks: dict[tuple[ThreadScope, int], VectorClock | None] = field(default_factory=dict)
    _found: dict[tuple[ThreadScope, int], VectorClock | None] = field(default_factory=dict)
    of_sc: Released | None = None  # the clocks of `fence.sc` of the widest scope alone

    def found(self, block: int, scope: ThreadScope) -> VectorClock | None:
        """Return the clock that threads of a block find with a read or fence of a scope."""
        key = scope, block
        if key not in self._found:
            some = (x for x in self.scopes.levels if x <= scope)
            self._found[key] = joined(self.clocks.get((x, self.scopes.group(x, block))) for x in some)
        return self._found[key]

    def found_by_fences(self, block: int, scope: ThreadScope) -> dict[ThreadScope, VectorClock | None]:
        """Return the clocks that fences of each scope make of a read of a scope by threads of a block."""
        return {level: self.found(block, min(level, scope)) for level in self.scopes.levels}

    def add(self, block: int, *several: ByScope) -> None:
        """Join clocks that threads of a block release, by scope."""
        for scope in dict.fromkeys(scope for clocks in several for scope in clocks):
            key = scope, self.scopes.group(scope, block)
            self.clocks[key] = joined([self.clocks.get(key), *(clocks.get(scope) for clocks in several)])
        self._found.clear()


_NO_CELLS: Array = np.zeros(0, np.int64)
_NO_CELLS.flags.writeable = False


@dataclass(eq=False)
class SyncCells:
    """The cells of a piece of memory to which clocks were released."""

    scope: ThreadScope = ThreadScope.GPU  # the threads that can access the memory
    released: dict[int, Released] = field(default_factory=dict)  # by cell
    _cells: Array = field(default_factory=lambda: _NO_CELLS)
    _stale: bool = False

    def put(self, cell: int, released: Released | None) -> None:
        """Replace what was released to a cell, or remove it."""
        self._stale |= (cell in self.released) != (released is not None)
        if released is not None:
            self.released[cell] = released
        else:
            self.released.pop(cell, None)

    def there(self, cells: Array) -> Array:
        """Return which of some cells hold a released clock."""
        if self._stale:
            self._cells, self._stale = np.sort(np.array(list(self.released), np.int64)), False
        if not len(self._cells):
            return np.zeros(len(cells), bool)
        at = np.minimum(np.searchsorted(self._cells, cells), len(self._cells) - 1)
        return np.asarray(self._cells[at] == cells)


class Causality:
    """The synchronization that the threads of a batch of blocks have observed.

    Parameters
    ----------
    blocks : range
        Their numbers in the grid.
    shape : (int, int)
        Blocks, and warps of each.
    scopes : ThreadScopes

    Attributes
    ----------
    active : bool
        Whether any thread has released or acquired anything; until then everything else here is skipped.
    columns : ClusterColumns
    held : AcquiredClocks
        What each thread has acquired.
    known : KnownTimes
        What these clocks say of their own blocks.
    """

    def __init__(self, blocks: range, shape: tuple[int, int], scopes: ThreadScopes) -> None:
        self._first, self._shape, self._scopes = blocks.start, (*shape, LANES), scopes
        self.active = False
        self.columns = ClusterColumns(blocks, shape[1], scopes.cluster)
        self.held = AcquiredClocks.none(self.columns, shape[0])
        self.known = KnownTimes(self.columns, shape[0])  # of `held`

    def _begin(self) -> None:
        if not self.active:
            self.active = True
            self._last, self._sc = (np.full(self._shape, None, object) for _ in range(2))
            # The moment of each thread's last fence of at least a scope.
            self._fences = {scope: np.full(self._shape, None, object) for scope in self._scopes.levels}
            # By block: its fences of rule 6 at its last barrier, or their clocks.
            self._fences_at_barrier: dict[int, Array | list[VectorClock]] = {}
            self._has_fences_at_barrier = np.zeros(self._shape[0], bool)
            # By thread, and by the cell or mbarrier that it has read strongly.
            self._found: dict[tuple[int, ...], dict[object, Found]] = {}
            self._has_found = np.zeros(self._shape, bool)  # strong reads found something, and no fence has followed
            self._fenced = np.zeros(self._shape, bool)
            # By block: the clocks of `fence.sc` that its threads have found, before its last barrier and since.
            self._found_at_barrier: dict[int, VectorClock | None] = {}
            self._found_since: dict[int, VectorClock | None] = {}
            self._acquired, self._sc_since = (
                np.zeros(self._shape[0], bool) for _ in range(2)
            )  # since the last barrier

    # Rules 1 and 2

    def fence(self, lanes: Array, moment: Moment, order: MemoryOrder, scope: ThreadScope) -> None:
        """Let lanes, `[block, warp, lane]`, execute a fence."""
        self._begin()
        if order != "release":
            for at in map(tuple, np.argwhere(lanes & self._has_found).tolist()):
                for clocks in self._found[at].values():
                    self._acquire(at, clocks[scope])
                if scope == _WIDEST:
                    del self._found[at]
            if scope == _WIDEST:
                self._has_found &= ~lanes
                if order == "sc" and self._found_at_barrier:
                    for at in map(tuple, np.argwhere(lanes).tolist()):
                        self._acquire(at, self._found_at_barrier.get(at[0]))
        if order != "acquire":
            moment = moment.keeping(self.held.copy())
            for level in self._scopes.levels:
                if level <= scope:
                    self._fences[level][lanes] = moment
            if scope == _WIDEST and order == "sc":
                self._sc[lanes] = moment
                self._sc_since |= lanes.any(axis=(1, 2))
            self._fenced |= lanes

    def act(
        self, cells: SyncCells, who: tuple[Array, Array, Array], offset: Array, order: MemoryOrder, scope: ThreadScope,
        moment: Moment | None, *, reads: bool, writes: Array | None,
    ) -> None:  # fmt: skip
        """Let threads access memory strongly, one after another.

        Parameters
        ----------
        cells : SyncCells
            The cells of the memory that they access.
        who : tuple of ndarray of int
            Block, warp and lane of each, `[n]`.
        offset : ndarray of int
            `[n]`.
        order : str
        scope : ThreadScope
        moment : Moment or None
            Now, if it is a release.
        reads : bool
            Whether it is a load or an atomic.
        writes : ndarray of bool or None
            Which of them write, `[n]`; None for a load.
        """
        cell = offset // CELL
        acts = cells.there(cell)
        if writes is not None:
            if moment is not None:
                self._begin()
                acts = acts | writes
            elif self.active:
                acts = acts | ((self._fenced[who] | self._has_fences_at_barrier[who[0]]) & writes)
        if not acts.any():
            return
        self._begin()
        for block, warp, lanes, at, wrote in self._groups(who, cell, acts, writes):
            released = cells.released.get(at)
            if reads and released is not None:
                self._find(block, warp, lanes, released, order, scope)
            if wrote:
                clocks = self.clocks_of(block, warp, wrote, order, scope, moment)
                if not reads and released is not None:
                    released = None
                    cells.put(at, None)
                if clocks[LEVELS[0]] is not None:
                    if released is None:
                        released = Released(self._scopes)
                        cells.put(at, released)
                    released.add(self._first + block, clocks)
                    if (of_sc := self._sc_clock(block, warp, wrote)) is not None:
                        released.of_sc = released.of_sc or Released(self._scopes)
                        released.of_sc.add(self._first + block, dict.fromkeys(clocks, of_sc))

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
        self, block: int, warp: int, lanes: list[int], released: Released, order: MemoryOrder, scope: ThreadScope
    ) -> None:
        """Let lanes read a cell."""
        number = self._first + block
        clock = released.found(number, scope)
        if clock is None:
            return
        found = released.found_by_fences(number, scope)
        for lane in lanes:
            at = (block, warp, lane)
            if order in ("acquire", "acq_rel"):
                self._acquire(at, clock)
            else:
                self._found.setdefault(at, {})[released] = found
                self._has_found[at] = True
                if released.of_sc is not None:
                    of_sc = released.of_sc.found(number, scope)
                    self._found_since[block] = joined([self._found_since.get(block), of_sc])

    def sees(self, threads: Array, source: object, found: Found) -> None:
        """Let threads, `[n, 3]`, see what their next fence acquires, by its scope (rule 2)."""
        self._begin()
        for at in map(tuple, threads.tolist()):
            self._found.setdefault(at, {})[source] = found
            self._has_found[at] = True

    def _acquire(self, at: tuple[int, ...], clock: VectorClock | Passed | None) -> None:
        if clock is None or self._last[at] is clock:
            return
        self._last[at] = clock
        if isinstance(clock, Passed):
            self.acquire(np.array([at]), clock)
            return
        self.held.acquire_beyond(at, clock)
        self.known.forget(at)
        self._acquired[at[0]] = True

    def clocks_of(
        self, block: int, warp: int, lanes: list[int], order: MemoryOrder, scope: ThreadScope, moment: Moment | None
    ) -> dict[ThreadScope, VectorClock | None]:
        """Return the clocks that a strong write of lanes leaves, for each scope up to its own."""
        own = None
        if moment is not None and order in ("release", "acq_rel"):
            own = moment.of(block, warp, lanes)
        levels = [level for level in self._scopes.levels if level <= scope]
        clocks: dict[ThreadScope, VectorClock | None] = dict.fromkeys(levels, own)
        if self.active:
            joined_fences = self._joined_fences(block)
            for level in levels:
                fences = self._fences[level][block, warp]
                clocks[level] = joined([own, *self._fence_clocks(fences, block, warp, lanes), *joined_fences])
        return clocks

    def fenced(self, threads: Array, level: ThreadScope) -> Passed:
        """Return what fences of at least a scope let a strong write of threads, bool `[block, warp, lane]`, pass on."""
        beyond: dict[int, VectorClock] = {}
        some = threads & (self._fenced | self._has_fences_at_barrier[:, None, None]) if self.active else threads & False
        for block, warp in np.argwhere(some.any(axis=-1)).tolist():
            clocks = self.clocks_of(block, warp, np.flatnonzero(threads[block, warp]).tolist(), "relaxed", level, None)
            row = int(self.columns.rows(block))
            if (clock := joined([beyond.get(row), clocks[level]])) is not None:
                beyond[row] = clock
        return Passed(None, beyond)

    def _sc_clock(self, block: int, warp: int, lanes: list[int]) -> VectorClock | None:
        """Return the clock of the `fence.sc` of the widest scope before a strong write of lanes (rule 6)."""
        return joined([*self._fence_clocks(self._sc[block, warp], block, warp, lanes), *self._joined_fences(block)])

    def _fence_clocks(self, fences: Array, block: int, warp: int, lanes: list[int]) -> Iterator[VectorClock]:
        """Yield the clocks of the fences of some lanes of a warp."""
        of = fences.tolist()
        for fence in dict.fromkeys(of[lane] for lane in lanes):
            if fence is not None:
                yield fence.of(block, warp, [lane for lane in lanes if of[lane] is fence])

    def _joined_fences(self, block: int) -> list[VectorClock]:
        """Return the clocks of the fences before a block's last barrier (rule 6)."""
        fences = self._fences_at_barrier.get(block, [])
        if not isinstance(fences, list):
            every = list(range(LANES))
            whole = joined(
                x for warp in range(len(fences)) for x in self._fence_clocks(fences[warp], block, warp, every)
            )
            fences = self._fences_at_barrier[block] = [] if whole is None else [whole]
        return fences

    # Rule 4

    def synchronize_blocks(self, blocks: Array) -> None:
        """Synchronize all threads of blocks, bool `[block]`."""
        for block in np.flatnonzero(blocks & self._sc_since).tolist():
            self._fences_at_barrier[block], self._has_fences_at_barrier[block] = self._sc[block].copy(), True
        self._sc_since &= ~blocks
        for block in [block for block in self._found_since if blocks[block]]:
            self._found_at_barrier[block] = joined([self._found_at_barrier.get(block), self._found_since.pop(block)])
        if (some := blocks & self._acquired).any():
            self._share(np.broadcast_to(some[:, None, None], self._shape))
        self._acquired &= ~blocks

    def synchronize_threads(
        self, waiting: Array, arriving: Array, held: Sequence[tuple[Array, AcquiredClocks]]
    ) -> None:  # fmt: skip
        """Join the clocks of arriving threads into those of waiting threads, block by block.

        Parameters
        ----------
        waiting, arriving : ndarray of bool
            `[block, warp, lane]`.
        held : sequence of (ndarray of bool, AcquiredClocks)
            What threads had acquired when they arrived: those that do not wait may have gone on.
        """
        for part in self.parts(arriving):
            passed = self.held.joined(part & waiting)
            for lanes, then in held:
                passed |= then.joined(part & lanes & ~waiting)
            self.acquire(np.argwhere(waiting & part.any(axis=(1, 2), keepdims=True)), passed)

    def acquire_lanes(self, lanes: list[Any], block: int, clock: VectorClock) -> None:
        """Let threads of a block, given by warp and lane, acquire a clock."""
        self._begin()
        for warp, lane in lanes:
            self._acquire((block, warp, lane), clock)

    def acquire(self, threads: Array, passed: Passed) -> None:
        """Let threads, block, warp and lane of each, `[n, 3]`, acquire what others have passed on."""
        self._begin()
        where = tuple(threads.T)
        if passed.clocks is not None and len(threads) and self.held.acquire(where, passed.clocks):
            self.known.forget(where)
            self._acquired[where[0]] = True
        for row, clock in passed.beyond.items():
            some = self.columns.rows(where[0]) == row
            if some.any():
                at = tuple(x[some] for x in where)
                self.held.acquire_beyond(at, clock)
                self.known.forget(at)
                self._acquired[at[0]] = True

    def acquire_together(self, threads: Array, passed: Passed) -> None:
        """Let threads, bool `[block, warp, lane]`, acquire what others have passed on: mostly alike in all blocks."""
        self._begin()
        if passed.clocks is not None and self.held.acquire_together(threads, passed.clocks):
            self.known.forget(...)  # as fast as to forget some
            self._acquired |= threads.any(axis=(1, 2))
        if passed.beyond:
            self.acquire(np.argwhere(threads), Passed(None, passed.beyond))

    def cross_further(self, threads: Array, space: str, further: str) -> None:
        """Let what has crossed to a space for threads, bool `[block, warp, lane]`, cross to another for each."""
        for some, clocks in self.held.crossed(threads, space):
            self.acquire(some, Passed(self.columns.without_times({further: clocks})))
        for at, clock in self.held.crossed_beyond(threads, space):
            empty = np.zeros((0, self.columns.warps), np.int64)
            self._acquire(at, VectorClock(self._first, empty, crossed={further: clock}))

    def synchronize_whole(self, warps: Array) -> None:
        """Synchronize all lanes of each of some warps, bool `[block, warp]`."""
        apart = self.held.apart(warps)
        if apart.any():
            self._share(np.broadcast_to(apart[..., None], self._shape), by_warp=True)

    def synchronize_lanes(self, block: int, warp: int, together: Array) -> None:
        """Synchronize lanes of a warp, each with those that `together`, bool `[lane, lane]`, names."""
        one = np.zeros(self._shape[:2], bool)
        one[block, warp] = True
        if not self.held.apart(one).any():
            return
        some, which = np.unique(together, axis=0, return_inverse=True)
        threads = np.zeros((len(some), *self._shape), bool)
        threads[:, block, warp] = some
        news = [self.held.joined(each) for each in threads]
        for number, new in enumerate(news):
            lanes = np.flatnonzero((which.reshape(-1) == number) & together.any(axis=1))
            self.acquire(np.array([(block, warp, lane) for lane in lanes.tolist()], np.int64).reshape(-1, 3), new)

    def parts(self, threads: Array, *, by_warp: bool = False) -> Iterator[Array]:
        """Yield of some threads, bool `[block, warp, lane]`, those of one block, or of one warp, of each cluster."""
        cluster, marked = self.columns.cluster, np.asarray(threads.any(axis=-1))
        if by_warp and cluster == 1 and alike_in_blocks(threads):
            for warp in np.flatnonzero(marked[0]).tolist():
                of_first: Array = np.zeros((1, *self._shape[1:]), bool)
                of_first[0, warp] = threads[0, warp]
                yield np.broadcast_to(of_first, self._shape)
            return
        for rank in range(cluster):
            of_rank: Array = np.zeros(self._shape, bool)
            of_rank[rank::cluster] = threads[rank::cluster]
            if not by_warp:
                if of_rank.any():
                    yield of_rank
                continue
            for warp in np.flatnonzero(marked[rank::cluster].any(axis=0)).tolist():
                of_warp: Array = np.zeros(self._shape, bool)
                of_warp[rank::cluster, warp] = threads[rank::cluster, warp]
                yield of_warp

    def _share(self, threads: Array, *, by_warp: bool = False) -> None:
        """Let the threads of each block or warp, bool `[block, warp, lane]`, know what any of them does."""
        for some in self.parts(threads, by_warp=by_warp):
            if self.held.share(some):
                self.known.forget(some)
                self._acquired |= some.any(axis=(1, 2))

    # Whether accesses are ordered

    def has_fenced(self, who: tuple[int, int, int]) -> bool:
        """Whether a thread has executed a releasing fence."""
        return self.active and bool(self._fenced[who])


class Encounters:
    """Where each thread of a batch last accessed memory strongly, and when.

    Reports of races use it: threads that access one cell strongly, by an atomic or a volatile load, probably
    communicate through it: they take a lock or read a flag. Without fences that orders nothing, and such code lacks
    fences, not a barrier.

    Parameters
    ----------
    shape : (int, int)
        Blocks, and warps of each.
    """

    def __init__(self, shape: tuple[int, int], causality: Causality) -> None:
        self._shape, self._causality = (*shape, LANES), causality
        self._memory: Array | None = None

    def note(self, cells: SyncCells, who: tuple[Array, Array, Array], offset: Array, time: int) -> None:
        """Record that threads, block, warp and lane of each, access memory strongly."""
        if self._memory is None:
            self._memory = np.empty(self._shape, object)
            self._cell, self._when = (np.full(self._shape, -1, np.int64) for _ in range(2))
        self._memory[who], self._cell[who], self._when[who] = cells, offset // CELL, time

    def unfenced(self, own: tuple[int, int, int], other: tuple[int, int, int], time: int) -> SyncCells | None:
        """Return the memory through which two threads last communicated; None if they did not, or both have fenced.

        The other thread's strong access is later than `time`. For threads of earlier batches it is unknown: it is then
        enough that this thread accessed memory strongly.

        Parameters
        ----------
        own, other : (int, int, int)
            Block of the batch, warp and lane; the block of the other is negative in earlier batches.
        """
        if self._memory is None:
            return None
        found: SyncCells | None = self._memory[own]
        if other[0] >= 0:
            same = found is self._memory[other] and self._cell[own] == self._cell[other] and self._when[other] > time
            if not same or (self._causality.has_fenced(own) and self._causality.has_fenced(other)):
                return None
        return found
