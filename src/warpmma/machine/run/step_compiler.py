"""Compiles instruction steps to functions: what can be looked up or checked once is not done at every execution.

The rules:

1. A step becomes a function of the group that reaches it. The function returns the program counter at which the group
   continues, or `STOP`.
2. Operands are indices into the list of registers (`state`). They fit the instruction: they were checked when the
   program was built. If all lanes have written what an `Operation` reads, its function takes whole arrays.
3. Everything else goes to the instruction's handler.
4. A compiled step serves every batch of its shape and engine, one after another: it keeps nothing of a batch, and takes
   the batch from the state when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..._arrays import Array
from ...isa import PtxInstruction
from ...operations import Barrier, Operation, WarpgroupGroup, WarpgroupMultiply
from ..base import RegisterShadow, WarpRegister, merged, settled, with_shadow
from ..block import Results
from ..handlers import Handler, handler, recorded
from ..program import InstructionStep, Slot
from .branching import Act, Choose, chooser, divided, only_computes, selecting
from .computing_steps import GivenOperands, computation, silent_computation
from .convergence import ConvergencePoint, ConvergencePoints, ConvergenceStep
from .groups import Advance, Group
from .product_watch import product_watched
from .scheduling import STOP
from .state import Refresh, State


def prepared(state: State, points: ConvergencePoints, pc: int, step: InstructionStep) -> Advance:
    """Return a step as a function of the group that reaches it."""
    refresh: list[Refresh] = []
    operands = tuple(state.place(x, refresh) for x in step.operands)
    if step.beside:
        return _beside(state, pc, step, _refreshed(silent_computation(state, step, operands), refresh))
    choose = None if step.guard is None else chooser(state, step.site, step.guard)
    if only_computes(step):
        compute = _watched(state, pc, step, _refreshed(computation(state, step, operands), refresh))
        usual = _alone(state, pc, compute, choose)
        return usual if step.guard is None else selecting(state, pc, step, step.guard, usual, compute)
    act = _watched(state, pc, step, _refreshed(_handled(state, step, operands), refresh))
    if getattr(step.row, "observes", False):
        return _observing(state, pc, step, act, choose)
    point = _convergence_point(state, points, pc, step, act, operands, refresh)
    if point is not None:
        return _arriving(pc, point, choose)
    return _alone(state, pc, act, choose)


def _watched(state: State, pc: int, step: InstructionStep, act: Act) -> Act:
    """Let `LateReads` know what a step does with loads that may be in flight at a signal, `ProductTimes` the rest."""
    if state.program.products.concerns(pc):
        act = product_watched(state, pc, step, act)
    known, site = state.program.in_flight, step.site
    if not known.concerns(pc):
        return act
    load, uses, signals = known.loads.get(pc), known.uses.get(pc, ()), pc in known.signals
    delays = known.delays.get(pc, ())

    def watched(group: Group) -> None:
        if (late := state.batch.late_reads) is None:
            act(group)
            return
        lanes = group.bits
        late.use(site, uses, lanes)
        if signals:
            late.signal(lanes)
        if load is None:
            act(group)
            if delays:
                late.use(site, delays, late.soon_back(delays, lanes))
            return
        late.begin(load)
        act(group)
        late.end()

    return watched


# Which lanes execute it


class _Step:
    """A step that lanes execute where they are, and what it needs at every execution.

    Bound methods of records with slots, here and in `computing_steps`: a closure has an object for each variable that
    it keeps, and Python's garbage collector goes through all of them, again and again.
    """

    __slots__ = ("_act", "_after", "_choose", "_counts", "_dead", "_pc", "_registers", "_unwritten")

    def __init__(self, state: State, pc: int, act: Act, choose: Choose | None) -> None:
        self._counts, self._pc, self._after, self._act, self._choose = state.counts, pc, pc + 1, act, choose
        self._dead, self._registers, self._unwritten = state.dead_slots.get(pc, ()), state.registers, state.unwritten

    def always(self, group: Group) -> int:
        """Without a guard."""
        self._counts[self._pc] += group.warps
        self._act(group)
        return self._after

    def guarded(self, group: Group) -> int:
        """With a guard."""
        acting = self._choose(group)  # type: ignore[misc]
        if acting is not None:
            self._counts[self._pc] += acting.warps
            self._act(acting)
        return self._after

    def releasing(self, group: Group) -> int:
        """Rule 2 of `liveness`."""
        acting = group if self._choose is None else self._choose(group)
        if acting is not None:
            self._counts[self._pc] += acting.warps
            self._act(acting)
        if group.full:
            registers, unwritten = self._registers, self._unwritten
            for slot in self._dead:
                registers[slot] = unwritten[slot]
        return self._after


def _alone(state: State, pc: int, act: Act, choose: Choose | None) -> Advance:
    step = _Step(state, pc, act, choose)
    if pc in state.dead_slots:
        return step.releasing
    return step.always if choose is None else step.guarded


def _beside(state: State, pc: int, step: InstructionStep, act: Act) -> Advance:
    choose, after = None if step.guard is None else chooser(state, step.site, step.guard), pc + 1

    def advance(group: Group) -> int:
        acting = group if choose is None else choose(group)
        if acting is not None:
            act(acting)
        return after

    return advance


def _observing(state: State, pc: int, step: InstructionStep, act: Act, choose: Choose | None) -> Advance:
    """Rule 3 of `scheduling`: keep the last observed value, to detect whether it changes."""
    counts, after, registers = state.counts, pc + 1, state.registers
    slots = [x.number for x in step.results if x is not None]

    def advance(group: Group) -> int:
        acting = group if choose is None else choose(group)
        if acting is None:
            return after
        counts[pc] += acting.warps
        act(acting)
        group.observed = True
        now, before = tuple(registers[slot] for slot in slots), state.seen.get(pc)
        if before is None:
            group.changed = group.changed or bool(slots)
        elif not group.changed:
            group.changed = any(
                bool(((new.bits != old.bits) & acting.bits).any()) for new, old in zip(now, before, strict=True)
            )
        old = before or now
        state.seen[pc] = tuple(acting.merged(x, new, None) for x, new in zip(old, now, strict=True))
        return after

    return advance


def _arriving(pc: int, point: ConvergencePoint, choose: Choose | None) -> Advance:
    after = pc + 1

    def advance(group: Group) -> int:
        acting = group if choose is None else choose(group)
        return after if acting is None else point.arrive(pc, group, acting)

    return advance


def _convergence_point(
    state: State, points: ConvergencePoints, pc: int, step: InstructionStep, act: Act, operands: tuple[Any, ...],
    refresh: list[Refresh],
) -> ConvergencePoint | None:  # fmt: skip
    """Return the step's convergence point; None if lanes need not converge (rule 1 of `convergence`)."""
    row, mask, barrier = step.row, None, False
    key: object = pc
    if isinstance(row, Barrier) and row.action != "warp":
        # Without `.aligned`, threads wait in `Barriers`, not here; this point only separates waiting lanes from others.
        mask, barrier = None if row.aligned else _nobody(state), True
    elif isinstance(row, Barrier) or (isinstance(row, Operation) and row.membermask):
        mask, key = _mask(state, operands[-1], refresh), row.mnemonic
    elif row.convergence == "none":
        return None
    counts = state.counts

    def count(group: Group) -> None:
        counts[pc] += group.warps

    def counted_act(group: Group) -> None:
        count(group)
        act(group)

    handle, given = _handler(state, row), GivenOperands(state.registers, step, operands)

    def read() -> list[Any]:
        for each in refresh:
            each()
        return given.now()

    # Fences, groups and waits are `.aligned` for the warpgroup, too, but each warp goes on by itself.
    warpgroup = isinstance(row, WarpgroupMultiply)
    point = points.at(key, lambda: ConvergencePoint(state, barrier=barrier, warpgroup=warpgroup))
    point.add(ConvergenceStep(
        pc=pc, site=step.site, act=counted_act, mask=mask, read=read, write=partial(_put, state, step),
        count=count,
        handle=lambda site, operands, lanes: handle(state.batch, site, row, operands, lanes),
    ))  # fmt: skip
    return point


def _mask(state: State, at: int, refresh: list[Refresh]) -> Callable[[], Array]:
    def mask() -> Array:
        for each in refresh:
            each()
        bits: Array = state.registers[at].bits
        return bits

    return mask


def _nobody(state: State) -> Callable[[], Array]:
    none = np.broadcast_to(np.uint32(0), state.shape)
    return lambda: none


def leaving(state: State, points: ConvergencePoints, pc: int, step: InstructionStep) -> Advance:
    """Return an instruction that ends threads, as a function of the group that reaches it."""
    counts = state.counts
    choose = None if step.guard is None else chooser(state, step.site, step.guard)

    def advance(group: Group) -> int:
        acting = group if choose is None else choose(group)
        if acting is None:
            return pc + 1
        counts[pc] += acting.warps
        rest = divided(group, acting)
        state.batch.leave(acting.bits)
        if rest is not None:
            state.scheduler.put(pc + 1, rest)
        state.scheduler.release()
        points.exited()
        return STOP

    return advance


# What it executes


class _Refreshed:
    """An action with one operand that is recomputed before it."""

    __slots__ = ("_act", "_first")

    def __init__(self, act: Act, first: Refresh) -> None:
        self._act, self._first = act, first

    def once(self, group: Group) -> None:
        self._first()
        self._act(group)


def _refreshed(act: Act, refresh: list[Refresh]) -> Act:
    if not refresh:
        return act
    if len(refresh) == 1:
        return _Refreshed(act, refresh[0]).once

    def all_of_them(group: Group) -> None:
        for each in refresh:
            each()
        act(group)

    return all_of_them


class _Handled:
    """A step that its instruction's handler executes."""

    __slots__ = ("_given", "_handle", "_row", "_site", "_state", "_step")

    def __init__(self, state: State, step: InstructionStep, given: GivenOperands) -> None:
        self._state, self._step, self._row, self._site, self._given = state, step, step.row, step.site, given
        self._handle = _handler(state, step.row)

    def act(self, group: Group) -> None:
        state = self._state
        results = self._handle(state.batch, self._site, self._row, self._given.now(), group.bits)
        _put(state, self._step, results, group)


def _handled(state: State, step: InstructionStep, operands: tuple[Any, ...]) -> Act:
    """Rule 3."""
    row, act = step.row, _Handled(state, step, GivenOperands(state.registers, step, operands)).act
    if isinstance(row, WarpgroupGroup) and row.action == "wait_group":
        return _settling(state, act)
    return _late(state, act, step.results[0]) if isinstance(row, Barrier) and row.reduction else act


def _handler(state: State, row: PtxInstruction) -> Handler:
    """Return what executes a row; it tells the batch's timeline, if one is recorded."""
    return handler(row) if state.batch.timeline is None else recorded(handler(row), lambda: state.now)


def _settling(state: State, act: Act) -> Act:
    """Let registers hold what the products that are complete now have written."""

    def settle(group: Group) -> None:
        act(group)
        found: dict[int, RegisterShadow | None] = {}  # by the identity of the old one, which registers share
        for slot, register in enumerate(state.registers[: len(state.program.registers)]):
            if (shadow := register.shadow) is not None and shadow.pending:
                if id(shadow) not in found:
                    found[id(shadow)] = settled(shadow)
                state.registers[slot] = with_shadow(register, found[id(shadow)])

    return settle


def _put(state: State, step: InstructionStep, results: Results, group: Group) -> None:
    """Write the results of a handler into the step's registers."""
    for slot, new in zip(step.results, results, strict=True):
        if slot is not None:
            state.put(slot.number, new, group, step.site)


def _late(state: State, act: Act, slot: Slot | None) -> Act:
    """Write the result of a barrier to the registers of waiting lanes when they continue."""
    registers = state.registers

    def later(group: Group) -> None:
        act(group)
        awaited = state.batch.barriers.late
        if awaited is not None and slot is not None:
            number = slot.number

            def then(bits: Array, lanes: Array) -> None:
                registers[number] = merged(registers[number], WarpRegister(bits), lanes)

            awaited.then = then

    return later
