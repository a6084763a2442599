"""Results of the campaign of mutants of recipes: tables for people, and the styles that a campaign needs."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from lab.generators import styles
from lab.generators.power import ROUNDS, recipe_class, styles_of_round

from .recipe_changes import Subject, subjects
from .recipe_power import chosen, jobs_needed

__all__ = ["Finding", "choice", "findings", "markdown"]

SHOWN = 3  # styles of a row


@dataclass(frozen=True)
class Finding:
    """A mutant of a recipe: the argument for it or an empty string, and by style the rate of outputs that differ."""

    subject: Subject
    mutant: str
    why: str
    rates: Mapping[str, float]

    @property
    def parameter(self) -> str:
        """What is changed."""
        return self.mutant.partition(":")[0]

    @property
    def noticed(self) -> bool:
        """Whether an output differed."""
        return any(self.rates.values())

    @property
    def bad(self) -> bool:
        """Whether it is neither noticed nor argued, or both."""
        return self.noticed == bool(self.why)

    @property
    def needed(self) -> float:
        """Outputs until it is noticed, on average, in the style that is best for it."""
        return min(_needed(rate) for rate in self.rates.values())


def findings(results: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Return what a campaign found, from its results by the name of the recipe."""
    by_name = {subject.name: subject for subject in subjects()}
    return [
        Finding(by_name[name], mutant, x["why"], {s: differ / n for s, (differ, n) in x["counts"].items()})
        for name, found in results.items()
        for mutant, x in found["mutants"].items()
    ]


def choice(every: Iterable[Finding]) -> dict[str, dict[str, int]]:
    """Return the styles that each class of recipes needs, and how many jobs of each."""
    return {name: chosen([x.rates for x in those]) for name, those in _by_class(every).items()}


def _by_class(every: Iterable[Finding]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for x in every:
        found.setdefault(recipe_class(x.subject.recipe, x.subject.k, x.subject.blocks), []).append(x)
    return found


def markdown(every: Sequence[Finding]) -> str:
    """Return tables by unit and parameter, and by style; the arguments; and mutants that were missed."""
    return "\n".join([_by_parameter(every), _by_style(every), _cost(every), _arguments(every), *_missed(every)])


def _by_parameter(every: Sequence[Finding]) -> str:
    rows: dict[tuple[str, str], list[Finding]] = {}
    for x in every:
        rows.setdefault((x.subject.unit, x.parameter), []).append(x)
    lines = [
        "| unit | parameter | mutants | argued | outputs | at most | best styles |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    before = ""
    for (unit, parameter), those in sorted(rows.items(), key=lambda row: row[0][0]):
        left = [x for x in those if not x.why]
        needed = [x.needed for x in left]
        numbers = f"{_number(median(needed))} | {_number(max(needed))}" if left else " | "
        title = f"format of {parameter.upper()}" if parameter in ("a", "b") else parameter.replace("_", " ")
        cells = [unit if unit != before else "", title, f"{len(those):,}"]
        cells += [f"{len(those) - len(left):,}" if len(left) < len(those) else "", numbers, _best(left)]
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |"))
        before = unit
    return "\n".join(lines) + "\n"


def _best(those: Sequence[Finding]) -> str:
    """Return the styles that are best for most mutants, with the outputs that half of those mutants need."""
    best: dict[str, list[float]] = {}
    for x in those:
        best.setdefault(max(x.rates, key=lambda style: x.rates[style]), []).append(x.needed)
    ranked = sorted(best.items(), key=lambda item: -len(item[1]))
    return ", ".join(f"{style} {_number(median(needed))}" for style, needed in ranked[:SHOWN])


def _by_style(every: Sequence[Finding]) -> str:
    left = [x for x in every if not x.why]
    lines = [
        "| style | mutants | noticed | within 100 | best | 10 times better than others |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for style in dict.fromkeys(style for x in left for style in x.rates):
        those = [x for x in left if style in x.rates]
        needed = [_needed(x.rates[style]) for x in those]
        others = [min((_needed(r) for s, r in x.rates.items() if s != style), default=math.inf) for x in those]
        pairs = list(zip(needed, others, strict=True))
        numbers = (
            len(those), sum(n < math.inf for n in needed), sum(n <= 100 for n in needed),
            *(sum(n < math.inf and factor * n <= other for n, other in pairs) for factor in (1, 10)),
        )  # fmt: skip
        lines.append(f"| {style} | {' | '.join(f'{n:,}' if n else '' for n in numbers)} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def _cost(every: Sequence[Finding]) -> str:
    """Say how many jobs a campaign takes, with all styles alike and as they are chosen."""
    alike = by_choice = 0.0
    for those in _by_class(every).values():
        subject = those[0].subject
        rates = [x.rates for x in those]
        alike += jobs_needed(rates, dict.fromkeys(styles(subject.recipe), 1))
        rounds = [styles_of_round(subject.recipe, subject.k, subject.blocks, i) for i in range(ROUNDS)]
        often = Counter(style for styles_now in rounds for style in styles_now)
        by_choice += jobs_needed(rates, {style: n / ROUNDS for style, n in often.items()})
    return textwrap.fill(
        f"Jobs of the campaign until each mutant is noticed with 99 %, one recipe of each class: {alike:,.0f} with all "
        f"styles alike, {by_choice:,.0f} as they are chosen.\n", 118,
    ) + "\n"  # fmt: skip


def _arguments(every: Iterable[Finding]) -> str:
    counts = Counter(x.why for x in every if x.why)
    lines = [textwrap.fill(f"* {n:,}: {why}", 118, subsequent_indent="  ") for why, n in counts.most_common()]
    return "\n".join(["Harmless, and why:\n", *(lines or ["* none"]), ""])


def _missed(every: Iterable[Finding]) -> list[str]:
    what = {True: "noticed, though argued", False: "not noticed"}
    lines = [f"* {x.subject.name} `{x.mutant}`: {what[x.noticed]}" for x in every if x.bad]
    return ["Missed:\n", *lines, ""] if lines else []


def _needed(rate: float) -> float:
    return 1 / rate if rate else math.inf


def _number(x: float) -> str:
    return "never" if x == math.inf else f"{x:,.0f}"
