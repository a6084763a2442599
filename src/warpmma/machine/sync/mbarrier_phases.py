"""The phases of the mbarriers of a batch: the order that they establish, who has looked at them, and their ledgers.

The rules are in `mbarriers` and `report.asynchronous_rules`. The mbarriers at one place in the shared memory of the
blocks of one rank, one for each cluster, are kept together: their arrivals, and what these pass on, are arrays by
cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ..._arrays import Array
from ...operations import MemoryScope
from ..base import Site
from ..memory import SharedMemory, Touch
from ..order import Passed, ThreadScope, VectorClock, VectorClocks

_MOST_FOUND = 32  # accesses whose places are kept
_MOST = 6  # lines of a ledger that a report shows
_DID = {"arrives": "{} arrival{s}", "expects": "expects {} byte{s}", "brings": "brings {} byte{s}"}


@dataclass(eq=False, kw_only=True)
class _Phases:
    """The phases of the mbarriers at one place, one for each cluster.

    Attributes
    ----------
    begun : ndarray of bool
        Whether there is one, `[row]`.
    number : ndarray of int
        Of the current phase, `[row]`.
    now, done : Passed
        What arrivals have passed on in this phase, and in the complete ones, to any thread of the mbarrier's block.
    far_now, far_done : Passed
        The same of arrivals from other blocks, for threads that look in the scope of the cluster or a wider one.
    ledger : dict of (str, Site) to ndarray of int
        What this phase has counted, `[row]`: arrivals or bytes, by what was done and the line.
    init : ndarray of uint64
        The access words of the threads that have initialised them, `[row]`.
    seen : ndarray of int
        The first phase that no thread of the mbarrier's block has found complete, `[row]`.
    signals : list of (ndarray, ndarray, ndarray, ndarray)
        Of arrivals from other blocks, and of operations from there that complete here, in phases from that one on:
        rows, phases, access words, and those of the threads that made them.
    """

    begun: Array
    number: Array
    now: Passed = field(default_factory=Passed)
    done: Passed = field(default_factory=Passed)
    far_now: Passed = field(default_factory=Passed)
    far_done: Passed = field(default_factory=Passed)
    ledger: dict[tuple[str, Site], Array] = field(default_factory=dict)
    init: Array
    seen: Array
    signals: list[tuple[Array, Array, Array, Array]] = field(default_factory=list)

    def keep(self) -> None:
        """Forget signals of phases that have been found complete."""
        kept = [(one, one[1] >= self.seen[one[0]]) for one in self.signals]
        self.signals = [(rows[x], numbers[x], words[x], by[x]) for (rows, numbers, words, by), x in kept if x.any()]


_Place = tuple[_Phases, Array, Array]
"""Phases at one place, the rows of some mbarriers there, and which of the offsets that were asked for they are."""


class MbarrierPhases:
    """The phases of all mbarriers of a batch, by their offsets in the shared memory of all blocks.

    Parameters
    ----------
    clocks : VectorClocks
    shared : SharedMemory
    shape : (int, int, int)
        Blocks, warps and lanes.
    """

    def __init__(self, clocks: VectorClocks, shared: SharedMemory, shape: tuple[int, int, int]) -> None:
        self._clocks, self._shared, self._shape = clocks, shared, shape
        self._rows, self._cluster = shape[0] // clocks.scopes.cluster, clocks.scopes.cluster
        self.told: Callable[[Array], None] | None = None  # a timeline, if one is recorded
        self._at: dict[tuple[int, int], _Phases] = {}  # by rank and address
        self._found: dict[bytes, list[_Place]] = {}  # by offsets
        # The mbarrier that each thread last looked at without success, -1 for none.
        self._looked: Array = np.full(shape, -1, np.int64)

    def _places(self, offsets: Array) -> list[_Place]:
        """Return the places of mbarriers. Loops come to the same ones again and again, so they are kept."""
        key = offsets.tobytes()
        if (found := self._found.get(key)) is None:
            if len(self._found) >= _MOST_FOUND:
                self._found.clear()
            found = self._found[key] = [*self._find(offsets)]
        return found

    def _find(self, offsets: Array) -> Iterator[_Place]:
        block, address = self._shared.places_of(offsets)
        row, rank = np.divmod(block, self._cluster)
        key = address * self._cluster + rank
        if len(key) and (key == key[0]).all():
            yield self._phases(int(rank[0]), int(address[0])), row, np.arange(len(offsets))
            return
        for one in np.unique(key).tolist():
            which = np.flatnonzero(key == one)
            yield self._phases(one % self._cluster, one // self._cluster), row[which], which

    def _phases(self, rank: int, address: int) -> _Phases:
        if (found := self._at.get((rank, address))) is None:
            begun, number, seen = np.zeros(self._rows, bool), *(np.zeros(self._rows, np.int64) for _ in range(2))
            found = self._at[rank, address] = _Phases(
                begun=begun, number=number, seen=seen, init=np.zeros(self._rows, np.uint64)
            )
        return found

    def _one(self, offset: int) -> tuple[_Phases, int]:
        phases, row, _ = self._places(np.array([offset]))[0]
        return phases, int(row[0])

    def _flags(self, rows: Array) -> Array:
        found: Array = np.zeros(self._rows, bool)
        found[rows] = True
        return found

    def begin(self, offsets: Array, words: Array | None = None) -> None:
        """Begin the phases of mbarriers; `words` are the access words of the threads that initialise them, `[n]`."""
        for phases, rows, which in self._places(offsets):
            others = ~self._flags(rows)
            phases.init[rows] = 0 if words is None else words[which]
            phases.seen[rows] = phases.number[rows] + 1  # what came before needs not be heard any more
            phases.keep()
            phases.begun[rows], phases.number[rows], phases.seen[rows] = True, 0, 0
            phases.now, phases.done = phases.now.only(others), phases.done.only(others)
            phases.far_now, phases.far_done = phases.far_now.only(others), phases.far_done.only(others)
            self._clear(phases, rows)

    def inits(self, offsets: Array) -> Array:
        """Return the access words of the threads that have initialised mbarriers, `[n]`; 0 where nothing is known."""
        found = np.zeros(len(offsets), np.uint64)
        for phases, rows, which in self._places(offsets):
            found[which] = phases.init[rows]
        return found

    def known(self, offsets: Array) -> Array:
        """Return which mbarriers have begun, and not ended."""
        found: Array = np.zeros(len(offsets), bool)
        for phases, rows, which in self._places(offsets):
            found[which] = phases.begun[rows]
        return found

    def forget(self, offsets: Array) -> None:
        """Forget the phases of mbarriers that end."""
        self.begin(offsets)
        for phases, rows, _ in self._places(offsets):
            phases.begun[rows] = False

    @property
    def known_at(self) -> list[int]:
        """The offsets of all mbarriers."""
        found = []
        for (rank, address), phases in self._at.items():
            blocks = np.flatnonzero(phases.begun) * self._cluster + rank
            found += self._shared.offsets_of(blocks, address).tolist()
        return found

    # The order

    def arrive(self, touch: Touch, which: Array, scope: MemoryScope, *, releases: bool) -> None:
        """Let threads, by their places in an access, arrive in the current phases: pass on what they know.

        Without `releases`, only what their fences have released.
        """
        of, who, far = self._clocks.scopes.of(scope), touch.who.some(which), None
        for phases, _, some in self._places(touch.offset[which]):
            threads: Array = np.zeros(self._shape, bool)
            threads[who.block[some], who.warp[some], who.lane[some]] = True
            if self._cluster > 1:
                own, at = np.zeros(self._shape[0], bool), self._shared.places_of(touch.offset[which[some]])[0]
                own[at] = True
                if (away := at != who.block[some]).any():
                    rows = at[away] // self._cluster
                    words = who.words[some][away]
                    phases.signals.append((rows, phases.number[rows], words, words))
                far = threads & ~own[:, None, None]
                threads &= own[:, None, None]
            if releases:
                if threads.any():
                    phases.now |= self._clocks.passed_by(threads)
                if far is not None and far.any():
                    passed = self._clocks.passed_by(far)
                    phases.now |= self._clocks.over(passed)
                    if of >= ThreadScope.CLUSTER:
                        phases.far_now |= passed
                continue
            phases.now |= self._clocks.causality.fenced(threads, ThreadScope.CTA)
            if far is not None and of >= ThreadScope.CLUSTER:
                phases.far_now |= self._clocks.causality.fenced(far, ThreadScope.CLUSTER)

    def bring(self, touch: Touch, which: Array, words: Array) -> None:
        """Note that operations of threads, by their places in an access, complete in the current phases.

        The access words of the operations, `[n]`, are those of all places.
        """
        for phases, rows, some in self._places(touch.offset[which]):
            its = which[some]
            phases.now |= self._clocks.of_accesses(words[its])
            if self._cluster > 1:
                away = self._shared.blocks_of(touch.offset[its]) != touch.who.block[its]
                if away.any():
                    one = rows[away], phases.number[rows[away]], words[its[away]], touch.who.words[its[away]]
                    phases.signals.append(one)

    def complete(self, offsets: Array) -> None:
        """Complete the current phases."""
        if self.told is not None:
            self.told(offsets)
        for phases, rows, _ in self._places(offsets):
            some = self._flags(rows)
            phases.done |= phases.now.only(some)
            phases.far_done |= phases.far_now.only(some)
            phases.now, phases.far_now = phases.now.only(~some), phases.far_now.only(~some)
            phases.number[rows] += 1
            self._clear(phases, rows)

    def numbers(self, offsets: Array) -> Array:
        """Return the numbers of the current phases of mbarriers."""
        found = np.zeros(len(offsets), np.int64)
        for phases, rows, which in self._places(offsets):
            found[which] = phases.number[rows]
        return found

    def observe(self, touch: Touch, complete: Array, scope: MemoryScope, *, acquires: bool) -> None:
        """Let threads that observe a complete phase of their mbarrier, bool `[n]`, acquire its clocks, or find them."""
        if not complete.any():
            return
        of, causality = self._clocks.scopes.of(scope), self._clocks.causality
        who = np.stack([touch.who.block, touch.who.warp, touch.who.lane], axis=1)[complete]
        for phases, rows, which in self._places(touch.offset[complete]):
            phases.seen[rows] = phases.number[rows]
            phases.keep()
            far = phases.done | phases.far_done
            if acquires:
                causality.acquire(who[which], far if of >= ThreadScope.CLUSTER else phases.done)
            else:
                found = {level: far if min(level, of) >= ThreadScope.CLUSTER else phases.done
                         for level in self._clocks.scopes.levels}  # fmt: skip
                causality.sees(who[which], phases, found)

    def unheard(self, block: int, clock: VectorClock) -> Array:
        """Return the words of threads that signal a block's mbarriers, not ordered before what a clock's owner does.

        They are those of other blocks, which arrive or whose operations complete in phases that no thread of the block
        has found complete.
        """
        row, rank = divmod(block, self._cluster)
        found = [
            by[(rows == row) & ~clock.covers(words)] for (of, _), phases in self._at.items() if of == rank
            for rows, _, words, by in phases.signals
        ]  # fmt: skip
        return np.concatenate([*found, np.zeros(0, np.uint64)])

    # Looks

    def looked(self, touch: Touch, failed: Array) -> None:
        """Note that threads look at their mbarriers, whose phases have a parity, some without success, bool `[n]`."""
        self._looked[touch.lanes] = np.where(failed, touch.offset, -1)

    def waited_for(self, lanes: Array) -> Iterator[int]:
        """Yield the offsets of the mbarriers that threads looked at last, without success."""
        found: Array = np.unique(self._looked[lanes])
        yield from found[found >= 0].tolist()

    # The ledger

    def count(self, offsets: Array, did: str, site: Site, numbers: Array) -> None:
        """Enter what happened in the current phases."""
        for phases, rows, which in self._places(offsets):
            if (entry := phases.ledger.get((did, site))) is None:
                entry = phases.ledger[did, site] = np.zeros(self._rows, np.int64)
            np.add.at(entry, rows, numbers[which])

    def _clear(self, phases: _Phases, rows: Array) -> None:
        for key, entry in [*phases.ledger.items()]:
            entry[rows] = 0
            if not entry.any():
                del phases.ledger[key]

    def ledger(self, offset: int) -> str:
        """Describe what the current phase has counted."""
        phases, row = self._one(offset)
        entries = [(key, int(entry[row])) for key, entry in phases.ledger.items() if entry[row]]
        if not entries:
            return "nothing has come in this phase"
        lines = [
            f"{_DID[did].format(number, s='s' * (number != 1))} at {site.place}"
            for (did, site), number in entries[:_MOST]
        ]
        more = [f"{len(entries) - _MOST} more lines"] if len(entries) > _MOST else []
        return ", ".join([*lines, *more])
