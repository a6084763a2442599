"""The parts of a body on which the values of some operands depend: blocks, loops, and the statements that count.

The rules:

1. A register matters if it is read by a statement whose operands are looked for, by the guard of a branch, or by a
   statement that writes a register that matters (its guard, too). Statements that write no such register are left out:
   what they compute changes neither a value that is looked for nor which ways may be taken.
2. Statements whose operands make it certain that nothing is ever known of their results are left out, too: in most
   kernels, all that depends on a parameter or on the place of a thread. Where a register has other writers, such a
   statement counts as one that writes what is not known.
3. A register has one value if one unguarded statement writes it, which comes on every way to all that read it. The
   values of all others depend on the place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..flow import BasicBlock, Register, Uses, graph, uses
from ..text import Function, Label, Statement
from .transfers import Source, ValueStep, guard_of, needed, sources_of, step


@dataclass
class ValueGraph:
    """The graph of a body, and what its statements do to registers that matter.

    Attributes
    ----------
    order : list of int
        The blocks that are reached; each comes behind those that it depends on, except in loops.
    before : dict
        By block, the blocks that may come before it.
    loops : dict
        By its head, the blocks of a loop.
    kept : set of int
        The heads of loops that ptxas does not unroll.
    several : frozenset of Register
        Registers that matter and whose values depend on the place (rule 3).
    steps : dict
        By block, the number of each statement that writes a register that matters and may be known, with what it does.
    guards : dict
        By block, the guard of its branch, if it has one.
    sources : dict
        By number, the operands that are looked for.
    readers : dict
        By register, the blocks whose values depend on it; only of registers that have one value.
    changed : dict
        By its head, the registers that a loop writes and whose values depend on the place.
    """

    function: Function
    statements: Mapping[int, Statement]
    wanted: Collection[int]
    blocks: list[BasicBlock] = field(init=False)
    order: list[int] = field(init=False)
    before: dict[int, list[int]] = field(init=False)
    loops: dict[int, set[int]] = field(init=False)
    kept: set[int] = field(init=False)
    several: frozenset[Register] = field(init=False)
    steps: dict[int, list[tuple[int, ValueStep]]] = field(init=False)
    guards: dict[int, Source] = field(init=False)
    sources: dict[int, tuple[Source, ...]] = field(init=False)
    readers: dict[Register, set[int]] = field(init=False)
    changed: dict[int, set[Register]] = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = graph(self.function)
        self.order = _order([x.successors for x in self.blocks])
        self.before = {b: [] for b in self.order}
        for a in self.order:
            for b in dict.fromkeys(self.blocks[a].successors):
                self.before[b].append(a)
        inside = _dominated(self.order, self.before)
        self.loops = self._loops(inside)
        self.kept = {b for b in self.loops if self._nounroll(b)}
        branches = ((b, self.blocks[b].branch) for b in self.order)
        self.guards = {b: guard_of(one) for b, one in branches if one is not None and one.guard is not None}
        reached = [i for b in self.order for i in self.blocks[b].numbers]
        self.sources = {i: sources_of(self.statements[i]) for i in reached if i in self.wanted}
        used = {i: uses(self.statements[i]) for i in reached}
        steps = self._steps(reached, used)
        matter = {register for one in steps.values() for register, _ in one.written}
        self.several = self._several(inside, used, matter)
        self.steps = {
            b: [(i, steps[i]) for i in self.blocks[b].numbers if i in steps and self._may_know(steps[i])]
            for b in self.order
        }
        self.readers = self._readers()
        self.changed = {
            head: {register for b in body for _, one in self.steps[b] for register, _ in one.written} & self.several
            for head, body in self.loops.items()
        }

    def _readers(self) -> dict[Register, set[int]]:
        """Find the readers of registers: a block reads what its statements and the branches before it read."""
        found: dict[Register, set[int]] = {}
        for b in self.order:
            read = [register for _, one in self.steps[b] for register in one.reads()]
            for register in read:
                if register not in self.several:
                    found.setdefault(register, set()).add(b)
            guard = self.guards.get(b)
            if guard is not None and guard.register is not None and guard.register not in self.several:
                found.setdefault(guard.register, set()).update(self.blocks[b].successors)
        return found

    def _steps(self, reached: Iterable[int], used: Mapping[int, Uses]) -> dict[int, ValueStep]:
        """Rules 1 and 2: return the statements that write registers that matter."""
        known = _may_be_known({i: self.statements[i] for i in reached}, used)
        writers: dict[Register, list[int]] = {}
        for i in reached:
            for register in used[i].written:
                if register in known:
                    writers.setdefault(register, []).append(i)
        found: dict[int, ValueStep] = {}
        wanted = [x.register for sources in (*self.sources.values(), self.guards.values()) for x in sources]
        work = [x for x in wanted if x is not None]
        while work:
            for i in writers.pop(work.pop(), ()):
                if i not in found:
                    found[i] = step(i, self.statements[i], used[i])
                    work += found[i].reads()
        return found

    def _may_know(self, one: ValueStep) -> bool:
        return one.matters or any(register in self.several for register, _ in one.written)

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

    def _several(
        self, inside: Callable[[int, int], bool], used: Mapping[int, Uses], matter: Collection[Register]
    ) -> frozenset[Register]:
        """Rule 3, for registers that matter."""
        writers: dict[Register, tuple[int, int]] = {}
        found: set[Register] = set()
        for b in self.order:
            for i in self.blocks[b].numbers:
                for register in used[i].written:
                    if register in writers or not used[i].whole:
                        found.add(register)
                    writers[register] = (b, i)
        for b in self.order:
            for i in self.blocks[b].numbers:
                guard = self.statements[i].guard
                for register in (*used[i].read, *([(guard.name, guard.scope)] if guard else ())):
                    if register in matter and register not in found:
                        at, by = writers[register]
                        if not (by < i if at == b else inside(at, b)):
                            found.add(register)
        return frozenset(found.intersection(matter))


def _may_be_known(statements: Mapping[int, Statement], used: Mapping[int, Uses]) -> set[Register]:
    """Rule 2: return the registers whose values may be known."""
    readers: dict[Register, list[int]] = {}
    missing: dict[int, int] = {}  # how many more registers have to be known
    found: set[Register] = set()
    work: list[Register] = []
    for i, one in statements.items():
        if (needs := needed(one, used[i].read)) is None:
            continue
        if needs == 0:
            work += used[i].written
            continue
        missing[i] = needs
        for register in {*used[i].read}:
            readers.setdefault(register, []).append(i)
    while work:
        register = work.pop()
        if register not in found:
            found.add(register)
            for i in readers.get(register, ()):
                missing[i] -= 1
                if missing[i] == 0:
                    work += used[i].written
    return found


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

    The algorithm is that of K. Cooper, T. Harvey and K. Kennedy, "A simple, fast dominance algorithm", 2001. A block
    dominates those whose numbers in a walk of the tree lie between its own two.
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
    # A block comes behind the one above it, so sizes of trees add up from the last to the first.
    size = [1] * len(order)
    for n in range(len(order) - 1, 0, -1):
        size[above[n]] += size[n]
    first, free = [0] * len(order), [1] * len(order)
    for n in range(1, len(order)):
        first[n] = free[above[n]]
        free[above[n]] += size[n]
        free[n] = first[n] + 1

    def inside(a: int, b: int) -> bool:
        m, n = place[a], place[b]
        return first[m] <= first[n] < first[m] + size[m]

    return inside
