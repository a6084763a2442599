"""Early stores: plain stores that ptxas may move in front of a `cp.async.bulk.wait_group.read` before them (A29).

The rules:

1. ptxas 13.0 moves a plain store to global memory in front of a wait with `.read` (measured): it sees no reason to keep
   them in order. PTX says that the tensor map has been read by then, and does not allow that.
2. Here such stores are those that follow the wait in its basic block with nothing but arithmetic, moves and such stores
   between. A barrier, a fence, another access of memory or a branch between keeps the store where it is; of other
   accesses that is not known.
"""

from __future__ import annotations

from ...operations import Access, CopyGroup, Operation
from ..base import Site
from .step_flow import basic_blocks
from .steps import AnyStep, InstructionStep, Program


def early_stores(program: Program) -> frozenset[tuple[Site, Site]]:
    """Return the lines of such waits, each with that of a store."""
    steps = program.steps
    if not any(_waits(step) for step in steps):
        return frozenset()
    found: set[tuple[Site, Site]] = set()
    for block in basic_blocks(program):
        wait: Site | None = None
        for step in (steps[pc] for pc in block):
            if not isinstance(step, InstructionStep):
                wait = None
            elif _waits(step):
                wait = step.site
            elif _stores(step):
                if wait is not None:
                    found.add((wait, step.site))
            elif not isinstance(step.row, Operation):
                wait = None
    return frozenset(found)


def _waits(step: AnyStep) -> bool:
    row = step.row if isinstance(step, InstructionStep) else None
    return isinstance(row, CopyGroup) and row.bulk and row.read


def _stores(step: InstructionStep) -> bool:
    row = step.row
    if not isinstance(row, Access) or row.space not in ("global", "generic"):
        return False
    return row.direction == "store" and row.order == "weak"
