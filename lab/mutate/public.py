"""Make public kernels for sm_90a wrong, one statement of their PTX at a time: `python -m lab.mutate.public FOLDER`.

Their PTX is not stored; FOLDER has it after `python -m lab.record.hopper FOLDER --compile`. Changes and verdicts
are those of `lab.mutate.texts`, three seeds. There are 11,612 mutants, of which `--each N` takes at most N of each
change of each kernel, at random; those in lines that no launch executes are left out. One that nothing notices and no
argument explains runs again with more turns, if there is such a launch (`lab.mutate.public_longer`), as do those in
lines that this one alone executes. What is harmless, and why, is in `lab/mutate/harmless_public.py`. Tensor maps are
bytes of the launch here, and are not changed.

A launch takes seconds, so one answers for both levels. "strict" looks for all that the default level looks for: where
it finds nothing under a seed, the default level finds nothing. The rules that only "strict" reports are noted, and the
launch goes on; any other report ends it. Where "strict" looks further (`_FURTHER`), a launch at the default level says
what it reports there. One launch of the kernel itself is the reference, with the first seed.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy.typing as npt

import warpmma as wm
from lab.mutate.campaign import Names, campaign, command_line, parsed, sampled
from lab.mutate.harmless import reason
from lab.mutate.harmless_public import HARMLESS
from lab.mutate.public_longer import LONGER, longer_run
from lab.mutate.text_operators import TextMutant, text_mutants
from lab.mutate.text_places import changed
from lab.mutate.text_subjects import MapChange, TextSubject
from lab.mutate.texts import SEEDS, Original, Outcome, of_results, only_strict, outcomes
from lab.mutate.verdicts import BAD, Verdict
from lab.programs.hopper_cases import hopper_cases
from lab.programs.launches import Run
from lab.programs.simulating import simulate
from warpmma.machine.report.hazards import Reporter

__all__ = ["PUBLIC", "Public", "PublicSubject", "main", "public_subject"]

_FURTHER = ("poison", "unwritten", "pending", "race", "proxy")
"""Kinds of hazards of which "strict" reports more than its own rules."""


@dataclass(frozen=True, kw_only=True)
class Public:
    """How mutants of a public kernel are made.

    Attributes
    ----------
    launch : int
        Which of its stored launches: one in which every stage is filled several times.
    stage : int
        Bytes of a stage of A, or of what is loaded first.
    limit : int
        Instructions of a launch that is taken for endless.
    """

    launch: int
    stage: int
    limit: int = 200_000


PUBLIC: dict[str, Public] = {
    "pingpong_f16": Public(launch=1, stage=64 * 128),
    "cooperative_bf16_cluster_2x1": Public(launch=1, stage=128 * 128),
    "pingpong_e4m3_fast": Public(launch=1, stage=64 * 128),
    "flash_f16": Public(launch=1, stage=128 * 128, limit=800_000),
    "grouped_f16": Public(launch=0, stage=128 * 128),
    "streamk_f16": Public(launch=2, stage=128 * 128),
    "cooperative_f16_cluster_2x2": Public(launch=0, stage=128 * 128),
    "grouped_pingpong_e4m3_cluster_2x1": Public(launch=0, stage=64 * 128),
    "blockwise_e4m3": Public(launch=1, stage=128 * 128),
    "mixed_s8_f16": Public(launch=1, stage=128 * 64),
    "deepgemm_bf16": Public(launch=1, stage=128 * 128),
    "deepgemm_e4m3_groups": Public(launch=0, stage=128 * 128),
    "kittens_ring_bf16": Public(launch=1, stage=6 * 64 * 128),
}
"""The kernels, by their names in `lab.programs.hopper_kernels`."""


@dataclass(frozen=True, kw_only=True)
class PublicSubject(TextSubject):
    """A public kernel, launched once as its host program does.

    Attributes
    ----------
    run : Run
    limit : int
        As in `Public`.
    more_turns : bool
        Whether the run is the one with more turns.
    """

    run: Run = field(repr=False, compare=False)
    limit: int
    more_turns: bool = False

    def launch(self, kernel: Any, change: MapChange | None = None, **options: Any) -> list[npt.NDArray[Any]]:
        """Run the entry on a new device; return its outputs."""
        found, _, _ = simulate({self.name: kernel}, self.run, "sm_90a", **options | {"limit": self.limit})
        return [*found.values()]


@cache
def public_subject(title: str, folder: Path) -> PublicSubject:
    """Return a kernel of a folder by its name in `PUBLIC`."""
    how = PUBLIC[title]
    run = [case for case in hopper_cases() if case.program == title][how.launch].make()
    (step,) = run.steps
    return PublicSubject(
        name=step.entry, read=(folder / f"{title}.ptx").read_text, grid=0, block=step.block[0], stage=how.stage,
        arguments=lambda device, maps: (), expected=dict, run=run, limit=how.limit,
    )  # fmt: skip


@cache
def _mutants(title: str, folder: Path) -> dict[str, TextMutant]:
    return {m.name: m for m in text_mutants(public_subject(title, folder))}


@cache
def _executed(subject: PublicSubject) -> frozenset[int]:
    """Return the lines of a kernel that its launch executes."""
    kernel = wm.ptx.load(subject.read(), subject.name)[subject.name]
    _, _, reports = simulate({subject.name: kernel}, subject.run, "sm_90a", hazards="off", limit=subject.limit)
    return frozenset(int(site.in_text.split(":")[-2]) for x in reports for site in x.costs.instructions)


def _judge(folder: Path, names: Names) -> Verdict:
    """Run a mutant; one that nothing notices and no argument explains runs again, with more turns."""
    mutant = _mutants(names[0], folder)[names[1]]
    argument = reason(*names, HARMLESS)
    what = why = detail = ""
    for subject in _launched(names[0], mutant, folder):
        what, why, detail = _tried(replace(mutant, subject=subject))
        if what != "same" or argument:
            break
    if what == "same":
        what, why = ("harmless", argument) if argument else ("unnoticed", "")
    line = mutant.line.replace(mutant.subject.name, names[0])
    return Verdict(
        subject=names[0], mutation=names[1], line=line, what=what, why=why,
        detail=detail.replace(mutant.subject.name, names[0]),
    )  # fmt: skip


@cache
def _longer(title: str, folder: Path) -> PublicSubject | None:
    subject, run = public_subject(title, folder), longer_run(title)
    return None if run is None else replace(subject, run=run, limit=LONGER[title].limit, more_turns=True)


def _launched(title: str, mutant: TextMutant, folder: Path) -> Iterator[PublicSubject]:
    """Yield the launches that execute the line of a mutant: that of the table, then the one with more turns."""
    for subject in (public_subject(title, folder), _longer(title, folder)):
        if subject is not None and _line(mutant) in _executed(subject):
            yield subject


@contextmanager
def _noted() -> Iterator[set[tuple[str, ...]]]:
    """Note what breaks a rule that only "strict" reports, as in `Outcome.told`, and go on."""
    report, told = Reporter.report, set[tuple[str, ...]]()

    def noting(self: Reporter, kind: str, site: Any, bad: Any, *given: Any, **options: Any) -> None:
        rule = options.get("rule", "")
        if not only_strict(rule):
            report(self, kind, site, bad, *given, **options)
        elif bad.any():
            told.add((kind, rule, str(site)))

    with patch.object(Reporter, "report", noting):
        yield told


def _both_levels(subject: TextSubject, text: str) -> Iterator[tuple[Outcome, frozenset[tuple[str, ...]]]]:
    """Run a text under each seed with "strict"; yield each outcome, and what breaks rules of this level alone."""
    runs = outcomes(subject, text, None, "strict")
    for _ in SEEDS:
        with _noted() as told:
            found = next(runs)
        yield found, frozenset(told)


@cache
def original(subject: TextSubject) -> Original | str:
    """Return what a kernel does unchanged, or why nothing can be said of its mutants."""
    x, told = next(_both_levels(subject, subject.read()))
    return Original(x.bits, told) if x.bits is not None else f"{x.why}: {x.detail}"


def _tried(mutant: TextMutant) -> tuple[str, str, str]:
    """Run a mutant until it is noticed at the default level; what "strict" alone reports counts after all seeds."""
    subject = mutant.subject
    text, right = changed(subject.read(), mutant.edits), original(subject)
    if isinstance(right, str):
        return "broken", "", f"it does not run unchanged: {right}"
    results, also, odd = set[tuple[bytes, ...]](), "", ""
    for seed, (x, told) in zip(SEEDS, _both_levels(subject, text), strict=True):
        also = also or next((" ".join(y) for y in sorted(told - right.strict)), "")
        if x.told and x.told[0] in _FURTHER:
            if only_strict(x.rule):
                also = also or x.detail
            odd, x = x.detail, next(outcomes(subject, text, None, "error", seeds=(seed,)))
        if x.bits is None:
            return "broken" if x.broken else "found", x.why, f"seed {seed}: {x.detail}"
        results.add(x.bits)
    if verdict := of_results(results, right):
        return verdict
    if also:
        return "found", "strict", also
    return "same", "", f'"strict" alone reports what is no rule of its own: {odd}' if odd else ""


def _chosen(names: list[Names], each: int | None) -> list[Names]:
    """Return at most so many mutants of each change of each kernel, at random and in their order."""
    groups: dict[Names, list[Names]] = defaultdict(list)
    for title, mutation in names:
        groups[title, mutation.partition(":")[0]].append((title, mutation))
    draws: dict[str, random.Random] = defaultdict(lambda: random.Random(0))  # a kernel's do not depend on the others
    kept = {
        x
        for (title, _), those in groups.items()
        for x in (those if each is None else draws[title].sample(those, min(each, len(those))))
    }
    return [x for x in names if x in kept]


def _line(mutant: TextMutant) -> int:
    return int(mutant.line.rpartition(":")[2])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; see `--help`."""
    parser = command_line(__doc__, "kernel", Path("build/public_mutants"))
    parser.add_argument("folder", type=Path, help="where the PTX is")
    parser.add_argument("--each", type=int, metavar="N", help="at most so many of each change of each kernel")
    options = parsed(parser, arguments)
    titles = [x for x in PUBLIC if (options.folder / f"{x}.ptx").exists()]
    names = [(x, m) for x in titles for m in _mutants(x, options.folder) if options.only in f"{x}: {m}"]
    if not names:
        parser.error(f"no kernel of {options.folder} has a mutant whose name contains {options.only!r}")
    chosen = sampled(_chosen(names, options.each), options.sample)
    names = [x for x in chosen if any(_launched(x[0], _mutants(x[0], options.folder)[x[1]], options.folder))]
    print(f"{len(chosen) - len(names)} of {len(chosen)} are in lines that no launch executes", file=sys.stderr)
    if options.list:
        print("\n".join(f"{subject}: {mutant}" for subject, mutant in names))
        return 0
    about = {"only": options.only, "sample": options.sample, "each": options.each, "seeds": SEEDS}
    done, stopped = campaign(partial(_judge, options.folder), names, options.jobs, options.out, about)
    return int(stopped or any(v.what in BAD for v in done))


if __name__ == "__main__":
    sys.exit(main())
