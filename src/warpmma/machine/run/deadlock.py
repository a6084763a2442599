"""Deadlocks: spins that cannot end, and a description of where all lanes are.

The rules:

1. After 64 consecutive rounds that ended because every running group polled without progress (`scheduling`), and after
   128, 256 and so on, the state is kept: registers of running threads, the memory that the batch has accessed, and the
   places of lanes.
2. If all of that is the same one round later, it will stay so, because the next state follows from nothing else. That
   is a deadlock: no thread is left that could write what the others wait for. (With a seed, the order of turns is drawn
   again in each round; by then 64 orders have changed nothing.)
3. A loop that counts its looks, or reads a clock, never returns to the same state: it ends, or reaches a limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from ..._arrays import Array
from ..._text import ranges
from ..base import WarpRegister
from .convergence import ConvergencePoints
from .state import State

_FIRST = 64  # rounds
_MOST = 8  # places that are named


@dataclass(frozen=True)
class _Kept:
    vain: int
    registers: tuple[WarpRegister, ...]
    digest: bytes
    places: dict[int, Array]


class Spins:
    """Looks for spins that cannot end."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._kept: _Kept | None = None

    def endless(self) -> bool:
        """Whether, after a round of polls without progress, the state equals that of the round before."""
        vain = self._state.scheduler.vain
        if vain < _FIRST:
            self._kept = None
            return False
        kept, self._kept = self._kept, None
        if kept is not None and kept.vain == vain - 1:
            now = self._now(vain)
            return self._same(kept, now)
        if vain & (vain - 1) == 0:
            self._kept = self._now(vain)
        return False

    def _now(self, vain: int) -> _Kept:
        state = self._state
        seen = blake2b()
        for memory in (state.batch.global_space, state.batch.shared, state.batch.local):
            for data in memory.contents():
                seen.update(np.ascontiguousarray(data).view(np.uint8).data)
        registers = (*state.registers[: len(state.program.registers)], state.stack)
        ready = {key: group.bits for key, group in state.scheduler.ready.items()}
        return _Kept(vain, registers, seen.digest(), ready)

    def _same(self, a: _Kept, b: _Kept) -> bool:
        if a.digest != b.digest or a.places.keys() != b.places.keys():
            return False
        if any(bool((bits != b.places[key]).any()) for key, bits in a.places.items()):
            return False
        alive = self._state.batch.lanes.alive
        pairs = zip(a.registers, b.registers, strict=True)
        return all(x is y or not bool(((x.bits != y.bits) & alive).any()) for x, y in pairs)


# Where lanes are


def where_lanes_are(state: State, meetings: ConvergencePoints) -> str:
    """Describe where lanes run, where they wait, and for what.

    Examples
    --------
    "Of block 0, 32 lanes of warp 1 wait at kernel.cu:3 (bar.sync); 64 lanes of warps 2-3 run at kernel.cu:7 (bra)".
    """
    found = sorted(_found(state, meetings), key=lambda x: (x[0], x[1]))
    said = [f"{_who(state, bits)} {what} at {_site(state, place)}" for place, what, bits in found[:_MOST]]
    if len(found) > _MOST:
        said.append(f"others are at {len(found) - _MOST} more places")
    return "; ".join(said)


def _found(state: State, meetings: ConvergencePoints) -> Iterator[tuple[int, str, Array]]:
    scheduler = state.scheduler
    for groups in (scheduler.ready, scheduler.late):
        for key, group in groups.items():
            yield scheduler.place(key)[0], "are", group.bits
    for place, bits in meetings.waiting():
        yield place.number, "wait for lanes of their warp", bits
    for key, bits in scheduler.waiting.items():
        yield scheduler.place(key)[0] - 1, "wait for threads of their block", bits


def _site(state: State, place: int) -> str:
    steps = state.program.steps
    return "the end" if place >= len(steps) else f"{steps[place].site.place} ({steps[place].site.mnemonic})"


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
