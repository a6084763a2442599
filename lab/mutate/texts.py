"""Make kernels in PTX wrong, one statement at a time; is it noticed? `python -m lab.mutate.texts --help`.

Mutants are made of 16 kernels with copies in bulk and of tensors, mbarriers, clusters, tensor maps and a product of a
warpgroup: fences, waits, commits, arrivals and barriers dropped, weakened or in another order; counts, bytes, parities,
stages, coordinates, masks and ranks off by one; other boxes and swizzles of tensor maps. A mutant runs under three
seeds, at the default level and with "strict":

* found: a hazard or an error of the package names it, under one of the seeds; "strict" if it breaks a rule that only
  this level reports;
* wrong: an array differs in a bit from the kernel's result, in the same way under each seed;
* harmless: the result is the kernel's, and `lab/mutate/harmless_texts.py` says by which rule;
* unnoticed: anything else, such as results that depend on the seed. The exit status is then 1.

Ctrl-C stops, and writes the table of what was done until then. The exit status is also 1 if the package broke, a kernel
does not run unchanged, or an argument is of no use any more.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import warpmma as wm
from lab.mutate.campaign import Names, campaign, command_line, parsed, sampled
from lab.mutate.harmless import reason, stale
from lab.mutate.harmless_texts import HARMLESS
from lab.mutate.text_operators import TextMutant, text_mutants
from lab.mutate.text_places import changed
from lab.mutate.text_subjects import TextSubject, text_subjects
from lab.mutate.verdicts import BAD, Verdict
from warpmma.errors import LimitError, PtxError, WarpmmaError
from warpmma.kernel import HazardError
from warpmma.machine.report.asynchronous_rules import RULES
from warpmma.machine.report.hazards import Reporter

SEEDS = (0, 1, 2)
_LIMIT = 200_000  # instructions of a launch: many times what one of the kernels takes


@dataclass(frozen=True)
class Outcome:
    """How a run ended: what it left in all arrays, or what was reported.

    Attributes
    ----------
    bits : tuple of bytes, or None
    why : str
        The kind of hazard, "error" or "endless", or the type of an error that is not one of the package.
    broken : bool
        Whether it is of such a type.
    told : tuple of str
        Of a hazard its kind, rule and place.
    """

    bits: tuple[bytes, ...] | None = None
    why: str = ""
    detail: str = ""
    broken: bool = False
    told: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The rule that a hazard breaks; "" if it has none, or if there is no hazard."""
        return self.told[1] if self.told else ""


def only_strict(rule: str) -> bool:
    """Return whether only "strict" reports what breaks a rule."""
    return rule in RULES and RULES[rule].level == "strict"


def outcomes(
    subject: TextSubject, text: str, mutant: TextMutant | None, hazards: Any,
    without: frozenset[tuple[str, ...]] = frozenset(), seeds: Sequence[int] = SEEDS,
) -> Iterator[Outcome]:  # fmt: skip
    """Run a text under each seed, without some reports, given as `Outcome.told`."""
    kernel = wm.ptx.load(text, subject.name)[subject.name]
    for seed in seeds:
        with _not_reported(without):
            found = _outcome(subject, kernel, mutant, hazards=hazards, seed=seed)
        yield found


@contextmanager
def _not_reported(told: frozenset[tuple[str, ...]]) -> Iterator[None]:
    """Leave out what is reported of the kernel itself: the first report ends a launch, and would hide others."""
    report = Reporter.report

    def others(self: Reporter, kind: str, site: Any, *given: Any, **options: Any) -> Any:
        known = bool(told) and (kind, options.get("rule", ""), str(site)) in told
        return None if known else report(self, kind, site, *given, **options)

    with patch.object(Reporter, "report", others):
        yield


def _outcome(subject: TextSubject, kernel: Any, mutant: TextMutant | None, **options: Any) -> Outcome:
    change = None if mutant is None else mutant.change
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays = subject.launch(kernel, change, limit=_LIMIT, **options)
    except HazardError as error:
        hazard = error.hazard
        return Outcome(why=hazard.kind, detail=str(error), told=(hazard.kind, hazard.rule, str(hazard.site)))
    except LimitError as error:
        return Outcome(why="endless", detail=str(error))
    except WarpmmaError as error:  # a mutant is legal PTX: if it is refused, the change is at fault
        return Outcome(why="error", detail=str(error), broken=isinstance(error, PtxError))
    except Exception as error:  # whatever comes out of the package is what is looked for
        return Outcome(why=type(error).__name__, detail=str(error), broken=True)
    return Outcome(bits=tuple(x.tobytes() for x in arrays))


@dataclass(frozen=True)
class Original:
    """What a kernel leaves in its arrays, and all that "strict" reports of it."""

    bits: tuple[bytes, ...]
    strict: frozenset[tuple[str, ...]]


@cache
def original(subject: TextSubject) -> Original | str:
    """Return what a kernel does unchanged, or why nothing can be said of its mutants."""
    plain = [*outcomes(subject, subject.read(), None, "error")]
    for seed, found in zip(SEEDS, plain, strict=False):
        if found.bits is None:
            return f"seed {seed}: {found.why}: {found.detail}"
    for place, wanted in subject.expected().items():
        if any(x.bits is None or x.bits[place] != np.ascontiguousarray(wanted).tobytes() for x in plain):
            return f"array {place} is not what is expected"
    told: frozenset[tuple[str, ...]] = frozenset()
    while more := {x.told for x in outcomes(subject, subject.read(), None, "strict", told) if x.bits is None} - told:
        told |= more
    if {x[1] for x in told} != {*subject.strict}:
        return f'"strict" reports {sorted(told)}; expected rules {subject.strict or "none"}'
    assert plain[0].bits is not None
    return Original(plain[0].bits, told)


@cache
def _mutants(name: str) -> dict[str, TextMutant]:
    return {m.name: m for subject in text_subjects() if subject.name == name for m in text_mutants(subject)}


def judge(names: Names) -> Verdict:
    """Run a mutant; one that nothing notices and no argument explains runs again, with more turns."""
    mutant = _mutants(names[0])[names[1]]
    what, why, detail = _tried(mutant, mutant.subject)
    argument = reason(*names, HARMLESS)
    if what == "same" and not argument and (longer := mutant.subject.longer) is not None:
        what, why, detail = _tried(mutant, longer())
    if what == "same":
        what, why = ("harmless", argument) if argument else ("unnoticed", "")
    return Verdict(subject=names[0], mutation=names[1], line=mutant.line, what=what, why=why, detail=detail)


def _tried(mutant: TextMutant, subject: TextSubject) -> tuple[str, str, str]:
    """Run a mutant until it is noticed: at the default level under each seed, then with "strict"."""
    text, right = changed(subject.read(), mutant.edits), original(subject)
    if isinstance(right, str):
        return "broken", "", f"{subject.name} does not run unchanged: {right}"
    results = set[tuple[bytes, ...]]()
    for seed, x in enumerate(outcomes(subject, text, mutant, "error")):
        if x.bits is None:
            return "broken" if x.broken else "found", x.why, f"seed {SEEDS[seed]}: {x.detail}"
        results.add(x.bits)
    if verdict := of_results(results, right):
        return verdict
    for x in outcomes(subject, text, mutant, "strict", right.strict):
        if x.bits is not None:
            continue
        if x.broken or only_strict(x.rule):
            return "broken" if x.broken else "found", "strict", x.detail
        return "same", "", f'"strict" alone reports what is no rule of its own: {x.detail}'
    return "same", "", ""


def of_results(results: set[tuple[bytes, ...]], right: Original) -> tuple[str, str, str] | None:
    """Return the verdict on what a mutant leaves under all seeds, or None if that is what the kernel leaves."""
    if len(results) > 1:
        return "unnoticed", "", f"{len(results)} results under {len(SEEDS)} seeds"
    return ("wrong", "", "") if results != {right.bits} else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; see `--help`."""
    parser = command_line(__doc__, "kernel", Path("build/text_mutants"))
    options = parsed(parser, arguments)
    names = [(s.name, m) for s in text_subjects() for m in _mutants(s.name) if options.only in f"{s.name}: {m}"]
    if not names:
        parser.error(f"no mutant's name contains {options.only!r}")
    whole = options.sample is None and not options.only
    names = sampled(names, options.sample)
    if options.list:
        print("\n".join(f"{subject}: {mutant}" for subject, mutant in names))
        return 0
    asked = {name for name, _ in names}
    still = {s.name: why for s in text_subjects() if s.name in asked and isinstance(why := original(s), str)}
    for name, why in still.items():
        print(f"{name} does not run unchanged: {why}", file=sys.stderr)
    about = {"only": options.only, "sample": options.sample, "seeds": SEEDS}
    done, stopped = campaign(judge, [x for x in names if x[0] not in still], options.jobs, options.out, about)
    complete = whole and not still and not stopped
    harmless = ((v.subject, v.mutation) for v in done if v.what == "harmless")
    useless = stale(harmless, HARMLESS) if complete else []
    for kernel, mutation in useless:
        print(f"no mutant is harmless as the table says any more: {kernel}: {mutation}")
    return int(bool(still or useless or any(v.what in BAD for v in done)))


if __name__ == "__main__":
    sys.exit(main())
