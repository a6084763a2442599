"""Programs: instructions with branches among them, on named registers.

What a front end that has a text makes of it. Lanes go their own ways (`schedule`); every instruction goes through the
one door, for those who are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..isa import Instruction
from ..operations import Row
from .batch import Batch
from .door import execute
from .register_file import RegisterFile
from .schedule import Schedule
from .site import Site

__all__ = ["Step", "run"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One place of a program.

    Attributes
    ----------
    site : Site
    row : Row, Instruction or None
        What is executed; None for a branch.
    operands : sequence
        Names of registers, numbers, and sequences of them for fragments.
    results : sequence of str
        Names of the registers that are written.
    guard : str
        Name of a predicate: only lanes that have it execute the step. "" for all.
    negated : bool
        Whether it is those that have it not.
    to : int
        Of a branch, the place where it goes.
    """

    site: Site
    row: Row | Instruction | None = None
    operands: Sequence[Any] = ()
    results: Sequence[str] = ()
    guard: str = ""
    negated: bool = False
    to: int = 0


def run(batch: Batch, steps: Sequence[Step], registers: RegisterFile) -> None:
    """Run a program to its end, which is behind its last step, in every lane.

    Parameters
    ----------
    batch : Batch
    steps : sequence of Step
    registers : RegisterFile
        Of the batch's blocks and warps.

    Raises
    ------
    HazardError
        What is a hazard, and not asked to be a warning.
    RegisterError, OperandError
        Registers that are not declared, and operands that do not fit.
    """
    schedule = Schedule(batch.lanes, batch.barriers)
    while (turn := schedule.next()) is not None:
        place, lanes = turn
        if place >= len(steps):
            batch.leave(lanes)
            continue
        step = steps[place]
        acting = _acting(batch, step, registers, lanes)
        schedule.go(lanes, place + 1)
        if step.row is None:
            batch.costs.count(step.site, lanes)
            schedule.go(acting, step.to)
        elif acting.any():
            operands = [_operand(registers, x) for x in step.operands]
            results = execute(batch, step.site, step.row, operands, acting)
            for name, value in zip(step.results, results, strict=True):
                registers.put(name, value, acting)
    batch.finish()


def _acting(batch: Batch, step: Step, registers: RegisterFile, lanes: Array) -> Array:
    """Return who executes a step: of those who are there the lanes that its guard lets."""
    if not step.guard:
        return lanes
    (predicate,) = batch.read(step.site, [registers.get(step.guard)], [lanes])
    acting = lanes & (~predicate if step.negated else predicate)
    return lanes if np.array_equal(acting, lanes) else acting


def _operand(registers: RegisterFile, x: Any) -> Any:
    if isinstance(x, str):
        return registers.get(x)
    return [_operand(registers, each) for each in x] if isinstance(x, list | tuple) else x
