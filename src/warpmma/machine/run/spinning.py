"""Spins that cannot end: everybody who runs looks again and again, and all is as it was.

The rules:

1. After 64 rounds, one after another, that ended because all who run had looked in vain (`scheduling`), and after 128,
   256 and so on, the state is kept: registers of those who run, memory that the batch has touched, and who is where.
2. If one round later all of that is the same, it will be so for ever, for what comes next follows from nothing else.
   That is a deadlock: nobody is left who could write what they wait for. (With a seed the order of turns is drawn anew
   in every round; by then the looks have been in vain in 64 orders.)
3. A loop that counts its looks, or reads a clock, is never the same again: it ends, or comes to a limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from ..._arrays import Array
from ..base import WarpRegister
from .state import State

_FIRST = 64  # rounds


@dataclass(frozen=True)
class _Kept:
    vain: int
    registers: tuple[WarpRegister, ...]
    digest: bytes
    places: dict[int, Array]


class Spins:
    """Looks for spins that cannot end.

    Parameters
    ----------
    state : State
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._kept: _Kept | None = None

    def endless(self) -> bool:
        """Tell, when a round of looks in vain has ended, whether all is as it was one round before."""
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
        for memory in (state.batch.memory, state.batch.shared, state.batch.local):
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
