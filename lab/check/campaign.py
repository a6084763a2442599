"""Campaigns: outputs of cases, counted over many runs in a state file."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lab.generators import styles
from warpmma._text import table
from warpmma.arithmetic import Recipe
from warpmma.isa import MatrixInstruction

__all__ = ["Campaign", "Case", "Job", "Outcome"]

_VERSION = 1  # of state files


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """What outputs are counted for.

    Attributes
    ----------
    name : str
        The key in a state file.
    recipe : Recipe
    k, scales : int
        Products of a row (of a sparse A the stored ones), and its block scales.
    width : int
        Columns of a group of a sparse A; 0 of a dense one.
    instruction : Instruction or WarpgroupInstruction, optional
        What the GPU computes by itself as well.
    target : str
    """

    name: str
    recipe: Recipe
    k: int
    scales: int = 0
    width: int = 0
    instruction: MatrixInstruction | None = None
    target: str = ""

    @property
    def counted(self) -> object:
        """What has outputs of its own: a recipe, or an instruction."""
        return self.recipe if self.instruction is None else self.name

    @property
    def unit(self) -> str:
        """Name of the unit, for the table."""
        door = "" if self.instruction is None else f"{str(self.instruction).partition('.')[0]}: "
        return f"{door}{type(self.recipe.unit).__name__}{', sparse' if self.width else ''}"


@dataclass(frozen=True)
class Job:
    """A case in one style; `number` is part of the seed."""

    case: Case
    style: str
    number: int


@dataclass(frozen=True)
class Outcome:
    """Outputs that were compared and that differ, each computed twice with a hardware instruction; the first."""

    outputs: int
    differences: int
    first: str


@dataclass(kw_only=True)
class Campaign:
    """Outputs and differences of cases, over many runs.

    Attributes
    ----------
    seed : int
    jobs : int
        How many were given out, in all runs.
    outputs, differences : Counter
        By the name of a case.
    """

    seed: int
    jobs: int = 0
    outputs: Counter[str] = field(default_factory=Counter)
    differences: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, path: Path | None, seed: int) -> Campaign:
        """Read a state, or begin one; `ValueError` for a state of another seed, or a file that is none."""
        if path is None or not path.exists():
            return cls(seed=seed)
        state = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(state, dict) or state.get("version") != _VERSION:
            raise ValueError(f"{path} is no state of this command")
        if state["seed"] != seed:
            raise ValueError(f"{path} is of seed {state['seed']}, not {seed}")
        outputs, differences = Counter[str](state["outputs"]), Counter[str](state["differences"])
        return cls(seed=seed, jobs=state["jobs"], outputs=outputs, differences=differences)

    def write(self, path: Path | None) -> None:
        """Write the state, all of it or nothing."""
        if path is None:
            return
        state = {
            "version": _VERSION, "seed": self.seed, "jobs": self.jobs, "outputs": self.outputs,
            "differences": self.differences,
        }  # fmt: skip
        beside = path.with_name(f"{path.name}.part")
        beside.write_text(json.dumps(state, indent=0), encoding="utf-8")
        beside.replace(path)

    def endless(self, cases: Sequence[Case], each: int) -> Iterator[Job]:
        """Yield jobs of so many outputs: of the case with the fewest, among those of the recipe with the fewest."""
        rng = np.random.default_rng([self.seed, self.jobs])
        of_style = {case.name: rng.permutation(styles(case.recipe)).tolist() for case in cases}
        given = {case.name: self.outputs[case.name] for case in cases}
        alike: dict[object, list[Case]] = {}
        for index in rng.permutation(len(cases)):  # so that threads compile different kernels
            alike.setdefault(cases[int(index)].counted, []).append(cases[int(index)])
        heap = [(sum(given[case.name] for case in some), i) for i, some in enumerate(alike.values())]
        heapq.heapify(heap)
        groups = list(alike.values())
        while True:
            outputs, number = heap[0]
            heapq.heapreplace(heap, (outputs + each, number))
            case = min(groups[number], key=lambda x: given[x.name])
            given[case.name] += each
            some = of_style[case.name]
            some.append(some.pop(0))
            self.jobs += 1
            yield Job(case, str(some[-1]), self.jobs - 1)

    def add(self, case: Case, outcome: Outcome) -> None:
        """Count a job."""
        self.outputs[case.name] += outcome.outputs
        if outcome.differences:
            self.differences[case.name] += outcome.differences

    def report(self, cases: Sequence[Case]) -> list[str]:
        """Return a table by unit."""
        of_hardware = any(case.instruction is not None for case in cases)
        units: dict[str, list[Case]] = {}
        for case in cases:
            units.setdefault(case.unit, []).append(case)
        header = ("unit", "instructions" if of_hardware else "recipes", "least outputs", "outputs", "differ")
        rows = [(name, *self._row(some)) for name, some in sorted(units.items())]
        return table([header, *rows, ("all", *self._row(cases))], left=[0])

    def _row(self, some: Sequence[Case]) -> tuple[str, str, str, str]:
        counted: Counter[object] = Counter()
        for case in some:
            counted[case.counted] += self.outputs[case.name]
        wrong = sum(self.differences[case.name] for case in some)
        return f"{len(counted)}", f"{min(counted.values()):,}", f"{counted.total():,}", f"{wrong:,}"
