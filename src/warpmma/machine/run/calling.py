"""Calls: return addresses, frames and registers of every thread.

The rules (PTX ISA 9.1, 9.7.12: `call`, `ret`; 7.3, recursion):

1. A call begins a frame of local memory after the caller's, rounded up to 16 bytes. Arguments are copied into it, and
   results out of it when the thread returns.
2. A call does not find the values that an earlier call left in the function's registers. If the function may be running
   already (`Callee.recursive`), each thread's registers are saved for the duration of the call.
3. A call through a register calls the function at that address; any other address is a hazard and ends the thread.
4. A thread's frames take at most 512 KiB, like local memory on a GPU. Calls nest at most 32767 deep, and what is saved
   for all threads of a batch takes at most 1 GiB.
5. `ret` of an entry ends the thread.
6. Memory that a function allocates by `alloca` follows its frame; the frames of functions that it calls follow that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from ..._arrays import Array
from ...errors import LimitError, OperandError, shown
from ...operations import DTYPES, Stack
from ..base import Site, WarpRegister
from ..block import Batch
from ..program import Call, Callee, InstructionStep, Return
from .branching import check_uniform, chooser, divided
from .convergence import ConvergencePoints
from .groups import Advance, Group
from .scheduling import STOP
from .state import Refresh, State

RuntimeCall = Callable[[Batch, Site, tuple[Array, ...], Array], tuple[Array, ...]]
"""From the batch, the site of the call, the bytes of each argument, uint8 `[block, warp, lane, n]`, and the lanes that
call it, to the bytes of each result."""

_FRAMES, _KEPT = 1 << 19, 1 << 30  # bytes
_AHEAD = 16
_ALIGNMENT = 8  # of `alloca` by default
_DEEP = _FRAMES // _AHEAD


class Calls:
    """The calls of a program's threads."""

    _runtime_calls: Mapping[str, RuntimeCall]
    _taken: Array

    def __init__(self, state: State, points: ConvergencePoints) -> None:
        self._state, self._points = state, points
        self._functions = sorted(state.program.callees.values(), key=lambda x: x.first)
        self._at = {x.address: x for x in self._functions}
        self._stacks = any(isinstance(x, InstructionStep) and isinstance(x.row, Stack) for x in state.program.steps)
        self._frames = self._stacks or state.program.frame > 0 or any(x.frame for x in self._functions)
        self.end()

    def begin(self, runtime_calls: Mapping[str, RuntimeCall]) -> None:
        """Begin the state's batch; `runtime_calls` are the functions that the machine provides, by name."""
        batch, self._runtime_calls = self._state.batch, runtime_calls
        if self._stacks:
            self._taken = np.zeros(batch.shape, np.uint64)
        batch.local.begin(self._state.program.frame)

    def end(self) -> None:
        """Release everything that belongs to a batch."""
        self._runtime_calls = {}
        self._call_pcs: list[Array] = []  # by depth - 1: the program counter of the call that each thread is in
        self._registers: list[dict[int, WarpRegister]] = []
        self._kept = 0
        self._taken = np.zeros(1, np.uint64)  # bytes allocated by `alloca`, rounded up (rule 6)
        self._taken_before: list[Array] = []  # the same in each caller, by depth

    # Calls

    def call(self, pc: int, step: Call) -> Advance:
        """Return a `call` as a function of the group that reaches it."""
        return self._jump(pc, step, self._entry(pc, step))

    def _jump(self, pc: int, step: Call | Return, go: Callable[[Group], object]) -> Advance:
        """Return a step after which the executing lanes continue elsewhere, and the others at the next step."""
        state = self._state
        choose = None if step.guard is None else chooser(state, step.site, step.guard)

        def advance(group: Group) -> int:
            acting = group if choose is None else choose(group)
            if acting is None:
                return pc + 1
            state.counts[pc] += acting.warps
            rest = divided(group, acting)
            if rest is not None:
                if step.uniform:
                    check_uniform(state, step.site, acting, rest)
                state.scheduler.put(pc + 1, rest)
            go(acting)
            return STOP

        return advance

    def _entry(self, pc: int, step: Call) -> Callable[[Group], None]:
        if not isinstance(step.to, str):
            return lambda group: self._through_register(pc, step, group)
        if step.to in self._state.program.callees:
            callee = self._state.program.callees[step.to]
            self._check(step, callee)
            return lambda group: self._enter(pc, step, callee, group)
        name = step.to
        return lambda group: self._provide(pc, step, name, group)

    def _check(self, step: Call, callee: Callee) -> None:
        for what, given, taken in (
            ("arguments", step.arguments, callee.parameters),
            ("results", step.results, callee.results),
        ):
            if [n for _, n in given] != [n for _, n in taken]:
                raise OperandError(
                    f"{step.site.mnemonic}: {what} of {[n for _, n in given]} bytes; {callee.name} has "
                    f"{[n for _, n in taken]}"
                )

    def _through_register(self, pc: int, step: Call, group: Group) -> None:
        """Rule 3."""
        state = self._state
        slot = step.to.number  # type: ignore[union-attr]
        (address,) = state.batch.read(step.site, [state.registers[slot]], [group.bits])
        for value in np.unique(address[group.bits]).tolist():
            bits = group.bits & (address == value)
            some = group.some(bits)
            assert some is not None
            if value in self._at:
                self._check(step, self._at[value])
                self._enter(pc, step, self._at[value], some)
                continue
            detail = f"{value:#x} is not the address of a function"
            state.batch.reporter.report("bounds", step.site, bits, address, detail)
            self._end(bits)

    def _enter(self, pc: int, step: Call, callee: Callee, group: Group) -> None:
        state, depth = self._state, group.depth
        size = np.uint64(-(-self._frame_of(pc) // _AHEAD) * _AHEAD) + self._taken
        self._check_frames(step, callee, group, size)
        base = state.stack.bits
        after = base + size
        for (source, n), (to, _) in zip(step.arguments, callee.parameters, strict=True):
            state.batch.local.copy(base + np.uint64(source), after + np.uint64(to), n, group.bits)
        if size.any():
            state.stack = group.merged(state.stack, WarpRegister(after), None)
        if self._frames:
            state.batch.local.reach(group.bits, (after + np.uint64(callee.frame)).astype(np.int64))
        self._begin_frame(group)
        if depth == len(self._call_pcs):
            self._call_pcs.append(np.zeros(state.batch.shape, np.int32))
            self._registers.append({})
            self._kept += self._call_pcs[depth].nbytes
        self._call_pcs[depth][group.bits] = pc
        if callee.recursive:
            self._keep(step, callee, group)
        state.forget(callee.slots, group)
        group.depth = depth + 1
        state.scheduler.put(callee.first, group)

    def _begin_frame(self, group: Group) -> None:
        """Record that a group has allocated nothing after its frame yet (rule 6)."""
        if self._taken.size > 1:
            if group.depth == len(self._taken_before):
                self._taken_before.append(np.zeros_like(self._taken))
            self._taken_before[group.depth][group.bits] = self._taken[group.bits]
            self._taken = np.where(group.bits, np.uint64(0), self._taken)

    def _check_frames(self, step: Call, callee: Callee, group: Group, size: Array) -> None:
        """Rule 4."""
        if group.depth >= _DEEP:
            raise LimitError(f"{self._who(step, callee, group)}; expected fewer than {_DEEP}. {_ENDLESS}")
        if not self._frames:
            return
        most = int((self._state.stack.bits + size)[group.bits].max()) + callee.frame
        if most > _FRAMES:
            raise LimitError(
                f"{self._who(step, callee, group)}; a thread's frames take {most} bytes, expected {_FRAMES} at most. "
                f"{_ENDLESS}"
            )

    def _who(self, step: Call, callee: Callee, group: Group) -> str:
        return f"{step.site}: {callee.name} is called with {group.depth} calls before it that have not returned"

    def _keep(self, step: Call, callee: Callee, group: Group) -> None:
        """Rule 2."""
        kept = self._registers[group.depth]
        for slot in callee.slots:
            held, before = self._state.registers[slot], kept.get(slot)
            if before is None:
                self._kept += held.bits.nbytes
            kept[slot] = held if before is None or before is held else group.merged(before, held, held.site)
        if self._kept > _KEPT:
            raise LimitError(
                f"{self._who(step, callee, group)}; return places and registers of all "
                f"{self._state.scheduler.alive} threads, which are kept meanwhile, take more than {_KEPT} bytes. "
                f"{_ENDLESS} Otherwise let fewer blocks be resident"
            )

    def _provide(self, pc: int, step: Call, name: str, group: Group) -> None:
        """Call a function that the machine provides."""
        state = self._state
        if name not in self._runtime_calls:
            known = ", ".join(sorted({*state.program.callees, *self._runtime_calls})) or "none"
            raise OperandError(f"{step.site.mnemonic}: no function {shown(name, str)}; there are {known}")
        runtime_call = self._runtime_calls[name]
        batch, base, site = state.batch, state.stack.bits, step.site
        given = []
        for at, n in step.arguments:
            data, poison = batch.local.load(site, base + np.uint64(at), n, group.bits, alignment=1, element=n)
            batch.decide(site, poison, group.bits)  # what is printed, allocated or asserted
            given.append(data)
        results = runtime_call(batch, site, tuple(given), group.bits)
        if len(results) != len(step.results):
            raise OperandError(f"{site.mnemonic} of {step.to} takes {len(step.results)} results; got {len(results)}")
        for (at, n), data in zip(step.results, results, strict=True):
            if data.shape[-1] != n:
                raise OperandError(f"{site.mnemonic} of {step.to}: a result of {n} bytes; got {data.shape[-1]}")
            batch.local.store(site, base + np.uint64(at), data, group.bits, alignment=1)
        state.scheduler.put(pc + 1, group)

    # Returns

    def ret(self, pc: int, step: Return) -> Advance:
        """Return a `ret` as a function of the group that reaches it."""
        return self._jump(pc, step, lambda group: self.leave(pc, group))

    def leave(self, pc: int, group: Group) -> None:
        """Let a group return from the function that contains `pc`."""
        if group.depth == 0:
            self._end(group.bits)
            return
        call_pc = self._call_pcs[group.depth - 1]
        first = int(call_pc[group.bits].min())
        bits = group.bits & (call_pc == first)
        count = int(np.count_nonzero(bits))
        while count < group.count:
            self._return(pc, first, group.part(bits, count))
            left = group.bits & ~bits
            group = group.part(left, group.count - count)
            first = int(call_pc[group.bits].min())
            bits = group.bits & (call_pc == first)
            count = int(np.count_nonzero(bits))
        self._return(pc, first, group)

    def _return(self, pc: int, call_pc: int, group: Group) -> None:
        """Rules 1 and 2."""
        state, depth = self._state, group.depth - 1
        step: Any = state.program.steps[call_pc]
        callee = self._function(pc)
        own = self._frame_of(call_pc)
        base, taken = state.stack.bits, self._taken[:1]
        if self._taken.size > 1:
            taken = self._taken_before[depth]
            self._taken = np.where(group.bits, taken, self._taken)
        size = np.uint64(-(-own // _AHEAD) * _AHEAD) + taken
        before = base - size
        for (to, n), (source, _) in zip(step.results, callee.results, strict=True):
            state.batch.local.copy(base + np.uint64(source), before + np.uint64(to), n, group.bits)
        if callee.frame:
            for first in np.unique(base[group.bits]).tolist():
                state.batch.local.forget(group.bits & (base == first), first, callee.frame)
        if size.any():
            state.stack = group.merged(state.stack, WarpRegister(before), None)
        if self._frames:
            reach = before + np.uint64(own) if taken.size == 1 else base
            state.batch.local.reach(group.bits, reach.astype(np.int64))
        if callee.recursive:
            kept = self._registers[depth]
            for slot in callee.slots:
                now, then = state.registers[slot], kept[slot]
                if now is not then:
                    state.registers[slot] = group.merged(now, then, then.site)
                if group.full:
                    self._kept -= kept.pop(slot).bits.nbytes
        group.depth = depth
        state.scheduler.put(call_pc + 1, group)

    # Stacks

    def stack(self, pc: int, step: InstructionStep) -> Advance:
        """Return `alloca`, `stacksave` or `stackrestore` as a function of the group that reaches it."""
        state, refresh = self._state, list[Refresh]()
        operands = [state.place(x, refresh) for x in step.operands]
        choose = None if step.guard is None else chooser(state, step.site, step.guard)
        frame = np.uint64(-(-self._frame_of(pc) // _AHEAD) * _AHEAD)

        def advance(group: Group) -> int:
            acting = group if choose is None else choose(group)
            if acting is not None:
                state.counts[pc] += acting.warps
                for each in refresh:
                    each()
                self._move(step, frame, [None if x is None else state.registers[x] for x in operands], acting)
            return pc + 1

        return advance

    def _move(self, step: InstructionStep, frame: np.uint64, operands: list[Any], group: Group) -> None:
        """Rule 6."""
        state, site = self._state, step.site
        batch, row, bits = state.batch, cast(Stack, step.row), group.bits
        base = state.stack.bits + frame
        end = base + self._taken
        if row.action == "stacksave":
            self._result(step, end, group)
            return
        (given,) = batch.read(site, [operands[0]], [bits])
        if row.action == "alloca":
            to = np.uint64(_ALIGNMENT if operands[1] is None else operands[1].bits)
            start = (end + to - np.uint64(1)) & ~(to - np.uint64(1))
            end = start + np.minimum(given.astype(np.uint64), np.uint64(_FRAMES))
            self._result(step, start, group)
        else:
            lost = bits & ((given < base) | (given > end))
            batch.reporter.report("stack", site, lost, given, "the stack has not ended there since the function began")
            end = np.where(lost, end, given.astype(np.uint64))
        if int(end[bits].max()) > _FRAMES:
            raise LimitError(f"{site}: a thread's frames take {int(end[bits].max())} bytes, expected {_FRAMES} at most")
        ahead = np.uint64(_AHEAD)
        self._taken = np.where(bits, (end - base + ahead - np.uint64(1)) // ahead * ahead, self._taken)
        batch.local.reach(bits, (base + self._taken).astype(np.int64))

    def _result(self, step: InstructionStep, address: Array, group: Group) -> None:
        slot = step.results[0]
        if slot is not None:
            kind = DTYPES[self._state.program.registers[slot.number]]
            self._state.write(slot.number, address.astype(kind), group, step.site)

    def _frame_of(self, pc: int) -> int:
        """Bytes of the frame of the function that contains `pc`."""
        first = self._functions[0].first if self._functions else STOP
        return self._state.program.frame if pc < first else self._function(pc).frame

    def _function(self, pc: int) -> Callee:
        return [x for x in self._functions if x.first <= pc][-1]

    def _end(self, bits: Array) -> None:
        """Rule 5."""
        self._state.batch.leave(bits)
        self._state.scheduler.release()
        self._points.exited()


_ENDLESS = "A recursion that never ends does that."
