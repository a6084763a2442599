"""Steps that compare a register with what it may be instead, in the lanes that execute them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..program import Alternative
from .groups import Group
from .guards import chooser
from .state import State


def alternative(state: State, place: int, step: Alternative) -> Callable[[Group], int]:
    """Return a comparison as a function of the group that has come to it."""
    choose = None if step.guard is None else chooser(state, step.site, step.guard)
    registers, after = state.registers, place + 1
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
        reporter.comparisons.count(step, reporter.first_block, looked, differs, (bits, instead))
        return after

    return advance
