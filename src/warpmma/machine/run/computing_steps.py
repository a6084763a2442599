"""Steps that only compute registers, as functions of the group that reaches them: rule 2 of `step_compiler`.

The rules:

1. If all lanes have written what an operation reads, its function takes whole arrays.
2. If fewer than 1 in 4 warps have lanes in the group, only these warps are computed (rule 3 of `groups`).
3. If some lanes have not written an operand, `computing` does what follows from that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import WarpRegister
from ..handlers import compute
from ..program import Constant, InstructionStep
from .branching import Act
from .groups import Group
from .state import State

_FEW = 4  # rule 2


class GivenOperands:
    """Operands of a handler: registers, ints for immediates, None for omitted ones."""

    __slots__ = ("_fixed", "_operands", "_registers")

    def __init__(self, registers: list[Any], step: InstructionStep, operands: tuple[Any, ...]) -> None:
        self._registers, self._operands = registers, operands
        fixed: dict[int, int | None] = {
            i: x.bits for i, x in enumerate(step.operands) if isinstance(x, Constant) and x.kind == "imm"
        }
        fixed |= {i: None for i, x in enumerate(step.operands) if x is None}
        self._fixed = fixed or None

    def now(self) -> list[Any]:
        """Return what they are when the step runs."""
        registers, fixed = self._registers, self._fixed
        if fixed is None:
            return [registers[i] for i in self._operands]
        return [fixed[n] if n in fixed else registers[i] for n, i in enumerate(self._operands)]


class _Computation:
    """An operation on registers, and what it needs at every execution.

    A record with slots: see `step_compiler`.
    """

    __slots__ = (
        "_dtypes",
        "_few",
        "_function",
        "_operands",
        "_registers",
        "_shape",
        "_site",
        "_slots",
        "_state",
        "_step",
    )

    def __init__(self, state: State, step: InstructionStep, operands: tuple[Any, ...]) -> None:
        row: Any = step.row
        self._state, self._step, self._operands, self._site = state, step, operands, step.site
        self._registers, self._shape, self._few = state.registers, state.shape, _few(state.shape)
        self._function = state.batch.function(row)
        self._dtypes = tuple(state.dtype(kind) for kind in row.outputs)
        self._slots = tuple(None if x is None else x.number for x in step.results)

    def several(self, group: Group) -> None:
        """No result, several results, or an unused one."""
        registers = self._registers
        given = [registers[i] for i in self._operands]
        for x in given:
            if x.shadow is not None and not x.shadow.clean(group.bits):
                self._slow(group)
                return
        if group.warps < self._few:
            self._some(group)
            return
        state, results = self._state, self._function(*[x.bits for x in given])
        for slot, bits, dtype in zip(self._slots, results, self._dtypes, strict=True):
            if slot is not None:
                state.write(slot, state.shaped(bits, dtype), group, self._site)

    def silent(self, group: Group) -> None:
        """Without hazards."""
        registers, state = self._registers, self._state
        results = self._function(*[registers[i].bits for i in self._operands])
        for slot, bits, dtype in zip(self._slots, results, self._dtypes, strict=True):
            if slot is not None:
                state.write(slot, state.shaped(bits, dtype), group, self._site)

    def _some(self, group: Group) -> None:
        """Rule 2."""
        index, registers = group.index, self._registers
        given = [x.bits if isinstance(x.bits, int) else x.bits[index] for x in (registers[i] for i in self._operands)]
        shape = len(index[0]), self._shape[2]
        for slot, bits, dtype in zip(self._slots, self._function(*given), self._dtypes, strict=True):
            if slot is not None:
                new = np.broadcast_to(np.asarray(bits, dtype), shape)
                registers[slot] = group.scattered(registers[slot], new, self._site)

    def _slow(self, group: Group) -> None:
        """Rule 3."""
        state, step, site = self._state, self._step, self._site
        given = GivenOperands(self._registers, step, self._operands).now()
        results = compute(state.batch, site, step.row, given, group.bits)  # type: ignore[arg-type]
        for slot, new in zip(self._slots, results, strict=True):
            if slot is not None:
                state.put(slot, new, group, site)


class _OneResult(_Computation):
    """An operation with one result, as most are."""

    __slots__ = ("_dtype", "_slot")

    def __init__(self, state: State, step: InstructionStep, operands: tuple[Any, ...], slot: int) -> None:
        super().__init__(state, step, operands)
        self._slot, (self._dtype,) = slot, self._dtypes

    def single(self, group: Group) -> None:
        """Rule 1."""
        registers = self._registers
        given = [registers[i] for i in self._operands]
        for x in given:
            if x.shadow is not None and not x.shadow.clean(group.bits):
                self._slow(group)
                return
        if group.warps < self._few:
            self._some(group)
            return
        (bits,) = self._function(*[x.bits for x in given])
        if bits.dtype is not self._dtype or bits.shape != self._shape:
            bits = self._state.shaped(bits, self._dtype)
        new, slot = WarpRegister(bits), self._slot
        registers[slot] = new if group.full else group.merged(registers[slot], new, self._site)


def _few(shape: tuple[int, int, int]) -> int:
    return shape[0] * shape[1] // _FEW


def computation(state: State, step: InstructionStep, operands: tuple[Any, ...]) -> Act:
    """Return an operation on registers, by their indices in the list of the state."""
    if len(step.results) == 1 and step.results[0] is not None:
        return _OneResult(state, step, operands, step.results[0].number).single
    return _Computation(state, step, operands).several


def silent_computation(state: State, step: InstructionStep, operands: tuple[Any, ...]) -> Act:
    """Return an operation that reports no hazards."""
    return _Computation(state, step, operands).silent
