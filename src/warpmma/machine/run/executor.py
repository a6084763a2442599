"""The executor: runs a program to its end on a batch of blocks.

The rules:

1. Each step becomes a function of the group that reaches it (`step_compiler`, `branching`, `calling`); `scheduling`
   decides which group is next. Threads that run past the last step have ended. Prepared steps are kept for the next
   batch or launch with as many blocks and threads, the same target and engine, but not after a batch that ended with
   an error.
2. If no lane can run and some have not ended, lanes that wait for others (`convergence`) execute the instruction as
   they are; after them, threads that wait at barriers continue. Either is a hazard, which tells where all others are.
3. Endless spins are found (`deadlock`); if that is only a warning, the threads end.
4. A `Limit` is checked at least every 4096 steps, or every 64 if it is a limit of time. Results never depend on time,
   except for whether they arrive.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from itertools import repeat
from threading import Lock
from types import MappingProxyType

import numpy as np

from ..._arguments import is_integer
from ...errors import LimitError, OperandError, shown
from ...operations import Exit, Stack
from ..base import Lanes, Site, WarpRegister
from ..block import Batch, Grid
from ..program import Alternative, AnyStep, Branch, BranchTable, Call, Program, Return
from .branching import alternative, branch, branch_table
from .calling import Calls, RuntimeCall
from .convergence import ConvergencePoints
from .deadlock import Spins, where_lanes_are
from .groups import Advance, Group
from .scheduling import STOP
from .state import State
from .step_compiler import leaving, prepared

_OFTEN, _SOON = 4096, 64  # steps between two checks of the limit; and of one in seconds
_MOST_KEPT = 4  # of a program: shapes whose steps are kept
_KEEPING = Lock()
"""Held while a launch takes steps of a program, or gives them back: launches in several threads have separate steps."""


class Limit:
    """The limit of a launch, and how much of it is used: one for all of its batches.

    Parameters
    ----------
    instructions : int, optional
        Of warps: an instruction counts once for every warp with lanes that execute it together.
    seconds : float, optional
        From now on.

    Raises
    ------
    OperandError
        A limit that is not a positive number.
    """

    def __init__(self, *, instructions: int | None = None, seconds: float | None = None) -> None:
        if instructions is not None and not (is_integer(instructions) and instructions > 0):
            raise OperandError(f"a limit of {shown(instructions)} instructions; expected a positive integer or None")
        if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
            raise OperandError(f"a limit of {shown(seconds)} seconds; expected a positive number or None")
        self.instructions, self.seconds = instructions, seconds
        self.executed, self.steps = 0, 0
        self.until = None if seconds is None else time.monotonic() + seconds

    def over(self, executed: int) -> str:
        """Describe the limit that is exceeded after more instructions in this batch; "" if none is."""
        if self.instructions is not None and self.executed + executed > self.instructions:
            return f"{self.executed + executed} instructions of warps; the limit is {self.instructions}"
        if self.until is not None and time.monotonic() > self.until:
            return f"longer than the limit of {self.seconds} seconds"
        return ""


def run_program(
    batch: Batch, program: Program, grid: Grid, *, limit: Limit | None = None,
    runtime_calls: Mapping[str, RuntimeCall] = MappingProxyType({}), keep: bool = False, parameters: bytes = b"",
) -> tuple[WarpRegister, ...]:  # fmt: skip
    """Run a program until all threads of a batch have ended.

    Parameters
    ----------
    batch : Batch
        Its `seed` decides which thread goes first where CUDA leaves it open; with 0 that is the one at the lowest
        place of the program, in the order of numbers.
    program : Program
    grid : Grid
        Of the launch; its `shared` is all shared memory of a block, and what is behind the program's variables is
        dynamic.
    limit : Limit, optional
        Of the launch; without one it runs on.
    runtime_calls : mapping of str to callable
        Functions that the machine provides, by name.
    keep : bool
        Whether registers are returned; if not, those of exited threads are lost, which is faster.
    parameters : bytes
        Of the launch, as an `Argument` of a step reads them.

    Returns
    -------
    tuple of WarpRegister
        The final value of every slot, in the lanes that have written it.

    Raises
    ------
    HazardError
        A hazard whose policy is an error.
    LimitError
        Instructions, time or memory for calls are used up.
    OperandError
        Operands that do not fit their rows.
    """
    limit = Limit() if limit is None else limit
    key = *batch.shape, batch.lanes.threads, batch.target, batch.native, keep, batch.timeline is not None
    with _KEEPING:
        run = program.kept.pop(key, None)
    if run is None:
        if not program.checked:
            program.check()
        run = _Run(program, batch.lanes, keep)
    run.begin(batch, grid, limit, runtime_calls, parameters)
    found = None
    try:
        run.all()
        found = tuple(run.state.registers[: len(program.registers)])
    finally:
        run.counted()
        run.end()
        if found is None or run.waiting:
            run.drop()
        else:
            with _KEEPING:
                program.kept[key] = run
                while len(program.kept) > _MOST_KEPT:
                    del program.kept[next(iter(program.kept))]
    batch.finish()
    return found


class _Run:
    """The steps of a program as functions, and from `begin` to `end` a batch that they run on."""

    _batch: Batch
    _limit: Limit
    _spins: Spins

    def __init__(self, program: Program, lanes: Lanes, keep: bool) -> None:
        self._program = program
        self.state = State(program, lanes, keep)
        self._meetings = ConvergencePoints()
        self._calls = Calls(self.state, self._meetings)
        first = self._first  # one object for all
        self._code: list[Advance] = [partial(first, place) for place in range(len(program.steps))]
        self._code.append(self._end)
        self._look_at = 0
        self._counted: tuple[list[int], Counter[Site]] = [], Counter()

    def begin(
        self, batch: Batch, grid: Grid, limit: Limit, runtime_calls: Mapping[str, RuntimeCall], parameters: bytes
    ) -> None:
        """Begin a batch."""
        self._batch, self._limit = batch, limit
        program = self.state.program
        batch.registers_at_launch, batch.early_stores = program.registers_at_launch, program.early_stores
        self.state.begin(batch, grid, limit.steps, parameters)
        self._calls.begin(runtime_calls)
        self._spins = Spins(self.state, self._meetings)
        self._look_at = self.state.now + self._until(0)

    @property
    def waiting(self) -> bool:
        """Whether lanes wait at a meeting: then the steps cannot be used again."""
        return bool(self._meetings.open)

    def _first(self, place: int, group: Group) -> int:
        """Prepare a step when the first group comes to it: many steps are never executed."""
        self._code[place] = advance = self._prepared(place, self._program.steps[place])
        return advance(group)

    def _prepared(self, place: int, step: AnyStep) -> Advance:
        state, meetings, calls = self.state, self._meetings, self._calls
        if isinstance(step, Branch):
            return branch(state, self._code, place, step)
        if isinstance(step, BranchTable):
            return branch_table(state, meetings, place, step)
        if isinstance(step, Call):
            return calls.call(place, step)
        if isinstance(step, Return):
            return calls.ret(place, step)
        if isinstance(step, Alternative):
            return alternative(state, place, step)
        if isinstance(step.row, Stack):
            return calls.stack(place, step)
        if isinstance(step.row, Exit):
            return leaving(state, meetings, place, step)
        return prepared(state, meetings, place, step)

    def _end(self, group: Group) -> int:
        """End threads that run past the last step."""
        self._batch.leave(group.bits)
        self.state.scheduler.release()
        self._meetings.exited()
        return STOP

    # Rule 1

    def all(self) -> None:
        """Run all threads to the end."""
        scheduler, lanes = self.state.scheduler, self._batch.lanes
        scheduler.put(0, Group(lanes.alive, int(np.count_nonzero(lanes.alive)), False))
        scheduler.draw()
        while True:
            vain = scheduler.vain
            turn = scheduler.next()
            moved = scheduler.vain > vain and self._batch.hasten(scheduler.vain)
            if scheduler.vain != vain and self._spins.endless(moved=moved):
                self._endless(*turn)  # type: ignore[misc]
            elif turn is not None:
                self._go(*turn)
            elif lanes.alive.any():
                self._stuck()
            else:
                return

    def _go(self, place: int, group: Group) -> None:
        """Run a group until it ends, waits, diverges, or another group is next."""
        code, state, scheduler = self._code, self.state, self.state.scheduler
        while True:
            bound, before = scheduler.bound(group), state.now
            steps = min(scheduler.steps(group) or _OFTEN, max(1, self._look_at - before))
            try:
                for _ in repeat(None, steps):
                    state.now += 1
                    place = code[place](group)
                    if place >= bound:
                        break
            except OperandError as error:  # from a row, which does not know its site
                raise OperandError(f"{self._program.steps[place].site.in_text}: {error}") from None
            scheduler.gone(group, state.now - before)
            if state.now >= self._look_at:
                self._look(place, group)
            if place >= bound:
                if place != STOP:
                    scheduler.put(place, group)
                return
            if scheduler.ready or scheduler.late:
                scheduler.rest(place, group)
                return

    # Rule 4

    def _look(self, place: int, group: Group) -> None:
        executed = sum(self.state.counts)
        if over := self._limit.over(executed):
            if place != STOP:
                self.state.scheduler.put(place, group)
            where = where_lanes_are(self.state, self._meetings)
            raise LimitError(f"{self._program.name} has run {over}. {where}")
        self._look_at = self.state.now + self._until(executed)

    def _until(self, executed: int) -> int:
        """Return how many steps may run before the limit is checked again."""
        steps = _OFTEN if self._limit.seconds is None else _SOON
        if self._limit.instructions is not None:
            blocks, warps, _ = self._batch.shape
            steps = min(steps, (self._limit.instructions - self._limit.executed - executed) // (blocks * warps))
        return max(1, steps)

    def end(self) -> None:
        """Release the batch: its registers are large, and Python collects cycles late."""
        del self._batch, self._limit, self._spins
        self.state.end()
        self._calls.end()

    def drop(self) -> None:
        """Release the steps, which are in a reference cycle."""
        self._code.clear()

    def counted(self) -> None:
        """Report how often each place was executed."""
        self._limit.steps = self.state.now
        counts, (before, by_site) = self.state.counts, self._counted
        if counts != before:  # those of most batches are alike
            by_site = Counter[Site]()
            for step, count in zip(self._program.steps, counts, strict=True):
                if count:
                    by_site[step.site] += count
            self._counted = counts.copy(), by_site
        self._batch.costs.instructions.update(by_site)
        self._limit.executed += sum(counts)

    # Rule 3

    def _endless(self, place: int, group: Group) -> None:
        """Report that all running groups spin and nothing changes."""
        batch, scheduler = self._batch, self.state.scheduler
        scheduler.put(place, group)
        where = where_lanes_are(self.state, self._meetings)
        site = self._program.steps[place].site
        running = {**scheduler.ready, **scheduler.late}
        spinning = np.logical_or.reduce([x.bits for x in running.values()])
        detail = "all running threads wait for a value that no thread will write"
        detail += f"; {scheduler.vain} rounds changed nothing. {where}"
        batch.reporter.report("deadlock", site, spinning, detail=detail)
        scheduler.ready, scheduler.late, scheduler.vain = {}, {}, 0
        batch.leave(spinning)
        scheduler.release()
        self._meetings.exited()

    # Rule 2

    def _stuck(self) -> None:
        scheduler, batch = self.state.scheduler, self._batch
        where = where_lanes_are(self.state, self._meetings)
        if not self._meetings.stuck(where) and batch.lanes.any_waiting:
            batch.stand(batch.lanes.waiting, None, where)
            scheduler.release()
        if not scheduler.ready:  # nothing helped
            batch.leave(batch.lanes.alive)
