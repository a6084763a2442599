"""The search: which mistakes give the bits that were seen.

1. If the operands as given give these bits, nothing is guessed.
2. Every mistake alone; if none gives the bits, pairs of those that are not far-fetched, the simplest first, until as
   many were tried as asked for, by default 20,000 and as few as cost so many instructions.
3. They are tried on two tiles of D that differ most from what should have come out; those that give the bits there, on
   all tiles.
4. A mistake with D itself, such as how it was stored, is undone on what was seen: so it goes with any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations, islice, product
from typing import Any

import numpy as np

from ..._arrays import Array
from ...arithmetic import Engine
from ...errors import OperandError
from .mistakes import COMMON, USUAL, Mistake, Step, inverse
from .problem import Problem
from .suspects import left_out, likely_mistakes
from .trials import Candidate, Trials

MOST = 1 << 18
"""Instructions that a product may take."""

_MANY = 32  # that give the bits: more are not looked at
_AT_ONCE = 2048
_PAIRS, _MOST_PAIRED = 20_000, 1 << 19  # pairs that are tried unless more are asked for, and their instructions


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """What a search found.

    Attributes
    ----------
    as_given : bool
        Whether the operands as given give the bits.
    candidates : tuple
        Of mistakes: one or two that give the bits together.
    alone, pairs : int
        How many mistakes were tried alone, and how many pairs.
    alike : bool
        Whether most mistakes have no effect at all on such operands.
    untried : tuple of str
        What a limit kept from being tried, and how to raise it.
    """

    as_given: bool = False
    candidates: tuple[Candidate, ...] = ()
    alone: int = 0
    pairs: int = 0
    alike: bool = False
    untried: tuple[str, ...] = ()


def search(problem: Problem, most: int | None, engine: Engine, elements: int) -> Found:
    """Search for mistakes that give the bits; try `most` pairs, and whole matrices of `elements`, at most."""
    tiles, own, all_tiles = _executed(problem, engine)
    wrong = (own != all_tiles.chosen("D", problem.operands["D"])).sum(axis=-1)
    if not wrong.any():
        return Found(as_given=True)
    table, untried = likely_mistakes(problem, elements), left_out(problem, elements)
    picked = [n for n in np.argsort(-wrong, kind="stable")[:2] if wrong[n]]
    hunt = _Hunt(problem, all_tiles, own, Trials(problem, tiles[picked], engine), table)
    alone = hunt.confirmed(hunt.alone())
    if alone or most == 0:
        return Found(candidates=alone, alone=len(table), alike=2 * hunt.without_effect > len(table), untried=untried)
    if most is None:
        most = min(_PAIRS, _MOST_PAIRED // (len(picked) * problem.counts[3]))
    pairs, tried, more = hunt.pairs(most)
    if more:
        untried = (*untried, f"other pairs of mistakes; pass pairs={4 * most} to try more")
    return Found(candidates=pairs, alone=len(table), pairs=tried, untried=untried)


def gives(problem: Problem, engine: Engine) -> bool:
    """Whether the operands as given give the bits."""
    _, own, all_tiles = _executed(problem, engine)
    return np.array_equal(own, all_tiles.chosen("D", problem.operands["D"]))


def _executed(problem: Problem, engine: Engine) -> tuple[Array, Array, Trials]:
    """Return all tiles of D, the codes that the operands as given have there, and what tries mistakes on them."""
    warps, rows, columns, along_k = problem.counts
    count = warps * rows * columns * along_k
    if count > MOST:
        raise OperandError(
            f"{problem.record}: {count:,} instructions; guesses take {MOST:,}: pass fewer rows, columns or k"
        )
    tiles = np.stack(np.unravel_index(np.arange(warps * rows * columns), (warps, rows, columns)), axis=1)
    all_tiles = Trials(problem, tiles, engine)
    ((_, own),) = all_tiles.outputs([()])
    return tiles, own, all_tiles


class _Hunt:
    """Mistakes tried on a few tiles, and those that remain on all."""

    def __init__(
        self, problem: Problem, all_tiles: Trials, own: Array, few: Trials, table: tuple[Mistake, ...]
    ) -> None:
        self._problem, self._all, self._few = problem, all_tiles, few
        self._made = [m for m in table if not _stored(m)]
        self._results = [m for m in table if _stored(m)]
        seen = problem.operands["D"]
        self._seen: dict[bytes, list[Candidate]] = {few.chosen("D", seen).tobytes(): [()]}
        for mistake in self._results:
            undone = _undone(mistake.steps[0], seen)
            if undone is not None:
                self._seen.setdefault(few.chosen("D", undone).tobytes(), []).append((mistake,))
        self._right = [own]
        self._own = next(few.outputs([()]))[1].tobytes()
        self.without_effect = 0  # so many mistakes
        self._paired: list[Candidate] = []  # one with operands and one with D

    def alone(self) -> Iterator[Candidate]:
        """Try every mistake alone."""
        for candidate in self._tried([(), *((m,) for m in self._made)]):
            if len(candidate) > 1:
                self._paired.append(candidate)
            else:
                yield candidate
        for mistake in self._results:
            if _undone(mistake.steps[0], self._problem.operands["D"]) is None:
                yield (mistake,)  # loses elements: seen only on all tiles

    def pairs(self, most: int) -> tuple[tuple[Candidate, ...], int, bool]:
        """Try pairs: those found, how many were tried, and whether there are more."""
        plausible = [m for m in self._made if m.rank <= USUAL]
        results = sum(len(x) for x in self._seen.values())
        found = [c for c in self._paired if all(m.rank <= USUAL for m in c)]
        with_result = self._distinct(self.confirmed(found))
        kept: tuple[Candidate, ...] = ()
        tried = len(plausible) * results
        all_couples = _couples(plausible)
        couples = islice(all_couples, most)
        while part := list(islice(couples, _AT_ONCE)):
            tried += len(part)
            kept = self._distinct(self.confirmed(c for c in self._tried(part) if len(c) == 2))
            if kept:
                break
        return tuple(sorted((*kept, *with_result), key=_rank)), tried, next(all_couples, None) is not None

    def _tried(self, candidates: list[Candidate]) -> Iterator[Candidate]:
        """Yield those that give the bits on few tiles, with a mistake of D where that is needed."""
        for number, d in self._few.outputs(candidates):
            for step in _of_result(candidates[number]):
                d = step.change(d)
            bits = np.ascontiguousarray(d).tobytes()
            self.without_effect += bits == self._own
            for result in self._seen.get(bits, ()):
                yield (*candidates[number], *result)

    def confirmed(self, candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
        """Keep those that give the bits on all tiles."""
        kept, seen = [], self._problem.operands["D"]
        for candidate in candidates:
            made = tuple(m for m in candidate if not _stored(m))
            outputs = self._right if not made else [d for _, d in self._all.outputs([made])]
            if not outputs:
                continue
            d = outputs[0].reshape(seen.shape)
            for step in _of_result(candidate):
                d = step.change(d)
            if np.array_equal(d, seen):
                kept.append(candidate)
                if len(kept) > _MANY:
                    break
        kept.sort(key=_rank)
        fewest = min((_operands(c) for c in kept), default=0)
        simplest = min((c[0].rank for c in kept if c and c[0].settings), default=0)
        return tuple(c for c in kept if _operands(c) == fewest and (not c[0].settings or c[0].rank == simplest))

    def _distinct(self, candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Leave out pairs that come to the same operands as one before them."""
        kept: dict[Any, Candidate] = {}
        for candidate in candidates:
            words = tuple(
                self._few.words(name, tuple(s for m in candidate for s in m.steps if s.operand == name)).tobytes()
                for name in self._problem.operands if name != "D"
            )  # fmt: skip
            settings = tuple(item for m in candidate for item in m.settings.items())
            kept.setdefault((words, settings, tuple(m.text for m in candidate if _stored(m))), candidate)
        return tuple(kept.values())


def _rank(candidate: Candidate) -> tuple[int, bool]:
    """How far-fetched it is; and of the like, results come after operands."""
    return sum(m.rank for m in candidate), any(_stored(m) for m in candidate)


def _operands(candidate: Candidate) -> int:
    """How many operands a mistake is about: what explains with one is not said of two."""
    return len({step.operand for mistake in candidate for step in mistake.steps}) or 1


def _stored(mistake: Mistake) -> bool:
    return bool(mistake.steps) and all(step.operand == "D" for step in mistake.steps)


def _of_result(candidate: Candidate) -> list[Step]:
    return [step for mistake in candidate for step in mistake.steps if step.operand == "D"]


def _undone(step: Step, seen: Array) -> Array | None:
    """Undo a mistake with D on what was seen; None where it loses elements."""
    if not step.whole:
        back = inverse(step.gather) if step.gather is not None else None
        return None if back is None else seen.take(back, axis=-1)
    # From 1 on: 0 stands for what was lost.
    moved = step.change(np.arange(1, seen.size + 1).reshape(seen.shape)).reshape(-1) - 1
    back = inverse(moved)
    return None if back is None else seen.reshape(-1)[back].reshape(seen.shape)


def _couples(mistakes: list[Mistake]) -> Iterator[Candidate]:
    """Pairs of mistakes, the less far-fetched first."""
    common, usual = ([m for m in mistakes if m.rank == rank] for rank in (COMMON, USUAL))
    for one, other in chain(combinations(common, 2), product(common, usual), combinations(usual, 2)):
        yield from _orders(one, other)


def _orders(one: Mistake, other: Mistake) -> Iterator[Candidate]:
    """Both orders of two mistakes where it matters; none where they cannot be made together."""
    if {*one.settings} & {*other.settings}:
        return
    shared = {s.operand for s in one.steps} & {s.operand for s in other.steps}
    both = (*one.steps, *other.steps)
    if any(sum(s.whole and s.operand == name for s in both) > 1 for name in shared):
        return
    yield (one, other)
    if shared and not any(s.whole for s in both):
        yield (other, one)
