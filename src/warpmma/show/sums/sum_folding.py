"""What of a long explanation is shown: the ends, the steps that lost most, where two targets part; the rest is counted.

1. Up to `SHORT` steps are all shown. Of more, the first, the last, the `WORST` that lost most, the first whose sum is
   not finite, and the one in which two targets part; the runs between are counted, with what they lost together.
2. Of a step's addends, products that are zero are counted. Of more than `ADDENDS` others, those are shown of which most
   was cut, then the largest; the rest is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..._records import Record
from ...analysis import ChainLink, Explanation
from ...arithmetic import Addend, SumStep, as_fraction

SHORT, WORST, ADDENDS = 8, 3, 33


@dataclass(frozen=True, kw_only=True)
class PlacedStep(Record):
    """A step and where it stands: its number among all, its link, its place in the link."""

    number: int
    link: int
    place: int
    chain: ChainLink
    step: SumStep


@dataclass(frozen=True, kw_only=True)
class StepRun(Record):
    """Steps that are counted, `first` to `last`.

    Attributes
    ----------
    first, last : int
    k : range
        Which values of k they take.
    lost : Fraction, optional
        All that they lost; None where something is not finite.
    """

    first: int
    last: int
    k: range
    lost: Fraction | None


def placed(explanation: Explanation) -> tuple[PlacedStep, ...]:
    """Return the steps of all links, numbered."""
    found: list[PlacedStep] = []
    for i, link in enumerate(explanation.links):
        for j, step in enumerate(link.steps):
            found.append(PlacedStep(number=len(found), link=i, place=j, chain=link, step=step))
    return tuple(found)


def folded(
    explanation: Explanation, whole: bool = False, short: int = SHORT, worst: int = WORST
) -> Iterator[PlacedStep | StepRun]:
    """Yield what is shown of the steps, and the runs between."""
    steps = placed(explanation)
    if whole or len(steps) <= short:
        yield from steps
        return
    ranked = sorted(steps, key=lambda x: -abs(x.step.lost or Fraction(0)))
    shown = {0, len(steps) - 1, *(x.number for x in ranked[:worst] if x.step.lost)}
    shown |= {x.number for x in [x for x in steps if x.step.sum.kind != "finite"][:1]}
    differing = {(parting.link, parting.step) for parting in explanation.partings if parting is not None}
    shown |= {x.number for x in steps if (x.link, x.place) in differing}
    run: list[PlacedStep] = []
    for each in steps:
        if each.number in shown:
            if run:
                yield _run(run)
            run = []
            yield each
        else:
            run.append(each)


def _run(steps: Sequence[PlacedStep]) -> StepRun:
    losses = [x.step.lost for x in steps]
    known = [loss for loss in losses if loss is not None]
    reach = [k for x in steps for k in reach_of(x)]
    return StepRun(
        first=steps[0].number, last=steps[-1].number,
        k=range(min(reach), max(reach) + 1) if reach else range(0),
        lost=sum(known, Fraction(0)) if len(known) == len(losses) else None,
    )  # fmt: skip


def reach_of(each: PlacedStep) -> list[int]:
    """Values of k, of the whole product, that a step takes."""
    return sorted({each.chain.k.start + p for addend in each.step.addends for p in addend.products})


def counterparts(explanation: Explanation, each: PlacedStep, other: Explanation) -> tuple[PlacedStep, ...]:
    """Find the steps of another target that do what a step does: those that take the same products, in its link."""
    wanted = set(reach_of(each))
    steps = placed(other)
    found = tuple(x for x in steps if wanted & set(reach_of(x)))
    same = tuple(x for x in steps if (x.link, x.place) == (each.link, each.place))
    return found or same or steps[-1:]


@dataclass(frozen=True, kw_only=True)
class AddendChoice(Record):
    """Addends that are shown, those that are zero, and others that are counted: indices into a step's addends."""

    shown: tuple[int, ...]
    zeros: tuple[int, ...]
    others: tuple[int, ...]


def chosen_addends(step: SumStep, whole: bool = False) -> AddendChoice:
    """Choose which addends of a step are shown."""
    zeros = tuple(i for i, x in enumerate(step.addends) if x.source == "product" and x.value == 0)
    if len(zeros) < 2 or whole:
        zeros = ()
    rest = [i for i in range(len(step.addends)) if i not in set(zeros)]
    if whole or len(rest) <= ADDENDS:
        return AddendChoice(shown=tuple(rest), zeros=zeros, others=())
    ranked = sorted(rest, key=lambda i: _weight(step.addends[i]), reverse=True)
    shown = set(ranked[:ADDENDS])
    return AddendChoice(
        shown=tuple(i for i in rest if i in shown), zeros=zeros, others=tuple(i for i in rest if i not in shown)
    )


def _weight(addend: Addend) -> tuple[bool, bool, Fraction, Fraction]:
    """Rank addends: what is no product, what is not finite, what lost most, what is largest."""
    value = as_fraction(addend.number)
    return addend.source != "product", value is None, abs(addend.lost or Fraction(0)), abs(value or Fraction(0))
