"""Steps that select lanes: guards, branches, and comparisons of a result with what it may be elsewhere.

The rules (PTX ISA 9.1, 9.7.12: `bra`, `brx.idx`):

1. Lanes that branch and lanes that do not become two groups, if neither is empty.
2. `.uni` promises that all lanes go the same way; where they do not, that is a hazard, and they diverge all the same.
3. An index beyond the table is a hazard and ends those lanes.
4. A group that branches backwards has completed an iteration of a loop: rule 3 of `scheduling`.
5. Where poison is followed, a poisoned guard decides something, unless it only selects operations on registers: of one
   step, or of all steps up to where the ways of a branch meet (`_Hammock`). Lanes go where the guard's value says, and
   what they may have written there becomes poison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..._arrays import Array
from ...operations import Operation
from ..base import Site, WarpRegister
from ..program import Alternative, Branch, BranchTable, Guard, InstructionStep
from .convergence import ConvergencePoints
from .groups import Advance, Group
from .scheduling import STOP
from .state import State

Act = Callable[[Group], object]
Choose = Callable[[Group], Group | None]
"""From a group to the part of it that executes a step: all of it, some of its lanes, or None."""


class _Chooser:
    """A guard; consecutive steps often have the same guard, so the state keeps the last result of all."""

    __slots__ = ("_last", "_negated", "_registers", "_site", "_slot", "_state")

    def __init__(self, state: State, site: Site, guard: Guard) -> None:
        self._state, self._site, self._slot, self._negated = state, site, guard.slot.number, guard.negated
        self._registers, self._last = state.registers, state.last_guard

    def choose(self, group: Group) -> Group | None:
        register, negated, last = self._registers[self._slot], self._negated, self._last
        if register is last[0] and group is last[1] and negated is last[2]:
            chosen: Group | None = last[3]
            return chosen
        if register.shadow is not None:
            self._state.batch.read(self._site, [register], [group.bits])
        chosen = _chosen(group, register, negated)
        last[:] = register, group, negated, chosen
        return chosen


def chooser(state: State, site: Site, guard: Guard) -> Choose:
    """Return a guard as a function."""
    return _Chooser(state, site, guard).choose


def _chosen(group: Group, register: WarpRegister, negated: bool) -> Group | None:
    return group.some(group.bits & ~register.bits if negated else group.bits & register.bits)


# Rule 5


def poisoned(state: State, guard: Guard, group: Group) -> Array | None:
    """Return the lanes of a group in which a guard is poison that is followed; None if there are none."""
    shadow = state.registers[guard.slot.number].shadow
    if shadow is None or not state.batch.reporter.follows:
        return None
    bad: Array = shadow.poison(group.bits)
    return bad if bad.any() else None


def selecting(state: State, pc: int, step: InstructionStep, guard: Guard, usual: Advance, act: Act) -> Advance:
    """Return an operation on registers that a guard selects; `usual` is what it is without poison, `act` its action."""
    registers, counts = state.registers, state.counts
    slots = [x.number for x in step.results if x is not None]

    def advance(group: Group) -> int:
        if (bad := poisoned(state, guard, group)) is None:
            return usual(group)
        register = registers[guard.slot.number]
        acting = _chosen(group, register, guard.negated)
        if acting is not None:
            counts[pc] += acting.warps
            act(acting)
        state.spoil(slots, bad, register)
        return pc + 1

    return advance


class _Hammock(NamedTuple):
    """The steps between a branch and where its ways meet: operations on registers alone."""

    end: int
    slots: list[int]  # what they write

    @classmethod
    def after(cls, state: State, pc: int, step: Branch) -> _Hammock | None:
        """Return that of a branch; None if it has none."""
        steps, slots = state.program.steps, dict[int, None]()
        first, end = pc + 1, step.to
        if not first < end <= len(steps):
            return None
        last = steps[end - 1]
        if isinstance(last, Branch) and last.guard is None and last.to > end:
            every, end = [*steps[first : end - 1], *steps[end : last.to]], last.to  # both ways do something
        else:
            every = list(steps[first:end])
        for x in every:
            if not (isinstance(x, InstructionStep) and only_computes(x)):
                return None
            slots.update((slot.number, None) for slot in x.results if slot is not None)
        return cls(end, list(slots))


def only_computes(step: InstructionStep) -> bool:
    """Whether a step does nothing but compute registers of its lanes."""
    return isinstance(step.row, Operation) and not step.row.lanes


def _spoiling(state: State, code: list[Advance], hammock: _Hammock, bad: Array, register: WarpRegister) -> None:
    """Make poison of what a hammock writes, in some lanes, when they arrive at its end."""
    inner, left = code[hammock.end], bad.copy()

    def advance(group: Group) -> int:
        nonlocal inner
        here = group.bits & left
        if here.any():
            state.spoil(hammock.slots, here, register)
            np.logical_and(left, ~here, out=left)
        code[hammock.end] = inner
        after = inner(group)  # which may replace itself: a step is prepared at its first use
        if left.any():
            inner, code[hammock.end] = code[hammock.end], advance
        return after

    code[hammock.end] = advance


def divided(group: Group, some: Group | None) -> Group | None:
    """Return a group without a part of it; None if nothing is left."""
    if some is group:
        return None
    if some is None:
        return group
    return group.part(group.bits & ~some.bits, group.count - some.count)


# Branches


class _Branch:
    """A `bra`: a record with slots, see `step_compiler`."""

    __slots__ = ("_after", "_choose", "_code", "_counts", "_goes_back", "_hammock", "_pc", "_state", "_step", "_to")

    def __init__(self, state: State, code: list[Advance], pc: int, step: Branch) -> None:
        self._state, self._code, self._pc, self._step = state, code, pc, step
        self._counts, self._after, self._to, self._goes_back = state.counts, pc + 1, step.to, step.to <= pc
        self._choose = None if step.guard is None else chooser(state, step.site, step.guard)
        self._hammock: tuple[_Hammock | None] | None = None  # once it is asked for

    def jump(self, group: Group) -> int:
        """Without a guard."""
        self._counts[self._pc] += group.warps
        return self._state.scheduler.back(self._to, group) if self._goes_back and group.observed else self._to

    def advance(self, group: Group) -> int:
        """With a guard."""
        self._counts[self._pc] += group.warps
        taken = self._selected(group)
        if taken is None:
            return self._after
        state, to, goes_back = self._state, self._to, self._goes_back
        if taken is group:
            return state.scheduler.back(to, group) if goes_back and group.observed else to
        scheduler, rest = state.scheduler, divided(group, taken)
        if rest is not None:
            if self._step.uniform:
                check_uniform(state, self._step.site, taken, rest)
            scheduler.put(self._after, rest)
        taken = group.part(taken.bits, taken.count)  # the guard may return the same group to others
        if not goes_back or not taken.observed or scheduler.back(to, taken) != STOP:
            scheduler.put(to, taken)
        return STOP

    def _selected(self, group: Group) -> Group | None:
        """Return the lanes that branch (rule 5)."""
        guard = self._step.guard
        assert guard is not None and self._choose is not None
        bad = poisoned(self._state, guard, group)
        if bad is None or (hammock := self._hammock_of_branch()) is None:
            return self._choose(group)
        register = self._state.registers[guard.slot.number]
        _spoiling(self._state, self._code, hammock, bad, register)
        return _chosen(group, register, guard.negated)

    def _hammock_of_branch(self) -> _Hammock | None:
        if self._hammock is None:
            self._hammock = (_Hammock.after(self._state, self._pc, self._step),)
        return self._hammock[0]


def branch(state: State, code: list[Advance], pc: int, step: Branch) -> Advance:
    """Return a `bra` as a function of the group that reaches it; `code` is that of all steps."""
    made = _Branch(state, code, pc, step)
    return made.jump if step.guard is None else made.advance


def check_uniform(state: State, site: Site, some: Group, rest: Group) -> None:
    """Rule 2."""
    both = some.bits.any(axis=-1, keepdims=True) & rest.bits.any(axis=-1, keepdims=True)
    bad = np.asarray(rest.bits & both)
    detail = "`.uni` promises that all lanes of the warp that are here branch alike; these do not"
    state.batch.reporter.report("divergent", site, bad, detail=detail)


def branch_table(state: State, points: ConvergencePoints, pc: int, step: BranchTable) -> Advance:
    """Return a `brx.idx` as a function of the group that reaches it."""
    counts, slot = state.counts, step.index.number
    choose = None if step.guard is None else chooser(state, step.site, step.guard)

    def advance(group: Group) -> int:
        counts[pc] += group.warps
        acting = group if choose is None else choose(group)
        if acting is None:
            return pc + 1
        scheduler, batch = state.scheduler, state.batch
        (index,) = batch.read(step.site, [state.registers[slot]], [acting.bits])
        rest = divided(group, acting)
        if rest is not None:
            scheduler.put(pc + 1, rest)
        wrong = acting.bits & (index >= len(step.to))
        if wrong.any():
            detail = f"index {int(index[wrong][0])} is out of range; the table has {len(step.to)} targets"
            batch.reporter.report("bounds", step.site, wrong, detail=detail)
            batch.leave(wrong)
        for value in np.unique(index[acting.bits & ~wrong]).tolist():
            bits = acting.bits & ~wrong & (index == value)
            some = acting.part(bits, int(np.count_nonzero(bits)))  # not `acting` itself, which a guard may return again
            to = step.to[value]
            if to > pc or not some.observed or scheduler.back(to, some) != STOP:
                scheduler.put(to, some)
        if wrong.any():
            scheduler.release()
            points.exited()
        return STOP

    return advance


# Comparisons


def alternative(state: State, pc: int, step: Alternative) -> Advance:
    """Return a comparison as a function of the group that reaches it."""
    choose = None if step.guard is None else chooser(state, step.site, step.guard)
    registers, after = state.registers, pc + 1
    result, others = step.result.number, [(other.number, there.number) for other, there in step.others]

    def advance(group: Group) -> int:
        acting = group if choose is None else choose(group)
        if acting is None:
            return after
        bits = instead = registers[result].bits
        looked = differs = np.zeros(state.shape, bool)
        for other, there in others:
            fits = acting.bits & (registers[there].bits != 0)
            new = fits & (registers[other].bits != bits) & ~differs
            instead = np.where(new, registers[other].bits, instead)
            looked, differs = looked | fits, differs | new
        reporter = state.batch.reporter
        reporter.comparisons.count(step, reporter.running, looked, differs, (bits, instead))
        return after

    return advance
