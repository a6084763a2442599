"""Liveness: which registers of a program are dead, and after which steps.

The rules:

1. A register is live at a step if some path from there reads it before writing it. A step that has a guard, or is not
   an `InstructionStep`, may leave the old value: it does not kill the registers that it writes.
2. A register that a step reads or writes and that is dead after it is released by that step, or by the next one of the
   same basic block at which lanes neither converge nor wait. `step_compiler` releases it only if all lanes that have
   not exited are there together: lanes elsewhere may still read theirs.
3. Functions have their own registers; a function releases none of its callers' registers.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..._dataflow import settle
from ...isa import Instruction
from ...operations import Barrier, Exit, Operation
from .step_flow import block_graph, uses
from .steps import AnyStep, InstructionStep, Program


def _may_release(step: AnyStep) -> bool:
    """Return whether lanes neither converge nor wait at a step (rule 2)."""
    if not isinstance(step, InstructionStep) or isinstance(step.row, Instruction | Barrier | Exit):
        return False
    if getattr(step.row, "observes", False) or (isinstance(step.row, Operation) and step.row.membermask):
        return False
    return not step.beside and step.row.convergence in ("none", "mask")


def dead_slots(program: Program) -> Mapping[int, tuple[int, ...]]:
    """Return, by program counter, the registers that a step releases."""
    blocks, to = block_graph(program)
    used = [uses(step) for step in program.steps]
    whole = [isinstance(step, InstructionStep) and step.guard is None for step in program.steps]
    live_after = _live_after([_needs_and_kills(block, used, whole) for block in blocks], to)
    found: dict[int, tuple[int, ...]] = {}
    for live, block in zip(live_after, blocks, strict=True):
        dead: dict[int, list[int]] = {}
        for pc in reversed(block):
            read, written = used[pc]
            dead[pc] = [slot for slot in dict.fromkeys((*read, *written)) if not live >> slot & 1]
            if whole[pc]:
                for slot in written:
                    live &= ~(1 << slot)
            for slot in read:
                live |= 1 << slot
        kept: dict[int, None] = {}
        for pc in block:
            for slot in used[pc][1]:
                kept.pop(slot, None)
            kept.update(dict.fromkeys(dead[pc]))
            if kept and _may_release(program.steps[pc]):
                found[pc], kept = tuple(kept), {}
    return found


def _needs_and_kills(block: range, used: list[tuple[list[int], list[int]]], whole: list[bool]) -> tuple[int, int]:
    """Return, as bits, what a basic block reads before it writes it, and what it writes."""
    need = end = 0
    for pc in block:
        read, written = used[pc]
        for slot in read:
            need |= (1 << slot) & ~end
        if whole[pc]:
            for slot in written:
                end |= 1 << slot
    return need, end


def _live_after(summed: list[tuple[int, int]], to: list[list[int]]) -> list[int]:
    """Return, as bits, what is live after each basic block (rule 1)."""
    before, live_after = [0] * len(summed), [0] * len(summed)

    def visit(i: int) -> bool:
        for x in to[i]:
            live_after[i] |= before[x]
        old, (need, end) = before[i], summed[i]
        before[i] = need | (live_after[i] & ~end)
        return before[i] != old

    settle(to, visit)
    return live_after
