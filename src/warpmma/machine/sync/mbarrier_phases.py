"""The phases of mbarriers: their 64 bits, who has arrived, and which operations a phase waits for.

The rules are in `mbarriers`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..._arrays import Array
from ..memory import Touch
from ..order import VectorClock, VectorClocks, joined
from .async_operations import AsyncOperations, Pending

_COUNT = 20  # bits
_LOW = (1 << _COUNT) - 1
MOST = _LOW
"""The most arrivals that a phase can expect, and the most bytes."""

PHASE_BIT, VALID_BIT = 61, 62


class MbarrierState(NamedTuple):
    """The 64 bits of an mbarrier, whose layout PTX leaves open."""

    pending: int
    expected: int
    bytes: int
    phase: int
    valid: int

    @classmethod
    def of(cls, word: int) -> MbarrierState:
        """Return the state encoded in a word."""
        bytes_ = (word >> 2 * _COUNT & (2 * _LOW + 1)) - MOST
        return cls(word & _LOW, word >> _COUNT & _LOW, bytes_, word >> PHASE_BIT & 1, word >> VALID_BIT)

    @property
    def word(self) -> int:
        """The state as a word."""
        counts = self.pending | self.expected << _COUNT | (self.bytes + MOST) << 2 * _COUNT
        return counts | self.phase << PHASE_BIT | self.valid << VALID_BIT


@dataclass(eq=False)
class _Phases:
    """The phases of one mbarrier.

    Attributes
    ----------
    now, done : VectorClock or None
        The joined clocks of the threads that have arrived in this phase, and in the complete ones.
    pending : list of Pending
        Operations that this phase completes.
    counts : list of callable
        Each counts the bytes that an operation has brought.
    """

    now: VectorClock | None = None
    done: VectorClock | None = None
    pending: list[Pending] = field(default_factory=list)
    counts: list[Callable[[], None]] = field(default_factory=list)


class MbarrierPhases:
    """The phases of all mbarriers of a batch, by their offsets in the shared memory of all blocks.

    Parameters
    ----------
    clocks : VectorClocks
    operations : AsyncOperations
    tracking : bool
        Whether hazards are detected, so that the clocks of threads matter.
    """

    def __init__(self, clocks: VectorClocks, operations: AsyncOperations, tracking: bool) -> None:
        self._clocks, self._operations, self._tracking = clocks, operations, tracking
        self._at: dict[int, _Phases] = {}

    def _phases(self, offset: int) -> _Phases:
        return self._at.setdefault(offset, _Phases())

    def forget(self, offset: int) -> None:
        """Forget the phases of an mbarrier that begins or ends."""
        self._at.pop(offset, None)

    def clear(self) -> None:
        """Forget all phases."""
        self._at.clear()

    def wait_for(self, offset: int, pending: Pending, count: Callable[[], None] | None = None) -> None:
        """Let the current phase complete operations; `count` counts their bytes."""
        phases = self._phases(offset)
        phases.pending.append(pending)
        if count is not None:
            phases.counts.append(count)

    def bind(self, touch: Touch) -> None:
        """Let phases complete the pending `cp.async` of the threads that touch their mbarriers."""
        for offset in np.unique(touch.offset).tolist():
            lanes: Array = np.zeros(touch.lanes.shape, bool)
            lanes[touch.lanes] = touch.offset == offset
            self.wait_for(offset, self._operations.of(lanes))

    def count(self, touch: Touch) -> None:
        """Count the bytes that operations have brought to the mbarriers that threads observe."""
        for offset in np.unique(touch.offset).tolist() if self._at else ():
            if offset in self._at:
                phases = self._at[offset]
                counts, phases.counts = phases.counts, []
                for count in counts:
                    count()

    def arrive(self, touch: Touch) -> None:
        """Join the clocks of threads that arrive, by warp and mbarrier."""
        who = touch.who
        key = np.stack([who.block, who.warp, touch.offset], axis=1)
        parts = np.flatnonzero(np.concatenate([[True], (key[1:] != key[:-1]).any(axis=1)]))
        groups: dict[tuple[int, int, int], list[int]] = {}
        for (block, warp, offset), some in zip(key[parts].tolist(), np.split(who.lane, parts[1:]), strict=True):
            groups.setdefault((block, warp, offset), []).extend(some.tolist())
        moment = self._clocks.moment()
        arriving: dict[int, list[VectorClock]] = {}
        for (block, warp, offset), lanes in groups.items():
            arriving.setdefault(offset, []).append(self._clocks.clock_of(block, warp, lanes, moment))
        for offset, clocks in arriving.items():
            phases = self._phases(offset)
            phases.now = joined([phases.now, *clocks])

    def complete(self, offset: int) -> None:
        """Complete the current phase, and the operations that it waits for."""
        phases = self._phases(offset)
        for pending in phases.pending:
            self._operations.complete(pending)
            for block, warp in np.argwhere(pending.lanes.any(axis=-1) & self._tracking).tolist():
                lanes = np.flatnonzero(pending.lanes[block, warp]).tolist()
                phases.now = joined([phases.now, self._clocks.clock_of(block, warp, lanes)])
        phases.pending = []
        phases.done, phases.now = joined([phases.done, phases.now]), None

    def observe(self, touch: Touch, complete: Array) -> None:
        """Let threads that observe a complete phase of their mbarrier, bool `[n]`, acquire its clock."""
        who = np.stack([touch.who.block, touch.who.warp, touch.who.lane], axis=1)
        for offset in np.unique(touch.offset[complete]).tolist():
            clock = self._phases(offset).done
            some = who[complete & (touch.offset == offset)]
            if clock is not None:
                self._clocks.causality.acquire(some, clock)
