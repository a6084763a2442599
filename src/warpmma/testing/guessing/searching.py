"""The search for mistakes that give the observed bits.

1. If the operands as given give these bits, nothing is guessed.
2. Every mistake is tried alone. If none gives the bits, pairs of plausible mistakes are tried, the simplest first, up
   to a limit: by default 20,000 pairs, fewer if these need too many instructions.
3. They are tried on the two tiles of D that differ most from the expected result; those that give the bits there, on
   all tiles.
4. A mistake with D itself, such as how it was stored, is undone on the observed bits, so it combines with any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice, product
from typing import Any

import numpy as np

from ..._arrays import Array
from ..._records import Shown
from ..._text import counted
from ...arithmetic import Engine
from ...errors import OperandError, WarpmmaError
from ...execution import execute
from ...sparsity import UNDEFINED_MEASURED, sparse_a
from .mistakes import COMMON, USUAL, Mistake, Step, inverse
from .problem import Problem
from .suspects import left_out, likely_mistakes

Candidate = tuple[Mistake, ...]

_TILES = {
    # Of an operand's array, the tiles that a tile (warp, row of tiles, column of tiles) of D takes.
    "A": (0, 1), "metadata": (0, 1), "scale_a": (0, 1), "B": (0, 2), "scale_b": (0, 2), "C": (0, 1, 2), "D": (0, 1, 2),
}  # fmt: skip
_TRIED_AT_ONCE = 4096  # instructions in one call


class Trials:
    """Mistakes tried on some tiles of D: `tiles` is `[tile, 3]`, warp, row and column of tiles."""

    def __init__(self, problem: Problem, tiles: Array, engine: Engine) -> None:
        self.problem, self.tiles, self._engine = problem, tiles, engine
        self._words: dict[tuple[str, tuple[Step, ...]], Array] = {}
        self._legal: dict[Any, str] = {}

    def chosen(self, name: str, array: Array) -> Array:
        """Select the tiles of an operand's array: `[tile, T, elements]`, for C and D `[tile, elements]`."""
        w, *rest = (self.tiles[:, axis] for axis in _TILES[name])
        if len(rest) == 2:
            return array[w, rest[0], rest[1]]
        return array[w, rest[0]] if _TILES[name][1] == 1 else array[w, :, rest[0]]

    def words(self, name: str, steps: tuple[Step, ...]) -> Array:
        """Return registers of an operand after some steps: `[tile, T, registers, 32]`."""
        key = (name, steps)
        if key not in self._words:
            made = self._made(name, steps)
            if len(steps) > 1:
                return made
            self._words[key] = made
        return self._words[key]

    def _made(self, name: str, steps: tuple[Step, ...]) -> Array:
        array = self.problem.operands[name]
        for step in steps:
            array = step.change(array) if step.whole else array
        array = self.chosen(name, array)
        for step in steps:
            array = array if step.whole else step.change(array)
        if name not in ("A", "B", "C", "D"):
            return array
        layout = self.problem.record.layout(name)  # type: ignore[arg-type]
        return layout.packing.join(np.ascontiguousarray(array.take(layout.flat, axis=-1)))

    def outputs(self, candidates: Sequence[Candidate]) -> Iterator[tuple[int, Array]]:
        """Make mistakes; give the number of each that could be tried, and codes of D, `[tile, elements]`."""
        groups: dict[Any, list[int]] = {}
        for number, candidate in enumerate(candidates):
            key = self._group(candidate)
            if key is not None:
                groups.setdefault(key, []).append(number)
        for (settings, undefined, along_k), numbers in groups.items():
            at_once = max(1, _TRIED_AT_ONCE // (len(self.tiles) * along_k))
            for start in range(0, len(numbers), at_once):
                part = numbers[start : start + at_once]
                try:
                    found = self._run([candidates[n] for n in part], dict(settings), undefined, along_k)
                except WarpmmaError:
                    if not all(candidates[n] for n in part):
                        raise  # the operands as given
                    continue
                yield from zip(part, found, strict=True)

    def _group(self, candidate: Candidate) -> Any:
        """Return the key that must be equal in one call; None if it cannot be tried."""
        settings = {**self.problem.settings}
        for mistake in candidate:
            settings |= mistake.settings
        along_k = self.words("A", _steps(candidate, "A")).shape[1]
        undefined = "error"
        if self.problem.record.sparse:
            undefined = self._undefined(settings, _steps(candidate, "metadata"))
            if not undefined:
                return None
        return tuple(settings.items()), undefined, along_k

    def _undefined(self, settings: dict[str, Any], steps: tuple[Step, ...]) -> str:
        """Return the treatment of undefined metadata: "error" if all is defined, "" if its effect is unknown."""
        key = (settings["record"], settings["selector"], steps)
        if key not in self._legal:
            try:
                sparse_a(settings["record"]).check_words_on(
                    self.words("metadata", steps), settings["selector"], self.problem.target
                )
                self._legal[key] = "error"
            except WarpmmaError:
                if not steps and settings["record"] is self.problem.record and settings == self.problem.settings:
                    raise
                self._legal[key] = "hardware" if self.problem.target in UNDEFINED_MEASURED else ""
        return self._legal[key]

    def _run(self, candidates: Sequence[Candidate], settings: dict[str, Any], undefined: str, along_k: int) -> Array:
        record, problem = settings.pop("record"), self.problem
        given = {
            name: np.stack([self.words(name, _steps(c, name)) for c in candidates])
            for name in problem.operands if name != "D"
        }  # fmt: skip
        extra = {name: words for name, words in given.items() if name not in ("A", "B", "C")}
        d = given["C"]
        for t in range(along_k):
            more: dict[str, Any] = {name: np.ascontiguousarray(words[:, :, t]) for name, words in extra.items()}
            more |= {"target": problem.target, "engine": self._engine, "undefined": undefined}
            d = execute(record, given["A"][:, :, t], given["B"][:, :, t], d, **more, **settings)
        layout = problem.record.layout("D")
        codes = layout.packing.split(d).reshape(*d.shape[:-2], -1).take(layout.order.reshape(-1), axis=-1)
        fmt = problem.record.format("D")
        codes = codes.astype(fmt.code_dtype)
        return codes if problem.result is fmt else problem.result.encode(fmt.decode(codes))


def _steps(candidate: Candidate, name: str) -> tuple[Step, ...]:
    return tuple(step for mistake in candidate for step in mistake.steps if step.operand == name)


MOST = 1 << 18
"""Instructions that a product may take."""

_MANY = 32  # that give the bits: more are not looked at
_AT_ONCE = 2048
LISTED = 8  # mistakes in the message; more would not help
_PAIRS, _MOST_PAIRED = 20_000, 1 << 19  # default limits: pairs, and their instructions


@dataclass(frozen=True, kw_only=True)
class Guesses(Shown):
    """Possible explanations of a result that differs from the expected one.

    Attributes
    ----------
    mistakes : tuple of str
        What completes "as if", the simplest first: each of them alone gives the result, bit for bit. None, if none was
        found, or too many to list.
    as_given : bool
        Whether the operands as given give the result, so that nothing needs to be explained.
    alike : int
        How many mistakes give the result, if they are too many to name: the operands do not distinguish them.
    alone, pairs : int
        How many mistakes were tried alone, and how many pairs of them.
    untried : tuple of str
        What was not tried because of a limit, and how to raise it.
    target : str
        On which they were tried; "" where nothing was executed.
    """

    mistakes: tuple[str, ...] = ()
    as_given: bool = False
    alike: int = 0
    alone: int = 0
    pairs: int = 0
    untried: tuple[str, ...] = ()
    target: str = ""

    @property
    def _where(self) -> str:
        return f" on {self.target}" if self.target else ""

    def __str__(self) -> str:
        if self.as_given:
            return f"guess: none needed, the operands as given have this result{self._where}"
        if self.alike:
            return "guess: none, as many mistakes have this result: operands too uniform; use random data"
        if not self.mistakes:
            pairs = f", nor any of {counted(self.pairs, 'pair')} of them" if self.pairs else ""
            untried = "".join(f"\n  not tried: {what}" for what in self.untried)
            return f"guess: none; no one of {counted(self.alone, 'mistake')} has this result{pairs}{untried}"
        if len(self.mistakes) == 1:
            return f"guess: as if {self.mistakes[0]}"
        return "guess: as if one of these, which the operands do not tell apart\n  " + "\n  ".join(self.mistakes)


def guesses_of(candidates: Iterable[Candidate], *, uniform: bool = False, **tried: Any) -> Guesses:
    """Put candidates in words; only their number where they are many, or operands are too uniform to choose one."""
    texts = tuple(" and ".join(m.text for m in candidate) for candidate in candidates)
    if len(texts) > LISTED or (uniform and len(texts) > 1):
        return Guesses(alike=len(texts), **tried)
    return Guesses(mistakes=texts, **tried)


def search(problem: Problem, most: int | None, engine: Engine, elements: int) -> Guesses:
    """Search for mistakes that give the bits; try `most` pairs, and whole matrices of `elements`, at most."""
    tiles, own, all_tiles = _executed(problem, engine)
    wrong = (own != all_tiles.chosen("D", problem.operands["D"])).sum(axis=-1)
    if not wrong.any():
        return Guesses(as_given=True, target=problem.target)
    table, untried = likely_mistakes(problem, elements), left_out(problem, elements)
    picked = [n for n in np.argsort(-wrong, kind="stable")[:2] if wrong[n]]
    hunt = _Hunt(problem, all_tiles, own, Trials(problem, tiles[picked], engine), table)
    alone = hunt.confirmed(hunt.alone())
    tried: dict[str, Any] = {"alone": len(table), "target": problem.target}
    if alone or most == 0:
        return guesses_of(alone, uniform=2 * hunt.without_effect > len(table), untried=untried, **tried)
    if most is None:
        most = min(_PAIRS, _MOST_PAIRED // (len(picked) * problem.counts[3]))
    pairs, count, more = hunt.pairs(most)
    if more:
        untried = (*untried, f"other pairs of mistakes; pass pairs={4 * most} to try more")
    return guesses_of(pairs, pairs=count, untried=untried, **tried)


def gives(problem: Problem, engine: Engine) -> bool:
    """Return whether the operands as given give the bits."""
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
            for step in _steps(candidates[number], "D"):
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
            for step in _steps(candidate, "D"):
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
            names = (name for name in self._problem.operands if name != "D")
            words = tuple(self._few.words(name, _steps(candidate, name)).tobytes() for name in names)
            settings = tuple(item for m in candidate for item in m.settings.items())
            kept.setdefault((words, settings, tuple(m.text for m in candidate if _stored(m))), candidate)
        return tuple(kept.values())


def _rank(candidate: Candidate) -> tuple[int, bool]:
    """Return how far-fetched a candidate is; of equals, mistakes of the result come after those of operands."""
    return sum(m.rank for m in candidate), any(_stored(m) for m in candidate)


def _operands(candidate: Candidate) -> int:
    """Count the operands that a candidate concerns: an explanation with one is preferred to one with two."""
    return len({step.operand for mistake in candidate for step in mistake.steps}) or 1


def _stored(mistake: Mistake) -> bool:
    return bool(mistake.steps) and all(step.operand == "D" for step in mistake.steps)


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
    """List pairs of mistakes, the least far-fetched first."""
    common, usual = ([m for m in mistakes if m.rank == rank] for rank in (COMMON, USUAL))
    for one, other in chain(combinations(common, 2), product(common, usual), combinations(usual, 2)):
        yield from _orders(one, other)


def _orders(one: Mistake, other: Mistake) -> Iterator[Candidate]:
    """List both orders of two mistakes where it matters; none where they cannot be made together."""
    if {*one.settings} & {*other.settings}:
        return
    shared = {s.operand for s in one.steps} & {s.operand for s in other.steps}
    both = (*one.steps, *other.steps)
    if any(sum(s.whole and s.operand == name for s in both) > 1 for name in shared):
        return
    yield (one, other)
    if shared and not any(s.whole for s in both):
        yield (other, one)
