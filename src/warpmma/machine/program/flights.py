"""Loads in flight: which loads from shared memory may not have returned when their thread signals (A22).

A load returns late: a thread waits for it where it first uses the value, and nowhere else. An arrival at an mbarrier, a
barrier and a fence of the generic proxy do not wait for loads (measured), so a copy in bulk that the signal allows may
overwrite what a load in front of the signal still has to read. The rules:

1. A use is any step that reads the register, whatever it does with the value; a `fence.proxy.async` of shared memory
   counts as a use of all that its thread has loaded (measured). `wgmma.wait_group` counts as one of a few loads alone:
   how many are in flight shows while the machine runs (rule 6 of `sync.late_reads`). A `mov` is none: ptxas removes
   moves, so the register that it writes stands for the same load, and packing and unpacking alike. ptxas may move other
   arithmetic behind the signal, too; that is not known here, and the fence that "strict" demands (A12) is the only
   promise.
2. A load is in flight at a signal if a path leads from the load to the signal, and from there to the first use. Signals
   are barriers of a block, of a warp and of a cluster, arrivals, strong stores and atomics. A step with a guard counts
   as a use, and as a signal.
3. Of a call nothing is known: it counts as a use of all.
4. This only says which steps the machine looks at while it runs: whether a lane has signalled before it uses a value
   shows there (`sync.late_reads`). Programs without copies in bulk to shared memory, and without
   `barrier.cluster.arrive.relaxed`, have no such loads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._dataflow import settle_forwards
from ...operations import (
    Access,
    AsyncStore,
    Atomic,
    Barrier,
    BulkCopy,
    Fence,
    MatrixMove,
    Mbarrier,
    Operation,
    TensorCopy,
    WarpgroupGroup,
    WmmaMove,
)
from .step_flow import block_graph, slots_of, uses
from .steps import AnyStep, Call, InstructionStep, LoadsInFlight, Program

_SHARED = ("shared", "shared::cta", "shared::cluster", "generic")


def loads_in_flight(program: Program) -> LoadsInFlight:
    """Return the loads of a program that may be in flight at a signal."""
    steps = program.steps
    if not any(_overwrites(step) for step in steps):
        return LoadsInFlight()
    pcs = [pc for pc, step in enumerate(steps) if _loads(step)]
    bit = {pc: 1 << i for i, pc in enumerate(pcs)}
    blocks, following = block_graph(program)
    before = _settled(steps, bit, blocks, following)
    late = 0
    for block, known in zip(blocks, before, strict=True):
        late |= _Flow(bit, known).through(steps, block).used_late
    if not late:
        return LoadsInFlight()
    looked_at: dict[int, int] = {}
    delays: dict[int, int] = {}
    signals: set[int] = set()
    for block, known in zip(blocks, before, strict=True):
        flow = _Flow(bit, known)
        for pc in block:
            if (used := flow.used_by(steps[pc]) & late) != 0:
                looked_at[pc] = used
            if _delays(steps[pc]) and flow.open & late:
                delays[pc] = flow.open & late
            if _signals(steps[pc]) and flow.open & late:
                signals.add(pc)
            flow.step(pc, steps[pc])
    loads = [pc for pc in pcs if bit[pc] & late]
    numbers = {pc: i for i, pc in enumerate(loads)}
    uses_, delays_ = (
        {pc: tuple(numbers[x] for x in loads if bit[x] & some) for pc, some in found.items()}
        for found in (looked_at, delays)
    )
    return LoadsInFlight(numbers, uses_, delays_, frozenset(signals))


@dataclass
class _Known:
    """What is known between two steps; sets of loads are bits."""

    open: int = 0  # loads that are not used yet
    late: int = 0  # those of them after which a signal came
    held: dict[int, int] = field(default_factory=dict)  # by register, the open loads whose values it may hold

    def joined(self, other: _Known) -> _Known:
        """Return what is known where two paths meet."""
        held = dict(self.held)
        for slot, loads in other.held.items():
            held[slot] = held.get(slot, 0) | loads
        return _Known(self.open | other.open, self.late | other.late, held)


class _Flow(_Known):
    """Goes through steps."""

    def __init__(self, bit: Mapping[int, int], known: _Known) -> None:
        super().__init__(known.open, known.late, dict(known.held))
        self._bit = bit
        self.used_late = 0  # loads that were used after a signal

    def through(self, steps: Sequence[AnyStep], block: range) -> _Flow:
        """Go through a basic block."""
        for pc in block:
            self.step(pc, steps[pc])
        return self

    def end(self) -> _Known:
        """Return what is known here, without registers whose loads are used."""
        held = {slot: loads & self.open for slot, loads in self.held.items() if loads & self.open}
        return _Known(self.open, self.late, held)

    def used_by(self, step: AnyStep) -> int:
        """Return the open loads that a step uses (rules 1 and 3)."""
        if not self.open or (isinstance(step, InstructionStep) and step.beside):
            return 0
        if isinstance(step, Call) or (isinstance(step, InstructionStep) and _waits_for_loads(step.row)):
            return self.open
        if _moves(step):
            return self.held.get(step.guard.slot.number, 0) & self.open if step.guard is not None else 0
        used = 0
        for slot in uses(step)[0]:
            used |= self.held.get(slot, 0)
        return used & self.open

    def step(self, pc: int, step: AnyStep) -> None:
        """Go over a step."""
        used = self.used_by(step)
        self.used_late |= used & self.late
        self.open &= ~used
        self.late &= ~used
        if _signals(step):
            self.late |= self.open
        if not isinstance(step, InstructionStep) or not step.results:
            return
        value = 0
        if pc in self._bit:
            value = self._bit[pc]
            self.open |= value
            self.late &= ~value
        elif _moves(step):
            for slot in slots_of(step.operands):
                value |= self.held.get(slot, 0)
        for x in step.results:
            if x is None:
                continue
            new = value | self.held.get(x.number, 0) if step.guard is not None else value
            if new:
                self.held[x.number] = new
            else:
                self.held.pop(x.number, None)


def _settled(
    steps: Sequence[AnyStep], bit: Mapping[int, int], blocks: Sequence[range], following: Sequence[Sequence[int]]
) -> list[_Known]:
    """Return what is known before each basic block."""
    before, after = [_Known() for _ in blocks], [_Known() for _ in blocks]

    def visit(i: int, preceding: Sequence[int]) -> bool:
        known = _Known()
        for x in preceding:
            known = known.joined(after[x])
        before[i], old = known, after[i]
        after[i] = _Flow(bit, known).through(steps, blocks[i]).end()
        return after[i] != old

    settle_forwards(following, visit)
    return before


# Steps


def _overwrites(step: AnyStep) -> bool:
    """Whether a step is a copy in bulk to shared memory, or an arrival behind which a block of the cluster may end."""
    row = step.row if isinstance(step, InstructionStep) else None
    if isinstance(row, TensorCopy):
        return row.direction == "load"
    if isinstance(row, Barrier):
        return row.cluster and row.action == "arrive" and not row.orders
    return isinstance(row, BulkCopy) and row.to != "global"


def _loads(step: AnyStep) -> bool:
    """Whether a step loads registers, perhaps from shared memory."""
    if not isinstance(step, InstructionStep) or step.beside:
        return False
    row = step.row
    return isinstance(row, Access | MatrixMove | WmmaMove) and row.direction == "load" and row.space in _SHARED


def _signals(step: AnyStep) -> bool:
    """Whether a step may let others overwrite what its thread has read (rule 2)."""
    row = step.row if isinstance(step, InstructionStep) else None
    if isinstance(row, Mbarrier):
        return row.action in ("arrive", "copy")
    if isinstance(row, Access):
        return row.direction == "store" and row.order != "weak"
    return isinstance(row, Barrier | Atomic | AsyncStore)


def _waits_for_loads(row: Any) -> bool:
    return isinstance(row, Fence) and "shared" in row.crosses


def _delays(step: AnyStep) -> bool:
    """Whether a step waits for a product, which takes longer than a few loads."""
    row = step.row if isinstance(step, InstructionStep) else None
    return isinstance(row, WarpgroupGroup) and row.action == "wait_group"


def _moves(step: AnyStep) -> bool:
    """Whether a step is a `mov`, the only operation that is nothing but one."""
    row = step.row if isinstance(step, InstructionStep) else None
    return isinstance(row, Operation) and row.travels
