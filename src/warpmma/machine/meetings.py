"""Meetings: lanes of a warp that wait for others at an instruction that they execute together.

The rules (PTX ISA 9.1: `.sync` of `shfl`, `vote`, `match`, `redux`, `elect`, `bar.warp`; `.aligned`):

1. `.sync` waits until all lanes of its membermask that have not exited are at that very instruction. `.aligned` wants
   all lanes of the warp that have not exited.
2. Lanes for whom all have come execute it together, whatever calls brought them there, and go on; others stay.
3. When a lane exits nobody waits for it any more.
4. Where nobody can run, those who wait at the lowest place execute it as they are: the instruction says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import frozen
from ..registers import LANES
from .groups import Group, words
from .scheduling import STOP
from .state import State

__all__ = ["Meeting", "Meetings"]

Array = npt.NDArray[Any]
Act = Callable[[Group], object]

_LANE = frozen(np.arange(LANES, dtype=np.uint32))


class Meeting:
    """An instruction at which lanes meet.

    Parameters
    ----------
    state : State
    place : int
    act : callable
        Executes it, for a group.
    mask : callable or None
        Gives the membermasks, uint32 `[block, warp, lane]`; None for whole warps.
    barrier : bool
        Whether it is a barrier of the block.

    Attributes
    ----------
    here : dict of int to ndarray of bool
        Who waits, by depth.
    """

    def __init__(
        self, state: State, place: int, act: Act, mask: Callable[[], Array] | None, *, barrier: bool = False
    ) -> None:
        self._state, self.place, self._act, self._mask = state, place, act, mask
        self._barrier = barrier
        self.here: dict[int, Array] = {}

    def come(self, group: Group, acting: Group) -> int:
        """Let those of a group who execute it come; return where the group goes on."""
        if not self.here and (acting.full or not self.missing(acting.bits).any()):
            self._act(acting)
            return self._after(group)
        scheduler, after = self._state.scheduler, self.place + 1
        scheduler.put_lanes(after, group.bits & ~acting.bits, group.depth)
        before = self.here.get(acting.depth)
        self.here[acting.depth] = acting.bits if before is None else before | acting.bits
        self.meet()
        return STOP

    def _after(self, group: Group) -> int:
        scheduler, after = self._state.scheduler, self.place + 1
        if self._state.batch.lanes.any_waiting:
            scheduler.go_on(after, group.bits, group.depth)
        elif scheduler.waiting:
            scheduler.put(after, group)
        else:
            return after
        scheduler.release()
        return STOP

    def missing(self, present: Array) -> Array:
        """Tell which lanes, of those who are there, somebody is missing for."""
        away = words(self._state.batch.lanes.alive) & ~words(present)
        if self._mask is None:
            return np.asarray(present & (away != 0)[..., None])
        return np.asarray(present & (self._mask() & away[..., None] != 0))

    def everybody(self) -> Array:
        """Return who waits."""
        present: Array = np.zeros(self._state.batch.shape, bool)
        for bits in self.here.values():
            present |= bits
        return present

    def stuck(self, where: str) -> None:
        """Nobody can run: report it, and execute it as it is (rule 4)."""
        here = self.everybody()
        site = self._state.program.steps[self.place].site
        kind = "barrier" if self._barrier else "divergent"
        detail = f"nobody can run, and lanes that this waits for have not come. {where}"
        self._state.batch.reporter.report(kind, site, here, detail=detail)
        self.meet(force=True)

    def meet(self, force: bool = False) -> None:
        """Let those go for whom all have come, or everybody (rule 4)."""
        present = self.everybody()
        ready = present if force else present & ~self.missing(present)
        count = int(np.count_nonzero(ready))
        if not count:
            return
        waited, self.here = self.here, {}
        for depth, bits in waited.items():
            rest = bits & ~ready
            if rest.any():
                self.here[depth] = rest
        state = self._state
        everybody = count == state.scheduler.alive
        self._act(Group(state.batch.lanes.alive if everybody else ready, count, everybody))
        for depth, bits in waited.items():
            state.scheduler.go_on(self.place + 1, bits & ready, depth)
        state.scheduler.release()


class Meetings:
    """All meetings of a program."""

    def __init__(self) -> None:
        self._all: list[Meeting] = []

    def add(self, meeting: Meeting) -> Meeting:
        """Add one."""
        self._all.append(meeting)
        return meeting

    @property
    def open(self) -> list[Meeting]:
        """Those where somebody waits, by place."""
        return sorted((x for x in self._all if x.here), key=lambda x: x.place)

    def exited(self) -> None:
        """Lanes have exited."""
        for meeting in self.open:
            meeting.meet()
