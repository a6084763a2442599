"""Guards: which lanes of a group execute a step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..base import Site
from ..program import Guard
from .groups import Group
from .state import State

Choose = Callable[[Group], Group | None]
"""From a group to those of it who execute a step: itself, some of it, or None."""


def chooser(state: State, site: Site, guard: Guard) -> Choose:
    """Return what a guard chooses; steps that follow one another often have the same, so the last answer is kept."""
    registers, slot, negated = state.registers, guard.slot.number, guard.negated
    last = state.last_guard

    def choose(group: Group) -> Group | None:
        register = registers[slot]
        if register is last[0] and group is last[1] and negated is last[2]:
            chosen: Group | None = last[3]
            return chosen
        if register.defined is not None:
            state.batch.read(site, [register], [group.bits])
        bits = group.bits & ~register.bits if negated else group.bits & register.bits
        count = int(np.count_nonzero(bits))
        chosen = None if not count else group if count == group.count else group.part(bits, count)
        last[:] = register, group, negated, chosen
        return chosen

    return choose


def divided(group: Group, some: Group | None) -> Group | None:
    """Return the rest of a group without some of it; None where that is nobody."""
    if some is group:
        return None
    if some is None:
        return group
    return group.part(group.bits & ~some.bits, group.count - some.count)
