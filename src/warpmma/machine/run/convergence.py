"""Convergence: lanes of a warp that wait for others at an instruction that they execute together.

The rules (PTX ISA 9.1: `.sync` of `shfl`, `vote`, `match`, `redux`, `elect`, `bar.warp`; `.aligned`; measured on an
H200, docs/specification/h200.md 9):

1. `.sync` waits until all lanes of its membermask that have not exited have arrived: at that instruction, or at another
   one of the program with the same opcode, the same qualifiers and the same value of the membermask. `.aligned` waits
   for all lanes of the warp that have not exited, at that very instruction.
2. When all lanes have arrived they execute it together, whatever calls brought them there, and continue; other lanes
   stay. Each lane brings the operands of its own instruction, and writes that instruction's registers.
3. No lane waits for one that has exited.
4. If no lane can run, those that wait at the lowest place execute the instruction as they are: it reports what is
   wrong.
5. If lanes of several instructions meet, the report counts it (`Launch.joined`): that is legal, but may be a mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ..._arrays import Array, frozen
from ...registers import LANES
from ..base import Site, WarpRegister, merged
from .groups import Group, words
from .scheduling import STOP
from .state import State

Parts = list[tuple["ConvergenceStep", Array]]

_LANE = frozen(np.arange(LANES, dtype=np.uint32))


@dataclass(frozen=True, eq=False, slots=True)
class ConvergenceStep:
    """A step at which lanes meet.

    Attributes
    ----------
    site : Site
    read, write : callable
        Return its operands, and take its results, for a group of lanes.
    """

    number: int  # its place in the program
    site: Site
    act: Callable[[Group], object]  # executes it, for a group of lanes that are all here
    mask: Callable[[], Array] | None  # returns the membermasks, uint32 `[block, warp, lane]`; None for whole warps
    read: Callable[[], list[Any]]
    write: Callable[[Any, Group], None]
    handle: Callable[[Site, list[Any], Array], Any]  # from the site, operands and lanes to the results
    count: Callable[[Group], None]  # counts an execution by a group


class ConvergencePoint:
    """An instruction that lanes execute together, at one place, or a `.sync` one at several places.

    Parameters
    ----------
    state : State
    barrier : bool
        Whether it is a barrier of the block.

    Attributes
    ----------
    here : dict of (int, int) to ndarray of bool
        The lanes that wait, by place and depth.
    """

    def __init__(self, state: State, *, barrier: bool = False) -> None:
        self._state, self._barrier = state, barrier
        self._places: dict[int, ConvergenceStep] = {}
        self.here: dict[tuple[int, int], Array] = {}

    def add(self, place: ConvergenceStep) -> None:
        """Add a place at which lanes may arrive."""
        self._places[place.number] = place

    def come(self, number: int, group: Group, acting: Group) -> int:
        """Let the executing lanes of a group arrive at a place; return where the group continues."""
        place = self._places[number]
        if not self.here and (acting.full or not self._missing([(place, acting.bits)]).any()):
            place.act(acting)
            return self._after(number, group)
        self._state.scheduler.put_lanes(number + 1, group.bits & ~acting.bits, group.depth)
        key = number, acting.depth
        before = self.here.get(key)
        self.here[key] = acting.bits if before is None else before | acting.bits
        self.meet()
        return STOP

    def _after(self, number: int, group: Group) -> int:
        scheduler, after = self._state.scheduler, number + 1
        if self._state.batch.lanes.any_waiting:
            scheduler.go_on(after, group.bits, group.depth)
        elif scheduler.waiting:
            scheduler.put(after, group)
        else:
            return after
        scheduler.release()
        return STOP

    def parts(self) -> Parts:
        """Return the lanes that wait at each place, the lowest place first."""
        found: dict[int, Array] = {}
        for (number, _), bits in self.here.items():
            found[number] = found[number] | bits if number in found else bits
        return [(self._places[number], found[number]) for number in sorted(found)]

    def stuck(self, where: str, other: tuple[Site, str] | None) -> None:
        """Report the lanes at the lowest place, and execute the instruction as they are (rule 4)."""
        place, bits = self.parts()[0]
        kind = "barrier" if self._barrier else "divergent"
        site, why = other or (None, "")
        detail = f"stalled on lanes that never arrived. {why}{where}"
        self._state.batch.reporter.report(kind, place.site, bits, detail=detail, other=site)
        self._go([(place, bits)], bits)

    def meet(self) -> None:
        """Execute it for the lanes whose partners have all arrived."""
        parts = self.parts()
        ready = _union(parts) & ~self._missing(parts)
        if ready.any():
            self._go([(place, bits & ready) for place, bits in parts], ready)

    # Rule 1

    def _missing(self, parts: Parts) -> Array:
        """Return which waiting lanes still wait for others."""
        present = _union(parts)
        away = words(self._state.batch.lanes.alive) & ~words(present)
        if parts[0][0].mask is None:
            return np.asarray(present & (away != 0)[..., None])
        missing = np.asarray(present & (_masks(parts) & away[..., None] != 0))
        if (shared := _shared_warps(parts)) is not None:
            pairs = _Pairs(parts, present, shared)
            alive = self._state.batch.lanes.alive[shared]
            missing[shared] |= (pairs.named & alive[:, None, :] & ~(pairs.same_place | pairs.same_mask)).any(axis=-1)
        return missing

    # Rule 2

    def _go(self, parts: Parts, ready: Array) -> None:
        """Let lanes execute it and continue."""
        waited, self.here = self.here, {}
        going = []
        places = {place.number for place, _ in parts}
        for (number, depth), bits in waited.items():
            rest = bits & ~ready if number in places else bits
            if rest.any():
                self.here[number, depth] = rest
            if number in places:
                going.append((number, bits & ready, depth))
        across = self._across(parts)
        for place, bits in parts:
            self._alone(place, bits if across is None else bits & ~across)
        if across is not None:
            self._together([(place, bits & across) for place, bits in parts if (bits & across).any()])
        scheduler = self._state.scheduler
        for number, bits, depth in going:
            scheduler.go_on(number + 1, bits, depth)
        scheduler.release()

    def _across(self, parts: Parts) -> Array | None:
        """Return whose membermask names lanes that execute it at another place; None if there are none."""
        parts = [(place, bits) for place, bits in parts if bits.any()]
        if len(parts) < 2 or (shared := _shared_warps(parts)) is None:
            return None
        present = _union(parts)
        pairs = _Pairs(parts, present, shared)
        found = np.zeros_like(present)
        found[shared] = (pairs.named & pairs.same_mask & ~pairs.same_place).any(axis=-1)
        return found if found.any() else None

    def _alone(self, place: ConvergenceStep, bits: Array) -> None:
        if count := int(np.count_nonzero(bits)):
            everybody = count == self._state.scheduler.alive
            place.act(Group(self._state.batch.lanes.alive if everybody else bits, count, everybody))

    def _together(self, parts: Parts) -> None:
        """Execute it once, with the operands of each lane's own instruction."""
        reporter = self._state.batch.reporter
        for (a, of_a), (b, of_b) in combinations(parts, 2):
            if warps := int(np.count_nonzero(of_a.any(axis=-1) & of_b.any(axis=-1))):
                one, other = sorted((a.site, b.site), key=lambda site: (site.line, site.column))
                reporter.joined[one, other] += warps
        first, _ = parts[0]
        operands = first.read()
        for place, bits in parts[1:]:
            operands = [merged(x, y, bits) for x, y in zip(operands, place.read(), strict=True)]
        with reporter.sites([(place.site, bits) for place, bits in parts]):
            results = first.handle(first.site, operands, _union(parts))
        for place, bits in parts:
            group = Group(bits, int(np.count_nonzero(bits)), False)
            place.count(group)
            place.write([_made_at(x, first.site, place.site) for x in results], group)


class _Pairs:
    """Relations of two lanes of a warp, `[warp, lane, lane]`, for some warps.

    Attributes
    ----------
    named : ndarray of bool
        The first waits, and its membermask names the second.
    same_place, same_mask : ndarray of bool
        Both wait at the same place; both wait with the same value of the membermask.
    """

    def __init__(self, parts: Parts, present: Array, warps: tuple[Array, ...]) -> None:
        place = np.full(present.shape, -1)
        for each, bits in parts:
            place[bits] = each.number
        here, place, mask = present[warps], place[warps], _masks(parts)[warps]
        both = here[:, :, None] & here[:, None, :]
        self.named = here[:, :, None] & ((mask[:, :, None] >> _LANE) & 1 != 0)
        self.same_place = both & (place[:, :, None] == place[:, None, :])
        self.same_mask = both & (mask[:, :, None] == mask[:, None, :])


def _union(parts: Parts) -> Array:
    bits = parts[0][1]
    for _, more in parts[1:]:
        bits = bits | more
    return bits


def _masks(parts: Parts) -> Array:
    """Return each lane's membermask, by its own instruction."""
    masks: Array = _mask(parts[0][0])
    for place, bits in parts[1:]:
        masks = np.where(bits, _mask(place), masks)
    return masks


def _mask(place: ConvergenceStep) -> Array:
    assert place.mask is not None  # only instructions with membermasks have several places
    return place.mask()


def _shared_warps(parts: Parts) -> tuple[Array, ...] | None:
    """Return the blocks and warps whose lanes wait at several places; None if there are none."""
    if len(parts) < 2:
        return None
    shared = np.nonzero(np.sum([bits.any(axis=-1) for _, bits in parts], axis=0) > 1)
    return shared if len(shared[0]) else None


def _made_at(x: WarpRegister, first: Site, own: Site) -> WarpRegister:
    """Return a result whose poison names the instruction of its own lanes."""
    if x.shadow is None or x.shadow.site is not first:
        return x
    return WarpRegister(x.bits, x.shadow.made_at(own))


class ConvergencePoints:
    """All meetings of a program."""

    def __init__(self) -> None:
        self._all: dict[object, ConvergencePoint] = {}

    def at(self, key: object, make: Callable[[], ConvergencePoint]) -> ConvergencePoint:
        """Return the meeting of a key: a place, or what instructions at several places have in common."""
        if key not in self._all:
            self._all[key] = make()
        return self._all[key]

    def waiting(self) -> Iterator[tuple[ConvergenceStep, Array]]:
        """Yield the places where lanes wait, and these lanes."""
        for meeting in self._all.values():
            yield from meeting.parts()

    @property
    def open(self) -> list[ConvergencePoint]:
        """The meetings at which lanes wait, by the lowest place."""
        return sorted((x for x in self._all.values() if x.here), key=lambda x: min(x.here))

    def stuck(self, where: str) -> bool:
        """Let lanes at the lowest place execute what they wait for; return whether there are any."""
        if not (waiting := self.open):
            return False
        place, bits = waiting[0].parts()[0]
        waiting[0].stuck(where, self._other(place, bits))
        return True

    def _other(self, place: ConvergenceStep, bits: Array) -> tuple[Site, str] | None:
        """Return where other lanes of the first of these warps wait, and why they do not meet."""
        block, warp, _ = np.argwhere(bits)[0]
        for other, more in self.waiting():
            if other is not place and more[block, warp].any():
                return other.site, _why(place, other)
        return None

    def exited(self) -> None:
        """Let lanes continue that waited only for exited ones."""
        for meeting in self.open:
            meeting.meet()


def _why(place: ConvergenceStep, other: ConvergenceStep) -> str:
    if place.mask is None or other.mask is None:
        rule = "`.aligned` takes all lanes of the warp at one place"
    elif place.site.mnemonic == other.site.mnemonic:
        rule = "its membermask has another value"
    else:
        rule = "lanes meet only at the same opcode with the same qualifiers and membermask"
    return f"Other lanes of the warp wait at {other.site.place} ({other.site.mnemonic}): {rule}. "
