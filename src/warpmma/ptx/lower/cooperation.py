"""Cooperative launches: what `cooperative_groups` needs for all blocks of a grid to meet.

The rules (CUDA 13.0, cooperative_groups/details/driver_abi.h and sync.h):

1. `grid_group::sync` counts blocks in 8 bytes of global memory, a size and a counter that begins at 0. %envreg1 and
   %envreg2 are the upper and the lower half of their address. CUDA gives it to cooperative launches; here each launch
   is one whose program reads these registers.
2. All blocks of such a launch are resident together, unless the caller says how many are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...machine import Argument, GlobalMemory, InstructionStep, Program, ReadOnly, StepOperand

_HALVES = {"envreg1": 4, "envreg2": 0}
"""Bytes from the beginning of the address."""
_SIZE = 8  # bytes


def cooperates(program: Program) -> bool:
    """Tell whether a program reads where blocks meet."""
    return any(
        isinstance(x, ReadOnly) and x.name in _HALVES
        for step in program.steps
        if isinstance(step, InstructionStep)
        for x in step.operands
    )


def workspace(memory: GlobalMemory) -> bytes:
    """Place where blocks of a launch meet, and return its address, of 8 bytes."""
    words = np.zeros(_SIZE // 4, np.uint32)
    words[0] = _SIZE
    return memory.add(words, "the workspace of cooperative groups").to_bytes(8, "little")


def with_workspace(program: Program, at: int) -> Program:
    """Return a program that reads the address of its workspace from so many bytes on of the launch's parameters."""

    def given(x: StepOperand | None) -> StepOperand | None:
        if isinstance(x, ReadOnly) and x.name in _HALVES:
            return Argument(at + _HALVES[x.name], 4, False, x.kind)
        return x

    steps = tuple(
        replace(step, operands=tuple(map(given, step.operands)))
        if isinstance(step, InstructionStep) and step.operands
        else step
        for step in program.steps
    )
    return replace(program, steps=steps)
