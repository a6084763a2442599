"""Registers of products: which steps touch a register of a `wgmma` that may be pending, or that no fence orders.

The rules (A25 to A28):

1. A product has the registers of its D, and of its A if that is in registers, until it has been waited for. Other steps
   that write one are of interest. A product may have registers of D that an earlier product has: at the same place of
   D they are in order; if their D overlap in part, a `wgmma.fence` has to lie between.
2. A `mov` of what a product has written does not count, as ptxas removes it, nor if it packs or unpacks halves, nor
   is a `cvt` between integers: the register that it writes holds the same, and a register of D may be written with what
   the same place of a product holds. Every other `mov` is an access.
3. A product needs a `wgmma.fence` behind the start of the program, and behind every access of a step to its registers,
   also to those that its values come from; and behind a product that has registers of its D at another place, or has
   another shape.
4. Of a call nothing is known; its registers are its own.
5. This only says which steps the machine looks at while it runs: whether a product is pending then, and when its warp
   has executed what, shows there (`sync.product_times`). What is known before a step is what some path knows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from ..._dataflow import settle_forwards
from ...operations import Operation, WarpgroupGroup, WarpgroupMultiply
from ...operations import row as row_of
from .step_flow import block_graph, slots_of
from .steps import AnyStep, InstructionStep, ProductRegister, ProductRegisters, Program, Slot

T = TypeVar("T")

_START = -1
_MOST = 8  # groups that are counted
_MOV: Any = row_of("mov.b32")
_NONE: frozenset[tuple[int, int]] = frozenset()
_NO_STEPS: frozenset[int] = frozenset()


def product_registers(program: Program) -> ProductRegisters:
    """Return the steps of a program that have to do with registers of products."""
    products = {pc: _Product.of(step) for pc, step in enumerate(program.steps) if _is_product(step)}
    if not products:
        return ProductRegisters()
    events = _events(program, products)
    blocks, following = block_graph(program)
    within = [[events[pc] for pc in block if pc in events] for block in blocks]
    before = _settled(products, within, following)
    found = _Found()
    for some, known in zip(within, before, strict=True):
        if some:
            _Flow(products, known).through(some, found)
    writes, overlaps, unfenced = (found.of(name) for name in ("writes", "overlaps", "unfenced"))
    if not (writes or overlaps or unfenced):
        return ProductRegisters()
    late = {x.earlier for some in (overlaps, unfenced) for those in some.values() for x in those}
    fences = {pc for pc, x in events.items() if x.kind == "fence"} if late else set()
    return ProductRegisters(
        writes, overlaps, unfenced, frozenset(products), frozenset(fences), frozenset(late - {_START})
    )


@dataclass(frozen=True)
class _Product:
    """The registers of a product, and its shape."""

    d: tuple[int, ...]
    a: tuple[int, ...]
    place: Mapping[int, int]  # of a register in D
    shape: tuple[int, int, int]

    def overlaps(self, other: _Product) -> bool:
        """Whether each D has a register that the other has, and one that it has not."""
        common = self.place.keys() & other.place.keys()
        return 0 < len(common) < min(len(self.place), len(other.place))

    @classmethod
    def of(cls, step: AnyStep) -> _Product:
        assert isinstance(step, InstructionStep) and isinstance(step.row, WarpgroupMultiply)
        d = tuple(x.number for x in step.results if x is not None)
        a: tuple[int, ...] = ()
        if step.row.in_registers:
            a = tuple(x.number for x in step.operands[len(d) : len(d) + 4] if isinstance(x, Slot))
        record = step.row.record
        return cls(d, a, {slot: i for i, slot in enumerate(d)}, (record.m, record.n, record.k))


@dataclass(frozen=True, slots=True)
class _Event:
    """What a step does, as far as it matters here."""

    pc: int
    kind: Literal["product", "fence", "commit", "wait", "move", "access"]
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    guarded: bool = False
    last: int = 0  # groups that may be pending after a wait


def _is_product(step: AnyStep) -> bool:
    return isinstance(step, InstructionStep) and isinstance(step.row, WarpgroupMultiply)


def _moves(step: InstructionStep) -> bool:
    """Whether a step is a `mov` of registers, or carries bits as one does: a `cvt` between integers."""
    row = step.row
    if not isinstance(row, Operation) or not all(isinstance(x, Slot) for x in step.operands):
        return False
    return row.travels or _how(row) == _how(_MOV)


def _how(row: Operation) -> tuple[Any, Any]:
    """Return how a row carries bits."""
    return getattr(row.carriage, "func", row.carriage), getattr(row.carriage, "args", ())


def _events(program: Program, products: Mapping[int, _Product]) -> dict[int, _Event]:
    """Return what the steps do with registers of products, and with those that their values may come from."""
    steps = program.steps
    sources: dict[int, list[int]] = defaultdict(list)
    for step in steps:
        if isinstance(step, InstructionStep) and _moves(step):
            for x in step.results:
                if x is not None:
                    sources[x.number] += slots_of(step.operands)
    some = {slot for x in products.values() for slot in (*x.d, *x.a)}
    more = [*some]
    while more:
        new = {x for x in sources.get(more.pop(), ()) if x not in some}
        some |= new
        more += new
    found: dict[int, _Event] = {}
    for pc, step in enumerate(steps):
        if not isinstance(step, InstructionStep):
            continue
        guarded = step.guard is not None
        if pc in products:
            found[pc] = _Event(pc, "product", guarded=guarded)
        elif isinstance(step.row, WarpgroupGroup):
            last = step.operands[0] if step.row.action == "wait_group" else 0
            kind = {"fence": "fence", "commit_group": "commit", "wait_group": "wait"}[step.row.action]
            number = getattr(last, "bits", last)
            found[pc] = _Event(pc, kind, guarded=guarded, last=number)  # type: ignore[arg-type]
        elif not step.beside:
            writes = tuple(x.number for x in step.results if x is not None and x.number in some)
            moves = _moves(step)
            reads = tuple(x for x in slots_of(step.operands) if x in some)
            if writes or (reads and not moves):
                found[pc] = _Event(pc, "move" if moves else "access", reads, writes, guarded)
    return found


class _Found:
    """What the steps of interest do."""

    def __init__(self) -> None:
        self.writes: dict[int, dict[ProductRegister, None]] = defaultdict(dict)
        self.overlaps: dict[int, dict[ProductRegister, None]] = defaultdict(dict)
        self.unfenced: dict[int, dict[ProductRegister, None]] = defaultdict(dict)

    def of(self, name: str) -> dict[int, tuple[ProductRegister, ...]]:
        """Return one of the three."""
        return {pc: tuple(some) for pc, some in getattr(self, name).items() if some}


@dataclass
class _Known:
    """What some path knows between two steps."""

    pending: dict[int, int] = field(default_factory=dict)  # by product, groups committed since, with its own
    held: dict[int, frozenset[tuple[int, int]]] = field(default_factory=dict)  # by register, places of D of products
    touched: dict[int, frozenset[int]] = field(default_factory=dict)  # by register, accesses behind which no fence is
    fresh: frozenset[int] = _NO_STEPS  # products behind which no fence is
    started: bool = False  # whether there was no fence at all

    def join(self, other: _Known) -> None:
        """Add what another path knows."""
        for x, groups in other.pending.items():
            self.pending[x] = min(groups, self.pending.get(x, groups))
        _add(self.held, other.held)
        _add(self.touched, other.touched)
        self.fresh |= other.fresh
        self.started |= other.started

    def copy(self) -> _Known:
        """Return the same."""
        return _Known({**self.pending}, {**self.held}, {**self.touched}, self.fresh, self.started)


def _add(mine: dict[int, frozenset[T]], those: Mapping[int, frozenset[T]]) -> None:
    for slot, new in those.items():
        old = mine.get(slot)
        mine[slot] = new if old is None or old is new else old | new


def _set(mine: dict[int, frozenset[T]], slot: int, new: frozenset[T]) -> None:
    if new:
        mine[slot] = new
    else:
        mine.pop(slot, None)


class _Flow:
    """Goes through steps."""

    def __init__(self, products: Mapping[int, _Product], known: _Known) -> None:
        self._products, self.known = products, known.copy()

    def through(self, events: Sequence[_Event], found: _Found | None = None) -> _Known:
        """Go through a basic block; collect the steps of interest."""
        known = self.known
        for x in events:
            if x.kind == "product":
                self._product(x, found)
            elif x.kind == "fence":
                if not x.guarded:
                    known.touched.clear()
                    known.fresh, known.started = _NO_STEPS, False
            elif x.kind == "commit":
                known.pending = {pc: min(groups + 1, _MOST) for pc, groups in known.pending.items()}
            elif x.kind == "wait":
                if not x.guarded:
                    last = min(x.last, _MOST - 1)
                    known.pending = {pc: groups for pc, groups in known.pending.items() if groups <= last}
            else:
                self._access(x, found)
        return known

    def _product(self, event: _Event, found: _Found | None) -> None:
        """Rules 1 and 3."""
        known, product = self.known, self._products[event.pc]
        if found is not None:
            self._look_at(event.pc, product, found)
        for i, slot in enumerate(product.d):
            known.held[slot] = frozenset({(event.pc, i)})
            known.touched.pop(slot, None)
        known.pending[event.pc] = 0
        known.fresh |= {event.pc}

    def _look_at(self, pc: int, product: _Product, found: _Found) -> None:
        known, unfenced = self.known, found.unfenced[pc]
        if known.started:
            unfenced[ProductRegister(_START, (*product.d, 0)[0], "D")] = None
        for i, slot in enumerate(product.d):
            for earlier, place in known.held.get(slot, _NONE):
                if earlier not in known.fresh:
                    continue
                before = self._products[earlier]
                if place != i and slot in before.place and before.overlaps(product):
                    found.overlaps[pc][ProductRegister(earlier, slot, "D")] = None
                elif place != i or before.shape != product.shape:
                    unfenced[ProductRegister(earlier, slot, "D")] = None
        for operand, slots in (("D", product.d), ("A", product.a)):
            for slot in slots:
                for earlier in known.touched.get(slot, _NO_STEPS):
                    unfenced[ProductRegister(earlier, slot, operand)] = None  # type: ignore[arg-type]

    def _access(self, event: _Event, found: _Found | None) -> None:
        known, pc = self.known, event.pc
        if event.kind == "access":
            for slot in event.reads:
                known.touched[slot] = known.touched.get(slot, _NO_STEPS) | {pc}
        held, touched = _NONE, frozenset({pc})
        if event.kind == "move":
            held = frozenset.intersection(*(known.held.get(x, _NONE) for x in event.reads))  # of packed ones, all
            if held:
                touched = _NO_STEPS.union(*(known.touched.get(x, _NO_STEPS) for x in event.reads))
        for slot in event.writes:
            if found is not None and known.pending:
                self._write(event, slot, held, found)
            if event.guarded:
                held, touched = held | known.held.get(slot, _NONE), touched | known.touched.get(slot, _NO_STEPS)
            _set(known.held, slot, held)
            _set(known.touched, slot, touched)

    def _write(self, event: _Event, slot: int, held: Iterable[tuple[int, int]], found: _Found) -> None:
        """Rules 1 and 2."""
        places = {place for _, place in held}
        for earlier in self.known.pending:
            product = self._products[earlier]
            if slot in product.place and product.place[slot] not in places:
                found.writes[event.pc][ProductRegister(earlier, slot, "D")] = None
            elif slot in product.a:
                found.writes[event.pc][ProductRegister(earlier, slot, "A")] = None


def _settled(
    products: Mapping[int, _Product], within: Sequence[Sequence[_Event]], following: Sequence[Sequence[int]]
) -> list[_Known]:
    """Return what is known before each basic block.

    What registers hold is settled first: whether a `mov` is an access depends on it. Facts only grow in each turn.
    """
    before, after = [_Known() for _ in within], [_Known() for _ in within]

    def visit(i: int, preceding: Sequence[int]) -> bool:
        known, old = before[i], after[i]
        for x in preceding:
            known.join(after[x])
        known.started |= i == 0
        after[i] = _Flow(products, known).through(within[i])
        return after[i] != old

    for _ in range(2):
        for known in (*before, *after):
            known.touched.clear()
        settle_forwards(following, visit)
    return before
