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
from ..handlers import Handler, compute, handler, recorded
from ..program import Constant, InstructionStep, Slot
from .branching import Act, Choose, chooser, divided, only_computes, selecting
from .convergence import ConvergencePoint, ConvergencePoints, ConvergenceStep
from .groups import Advance, Group
from .product_watch import product_watched
from .scheduling import STOP
from .state import Refresh, State

_FEW = 4  # if fewer than 1 in 4 warps have lanes in the group, only these warps are computed


def prepared(state: State, points: ConvergencePoints, pc: int, step: InstructionStep) -> Advance:
    """Return a step as a function of the group that reaches it."""
    refresh: list[Refresh] = []
    operands = tuple(state.place(x, refresh) for x in step.operands)
    if step.beside:
        return _beside(state, pc, step, _refreshed(_silent(state, pc, step, operands), refresh))
    choose = None if step.guard is None else chooser(state, step.site, step.guard)
    if only_computes(step):
        compute = _watched(state, pc, step, _refreshed(_operation(state, pc, step, operands), refresh))
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


def _alone(state: State, pc: int, act: Act, choose: Choose | None) -> Advance:
    counts, after = state.counts, pc + 1
    if pc in state.dead_slots:
        return _releasing(state, pc, act, choose)
    if choose is None:

        def advance(group: Group) -> int:
            counts[pc] += group.warps
            act(group)
            return after

        return advance

    def guarded(group: Group) -> int:
        acting = choose(group)
        if acting is not None:
            counts[pc] += acting.warps
            act(acting)
        return after

    return guarded


def _releasing(state: State, pc: int, act: Act, choose: Choose | None) -> Advance:
    """Rule 2 of `liveness`."""
    counts, after, release = state.counts, pc + 1, state.releasing(pc)

    def advance(group: Group) -> int:
        acting = group if choose is None else choose(group)
        if acting is not None:
            counts[pc] += acting.warps
            act(acting)
        if group.full:
            release()
        return after

    return advance


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

    handle, given = _handler(state, row), _given(state.registers, step, operands)

    def read() -> list[Any]:
        for each in refresh:
            each()
        return given()

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


def _refreshed(act: Act, refresh: list[Refresh]) -> Act:
    if not refresh:
        return act
    if len(refresh) == 1:
        (first,) = refresh

        def once(group: Group) -> None:
            first()
            act(group)

        return once

    def all_of_them(group: Group) -> None:
        for each in refresh:
            each()
        act(group)

    return all_of_them


def _operation(state: State, pc: int, step: InstructionStep, operands: tuple[Any, ...]) -> Act:
    """Rule 2."""
    row: Any = step.row
    slow, some = (_later(make, state, step, operands) for make in (_slow, _some))
    few = state.shape[0] * state.shape[1] // _FEW
    if len(step.results) != 1 or step.results[0] is None:
        return _several(state, step, operands, slow, some, few)
    registers, site, shape = state.registers, step.site, state.shape
    function = state.batch.function(row)
    slot, dtype, shaped = step.results[0].number, state.dtype(row.outputs[0]), state.shaped

    def single(group: Group) -> object:
        given = [registers[i] for i in operands]
        for x in given:
            if x.shadow is not None and not x.shadow.clean(group.bits):
                return slow(group)
        if group.warps < few:
            return some(group)
        (bits,) = function(*[x.bits for x in given])
        if bits.dtype is not dtype or bits.shape != shape:
            bits = shaped(bits, dtype)
        new = WarpRegister(bits)
        registers[slot] = new if group.full else group.merged(registers[slot], new, site)
        return None

    return single


def _several(state: State, step: InstructionStep, operands: tuple[Any, ...], slow: Act, some: Act, few: int) -> Act:
    """Return an operation with no result, several results, or an unused one."""
    row: Any = step.row
    registers, site, write, shaped = state.registers, step.site, state.write, state.shaped
    function = state.batch.function(row)
    dtypes = [state.dtype(kind) for kind in row.outputs]
    slots = [None if x is None else x.number for x in step.results]

    def several(group: Group) -> object:
        given = [registers[i] for i in operands]
        for x in given:
            if x.shadow is not None and not x.shadow.clean(group.bits):
                return slow(group)
        if group.warps < few:
            return some(group)
        for slot, bits, dtype in zip(slots, function(*[x.bits for x in given]), dtypes, strict=True):
            if slot is not None:
                write(slot, shaped(bits, dtype), group, site)
        return None

    return several


def _some(state: State, step: InstructionStep, operands: tuple[Any, ...]) -> Act:
    """Return how to execute an operation when few warps have active lanes (rule 3 of `groups`)."""
    row: Any = step.row
    registers, site, function = state.registers, step.site, state.batch.function(row)
    dtypes = [state.dtype(kind) for kind in row.outputs]

    def some(group: Group) -> None:
        index = group.index
        given = [x.bits if isinstance(x.bits, int) else x.bits[index] for x in (registers[i] for i in operands)]
        for x, bits, dtype in zip(step.results, function(*given), dtypes, strict=True):
            if x is not None:
                new = np.broadcast_to(np.asarray(bits, dtype), given_shape(index))
                registers[x.number] = group.scattered(registers[x.number], new, site)

    def given_shape(index: tuple[Array, Array]) -> tuple[int, int]:
        return len(index[0]), state.shape[2]

    return some


def _silent(state: State, pc: int, step: InstructionStep, operands: tuple[Any, ...]) -> Act:
    """Return an operation that reports no hazards."""
    row: Any = step.row
    registers, write, shaped, function = state.registers, state.write, state.shaped, state.batch.function(row)
    dtypes = [state.dtype(kind) for kind in row.outputs]

    def act(group: Group) -> None:
        results = function(*[registers[i].bits for i in operands])
        for slot, bits, dtype in zip(step.results, results, dtypes, strict=True):
            if slot is not None:
                write(slot.number, shaped(bits, dtype), group, step.site)

    return act


def _later(
    make: Callable[[State, InstructionStep, tuple[Any, ...]], Act], state: State, step: InstructionStep, operands: Any
) -> Act:
    """Return an operation that is compiled when it is first used, because few ever are."""
    made: list[Act] = []

    def act(group: Group) -> None:
        if not made:
            made.append(make(state, step, operands))
        made[0](group)

    return act


def _slow(state: State, step: InstructionStep, operands: tuple[Any, ...]) -> Callable[[Group], None]:
    """Return how to execute an operation if some lanes have not written its operands."""
    registers, row, site, put = state.registers, step.row, step.site, state.put
    given = _given(registers, step, operands)

    def slow(group: Group) -> None:
        results = compute(state.batch, site, row, given(), group.bits)  # type: ignore[arg-type]
        for slot, new in zip(step.results, results, strict=True):
            if slot is not None:
                put(slot.number, new, group, site)

    return slow


def _handled(state: State, step: InstructionStep, operands: tuple[Any, ...]) -> Act:
    """Rule 3."""
    row, site = step.row, step.site
    handle, given = _handler(state, row), _given(state.registers, step, operands)

    def act(group: Group) -> None:
        _put(state, step, handle(state.batch, site, row, given(), group.bits), group)

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


def _given(registers: list[Any], step: InstructionStep, operands: tuple[Any, ...]) -> Callable[[], list[Any]]:
    """Return a function that returns a handler's operands: registers, ints for immediates, None for omitted ones."""
    fixed: dict[int, int | None] = {
        i: x.bits for i, x in enumerate(step.operands) if isinstance(x, Constant) and x.kind == "imm"
    }
    fixed |= {i: None for i, x in enumerate(step.operands) if x is None}
    if not fixed:
        return lambda: [registers[i] for i in operands]
    return lambda: [fixed[n] if n in fixed else registers[i] for n, i in enumerate(operands)]
