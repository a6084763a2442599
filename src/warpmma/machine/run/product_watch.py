"""Lets `ProductTimes` know what a step does with registers of products."""

from __future__ import annotations

from ..program import InstructionStep
from .branching import Act
from .groups import Group
from .state import State


def product_watched(state: State, pc: int, step: InstructionStep, act: Act) -> Act:
    """Return a step of `program.products` that is seen."""
    program, known = state.program, state.program.products
    writes, fences, product = pc in known.writes, pc in known.fences, pc in known.products
    timed, guarded = pc in known.timed, step.guard is not None

    def watched(group: Group) -> None:
        if not (batch := state.batch).reporter.tracking:
            act(group)
            return
        times = batch.product_times
        if writes:
            times.writes(program, pc, group.bits, guarded=guarded)
        if product:
            times.multiplies(program, pc, group.bits)
            batch.warpgroups.step = pc
        act(group)
        if product:
            batch.warpgroups.step = -1
        if fences:
            times.fences(group.bits)
        elif timed:
            times.executes(pc, group.bits)

    return watched
