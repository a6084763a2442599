"""Branches: groups that go on elsewhere, together or apart.

The rules (PTX ISA 9.1, 9.7.12: `bra`, `brx.idx`):

1. Who branches and who does not are two groups from there on, if both are somebody.
2. `.uni` promises that all go one way; where they do not, that is a hazard, and they part all the same.
3. An index that is not below the number of places is a hazard; those lanes end there.
4. Who goes back has been round a loop: rule 3 of `scheduling`.
"""

from __future__ import annotations

import numpy as np

from ..base import Site
from ..program import Branch, BranchTable
from .groups import Group
from .guards import chooser, divided
from .meetings import Meetings
from .preparing import Advance
from .scheduling import STOP
from .state import State


def branch(state: State, place: int, step: Branch) -> Advance:
    """Return a `bra` as a function of the group that has come to it."""
    counts, after, to = state.counts, place + 1, step.to
    goes_back = to <= place
    if step.guard is None:

        def jump(group: Group) -> int:
            counts[place] += group.warps
            return state.scheduler.back(to, group) if goes_back and group.observed else to

        return jump
    choose = chooser(state, step.site, step.guard)

    def advance(group: Group) -> int:
        counts[place] += group.warps
        taken = choose(group)
        if taken is None:
            return after
        if taken is group:
            return state.scheduler.back(to, group) if goes_back and group.observed else to
        scheduler, rest = state.scheduler, divided(group, taken)
        if rest is not None:
            if step.uniform:
                check_uniform(state, step.site, taken, rest)
            scheduler.put(after, rest)
        taken = group.part(taken.bits, taken.count)  # the guard may give the same to others again
        if not goes_back or not taken.observed or scheduler.back(to, taken) != STOP:
            scheduler.put(to, taken)
        return STOP

    return advance


def check_uniform(state: State, site: Site, some: Group, rest: Group) -> None:
    """Rule 2."""
    both = some.bits.any(axis=-1, keepdims=True) & rest.bits.any(axis=-1, keepdims=True)
    bad = np.asarray(rest.bits & both)
    detail = "`.uni` says that all lanes of the warp that are here go one way; these do not go with the others"
    state.batch.reporter.report("divergent", site, bad, detail=detail)


def branch_table(state: State, meetings: Meetings, place: int, step: BranchTable) -> Advance:
    """Return a `brx.idx` as a function of the group that has come to it."""
    counts, slot = state.counts, step.index.number
    choose = None if step.guard is None else chooser(state, step.site, step.guard)

    def advance(group: Group) -> int:
        counts[place] += group.warps
        acting = group if choose is None else choose(group)
        if acting is None:
            return place + 1
        scheduler, batch = state.scheduler, state.batch
        (index,) = batch.read(step.site, [state.registers[slot]], [acting.bits])
        rest = divided(group, acting)
        if rest is not None:
            scheduler.put(place + 1, rest)
        wrong = acting.bits & (index >= len(step.to))
        if wrong.any():
            detail = f"an index of {int(index[wrong][0])}; there are {len(step.to)} places, from 0 on"
            batch.reporter.report("bounds", step.site, wrong, detail=detail)
            batch.leave(wrong)
        for value in np.unique(index[acting.bits & ~wrong]).tolist():
            bits = acting.bits & ~wrong & (index == value)
            some = acting.part(bits, int(np.count_nonzero(bits)))
            to = step.to[value]
            if to > place or not some.observed or scheduler.back(to, some) != STOP:
                scheduler.put(to, some)
        if wrong.any():
            scheduler.release()
            meetings.exited()
        return STOP

    return advance
