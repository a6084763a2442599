"""Steps that are rows, made ready to run: what can be looked up or checked once is not done at every execution.

The rules:

1. A step becomes a function of the group that has come to it; it returns the place where the group goes on, or `STOP`.
2. Operands are numbers in the list of registers (`state`), and fit the row: who made the program has checked them. The
   function of an `Operation` takes arrays at once where all lanes have written what it reads.
3. Everything else goes to the row's handler.
4. A step that is ready serves every batch of its shape and engine, one after another: it keeps nothing of a batch, and
   asks the state for it when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..._arrays import Array
from ...operations import Barrier, Operation
from ..base import WarpRegister, merged
from ..block import Results
from ..handlers import compute, handler
from ..program import Constant, InstructionStep, Slot
from .branching import Choose, chooser, divided
from .convergence import ConvergencePoint, ConvergencePoints, ConvergenceStep
from .groups import Advance, Group
from .scheduling import STOP
from .state import Refresh, State

Act = Callable[[Group], object]

_FEW = 4  # as many times as many warps are there as have lanes: then only these are computed


def prepared(state: State, meetings: ConvergencePoints, place: int, step: InstructionStep) -> Advance:
    """Return a step as a function of the group that has come to it."""
    refresh: list[Refresh] = []
    operands = tuple(state.place(x, refresh) for x in step.operands)
    if step.beside:
        return _beside(state, place, step, _refreshed(_silent(state, place, step, operands), refresh))
    choose = None if step.guard is None else chooser(state, step.site, step.guard)
    if _plain(step):
        return _alone(state, place, _refreshed(_operation(state, place, step, operands), refresh), choose)
    act = _refreshed(_handled(state, step, operands), refresh)
    if getattr(step.row, "observes", False):
        return _observing(state, place, step, act, choose)
    meeting = _meeting(state, meetings, place, step, act, operands, refresh)
    if meeting is not None:
        return _met(place, meeting, choose)
    return _alone(state, place, act, choose)


# Who executes it


def _alone(state: State, place: int, act: Act, choose: Choose | None) -> Advance:
    counts, after = state.counts, place + 1
    if place in state.dead_slots:
        return _releasing(state, place, act, choose)
    if choose is None:

        def advance(group: Group) -> int:
            counts[place] += group.warps
            act(group)
            return after

        return advance

    def guarded(group: Group) -> int:
        acting = choose(group)
        if acting is not None:
            counts[place] += acting.warps
            act(acting)
        return after

    return guarded


def _releasing(state: State, place: int, act: Act, choose: Choose | None) -> Advance:
    """Rule 2 of `liveness`."""
    counts, after, release = state.counts, place + 1, state.releasing(place)

    def advance(group: Group) -> int:
        acting = group if choose is None else choose(group)
        if acting is not None:
            counts[place] += acting.warps
            act(acting)
        if group.full:
            release()
        return after

    return advance


def _beside(state: State, place: int, step: InstructionStep, act: Act) -> Advance:
    choose, after = None if step.guard is None else chooser(state, step.site, step.guard), place + 1

    def advance(group: Group) -> int:
        acting = group if choose is None else choose(group)
        if acting is not None:
            act(acting)
        return after

    return advance


def _observing(state: State, place: int, step: InstructionStep, act: Act, choose: Choose | None) -> Advance:
    """Rule 3 of `scheduling`: keep the last observed value, to detect whether it changes."""
    counts, after, registers = state.counts, place + 1, state.registers
    slots = [x.number for x in step.results if x is not None]

    def advance(group: Group) -> int:
        acting = group if choose is None else choose(group)
        if acting is None:
            return after
        counts[place] += acting.warps
        act(acting)
        group.observed = True
        now, before = tuple(registers[slot] for slot in slots), state.seen.get(place)
        if before is None:
            group.changed = group.changed or bool(slots)
        elif not group.changed:
            group.changed = any(
                bool(((new.bits != old.bits) & acting.bits).any()) for new, old in zip(now, before, strict=True)
            )
        old = before or now
        state.seen[place] = tuple(acting.merged(x, new, None) for x, new in zip(old, now, strict=True))
        return after

    return advance


def _met(place: int, meeting: ConvergencePoint, choose: Choose | None) -> Advance:
    after = place + 1

    def advance(group: Group) -> int:
        acting = group if choose is None else choose(group)
        return after if acting is None else meeting.come(place, group, acting)

    return advance


def _meeting(
    state: State, meetings: ConvergencePoints, place: int, step: InstructionStep, act: Act, operands: tuple[Any, ...],
    refresh: list[Refresh],
) -> ConvergencePoint | None:  # fmt: skip
    """Return where lanes meet, if they do: rule 1 of `convergence`."""
    row, mask, barrier = step.row, None, False
    key: object = place
    if isinstance(row, Barrier) and row.action != "warp":
        # Threads that reach a barrier one by one meet there, and not here; but the waiting ones are taken apart.
        mask, barrier = None if row.aligned else _nobody(state), True
    elif isinstance(row, Barrier) or (isinstance(row, Operation) and row.membermask):
        mask, key = _mask(state, operands[-1], refresh), row.mnemonic
    elif row.convergence == "none":
        return None
    counts = state.counts

    def count(group: Group) -> None:
        counts[place] += group.warps

    def counted_act(group: Group) -> None:
        count(group)
        act(group)

    handle, given = handler(row), _given(state.registers, step, operands)

    def read() -> list[Any]:
        for each in refresh:
            each()
        return given()

    meeting = meetings.at(key, lambda: ConvergencePoint(state, barrier=barrier))
    meeting.add(ConvergenceStep(
        number=place, site=step.site, act=counted_act, mask=mask, read=read, write=partial(_put, state, step),
        count=count,
        handle=lambda site, operands, lanes: handle(state.batch, site, row, operands, lanes),
    ))  # fmt: skip
    return meeting


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


def leaving(state: State, meetings: ConvergencePoints, place: int, step: InstructionStep) -> Advance:
    """Return the end of threads."""
    counts = state.counts
    choose = None if step.guard is None else chooser(state, step.site, step.guard)

    def advance(group: Group) -> int:
        acting = group if choose is None else choose(group)
        if acting is None:
            return place + 1
        counts[place] += acting.warps
        rest = divided(group, acting)
        state.batch.leave(acting.bits)
        if rest is not None:
            state.scheduler.put(place + 1, rest)
        state.scheduler.release()
        meetings.exited()
        return STOP

    return advance


# What it does


def _plain(step: InstructionStep) -> bool:
    return isinstance(step.row, Operation) and not step.row.lanes


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


def _operation(state: State, place: int, step: InstructionStep, operands: tuple[Any, ...]) -> Act:
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
    """Return how an operation is executed when few warps have active lanes: rule 3 of `groups`."""
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


def _silent(state: State, place: int, step: InstructionStep, operands: tuple[Any, ...]) -> Act:
    """Return an operation in which nothing is a hazard."""
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
    """Return an operation that is prepared at its first use, because it is seldom used."""
    made: list[Act] = []

    def act(group: Group) -> None:
        if not made:
            made.append(make(state, step, operands))
        made[0](group)

    return act


def _slow(state: State, step: InstructionStep, operands: tuple[Any, ...]) -> Callable[[Group], None]:
    """Return how an operation is executed when some lanes have not written the operands."""
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
    handle, given = handler(row), _given(state.registers, step, operands)

    def act(group: Group) -> None:
        _put(state, step, handle(state.batch, site, row, given(), group.bits), group)

    return _late(state, act, step.results[0]) if isinstance(row, Barrier) and row.reduction else act


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
    """Return what makes the operands that a handler takes: registers, numbers, and None for an omitted one."""
    fixed: dict[int, int | None] = {
        i: x.bits for i, x in enumerate(step.operands) if isinstance(x, Constant) and x.kind == "imm"
    }
    fixed |= {i: None for i, x in enumerate(step.operands) if x is None}
    if not fixed:
        return lambda: [registers[i] for i in operands]
    return lambda: [fixed[n] if n in fixed else registers[i] for n, i in enumerate(operands)]
