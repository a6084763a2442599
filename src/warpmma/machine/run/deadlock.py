"""Deadlocks: spins that cannot end, and a description of where all lanes are.

The rules:

1. After 64 consecutive rounds that ended because every running group polled without progress (`scheduling`), and after
   128, 256 and so on, the state is kept: the registers of running threads, the memory that the batch has accessed, who
   has arrived at barriers, and the program counters of lanes, of those that wait too. If an asynchronous operation
   completes after such a round, that is done after the next one in which none does: a pipeline of copies polls in every
   round, and reading all memory takes longer than its copies.
2. If one round later all of that is the same, it stays the same, because the next state depends on nothing else. That
   is a deadlock: no thread is left that could write what the others wait for. (With a seed, each round has a new random
   order; by then 64 orders have changed nothing.) Asynchronous operations complete before.
3. A loop that counts its polls, or reads a clock, never returns to the same state: it ends, or reaches a limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from ..._arrays import Array
from ..._text import ranges
from ..base import WarpRegister
from ..sync import MbarrierState
from .convergence import ConvergencePoints
from .state import State

_FIRST = 64  # rounds
_MOST = 8  # program counters that a description names
_MOST_MBARRIERS = 4


@dataclass(frozen=True)
class _Kept:
    vain: int
    registers: tuple[WarpRegister, ...]
    digest: bytes
    lanes: dict[object, Array]  # by where they run, wait or have arrived


class Spins:
    """Looks for spins that cannot end."""

    def __init__(self, state: State, points: ConvergencePoints) -> None:
        self._state, self._points = state, points
        self._kept: _Kept | None = None
        self._due = False  # whether the state is to be kept after the next round in which nothing moves

    def endless(self, *, moved: bool) -> bool:
        """Whether, after a round of polls without progress, the state equals that of the round before.

        `moved` says that something has happened since that no thread did: an asynchronous operation has completed.
        """
        vain = self._state.scheduler.vain
        kept, self._kept = self._kept, None
        if vain < _FIRST:
            self._due = False
            return False
        self._due |= vain & (vain - 1) == 0
        if moved:
            return False
        if kept is not None and kept.vain == vain - 1:
            now = self._now(vain)
            return self._same(kept, now)
        if self._due:
            self._kept, self._due = self._now(vain), False
        return False

    def _now(self, vain: int) -> _Kept:
        state = self._state
        seen = blake2b()
        for memory in (state.batch.global_space, state.batch.shared, state.batch.local):
            for data in memory.contents():
                seen.update(np.ascontiguousarray(data).view(np.uint8).data)
        registers = (*state.registers[: len(state.program.registers)], state.stack)
        lanes: dict[object, Array] = {step.pc: bits for step, bits in self._points.waiting()}
        for what in ("ready", "waiting"):
            lanes.update(((what, key), group.bits) for key, group in getattr(state.scheduler, what).items())
        lanes.update((("barrier", number), bits.copy()) for number, bits in state.batch.barriers.arrived())
        if "cluster" in vars(state.batch):
            lanes["cluster"] = state.batch.cluster.arrived.copy()
        return _Kept(vain, registers, seen.digest(), lanes)

    def _same(self, a: _Kept, b: _Kept) -> bool:
        if a.digest != b.digest or a.lanes.keys() != b.lanes.keys():
            return False
        if any(bool((bits != b.lanes[key]).any()) for key, bits in a.lanes.items()):
            return False
        alive = self._state.batch.lanes.alive
        pairs = zip(a.registers, b.registers, strict=True)
        return all(x is y or not bool(((x.bits != y.bits) & alive).any()) for x, y in pairs)


# Where lanes are


def where_lanes_are(state: State, points: ConvergencePoints) -> str:
    """Describe where lanes run, where they wait, and for what.

    Examples
    --------
    "Of block 0, 32 lanes of warp 1 wait at kernel.cu:3 (bar.sync); 64 lanes of warps 2-3 run at kernel.cu:7 (bra)".
    """
    found = sorted(_found(state, points), key=lambda x: (x[0], x[1]))
    parts = [f"{_who(state, bits)} {what} at {_site(state, pc)}" for pc, what, bits in found[:_MOST]]
    if len(found) > _MOST:
        parts.append(f"others are at {len(found) - _MOST} more places")
    absent = state.batch.cluster.absent() if "cluster" in vars(state.batch) else ""
    return ". ".join(["; ".join(parts), *[absent[:1].upper() + absent[1:]] * bool(absent), *_mbarriers(state)])


def _mbarriers(state: State) -> Iterator[str]:
    """Describe the mbarriers at which lanes have looked without success."""
    batch = state.batch
    offsets = list(batch.phases.waited_for(batch.lanes.alive)) if "phases" in vars(batch) else []
    for offset in offsets[:_MOST_MBARRIERS]:
        place, name = batch.shared.named(offset, 8)
        block = batch.reporter.block_named(batch.blocks[place])
        now = MbarrierState.of(batch.shared.word(offset))
        yield f"The mbarrier {name} of {block} is in {now}; {batch.phases.ledger(offset)}"
    if len(offsets) > _MOST_MBARRIERS:
        yield f"Lanes look at {len(offsets) - _MOST_MBARRIERS} more mbarriers"


def _found(state: State, points: ConvergencePoints) -> Iterator[tuple[int, str, Array]]:
    scheduler = state.scheduler
    for groups in (scheduler.ready, scheduler.late):
        for key, group in groups.items():
            yield scheduler.split_key(key)[0], "are", group.bits
    for step, bits in points.waiting():
        yield step.pc, "wait for lanes of their warp", bits
    for key, group in scheduler.waiting.items():
        at = scheduler.split_key(key)[0] - 1
        cluster = getattr(getattr(state.program.steps[at], "row", None), "cluster", False)
        yield at, f"wait for threads of their {'cluster' if cluster else 'block'}", group.bits


def _site(state: State, pc: int) -> str:
    steps = state.program.steps
    return "the end" if pc >= len(steps) else steps[pc].site.what


def _who(state: State, bits: Array) -> str:
    """Name lanes by their warps, and by their block if they are in one."""
    count = int(np.count_nonzero(bits))
    blocks = np.flatnonzero(bits.any(axis=(1, 2)))
    lanes = f"{count} lane{'s' * (count != 1)}"
    if len(blocks) > 1:
        return f"{lanes} of {len(blocks)} blocks"
    warps = np.flatnonzero(bits[blocks[0]].any(axis=-1)).tolist()
    block = state.batch.reporter.block_named(state.batch.blocks[int(blocks[0])])
    return f"{lanes} of {block}, warp{'s' * (len(warps) != 1)} {ranges(warps)},"
