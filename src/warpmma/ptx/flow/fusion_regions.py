"""Stretches of a body within which ptxas fuses, and the registers that are live after them.

1. A basic block begins at the target of a jump and ends at a jump. A label that is never jumped to does not begin a
   block. A block with one successor is merged with it if the successor has no other predecessor. Unreachable blocks,
   blocks without live statements (rule 3) and jumps whose targets are all the same are ignored.
2. ptxas expands some instructions to several blocks before it fuses, which separates the statements before and after
   them: `BREAKS` lists them. Every guarded instruction that is not arithmetic also separates them. Machine code of
   ptxas 13.0 for sm_80 and sm_90 showed this, with each of 200 instructions between a multiplication and an addition.
3. A register is live where its value may still reach a store or a branch. Statements that only compute dead values are
   ignored, since ptxas removes them.
4. ptxas unrolls loops first, unless `.pragma "nounroll"` is at their heads: the block that jumps back and the head may
   become one block; if the loop is a single block, so may the blocks before and after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..._dataflow import settle
from ...isa import since
from ..text import Function, Immediate, Label, Mnemonic, Statement, Symbol
from .control_flow import JUMPS, graph
from .registers_used import Register, Uses, arithmetic, pure, uses


@dataclass(frozen=True)
class Break:
    """Instructions that separate the statements around them: opcodes, and sets of words that they have one word of."""

    opcodes: str
    words: tuple[str, ...] = ()
    only: bool = False  # they have no word besides
    before: str = ""  # the first target for which they do not
    unknown_mask: bool = False  # only where their last operand, the membermask, is not a constant

    def has(self, mnemonic: Mnemonic) -> bool:
        """Return whether it lists a mnemonic."""
        if mnemonic.opcode not in self.opcodes.split():
            return False
        sets, given = [x.split() for x in self.words], set(mnemonic.qualifiers)
        return not any(given.isdisjoint(x) for x in sets) and (
            not self.only or given.issubset(x for y in sets for x in y)
        )


_ORDERS = "sc acq_rel acquire release"
BREAKS = (
    Break("div rcp sqrt", ("rn rz rm rp",)),
    Break("rsqrt", ("approx", "f64")),
    Break("div rem", ("s64 u64 s32 s16 u16",)),
    Break("membar fence", ("cta gl cluster gpu sys",), only=True),
    Break("fence", (_ORDERS, "cta cluster gpu sys"), only=True),
    Break("brkpt pmevent call"),
    Break("atom red", ("acq_rel release", "cluster gpu sys"), before="sm_90"),
    Break("shfl vote match redux", ("sync",), before="sm_90", unknown_mask=True),
    Break("bar", ("warp",), before="sm_90", unknown_mask=True),
)
"""What ends a stretch, as it was seen."""


@dataclass(slots=True)
class Block:
    """A basic block: its statements, by number, and the blocks that may follow."""

    statements: list[int]
    follow: list[int]


@dataclass(slots=True)
class Flow:
    """What is known of a body, whose statements are named by their numbers."""

    statements: dict[int, Statement]
    stretches: list[list[int]]  # statements in the order in which they run
    numbers: dict[Register, int]  # of the bit that stands for each register
    wanted: list[int]  # registers that are live after each stretch, as bits
    joined: list[frozenset[int]]  # stretches that may follow each one in one block, where a loop is unrolled (rule 4)
    dropped: list[int]  # statements of blocks without live ones: they stay in the body, and run
    uses: dict[int, Uses]
    constants: dict[Register, Immediate]  # registers that one statement writes, a `mov` of a number

    def step(self, i: int, live: int) -> tuple[bool, int]:
        """Step backwards over a statement: from registers wanted after it, as bits, to those wanted before it.

        Also return whether it is live (rule 3).
        """
        one, used, number = self.statements[i], self.uses[i], self.numbers
        wanted = not pure(one)
        for register in used.written:
            bit = 1 << number[register]
            if live & bit:
                wanted = True
                if used.whole:
                    live ^= bit
        if wanted:
            for register in used.read:
                live |= 1 << number[register]
            if one.guard is not None:
                live |= 1 << number[one.guard.name, one.guard.scope]
        return wanted, live


def traced(function: Function, target: str) -> Flow:
    """Find the stretches of a body for a target."""
    statements = {i: one for i, one in enumerate(function.body) if isinstance(one, Statement)}
    used = {i: uses(one) for i, one in statements.items()}
    constants = _constants(statements, used)
    blocks = [Block(block.numbers, sorted({*block.successors})) for block in graph(function)]  # rule 1, not joined
    numbers = {x: i for i, x in enumerate(dict.fromkeys(_registers(statements, used)))}
    found = Flow(statements, [], numbers, [], [], [], used, constants)
    wanted = _wanted(found, blocks)
    while _emptied(found, blocks, wanted):
        wanted = _wanted(found, blocks)
    chains = _merged(blocks)
    kept = {i for chain in chains for b in chain for i in blocks[b].statements}
    found.dropped += [i for i in statements if i not in kept]
    parts_of: list[range] = []
    for chain in chains:
        live = wanted[chain[-1]]
        parts, behind = [list[int]()], [live]
        for i in reversed([i for b in chain for i in blocks[b].statements]):
            _, live = found.step(i, live)
            if _breaks(statements[i], target, constants):
                parts.append([])
                behind.append(live)
            else:
                parts[-1].append(i)
        parts_of.append(range(len(found.stretches), len(found.stretches) + len(parts)))
        found.stretches += [part[::-1] for part in reversed(parts)]
        found.wanted += reversed(behind)
    for n, joined in enumerate(_joined(function, blocks, chains)):
        found.joined += [frozenset(k for m in joined for k in parts_of[m])] * len(parts_of[n])
    return found


def _breaks(one: Statement, target: str, constants: Mapping[Register, Immediate]) -> bool:
    """Rule 2, for a target."""
    if one.guard is not None and not arithmetic(one):
        return True
    found = _break(one.words, target)
    if found is None or not found.unknown_mask:
        return found is not None
    mask = one.operands[-1] if one.operands else Immediate(0)
    return not isinstance(mask, Immediate) and not (isinstance(mask, Symbol) and (mask.name, mask.scope) in constants)


@lru_cache(maxsize=4096)
def _break(mnemonic: Mnemonic, target: str) -> Break | None:
    mine = (x for x in BREAKS if not x.before or target not in since(x.before))
    return next((x for x in mine if x.has(mnemonic)), None)


def _constants(statements: Mapping[int, Statement], used: Mapping[int, Uses]) -> dict[Register, Immediate]:
    """Find registers that one statement writes, a `mov` of a number."""
    writers: dict[Register, list[int]] = {}
    for i, what in used.items():
        for register in what.written:
            writers.setdefault(register, []).append(i)
    found: dict[Register, Immediate] = {}
    for register, those in writers.items():
        one = statements[those[0]]
        if len(those) == 1 and used[those[0]].whole and one.opcode == "mov" and len(one.operands) == 2:
            value = one.operands[1]
            if isinstance(value, Immediate):
                found[register] = value
    return found


def _merged(blocks: Sequence[Block]) -> list[list[int]]:
    """Join blocks with one way out and their followers with one way in; leave out what no way leads to."""
    reached, stack = {0}, [0]
    while stack:
        for b in blocks[stack.pop()].follow:
            if b not in reached:
                reached.add(b)
                stack.append(b)
    ways_in = Counter(b for a in reached for b in blocks[a].follow)
    ways_in[0] += 1
    joined = {blocks[a].follow[0]: a for a in reached if len(blocks[a].follow) == 1}
    joined = {b: a for b, a in joined.items() if ways_in[b] == 1 and a != b}
    follower = {a: b for b, a in joined.items()}
    chains = []
    for first in sorted(reached - set(joined)):
        chain = [first]
        while chain[-1] in follower:
            chain.append(follower[chain[-1]])
        chains.append(chain)
    return chains


def _emptied(found: Flow, blocks: Sequence[Block], wanted: Sequence[int]) -> bool:
    """Bypass blocks without live statements, and drop jumps with one target; return whether anything changed."""
    around: dict[int, int] = {}
    for b, block in enumerate(blocks):
        if len(block.follow) == 1 and block.follow != [b] and not _counts(found, block, wanted[b]):
            around[b] = block.follow[0]
    changed = False
    for block in blocks:
        follow = set()
        for b in block.follow:
            seen = {b}
            while b in around and around[b] not in seen:
                b = around[b]
                seen.add(b)
            follow.add(b)
        if follow != set(block.follow):
            block.follow, changed = sorted(follow), True
        last = block.statements[-1] if block.statements else -1
        if len(follow) == 1 and last >= 0 and found.statements[last].opcode in JUMPS:
            del block.statements[-1]
            changed = True
    return changed


def _counts(found: Flow, block: Block, live: int) -> bool:
    """Whether anything in a block but its jump is live, given the registers wanted after it."""
    for i in reversed(block.statements):
        wanted, live = found.step(i, live)
        if wanted and found.statements[i].opcode != "bra":
            return True
    return False


def _joined(function: Function, blocks: Sequence[Block], chains: Sequence[Sequence[int]]) -> list[set[int]]:
    """Find, for each chain of blocks, those that may come behind it in one block when loops are unrolled (rule 4)."""
    kept = {one.name for one in function.body if isinstance(one, Label) and "nounroll" in one.pragmas}
    heads = _heads(function, blocks)
    of = {b: n for n, chain in enumerate(chains) for b in chain}
    found: list[set[int]] = [set() for _ in chains]
    for n, chain in enumerate(chains):
        for head in blocks[chain[-1]].follow:
            if head > chain[-1] or head not in of or heads.get(head, set()) & kept:
                continue
            found[n].add(of[head])
            if of[head] == n:  # the loop is one block: with a known number of turns it may vanish
                found[n] |= {of[b] for b in blocks[chain[-1]].follow if b in of}
                for m, other in enumerate(chains):
                    if head in blocks[other[-1]].follow:
                        found[m].add(n)
    return found


def _heads(function: Function, blocks: Sequence[Block]) -> dict[int, set[str]]:
    """Labels before the first statement of each block."""
    found: dict[int, set[str]] = {}
    for b, block in enumerate(blocks):
        i = block.statements[0] - 1 if block.statements else -1
        while i >= 0 and isinstance(one := function.body[i], Label):
            found.setdefault(b, set()).add(one.name)
            i -= 1
    return found


def _registers(statements: Mapping[int, Statement], used: Mapping[int, Uses]) -> Iterator[Register]:
    for i, one in statements.items():
        yield from used[i].written
        yield from used[i].read
        if one.guard is not None:
            yield one.guard.name, one.guard.scope


def _wanted(found: Flow, blocks: Sequence[Block]) -> list[int]:
    """Find the registers wanted after each block, as bits (rule 3)."""
    before = [0] * len(blocks)
    follow = [block.follow for block in blocks]

    def after(b: int) -> int:
        live = 0
        for following in follow[b]:
            live |= before[following]
        return live

    def visit(b: int) -> bool:
        live = after(b)
        for i in reversed(blocks[b].statements):
            _, live = found.step(i, live)
        changed, before[b] = live != before[b], live
        return changed

    settle(follow, visit)
    return [after(b) for b in range(len(blocks))]
