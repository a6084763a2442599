"""Convergence: lanes of a warp wait for each other at an instruction that they execute together.

The rules (PTX ISA 9.1: `.sync` of `shfl`, `vote`, `match`, `redux`, `elect`, `bar.warp`; `.aligned`; measured on an
H200, docs/specification/h200.md 9):

1. `.sync` waits until all lanes of its membermask that have not exited have arrived: at that instruction, or at another
   one of the program with the same opcode, the same qualifiers and the same value of the membermask. `.aligned` waits
   for all lanes of the warp that have not exited, at that very instruction; `wgmma.mma_async` for those of all four
   warps of its warpgroup (measured on an H200: none issues before all four are there).
2. When all lanes have arrived, they execute it together, from whatever call stacks, and continue; other lanes keep
   waiting. Each lane reads the operands of its own instruction, and writes that instruction's registers.
3. No lane waits for one that has exited.
4. If no lane can run, the lanes that wait at the lowest program counter execute the instruction without the others: it
   reports what is wrong.
5. If lanes execute different instructions together, the report counts it (`Launch.joined`): that is legal, but may be a
   mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ..._arrays import Array, frozen
from ...registers import LANES
from ..base import Site, WarpRegister, merged, of_warpgroups, with_shadow
from .groups import Group, words
from .scheduling import STOP
from .state import State

Parts = list[tuple["ConvergenceStep", Array]]

_LANE = frozen(np.arange(LANES, dtype=np.uint32))


@dataclass(frozen=True, eq=False, slots=True)
class ConvergenceStep:
    """A step at which lanes converge.

    Attributes
    ----------
    site : Site
    read, write : callable
        Return its operands; write its results for a group of lanes.
    """

    pc: int
    site: Site
    act: Callable[[Group], object]  # executes it for a group of lanes that have all arrived
    mask: Callable[[], Array] | None  # returns the membermasks, uint32 `[block, warp, lane]`; None for whole warps
    read: Callable[[], list[Any]]
    write: Callable[[Any, Group], None]
    handle: Callable[[Site, list[Any], Array], Any]  # returns the results for the site, operands and lanes
    count: Callable[[Group], None]  # counts an execution by a group


class ConvergencePoint:
    """An instruction that lanes execute together: one step, or several with the same `.sync` instruction.

    Parameters
    ----------
    state : State
    barrier : bool
        Whether it is a barrier of the block.
    warpgroup : bool
        Whether the four warps of a warpgroup execute it together.

    Attributes
    ----------
    here : dict of (int, int) to Group
        The lanes that wait, by program counter and call depth.
    """

    def __init__(self, state: State, *, barrier: bool = False, warpgroup: bool = False) -> None:
        self._state, self._barrier, self._warpgroup = state, barrier, warpgroup
        self._steps: dict[int, ConvergenceStep] = {}
        self.here: dict[tuple[int, int], Group] = {}

    def add(self, step: ConvergenceStep) -> None:
        """Add a step at which lanes may arrive."""
        self._steps[step.pc] = step

    def arrive(self, pc: int, group: Group, acting: Group) -> int:
        """Let the executing lanes of a group arrive at a step; return where the group continues."""
        step = self._steps[pc]
        if not self.here and (acting.full or not self._missing([(step, acting.bits)]).any()):
            step.act(acting)
            return self._after(pc, group)
        self._state.scheduler.put_some(pc + 1, group, group.bits & ~acting.bits)
        key = pc, acting.depth
        before = self.here.get(key)
        self.here[key] = acting if before is None else before.joined(acting)
        self.execute_ready()
        return STOP

    def _after(self, pc: int, group: Group) -> int:
        scheduler, after = self._state.scheduler, pc + 1
        if not (self._state.batch.lanes.any_waiting or scheduler.waiting):
            return after
        scheduler.go_on(after, group)
        scheduler.release()
        return STOP

    def parts(self) -> Parts:
        """Return the lanes that wait at each step, in program order."""
        found: dict[int, Array] = {}
        for (pc, _), group in self.here.items():
            found[pc] = found[pc] | group.bits if pc in found else group.bits
        return [(self._steps[pc], found[pc]) for pc in sorted(found)]

    def stuck(self, where: str, other: tuple[Site, str] | None) -> None:
        """Report the lanes at the lowest program counter, and let them execute the instruction alone (rule 4)."""
        step, bits = self.parts()[0]
        kind = "barrier" if self._barrier else "divergent"
        site, why = other or (None, "")
        detail = f"stalled on lanes that never arrived. {why}{where}"
        self._state.batch.reporter.report(kind, step.site, bits, detail=detail, other=site)
        self._execute([(step, bits)], bits)

    def execute_ready(self) -> None:
        """Execute it for the lanes that wait for no others."""
        parts = self.parts()
        ready = _union(parts) & ~self._missing(parts)
        if ready.any():
            self._execute([(step, bits & ready) for step, bits in parts], ready)

    # Rule 1

    def _missing(self, parts: Parts) -> Array:
        """Return which of the waiting lanes wait for others."""
        present = _union(parts)
        away = words(self._state.batch.lanes.alive) & ~words(present)
        if parts[0][0].mask is None:
            apart = of_warpgroups(away != 0) if self._warpgroup else away != 0
            return np.asarray(present & apart[..., None])
        missing = np.asarray(present & (_masks(parts) & away[..., None] != 0))
        if (shared := _shared_warps(parts)) is not None:
            pairs = _Pairs(parts, present, shared)
            alive = self._state.batch.lanes.alive[shared]
            missing[shared] |= (pairs.named & alive[:, None, :] & ~(pairs.same_pc | pairs.same_mask)).any(axis=-1)
        return missing

    # Rule 2

    def _execute(self, parts: Parts, ready: Array) -> None:
        """Execute it for some lanes, and let them continue."""
        waited, self.here = self.here, {}
        going = []
        pcs = {step.pc for step, _ in parts}
        for (pc, depth), group in waited.items():
            if pc not in pcs:
                self.here[pc, depth] = group
                continue
            if rest := group.some(group.bits & ~ready):
                self.here[pc, depth] = rest
            if free := group.some(group.bits & ready):
                going.append((pc, free))
        shared = self._from_several_steps(parts)
        for step, bits in parts:
            self._execute_alone(step, bits if shared is None else bits & ~shared)
        if shared is not None:
            self._execute_together([(step, bits & shared) for step, bits in parts if (bits & shared).any()])
        scheduler = self._state.scheduler
        for pc, group in going:
            scheduler.go_on(pc + 1, group)
        scheduler.release()

    def _from_several_steps(self, parts: Parts) -> Array | None:
        """Return the lanes whose membermask names lanes that execute it at another step; None if there are none."""
        parts = [(step, bits) for step, bits in parts if bits.any()]
        if len(parts) < 2 or (shared := _shared_warps(parts)) is None:
            return None
        present = _union(parts)
        pairs = _Pairs(parts, present, shared)
        found = np.zeros_like(present)
        found[shared] = (pairs.named & pairs.same_mask & ~pairs.same_pc).any(axis=-1)
        return found if found.any() else None

    def _execute_alone(self, step: ConvergenceStep, bits: Array) -> None:
        if count := int(np.count_nonzero(bits)):
            all_alive = count == self._state.scheduler.alive
            step.act(Group(self._state.batch.lanes.alive if all_alive else bits, count, all_alive))

    def _execute_together(self, parts: Parts) -> None:
        """Execute it once, with the operands of each lane's own instruction."""
        reporter = self._state.batch.reporter
        for (a, of_a), (b, of_b) in combinations(parts, 2):
            if warps := int(np.count_nonzero(of_a.any(axis=-1) & of_b.any(axis=-1))):
                one, other = sorted((a.site, b.site), key=lambda site: (site.line, site.column))
                reporter.joined[one, other] += warps
        first, _ = parts[0]
        operands = first.read()
        for step, bits in parts[1:]:
            operands = [merged(x, y, bits) for x, y in zip(operands, step.read(), strict=True)]
        with reporter.sites([(step.site, bits) for step, bits in parts]):
            results = first.handle(first.site, operands, _union(parts))
        for step, bits in parts:
            group = Group(bits, int(np.count_nonzero(bits)), False)
            step.count(group)
            step.write([_made_at(x, first.site, step.site) for x in results], group)


class _Pairs:
    """Relations between two lanes of a warp, `[warp, lane, lane]`, for some warps.

    Attributes
    ----------
    named : ndarray of bool
        The first lane waits, and its membermask names the second.
    same_place, same_mask : ndarray of bool
        Both wait at the same step; both wait with the same value of the membermask.
    """

    def __init__(self, parts: Parts, present: Array, warps: tuple[Array, ...]) -> None:
        pc = np.full(present.shape, -1)
        for step, bits in parts:
            pc[bits] = step.pc
        here, pc, mask = present[warps], pc[warps], _masks(parts)[warps]
        both = here[:, :, None] & here[:, None, :]
        self.named = here[:, :, None] & ((mask[:, :, None] >> _LANE) & 1 != 0)
        self.same_pc = both & (pc[:, :, None] == pc[:, None, :])
        self.same_mask = both & (mask[:, :, None] == mask[:, None, :])


def _union(parts: Parts) -> Array:
    bits = parts[0][1]
    for _, more in parts[1:]:
        bits = bits | more
    return bits


def _masks(parts: Parts) -> Array:
    """Return each lane's membermask, from its own instruction."""
    masks: Array = _mask(parts[0][0])
    for step, bits in parts[1:]:
        masks = np.where(bits, _mask(step), masks)
    return masks


def _mask(step: ConvergenceStep) -> Array:
    assert step.mask is not None  # only instructions with membermasks have several steps
    return step.mask()


def _shared_warps(parts: Parts) -> tuple[Array, ...] | None:
    """Return the warps, as blocks and numbers, whose lanes wait at several steps; None if there are none."""
    if len(parts) < 2:
        return None
    shared = np.nonzero(np.sum([bits.any(axis=-1) for _, bits in parts], axis=0) > 1)
    return shared if len(shared[0]) else None


def _made_at(x: WarpRegister, first: Site, own: Site) -> WarpRegister:
    """Return a result whose poison names the instruction of its own lanes."""
    if x.shadow is None or x.shadow.site is not first:
        return x
    return with_shadow(x, x.shadow.made_at(own))


class ConvergencePoints:
    """All convergence points of a program."""

    def __init__(self) -> None:
        self._all: dict[object, ConvergencePoint] = {}

    def at(self, key: object, make: Callable[[], ConvergencePoint]) -> ConvergencePoint:
        """Return the point of a key: a program counter, or what the instructions of several steps have in common."""
        if key not in self._all:
            self._all[key] = make()
        return self._all[key]

    def waiting(self) -> Iterator[tuple[ConvergenceStep, Array]]:
        """Yield the steps at which lanes wait, and these lanes."""
        for point in self._all.values():
            yield from point.parts()

    @property
    def open(self) -> list[ConvergencePoint]:
        """The points at which lanes wait, in program order."""
        return sorted((x for x in self._all.values() if x.here), key=lambda x: min(x.here))

    def stuck(self, where: str) -> bool:
        """Let the lanes at the lowest program counter execute what they wait for; return whether there are any."""
        if not (waiting := self.open):
            return False
        step, bits = waiting[0].parts()[0]
        waiting[0].stuck(where, self._other(step, bits))
        return True

    def _other(self, step: ConvergenceStep, bits: Array) -> tuple[Site, str] | None:
        """Return where other lanes of the first of these warps wait, and why they do not converge."""
        block, warp, _ = np.argwhere(bits)[0]
        for other, more in self.waiting():
            if other is not step and more[block, warp].any():
                return other.site, _why(step, other)
        return None

    def exited(self) -> None:
        """Let lanes continue that waited only for lanes that have exited."""
        for point in self.open:
            point.execute_ready()


def _why(step: ConvergenceStep, other: ConvergenceStep) -> str:
    if step.mask is None or other.mask is None:
        rule = "`.aligned` takes all lanes of the warp at one place"
    elif step.site.mnemonic == other.site.mnemonic:
        rule = "its membermask has another value"
    else:
        rule = "lanes meet only at the same opcode with the same qualifiers and membermask"
    return f"Other lanes of the warp wait at {other.site.what}: {rule}. "
