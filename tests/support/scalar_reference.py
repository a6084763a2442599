"""Programs run slowly, one thread after another: the reference for divergence, reconvergence, calls and returns.

Registers are Python integers, and every thread runs alone from the first step to its end: there are no warps here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpmma.machine import (
    Branch,
    BranchTable,
    Call,
    Constant,
    InstructionStep,
    Inverted,
    Program,
    ReadOnly,
    Return,
    Slot,
)

__all__ = ["alone"]

_M = 0xFFFFFFFF

_ROWS: dict[str, Callable[..., int]] = {
    "mov.u32": lambda a: a,
    "mov.u64": lambda a: a,
    "add.u32": lambda a, b: a + b & _M,
    "sub.u32": lambda a, b: a - b & _M,
    "mul.lo.u32": lambda a, b: a * b & _M,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "and.pred": lambda a, b: a & b,
    "setp.lt.u32": lambda a, b: int(a < b),
    "setp.eq.u32": lambda a, b: int(a == b),
    "setp.ne.u32": lambda a, b: int(a != b),
    "selp.b32": lambda a, b, p: a if p else b,
}


def alone(program: Program, special: dict[str, int], most: int = 100_000) -> dict[int, int]:
    """Run a program for one thread, whose special registers are given; return the slots that it wrote."""
    registers: dict[int, int] = {}
    calls: list[tuple[int, Any, dict[int, int]]] = []
    place = 0

    def value(x: Any) -> int:
        if isinstance(x, Slot):
            return registers[x.number]
        if isinstance(x, Inverted):
            return 1 - registers[x.slot.number]
        if isinstance(x, Constant):
            return x.bits
        assert isinstance(x, ReadOnly)
        return special[x.name]

    for _ in range(most):
        if place == len(program.steps):
            return registers
        step: Any = program.steps[place]
        place += 1
        if step.guard is not None and bool(registers[step.guard.slot.number]) == step.guard.negated:
            continue
        if isinstance(step, Branch):
            place = step.to
        elif isinstance(step, BranchTable):
            place = step.to[registers[step.index.number]]
        elif isinstance(step, Call):
            callee = _callee(program, step, registers)
            kept = {x: registers[x] for x in callee.slots if x in registers} if callee.recursive else {}
            calls.append((place, callee, kept))
            for x in callee.slots:
                registers.pop(x, None)
            place = callee.first
        elif isinstance(step, Return):
            if not calls:
                return registers
            place, callee, kept = calls.pop()
            if callee.recursive:
                for x in callee.slots:
                    registers.pop(x, None)
                registers.update(kept)
        else:
            assert isinstance(step, InstructionStep)
            if str(step.row) == "exit":
                return registers
            (result,) = step.results
            assert result is not None
            registers[result.number] = _ROWS[str(step.row)](*map(value, step.operands))
    raise AssertionError("a program that does not end")


def _callee(program: Program, step: Call, registers: dict[int, int]) -> Any:
    if isinstance(step.to, str):
        return program.callees[step.to]
    address = registers[step.to.number]
    return next(x for x in program.callees.values() if x.address == address)
