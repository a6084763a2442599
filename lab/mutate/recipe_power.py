"""How many outputs a style of operands needs until a mutant of a recipe is noticed, and the styles that suffice."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lab.generators import operands
from warpmma.arithmetic import compute

from .recipe_changes import Mutant, Subject

__all__ = ["CHUNKS", "ENOUGH", "Count", "chosen", "counts", "jobs_needed", "more"]

CHUNKS = (256, 768, 3072, 5904)
"""Outputs of a style that are looked at together: 10,000 in all."""
ENOUGH = 32
"""Differences after which no more outputs of the style are made: the rate is known to a sixth or so."""


@dataclass
class Count:
    """Outputs of a style that were looked at for a mutant, and those of them that differ."""

    outputs: int = 0
    differ: int = 0

    @property
    def needed(self) -> float:
        """Outputs until the first difference, on average: 1 over the rate; infinity if none was seen."""
        return self.outputs / self.differ if self.differ else float("inf")


def counts(
    subject: Subject, those: Iterable[Mutant], styles: Sequence[str], seed: int, chunks: Sequence[int] = CHUNKS
) -> dict[str, dict[str, Count]]:
    """Count outputs that differ, by the name of the mutant and the style.

    Every output has operands of its own. A mutant of which `ENOUGH` outputs differ in a style is left out of what the
    style makes next.
    """
    those = list(those)
    found = {m.name: {style: Count() for style in styles} for m in those}
    for style in styles:
        rng = np.random.default_rng([seed, zlib.crc32(f"{subject.name} {style}".encode())])
        left = those
        for rows in chunks:
            if not left:
                break
            codes = operands(subject.recipe, subject.k, rows, style, rng, subject.blocks)
            expected = compute(subject.recipe, **codes)
            for mutant in left:
                count = found[mutant.name][style]
                count.outputs += rows
                count.differ += int((mutant.compute(codes) != expected).sum())
            left = [m for m in left if found[m.name][style].differ < ENOUGH]
    return found


def more(
    subject: Subject, those: Iterable[Mutant], found: dict[str, dict[str, Count]], seed: int, outputs: int
) -> None:
    """Add to what `counts` found, in pieces of 10,000 outputs of each style, until each mutant is noticed in some."""
    left = list(those)
    for piece in range(1, -(-outputs // 10_000)):
        if not left:
            break
        names = list(found[left[0].name])
        for name, by_style in counts(subject, left, names, seed + piece, (10_000,)).items():
            for style, count in by_style.items():
                found[name][style].outputs += count.outputs
                found[name][style].differ += count.differ
        left = [m for m in left if not any(c.differ for c in found[m.name].values())]


JOB = 1024
"""Outputs with operands of their own in a job of `lab.check.engines`."""
SURE = math.log(100)
"""A mutant is noticed with a probability of 99 % where jobs have so many differences on average."""


def chosen(rates: Sequence[Mapping[str, float]]) -> dict[str, int]:
    """Choose the fewest jobs, by style, that notice every mutant with a probability of 99 %.

    Greedy: each job is of the style that adds most to what is still missing. What other operands of the job notice, of
    all its rows with all its columns, comes on top.

    Parameters
    ----------
    rates : sequence of mapping
        Of each mutant: by style, how many of its outputs differ, from 0 to 1. Mutants that no style notices are left
        out.

    Returns
    -------
    dict of str to int
        How many jobs of each style; of the styles that are left out, none.

    Examples
    --------
    >>> chosen([{"near": 0.5, "ties": 0.1}, {"near": 0.0, "ties": 0.003}])
    {'ties': 2}
    """
    styles = list(dict.fromkeys(style for rate in rates for style in rate))
    gains = np.array([[JOB * rate.get(style, 0.0) for style in styles] for rate in rates if any(rate.values())])
    jobs = np.zeros(len(styles), int)
    if not gains.size:
        return {}
    missing = np.full(len(gains), SURE)
    while (missing > 0).any():
        best = int((np.minimum(gains, missing[:, None]).sum(axis=0) / (1 + jobs)).argmax())  # rather another style
        jobs[best] += 1
        missing = np.maximum(missing - gains[:, best], 0)
    for index in np.argsort(jobs):  # what was taken first may be superfluous by now
        while jobs[index] and (gains @ (jobs - (np.arange(len(jobs)) == index)) >= SURE).all():
            jobs[index] -= 1
    return {style: int(n) for style, n in zip(styles, jobs, strict=True) if n}


def jobs_needed(rates: Sequence[Mapping[str, float]], turns: Mapping[str, float]) -> float:
    """Return how many jobs a campaign takes until each mutant is noticed with 99 %, in whole rounds.

    `turns` says how many jobs of each style a round has.
    """
    of_round = [sum(JOB * rate[style] * n for style, n in turns.items()) for rate in rates if any(rate.values())]
    rounds = max((math.ceil(SURE / gain) if gain else math.inf for gain in of_round), default=0)
    return rounds * sum(turns.values())
