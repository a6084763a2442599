"""The choice of the steps and addends of an explanation that are shown; the others are counted.

1. Up to `SHORT` steps are all shown. Of more, text shows the first, the last, the `WORST` that lost most, the first
   whose sum is not finite, and the one in which two targets first differ; it counts the runs between.
2. A picture shows fewer steps. With other targets it shows the first step in which they differ, and the steps of the
   others that take the same products.
3. Of a step's addends, products that are zero are counted. Of more than `ADDENDS` others, those that lost most are
   shown, then the largest; the rest is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..._records import Record
from ...analysis import ChainLink, Explanation, FirstDifference
from ...arithmetic import Addend, SumStep, as_fraction

SHORT, WORST, ADDENDS = 8, 3, 33
_DRAWN, _DRAWN_OF_ALL = 3, 4  # steps of a picture: of one target, and of several


@dataclass(frozen=True, kw_only=True)
class PlacedStep(Record):
    """A step and its place: its number among all steps, its link, and its index in the link."""

    number: int
    link: int
    index: int
    chain: ChainLink
    step: SumStep

    @property
    def reach(self) -> list[int]:
        """Values of k, of the whole product, that the step takes."""
        return sorted({self.chain.k.start + p for addend in self.step.addends for p in addend.products})


Item = PlacedStep | tuple[PlacedStep, ...]  # a step, or a run that is counted


def placed(explanation: Explanation) -> tuple[PlacedStep, ...]:
    """Return the steps of all links, numbered."""
    found: list[PlacedStep] = []
    for i, link in enumerate(explanation.links):
        for j, step in enumerate(link.steps):
            found.append(PlacedStep(number=len(found), link=i, index=j, chain=link, step=step))
    return tuple(found)


def folded(explanation: Explanation, whole: bool = False, short: int = SHORT, worst: int = WORST) -> Iterator[Item]:
    """Yield the steps that are shown, and the runs between (rule 1)."""
    steps = placed(explanation)
    if whole or len(steps) <= short:
        yield from steps
        return
    ranked = sorted(steps, key=lambda x: -abs(x.step.lost or Fraction(0)))
    shown = {0, len(steps) - 1, *(x.number for x in ranked[:worst] if x.step.lost)}
    shown |= {x.number for x in [x for x in steps if x.step.sum.kind != "finite"][:1]}
    shown |= {x.number for parting in explanation.partings for x in [parted(steps, parting)] if x is not None}
    run: list[PlacedStep] = []
    for each in steps:
        if each.number in shown:
            if run:
                yield tuple(run)
            run = []
            yield each
        else:
            run.append(each)


def parted(steps: Sequence[PlacedStep], parting: FirstDifference | None) -> PlacedStep | None:
    """Return the step in which another target first differs."""
    return next((x for x in steps if parting and (x.link, x.index) == (parting.link, parting.step)), None)


def counterparts(each: PlacedStep, other: Explanation) -> tuple[PlacedStep, ...]:
    """Find the steps of another target that take the same products, or else that have the same place."""
    wanted = set(each.reach)
    steps = placed(other)
    found = tuple(x for x in steps if wanted & set(x.reach))
    same = tuple(x for x in steps if (x.link, x.index) == (each.link, each.index))
    return found or same or steps[-1:]


def text_steps(explanation: Explanation, whole: bool) -> list[Sequence[Item]]:
    """Choose the steps of a text: of the target itself, and of each other where it first differs."""
    steps = placed(explanation)
    found: list[Sequence[Item]] = [tuple(folded(explanation, whole))]
    for other, parting in zip(explanation.others, explanation.partings, strict=True):
        each = parted(steps, parting)
        found.append(() if each is None else placed(other) if whole else counterparts(each, other))
    return found


def picture_steps(explanation: Explanation) -> list[Sequence[Item]]:
    """Choose the steps of a picture: of the target itself, and of each other (rule 2)."""
    others = explanation.others
    if not others:
        return [tuple(folded(explanation, short=_DRAWN, worst=1))]
    steps = placed(explanation)
    where = [parted(steps, parting) for parting in explanation.partings]
    mine = sorted({x.number for x in where if x is not None})
    if not mine or all(len(steps) + len(other.steps) <= _DRAWN_OF_ALL for other in others):
        return [tuple(folded(x, short=_DRAWN_OF_ALL)) for x in (explanation, *others)]
    theirs = [counterparts(each or steps[mine[0]], other) for other, each in zip(others, where, strict=True)]
    return [[steps[i] for i in mine], *theirs]


def chosen_addends(step: SumStep, whole: bool = False) -> tuple[list[int], list[int], list[int]]:
    """Return which addends of a step are shown, which are zero, and which others are counted (rule 3)."""
    if whole:
        return list(range(len(step.addends))), [], []
    zeros = [i for i, x in enumerate(step.addends) if x.source == "product" and x.value == 0]
    if len(zeros) < 2:
        zeros = []
    rest = [i for i in range(len(step.addends)) if i not in set(zeros)]
    shown = set(sorted(rest, key=lambda i: _weight(step.addends[i]), reverse=True)[:ADDENDS])
    return [i for i in rest if i in shown], zeros, [i for i in rest if i not in shown]


def _weight(addend: Addend) -> tuple[bool, bool, Fraction, Fraction]:
    """Rank addends: first those that are not products, then by not being finite, by loss and by size."""
    value = as_fraction(addend.number)
    return addend.source != "product", value is None, abs(addend.lost or Fraction(0)), abs(value or Fraction(0))
