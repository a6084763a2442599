"""Control flow of a program: basic blocks, what follows a step, and which registers it reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from .steps import (
    Alternative,
    AnyStep,
    Branch,
    BranchTable,
    Call,
    InstructionStep,
    Inverted,
    Program,
    Return,
    Slot,
    Sum,
)


def slots_of(x: Any) -> Iterator[int]:
    """Yield the registers of an operand, or of several."""
    if isinstance(x, Slot):
        yield x.number
    elif isinstance(x, Inverted):
        yield x.slot.number
    elif isinstance(x, Sum):
        yield from slots_of(x.base)
    elif isinstance(x, tuple):
        for each in x:
            yield from slots_of(each)


def uses(step: AnyStep) -> tuple[list[int], list[int]]:
    """Return the registers that a step reads, and those that it writes."""
    read = [] if step.guard is None else [step.guard.slot.number]
    if isinstance(step, InstructionStep):
        read += slots_of(step.operands)
        return read, [x.number for x in step.results if x is not None]
    if isinstance(step, BranchTable):
        read += [step.index.number]
    elif isinstance(step, Alternative):
        read += [step.result.number, *slots_of(step.others)]
    elif isinstance(step, Call):
        read += slots_of(step.to)
    return read, []


def successors(pc: int, step: AnyStep, last: int) -> tuple[int, ...]:
    """Return the successors of a step."""
    on = (pc + 1,) if pc < last else ()
    if isinstance(step, Branch):
        return (step.to,) if step.guard is None else (step.to, *on)
    if isinstance(step, BranchTable):
        return (*step.to, *on)
    return () if isinstance(step, Return) and step.guard is None else on


def basic_blocks(program: Program) -> list[range]:
    """Cut a program into basic blocks."""
    last, steps = len(program.steps) - 1, program.steps
    heads = {0, len(steps), *(x.first for x in program.callees.values())}
    for pc, step in enumerate(steps):
        to = successors(pc, step, last)
        if to != (pc + 1,):
            heads.update(to)
            heads.add(pc + 1)
    cuts = sorted(heads)
    return [range(a, b) for a, b in pairwise(cuts)]


def block_graph(program: Program) -> tuple[list[range], list[list[int]]]:
    """Return the basic blocks of a program, and the numbers of those that follow each."""
    blocks, last = basic_blocks(program), len(program.steps) - 1
    number = {block.start: i for i, block in enumerate(blocks)}
    return blocks, [[number[x] for x in successors(block[-1], program.steps[block[-1]], last)] for block in blocks]
