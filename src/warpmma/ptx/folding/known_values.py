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

Blocks are visited in their order, again and again, until nothing changes. A block is visited again only where something
that it reads has changed: the values behind a block before it, or a register that has one value. So the work is that of
one visit of each statement that matters (`value_graph`), and of further ones to loops that change what they read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..flow import Register
from ..text import Function, Statement
from .transfers import UNKNOWN, Source, Value, ValueStep, Varying, countable
from .value_graph import ValueGraph

_State = dict[Register, Value]
"""Values of registers. Missing is what is not known, except what a loop may not change (rule 3)."""


def find_values(
    function: Function, statements: Mapping[int, Statement], wanted: Collection[int]
) -> dict[int, tuple[Value, ...]]:
    """Find the values of the operands of some statements, by number: all but the first, which is the result.

    Statements that are never reached are not in the result.
    """
    flow = ValueGraph(function, statements, wanted)
    unrolled = set(flow.loops) - flow.kept
    while True:
        found = _Propagation(flow, unrolled)
        rolled = {head for head in unrolled if not found.counts(head)}
        if not rolled:
            return found.operands()
        unrolled -= rolled


class _Propagation:
    """The values before and after each block, for a choice of loops that are unrolled."""

    def __init__(self, flow: ValueGraph, unrolled: set[int]) -> None:
        self._flow, self._unrolled = flow, unrolled
        self._single: _State = {}
        self._after: dict[int, _State] = {}
        self._counting = {b for head in unrolled for b in flow.loops[head]}
        self._waiting = set(flow.order)
        # What holds after a pass holds in the next one too, which may find more: rule 3 never assumes anything.
        while self._waiting:
            self._pass()

    def _pass(self) -> None:
        """Visit the blocks that wait for it, in their order."""
        for b in self._flow.order:
            if b in self._waiting:
                self._waiting.discard(b)
                self._visit(b)

    def _visit(self, b: int) -> None:
        """Find the values after a block; those that read what has changed wait for the next visit."""
        flow, waiting = self._flow, self._waiting
        if b and not any(self._taken(a, b) for a in flow.before[b]):
            if self._after.pop(b, None) is not None:
                waiting.update(flow.blocks[b].successors)
            return
        state = self._before(b)
        for _, one in flow.steps[b]:
            for register in self._step(one, state):
                waiting.update(flow.readers.get(register, ()))
        if self._after.get(b) != state:
            self._after[b] = state
            waiting.update(flow.blocks[b].successors)

    def _taken(self, a: int, b: int) -> bool:
        """Whether a way from a block to another has been found that may be taken (rule 2)."""
        if a not in self._after:
            return False
        block = self._flow.blocks[a]
        if a not in self._flow.guards or (branch := block.branch) is None or branch.opcode != "bra":
            return True
        value = self._value(self._flow.guards[a], self._after[a])
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
                joined = self._joined(b, register, values, open_=unseen and register in self._flow.changed[b])
                if joined is not None:
                    state[register] = joined
        return state

    def _joined(self, b: int, register: Register, values: Sequence[Value], *, open_: bool) -> Value | None:
        """Join values of a register; None where nothing is known."""
        own = ("join", b, register)
        different = {x for x in values if not (isinstance(x, Varying) and x.origin == own)}
        if len(different) == 1 and not open_:
            return different.pop()
        counted = b in self._counting and all(countable(x) for x in different)
        return Varying(own, counted) if counted or open_ else None

    def counts(self, head: int) -> bool:
        """Whether a branch that leaves a loop depends on counted values alone (rule 5)."""
        body = self._flow.loops[head]
        for b in body:
            leaves = any(x not in body for x in self._flow.blocks[b].successors)
            known = b in self._flow.guards and b in self._after
            if leaves and known and countable(self._value(self._flow.guards[b], self._after[b])):
                return True
        return False

    def operands(self) -> dict[int, tuple[Value, ...]]:
        """Return the values of operands."""
        flow = self._flow
        found: dict[int, tuple[Value, ...]] = {}
        for b in flow.order:
            wanted = [i for i in flow.blocks[b].numbers if i in flow.sources]
            if wanted and b in self._after:
                state, steps = self._before(b), dict(flow.steps[b])
                for i in flow.blocks[b].numbers:
                    if i in flow.sources:
                        found[i] = tuple(self._value(x, state) for x in flow.sources[i])
                    if i in steps:
                        self._step(steps[i], state)
        return found

    def _step(self, one: ValueStep, state: _State) -> list[Register]:
        """Write the results of a statement; return the registers of one value that this changes."""
        single, several, changed = self._single, self._flow.several, list[Register]()

        def read(register: Register) -> Value:
            return state[register] if register in state else single.get(register, UNKNOWN)

        results = {} if one.transfer is None else one.transfer(read)
        executes = one.guard.read(read)
        for register, unknown in one.written:
            value = results.get(register, unknown)
            if register not in several:
                if single.get(register) != value:
                    single[register] = value
                    changed.append(register)
                continue
            old = state.get(register, UNKNOWN)
            if executes == 0:
                continue
            if not isinstance(executes, int) and value != old:  # rule 4
                value = Varying(unknown.origin, countable(executes) and countable(value) and countable(old))
            if countable(value):
                state[register] = value
            else:
                state.pop(register, None)
        return changed

    def _value(self, x: Source, state: _State) -> Value:
        return x.read(lambda register: state[register] if register in state else self._single.get(register, UNKNOWN))
