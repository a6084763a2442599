"""Records the timeline of a batch, while it runs: see `report.timeline`.

1. An instant is what `clock` says when an instruction begins. What completes between instructions, because all threads
   poll without success, completes at the last of them.
2. Operations that one instruction issues for a warp are one entry (a copy of a tensor is many runs of bytes), or one
   for each block that a multicast writes to: what one mbarrier counts. An entry is complete when all of them are.
3. A warp waits from its first look at an mbarrier without success until one that succeeds. Groups complete when their
   thread waits, so such a wait takes no steps.
4. A `wgmma` is complete when a warp of its warpgroup has waited for its group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..._arrays import Array
from ..._text import ranges
from ...registers import WARPS
from ..base import Site
from ..memory import SharedMemory
from ..report import EventKind, Timeline, TimelineEvent, TimelineOperation
from .async_operations import AsyncOperation

_SHORT = {".sync": "", ".aligned": "", ".shared::cluster": "", ".shared::cta": "", ".shared": "", ".global": "",
          ".mbarrier::complete_tx::bytes": "", ".bulk_group": "", ".b64": "", ".acquire": "", ".release": "",
          ".cta": "", ".mma_async": ""}  # fmt: skip


def short(mnemonic: str) -> str:
    """Return a mnemonic without what is the same in nearly all, for pictures.

    Examples
    --------
    >>> short("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes")
    'cp.async.bulk.tensor.2d'
    >>> short("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16")
    'wgmma.m64n128k16.f32.f16.f16'
    """
    for word, instead in _SHORT.items():
        mnemonic = mnemonic.replace(word, instead) if not mnemonic.startswith("cp.async.mbarrier") else mnemonic
    return mnemonic


@dataclass(eq=False, kw_only=True)
class _Entry:
    """An operation of a warp or a warpgroup that is being recorded."""

    block: int
    warps: tuple[int, ...]
    agent: str
    site: Site
    issued: int
    bytes: int = 0
    parts: set[AsyncOperation] = field(default_factory=set)
    read: int | None = None
    completed: int | None = None
    committed: int = -1  # of a `wgmma`: groups that were committed since its own

    def record(self) -> TimelineOperation:
        return TimelineOperation(
            block=self.block, warps=self.warps, agent=self.agent, site=self.site, text=short(self.site.mnemonic),
            bytes=self.bytes, issued=self.issued, read=self.read, completed=self.completed,
        )  # fmt: skip


class TimelineRecorder:
    """Records a launch's timeline, batch by batch.

    Parameters
    ----------
    blocks : sequence of int
        Numbers in the grid of the blocks that are recorded.
    """

    def __init__(self, blocks: Sequence[int]) -> None:
        self.blocks = tuple(dict.fromkeys(blocks))
        self.now = 0
        self._places: dict[int, int] = {}  # of a batch, by place
        self._events: list[TimelineEvent] = []
        self._entries: list[_Entry] = []
        self._of_part: dict[tuple[AsyncOperation, int, int], _Entry] = {}
        self._products: dict[tuple[int, int], list[_Entry]] = {}
        self._waiting: set[tuple[int, int, str]] = set()
        self._phases: dict[tuple[int, str], int] = {}
        self._shared: SharedMemory | None = None

    def begin(self, numbers: Sequence[int], shared: SharedMemory) -> None:
        """Begin a batch: the grid's number of each of its blocks."""
        self._places = {place: number for place, number in enumerate(numbers) if number in self.blocks}
        self._shared = shared
        self._of_part.clear()
        self._products.clear()
        self._waiting.clear()
        self._phases.clear()

    def found(self) -> Timeline:
        """Return what was recorded."""
        return Timeline(
            blocks=self.blocks, events=tuple(self._events), operations=tuple(x.record() for x in self._entries)
        )

    def warps(self, lanes: Array) -> list[tuple[int, int]]:
        """Return the recorded blocks, as places in the batch, and warps that have some lanes."""
        return [(b, w) for b in self._places for w in np.flatnonzero(lanes[b].any(axis=-1)).tolist()]

    def mbarrier(self, offset: int) -> str:
        """Name the mbarrier at an offset in the shared memory of all blocks."""
        assert self._shared is not None
        place, name = self._shared.named(offset, 8)
        number = self._places.get(place)
        return f"mbarrier {name}" + (f" of block {number}" if number is not None and len(self._places) > 1 else "")

    def note(self, kind: EventKind, site: Site, place: int, warp: int, agent: str = "", text: str = "") -> None:
        """Record an event of a warp; looks by rule 3."""
        if kind in ("wait", "pass") and agent.startswith("mbarrier"):
            waits = (place, warp, agent) in self._waiting
            if kind == "wait" and waits:
                return
            (self._waiting.add if kind == "wait" else self._waiting.discard)((place, warp, agent))
        last = self._events[-1] if self._events else None
        text = text or short(site.mnemonic)
        block = self._places[place]
        same = (self.now, kind, block, agent, site, text)
        if last is not None and (last.step, last.kind, last.block, last.agent, last.site, last.text) == same:
            if warp not in last.warps:
                self._events[-1] = _event(*same, (*last.warps, warp))
            return
        self._events.append(_event(*same, (warp,)))

    def phase(self, offsets: Array) -> None:
        """Record that phases of mbarriers are complete."""
        assert self._shared is not None
        for offset in offsets.tolist():
            place, _ = self._shared.named(offset, 8)
            if place in self._places:
                agent = self.mbarrier(offset)
                number = self._phases.get((place, agent), 0)
                self._phases[place, agent] = number + 1
                self._events.append(
                    _event(self.now, "phase", self._places[place], agent, None, f"phase {number} complete", ())
                )

    # Operations

    def operation(self, what: str, operation: AsyncOperation, lanes: Array) -> None:
        """Record that an operation is issued, has read, or is complete for some lanes."""
        for place, warp in self.warps(lanes):
            if what == "issue":
                self._issued(operation, place, warp)
                continue
            entry = self._of_part.get((operation, place, warp))
            if entry is None:
                continue
            if what == "read":
                entry.read = self.now
            elif not operation.active[place, warp].any():
                entry.parts.discard(operation)
                if not entry.parts:
                    entry.completed = self.now

    def _issued(self, operation: AsyncOperation, place: int, warp: int) -> None:
        """Rule 2."""
        block, site = self._places[place], operation.site
        last = next((x for x in reversed(self._entries) if x.block == block and x.warps == (warp,)), None)
        agent = self._agent(operation, place, warp)
        same = last is not None and last.site is site and last.issued == self.now and last.agent in ("", agent)
        if last is None or not same:
            last = _Entry(block=block, warps=(warp,), agent=agent, site=site, issued=self.now)
            self._entries.append(last)
        last.agent = agent  # the runs of a copy of a tensor come before what signals for them
        share = int(operation.lanes[place, warp].sum()) / max(1, int(operation.lanes.sum()))
        last.bytes += round(operation.data.nbytes * share)
        last.parts.add(operation)
        self._of_part[operation, place, warp] = last

    def _agent(self, operation: AsyncOperation, place: int, warp: int) -> str:
        """Name what completes an operation; "" if that is not known yet."""
        if operation.signal is None:
            return "" if operation.groups is None else groups_of(operation.groups, warp)
        mine = operation.signal.touch.lanes & _only(operation.lanes, place, warp)
        where = operation.signal.touch.of(mine).offset
        return self.mbarrier(int(where[0])) if len(where) else ""

    # Products of warpgroups (rule 4)

    def product(self, site: Site, lanes: Array) -> None:
        """Record that warpgroups issue a product."""
        for place, warp in self.warps(lanes):
            if warp % WARPS == 0:
                warps = tuple(range(warp, warp + WARPS))
                entry = _Entry(
                    block=self._places[place], warps=warps, agent=f"wgmma of warps {ranges(warps)}", site=site,
                    issued=self.now,
                )  # fmt: skip
                self._entries.append(entry)
                self._products.setdefault((place, warp), []).append(entry)

    def commit(self, lanes: Array) -> None:
        """Count a group of the warpgroups' products."""
        for place, warp in self.warps(lanes):
            for entry in self._products.get((place, warp), []):
                entry.committed += 1

    def waited(self, lanes: Array, last: int) -> None:
        """Complete all but the last groups of products."""
        for place, warp in self.warps(lanes):
            first = warp // WARPS * WARPS
            left = []
            for entry in self._products.get((place, first), []):
                if entry.committed >= max(last, 0):
                    entry.completed = self.now
                else:
                    left.append(entry)
            self._products[place, first] = left


def groups_of(groups: str, warp: int) -> str:
    """Name the groups of a warp's threads."""
    return f"{groups} of warp {warp}"


def _only(lanes: Array, place: int, warp: int) -> Array:
    found = np.zeros(lanes.shape, bool)
    found[place, warp] = lanes[place, warp]
    return found


def _event(
    step: int, kind: EventKind, block: int, agent: str, site: Site | None, text: str, warps: tuple[int, ...]
) -> TimelineEvent:
    return TimelineEvent(step=step, kind=kind, block=block, warps=warps, agent=agent, site=site, text=text)
