"""The phases of the mbarriers of a batch: the order that they establish, who has looked at them, and their ledgers.

The rules are in `mbarriers` and `report.asynchronous_rules`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import Array
from ...operations import MemoryScope
from ..base import Site
from ..memory import SharedMemory, Touch
from ..order import ByScope, Released, ThreadScope, VectorClock, VectorClocks, joined

_MOST = 6  # lines of a ledger that a report shows
_DID = {"arrives": "{} arrival{s}", "expects": "expects {} byte{s}", "brings": "brings {} byte{s}"}


class Freed(NamedTuple):
    """What threads of a warp release that arrive at an mbarrier."""

    block: int  # of the batch
    clocks: ByScope
    clock: VectorClock | None  # what they know, whatever the scope; None for a `.relaxed` arrival


@dataclass(eq=False)
class _Phases:
    """The phases of one mbarrier.

    Attributes
    ----------
    now, done : Released
        What the threads have released that have arrived in this phase, and in the complete ones.
    words : list of ndarray of uint64
        Of the operations that have completed in this phase.
    ledger : Counter
        What this phase has counted: arrivals or bytes, by what was done and the line.
    number : int
        Of the current phase.
    """

    now: Released
    done: Released
    words: list[Array] = field(default_factory=list)
    ledger: Counter[tuple[str, Site]] = field(default_factory=Counter)
    number: int = 0


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
        self._clocks, self._shared = clocks, shared
        self._at: dict[int, _Phases] = {}
        # The mbarrier that each thread last looked at without success, -1 for none.
        self._looked: Array = np.full(shape, -1, np.int64)

    def _phases(self, offset: int) -> _Phases:
        if (found := self._at.get(offset)) is None:
            self.begin(offset)
            found = self._at[offset]
        return found

    def begin(self, offset: int) -> None:
        """Begin the phases of an mbarrier."""
        self._at[offset] = _Phases(Released(self._clocks.scopes), Released(self._clocks.scopes))

    def known(self, offset: int) -> bool:
        """Whether an mbarrier has begun, and not ended."""
        return offset in self._at

    def forget(self, offset: int) -> None:
        """Forget the phases of an mbarrier that ends."""
        self._at.pop(offset, None)

    @property
    def known_at(self) -> list[int]:
        """The offsets of all mbarriers."""
        return [*self._at]

    # The order

    def arriving(self, touch: Touch, scope: MemoryScope, *, releases: bool) -> dict[int, Freed]:
        """Return what threads release that arrive, or only what their fences do, by the place of the first among them.

        Threads of a warp that arrive at one mbarrier count as one.
        """
        of = self._clocks.scopes.of(scope)
        who = touch.who
        key = np.stack([who.block, who.warp, touch.offset], axis=1)
        parts = np.flatnonzero(np.concatenate([[True], (key[1:] != key[:-1]).any(axis=1)]))
        groups: dict[tuple[int, int, int], tuple[int, list[int]]] = {}
        lanes_of = np.split(who.lane, parts[1:])
        for at, (block, warp, offset), some in zip(parts.tolist(), key[parts].tolist(), lanes_of, strict=True):
            groups.setdefault((block, warp, offset), (at, []))[1].extend(some.tolist())
        if not releases:
            fences = self._clocks.causality.clocks_of
            return {
                at: Freed(block, fences(block, warp, lanes, "relaxed", of, None), None)
                for (block, warp, _), (at, lanes) in groups.items()
            }
        threads = [(block, warp, lanes) for (block, warp, _), (_, lanes) in groups.items()]
        levels = [level for level in self._clocks.scopes.levels if level <= of]
        clocks = self._clocks.clocks_of(threads)
        return {
            at: Freed(block, dict.fromkeys(levels, clock), clock)
            for (block, *_), (at, _), clock in zip(threads, groups.values(), clocks, strict=True)
        }

    def release(self, offset: int, several: Sequence[Freed]) -> None:
        """Join what threads release to what the current phase does."""
        now, own, first = self._phases(offset).now, self._block(offset), self._clocks.blocks.start
        for block in dict.fromkeys(freed.block for freed in several):
            some = [freed for freed in several if freed.block == block]
            now.add(first + block, *(freed.clocks for freed in some))
            if block != own and (over := joined(freed.clock for freed in some)) is not None:
                now.add(first + own, {ThreadScope.CTA: self._clocks.over(over)})

    def _block(self, offset: int) -> int:
        """Return the block of the batch in whose memory an mbarrier lies."""
        return int(self._shared.blocks_of(np.array(offset)))

    def bring(self, offset: int, word: Any) -> None:
        """Note that an operation, whose access word is given, completes in the current phase."""
        self._phases(offset).words.append(word)

    def complete(self, offset: int) -> None:
        """Complete the current phase."""
        phases = self._phases(offset)
        if phases.words:
            known = self._clocks.clock_of_agents(np.array(phases.words, np.uint64))
            phases.now.add(self._clocks.blocks.start + self._block(offset), {ThreadScope.CTA: known})
        phases.done.join(phases.now)
        phases.now = Released(self._clocks.scopes)
        phases.words.clear()
        phases.ledger.clear()
        phases.number += 1

    def number(self, offset: int) -> int:
        """Return the number of the current phase of an mbarrier."""
        return self._phases(offset).number

    def observe(self, touch: Touch, complete: Array, scope: MemoryScope, *, acquires: bool) -> None:
        """Let threads that observe a complete phase of their mbarrier, bool `[n]`, acquire its clocks, or find them."""
        of = self._clocks.scopes.of(scope)
        who = np.stack([touch.who.block, touch.who.warp, touch.who.lane], axis=1)
        place = np.flatnonzero(complete)
        place = place[np.argsort(touch.offset[place], kind="stable")]
        offsets, first = np.unique(touch.offset[place], return_index=True)
        for offset, some in zip(offsets.tolist(), np.split(who[place], first[1:]), strict=False):
            self._clocks.causality.observe(some, self._phases(offset).done, of, acquires=acquires)

    # Looks

    def looked(self, touch: Touch, failed: Array) -> None:
        """Note that threads look at their mbarriers, whose phases have a parity, some without success, bool `[n]`."""
        self._looked[touch.lanes] = np.where(failed, touch.offset, -1)

    def waited_for(self, lanes: Array) -> Iterator[int]:
        """Yield the offsets of the mbarriers that threads looked at last, without success."""
        found = np.unique(self._looked[lanes])
        yield from found[found >= 0].tolist()

    # The ledger

    def count(self, offset: int, did: str, site: Site, number: int) -> None:
        """Enter what happened in the current phase."""
        self._phases(offset).ledger[did, site] += number

    def ledger(self, offset: int) -> str:
        """Describe what the current phase has counted."""
        if offset not in self._at or not (entries := self._at[offset].ledger):
            return "nothing has come in this phase"
        lines = [
            f"{_DID[did].format(number, s='s' * (number != 1))} at {site.place}"
            for (did, site), number in [*entries.items()][:_MOST]
        ]
        more = [f"{len(entries) - _MOST} more lines"] if len(entries) > _MOST else []
        return ", ".join([*lines, *more])
