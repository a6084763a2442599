"""The values of registers that ptxas knows before a kernel runs.

The rules, read from machine code of ptxas 13.0 (docs/specification/folding.md):

1. A number is constant, and so is the result of `mov` of constants, what ptxas evaluates of them (`evaluated`), and an
   approximate function of them that it computes (`arithmetic.folded_reference`). Parameters, memory, special registers
   and results of calls are not.
2. Where ways join, a register is constant if it is the same on each way that may be taken: a branch by a constant
   predicate has one way. A register that nothing writes has no value.
3. At the head of a loop, a register that the loop does not change is what it was before. One that the loop changes is
   constant only if it is written from a constant that does not depend on it.
4. A guarded statement joins the new value and the old one.
5. ptxas unrolls loops whose number of iterations it knows, up to thousands. What such a loop counts is then a constant
   of each copy: `Varying.counted` says that it may be. A loop may be unrolled if a branch that leaves it
   depends on counted values alone, and no `.pragma "nounroll"` is at its head.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from ...arithmetic import folded_reference
from ..flow import JUMPS, BasicBlock, Register, Uses, graph, uses
from ..text import BYTES, Function, Immediate, Label, Negation, Operand, Statement, Symbol, VectorOf, bytes_of, number
from .evaluated import approximate_form, decided, evaluate, evaluates, masked, operation_of


@dataclass(frozen=True, slots=True)
class Varying:
    """A value that is not known: where it is made, and whether it may be constant in an unrolled loop (rule 5)."""

    origin: tuple[object, ...] = ()
    counted: bool = False


Value = int | Varying
"""Bits of a constant, those of a signed one in 64; or what is not known."""

_UNKNOWN = Varying()
_PACKED = "packed"  # the origin of elements that a `mov` packs, some of which may be constant
_State = dict[Register, Value]
"""Values of registers. Missing is what is not known, except what a loop may not change (rule 3)."""


def find_values(
    function: Function, statements: Mapping[int, Statement], wanted: Collection[int]
) -> dict[int, tuple[Value, ...]]:
    """Find the values of the operands of some statements, by number: all but the first, which is the result.

    Statements that are never reached are not in the result.
    """
    flow = _Flow(function, statements)
    unrolled = set(flow.loops) - flow.kept
    while True:
        found = _Propagation(flow, unrolled)
        rolled = {head for head in unrolled if not found.counts(head)}
        if not rolled:
            return found.operands(wanted)
        unrolled -= rolled


@dataclass
class _Flow:
    """The graph of a body: its blocks in an order in which each comes behind those that it depends on, and loops."""

    function: Function
    statements: Mapping[int, Statement]
    blocks: list[BasicBlock] = field(init=False)
    order: list[int] = field(init=False)
    before: dict[int, list[int]] = field(init=False)  # blocks that may come before each, of those that are reached
    loops: dict[int, set[int]] = field(init=False)  # the blocks of each loop, by its head
    kept: set[int] = field(init=False)  # heads of loops that ptxas does not unroll
    several: frozenset[Register] = field(init=False)  # registers whose value depends on where they are read
    uses: dict[int, Uses] = field(init=False)
    steps: dict[int, list[int]] = field(init=False)  # statements of each block that make values that may be known

    def __post_init__(self) -> None:
        self.blocks = graph(self.function)
        self.order = _order([x.successors for x in self.blocks])
        self.before = {b: [] for b in self.order}
        for a in self.order:
            for b in dict.fromkeys(self.blocks[a].successors):
                self.before[b].append(a)
        self.uses = {i: uses(one) for i, one in self.statements.items()}
        inside = _dominated(self.order, self.before)
        self.loops = self._loops(inside)
        self.kept = {b for b in self.loops if self._nounroll(b)}
        self.several = self._several(inside)
        self.steps = {b: [i for i in self.blocks[b].numbers if self._matters(i)] for b in self.order}

    def _matters(self, i: int) -> bool:
        one, written = self.statements[i], self.uses[i].written
        if not written or one.opcode in JUMPS:
            return False
        if one.opcode == "mov" or evaluates(one.words) is not False or approximate_form(one.words):
            return True
        return not self.several.isdisjoint(written)

    def _loops(self, inside: Callable[[int, int], bool]) -> dict[int, set[int]]:
        """Find natural loops; a loop with a second way in has all blocks, so everything that it writes is unknown."""
        place = {b: n for n, b in enumerate(self.order)}
        found: dict[int, set[int]] = {}
        for a in self.order:
            for head in self.blocks[a].successors:
                if place[head] > place[a]:
                    continue
                body = found.setdefault(head, {head})
                if not inside(head, a):
                    body.update(self.order)
                stack = [a]
                while stack:
                    b = stack.pop()
                    if b not in body:
                        body.add(b)
                        stack += self.before[b]
        return found

    def _nounroll(self, b: int) -> bool:
        i = self.blocks[b].numbers[0] - 1 if self.blocks[b].numbers else -1
        body = self.function.body
        while i >= 0 and isinstance(label := body[i], Label):
            if "nounroll" in label.pragmas:
                return True
            i -= 1
        return False

    def _several(self, inside: Callable[[int, int], bool]) -> frozenset[Register]:
        """Find registers but those that one unguarded statement writes, which comes before all that read them."""
        writers: dict[Register, tuple[int, int]] = {}
        found: set[Register] = set()
        for b in self.order:
            for i in self.blocks[b].numbers:
                for register in self.uses[i].written:
                    if register in writers or not self.uses[i].whole:
                        found.add(register)
                    writers[register] = (b, i)
        for b in self.order:
            for i in self.blocks[b].numbers:
                guard = self.statements[i].guard
                for register in (*self.uses[i].read, *([(guard.name, guard.scope)] if guard else [])):
                    at, by = writers.get(register, (b, -1))
                    if not (by < i if at == b else inside(at, b)):
                        found.add(register)
        return frozenset(found)


def _order(successors: Sequence[Sequence[int]]) -> list[int]:
    """Return the blocks that are reached from block 0, in reverse postorder."""
    seen, found = {0}, list[int]()
    stack = [(0, iter(successors[0]))]
    while stack:
        b, left = stack[-1]
        after = next((x for x in left if x not in seen), None)
        if after is None:
            found.append(b)
            stack.pop()
        else:
            seen.add(after)
            stack.append((after, iter(successors[after])))
    return found[::-1]


def _dominated(order: Sequence[int], before: Mapping[int, Iterable[int]]) -> Callable[[int, int], bool]:
    """Return what says whether a block comes on every way to another one.

    The algorithm is that of K. Cooper, T. Harvey and K. Kennedy, "A simple, fast dominance algorithm", 2001.
    """
    place = {b: n for n, b in enumerate(order)}
    above = [0, *([-1] * (len(order) - 1))]
    changed = True
    while changed:
        changed = False
        for n, b in enumerate(order[1:], 1):
            found = -1
            for a in (place[x] for x in before[b]):
                if above[a] >= 0:
                    while found >= 0 and a != found:
                        if a > found:
                            a = above[a]
                        else:
                            found = above[found]
                    found = a
            if found != above[n]:
                above[n], changed = found, True
    depth = [0] * len(order)
    for n in range(1, len(order)):
        depth[n] = depth[above[n]] + 1

    def inside(a: int, b: int) -> bool:
        m, n = place[a], place[b]
        while depth[n] > depth[m]:
            n = above[n]
        return m == n

    return inside


class _Propagation:
    """The values before and after each block, for a choice of loops that are unrolled."""

    def __init__(self, flow: _Flow, unrolled: set[int]) -> None:
        self._flow, self._unrolled = flow, unrolled
        self._single: _State = {}
        self._after: dict[int, _State] = {}
        self._counting = {b for head in unrolled for b in flow.loops[head]}
        changed_in = {
            head: {r for b in body for i in flow.blocks[b].numbers for r in flow.uses[i].written} & flow.several
            for head, body in flow.loops.items()
        }
        self._changed = changed_in
        # What holds after a pass holds in the next one too, which may find more: rule 3 never assumes anything.
        while self._pass():
            pass

    def _pass(self) -> bool:
        """Go through all blocks once; return whether anything changed."""
        changed = False
        for b in self._flow.order:
            if b and not any(self._taken(a, b) for a in self._flow.before[b]):
                changed |= self._after.pop(b, None) is not None
                continue
            state = self._before(b)
            for i in self._flow.steps[b]:
                changed |= self._step(i, state)
            if self._after.get(b) != state:
                self._after[b], changed = state, True
        return changed

    def _taken(self, a: int, b: int) -> bool:
        """Whether a way from a block to another has been found that may be taken (rule 2)."""
        if a not in self._after:
            return False
        block = self._flow.blocks[a]
        branch = block.branch
        if branch is None or branch.guard is None or branch.opcode != "bra":
            return True
        value = self._guard(branch, self._after[a])
        return not isinstance(value, int) or b in (block.targets if value else [block.next])

    def _before(self, b: int) -> _State:
        """Join the values after the blocks that come before (rules 2 and 3)."""
        ways = [self._after[a] for a in self._flow.before[b] if self._taken(a, b)]
        if b == 0:
            ways.append({})
        unseen = b in self._flow.loops and any(a not in self._after for a in self._flow.before[b])
        if len(ways) == 1 and not unseen:
            return dict(ways[0])
        state: _State = {}
        first, *others = ways
        for register, value in first.items():
            values = [value]
            for way in others:
                x = way.get(register)
                if x is None:
                    break
                if x is not value:
                    values.append(x)
            else:
                joined = self._joined(b, register, values, open_=unseen and register in self._changed[b])
                if joined is not None:
                    state[register] = joined
        return state

    def _joined(self, b: int, register: Register, values: Sequence[Value], *, open_: bool) -> Value | None:
        """Join values of a register; None where nothing is known."""
        own = ("join", b, register)
        different = {x for x in values if not (isinstance(x, Varying) and x.origin == own)}
        if len(different) == 1 and not open_:
            return different.pop()
        counted = b in self._counting and all(_countable(x) for x in different)
        return Varying(own, counted) if counted or open_ else None

    def counts(self, head: int) -> bool:
        """Whether a branch that leaves a loop depends on counted values alone (rule 5)."""
        body = self._flow.loops[head]
        for b in body:
            block = self._flow.blocks[b]
            branch = block.branch
            leaves = any(x not in body for x in block.successors)
            known = branch is not None and branch.guard is not None and b in self._after
            if leaves and known and _countable(self._guard(cast(Statement, branch), self._after[b])):
                return True
        return False

    def operands(self, wanted: Collection[int]) -> dict[int, tuple[Value, ...]]:
        """Return the values of operands."""
        found: dict[int, tuple[Value, ...]] = {}
        for b in self._flow.order:
            if b in self._after:
                state = self._before(b)
                steps = {*self._flow.steps[b]}
                for i in self._flow.blocks[b].numbers:
                    if i in wanted:
                        found[i] = self._operands(self._flow.statements[i], state)
                    if i in steps:
                        self._step(i, state)
        return found

    # Statements

    def _step(self, i: int, state: _State) -> bool:
        """Write the results of a statement; return whether a value of `_single` changed."""
        written = self._flow.uses[i].written
        one = self._flow.statements[i]
        results, changed = self._results(i, one, state), False
        executes = self._guard(one, state)
        for register in written:
            value = results.get(register, Varying((i, register)))
            if register not in self._flow.several:
                changed |= self._single.get(register) != value
                self._single[register] = value
                continue
            old = state.get(register, _UNKNOWN)
            if executes == 0:
                continue
            if not isinstance(executes, int) and value != old:
                counted = _countable(executes) and _countable(value) and _countable(old)
                value = Varying((i, register), counted)
            if _countable(value):
                state[register] = value
            else:
                state.pop(register, None)
        return changed

    def _results(self, i: int, one: Statement, state: _State) -> _State:
        """Rule 1: return the values of registers that a statement writes, if they may be known."""
        first = one.operands[0] if one.operands else None
        if one.opcode == "mov" and len(one.operands) == 2:
            return self._moved(i, one, state)
        if not isinstance(first, Symbol) or one.paired:
            return {}
        key = (first.name, first.scope)
        form = approximate_form(one.words)
        if (evaluated := evaluates(one.words)) is False and not form:
            return {}
        values = self._operands(one, state)
        kinds = _kinds(one)
        if len(values) != len(kinds):
            return {}
        codes = [masked(x, kind) if isinstance(x, int) else None for x, kind in zip(values, kinds, strict=True)]
        if form and None not in codes:
            result = folded_reference(form, *(x for x in codes if x is not None))
            return {} if result is None else {key: result}
        same = len(one.operands) == 3 and one.operands[1] == one.operands[2]
        if (result := decided(one.words, codes, kinds, same)) is not None:
            return {key: result}
        if evaluated and None not in codes:
            return {key: evaluate(one.mnemonic, tuple(x for x in codes if x is not None))}
        return {key: Varying((i, key), all(_countable(x) for x in values))}

    def _moved(self, i: int, one: Statement, state: _State) -> _State:
        """Return what `mov` writes: elements of a vector are parts of its bits."""
        to, given = one.operands
        if "v2" in one.words.qualifiers or "v4" in one.words.qualifiers or one.words.type not in BYTES:
            return {}
        sources, targets = (x.items if isinstance(x, VectorOf) else (x,) for x in (given, to))
        width = 1 if one.words.type == "pred" else 8 * bytes_of(one.words.type)
        values = [self._value(x, one.words.type, _class(width // len(sources)), state) for x in sources]
        if len(sources) == len(targets):
            found = values
        elif all(isinstance(x, int) for x in values):
            each, part = width // len(sources), width // len(targets)
            whole = sum(masked(x, f"b{each}") << n * each for n, x in enumerate(values) if isinstance(x, int))
            found = [whole >> n * part & (1 << part) - 1 for n in range(len(targets))]
        elif len(targets) == 1:
            found = [Varying((_PACKED, *values), all(_countable(x) for x in values))]
        elif isinstance(packed := values[0], Varying) and packed.origin[:1] == (_PACKED,):
            parts = cast(tuple[Value, ...], packed.origin[1:])
            found = list(parts) if len(parts) == len(targets) else []
        else:
            found = [Varying((i, n), _countable(values[0])) for n in range(len(targets))]
        pairs = zip(targets, found, strict=bool(found))
        return {(x.name, x.scope): value for x, value in pairs if isinstance(x, Symbol)}

    def _operands(self, one: Statement, state: _State) -> tuple[Value, ...]:
        kinds, types = _kinds(one), _types(one)
        if len(kinds) != len(one.operands) - 1:
            return (_UNKNOWN,) * (len(one.operands) - 1)
        triples = zip(one.operands[1:], types, kinds, strict=True)
        return tuple(self._value(x, type_, kind, state) for x, type_, kind in triples)

    def _guard(self, one: Statement, state: _State) -> Value:
        """Return whether a statement executes: 1 or 0, or what is not known."""
        if one.guard is None:
            return 1
        return _negated(self._of((one.guard.name, one.guard.scope), state), one.negated)

    def _value(self, x: Operand, type_: str, kind: str, state: _State) -> Value:
        if isinstance(x, Immediate):
            return number(x, type_, kind)  # type: ignore[arg-type]
        if isinstance(x, Negation) and x.sign == "!" and isinstance(x.operand, Symbol):
            return _negated(self._of((x.operand.name, x.operand.scope), state), True)
        if isinstance(x, Symbol) and x.scope >= 0:
            return self._of((x.name, x.scope), state)
        return 32 if isinstance(x, Symbol) and x.name == "WARP_SZ" else _UNKNOWN

    def _of(self, register: Register, state: _State) -> Value:
        return state.get(register, _UNKNOWN) if register in self._flow.several else self._single.get(register, _UNKNOWN)


def _class(bits: int) -> str:
    return "pred" if bits == 1 else f"b{bits}"


def _kinds(one: Statement) -> Sequence[str]:
    """Return the classes of the registers that a statement reads; () if it is not one of the table's operations."""
    matters = evaluates(one.words) is not False or approximate_form(one.words)
    found = operation_of(one.mnemonic) if matters else None
    return found.inputs if found is not None else ()


def _types(one: Statement) -> Sequence[str]:
    found = operation_of(one.mnemonic)
    return () if found is None else found.input_types or found.inputs


def _countable(x: Value) -> bool:
    return isinstance(x, int) or x.counted


def _negated(x: Value, negated: bool) -> Value:
    return 1 - (x & 1) if negated and isinstance(x, int) else x
