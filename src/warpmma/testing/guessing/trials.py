"""Trials: what comes out when mistakes are made, for many of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..._arrays import Array
from ...arithmetic import Engine
from ...errors import WarpmmaError
from ...execution import execute
from ...sparsity import UNDEFINED_MEASURED, sparse_a
from .mistakes import Mistake, Step
from .problem import Problem

Candidate = tuple[Mistake, ...]

_TILES = {
    # Of an operand's array, the tiles that a tile (warp, row of tiles, column of tiles) of D takes.
    "A": (0, 1), "metadata": (0, 1), "scale_a": (0, 1), "B": (0, 2), "scale_b": (0, 2), "C": (0, 1, 2), "D": (0, 1, 2),
}  # fmt: skip
_AT_ONCE = 4096  # instructions in one call


class Trials:
    """Mistakes tried on some tiles of D.

    Attributes
    ----------
    problem : Problem
    tiles : ndarray
        Which: `[tile, 3]`, warp, row and column of tiles.
    """

    def __init__(self, problem: Problem, tiles: Array, engine: Engine) -> None:
        self.problem, self.tiles, self._engine = problem, tiles, engine
        self._words: dict[tuple[str, tuple[Step, ...]], Array] = {}
        self._legal: dict[Any, str] = {}

    def chosen(self, name: str, array: Array) -> Array:
        """Take from an operand's array what the tiles need: `[tile, T, elements]`, of C and D `[tile, elements]`."""
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
            at_once = max(1, _AT_ONCE // (len(self.tiles) * along_k))
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
        """Say what must be alike in one call; None for what cannot be tried."""
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
        """Choose what to do about undefined metadata: "error" where there is none, "" where it cannot be computed."""
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
