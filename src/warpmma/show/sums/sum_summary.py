"""What comes of an explanation: result, exact result, losses, error and bound, in rows; of two targets side by side."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from ...analysis import Explanation
from ...formats import FORMATS, FloatFormat
from .sum_numbers import code_text, in_ulps, number_of, number_text, short


def losses(explanation: Explanation) -> tuple[Fraction | None, Fraction | None]:
    """Return what truncation took in all, and what rounding took; None where something is not finite."""
    return (
        _total(
            None if addend.lost is None or link.weight is None else addend.lost * link.weight
            for link in explanation.links
            for step in link.steps
            for addend in step.addends
        ),
        _total(
            None if step.rounded_off is None or link.weight is None else step.rounded_off * link.weight
            for link in explanation.links
            for step in link.steps
        ),
    )


def _total(parts: Iterable[Fraction | None]) -> Fraction | None:
    known = list(parts)
    finite = [part for part in known if part is not None]
    return sum(finite, Fraction(0)) if len(finite) == len(known) else None


def ulps_text(error: Fraction | None, explanation: Explanation) -> str:
    """Write an error in units of the last place of the result's format: "-0.5 ulp of f32"; nothing for integers."""
    if not isinstance(FORMATS[explanation.format], FloatFormat):
        return ""
    ulps = in_ulps(error, explanation.exact, explanation.format)
    digits = 4 if ulps is None or abs(ulps) < 1000 else 6
    return "" if ulps is None else f"{float(ulps):.{digits}g} ulp of {explanation.format}"


def _or_none(value: Fraction | None, none: str) -> str:
    return none if value is None else short(value)


def _rows(explanation: Explanation) -> tuple[tuple[str, str, str], ...]:
    """Name, value and remark of everything that is told."""
    cut, off = losses(explanation)
    bound, ignored = explanation.bound, explanation.ignored
    return (
        (
            "result",
            number_text(number_of(explanation.result, explanation.format)),
            code_text(explanation.result, explanation.format),
        ),
        ("exact", _or_none(explanation.exact, "not finite"), ""),
        ("error", _or_none(explanation.error, "none: not finite"), ulps_text(explanation.error, explanation)),
        ("cut by truncation", _or_none(cut, "not finite"), ulps_text(cut, explanation)),
        ("rounded off", _or_none(off, "not finite"), ulps_text(off, explanation)),
        ("lost in all", _or_none(explanation.lost, "not finite"), ulps_text(explanation.lost, explanation)),
        ("bound of the error", _or_none(bound, "none"), ulps_text(bound, explanation)),
        *(("ignored bits", short(explanation.ignored), "of f32 operands, which tf32 has not"),) * bool(ignored),
    )


def summary(explanation: Explanation) -> list[tuple[str, str, str]]:
    """Return rows of what comes of it: name, value, remark."""
    return list(_rows(explanation))


def summary_against(explanation: Explanation, other: Explanation) -> list[tuple[str, str, str, str, str]]:
    """Return rows of two targets: name, value and remark of each."""
    head = ("", explanation.target, "", other.target, "")
    rows = zip(_rows(explanation), _rows(other), strict=True)
    return [head, *((name, mine, remark, theirs, its) for (name, mine, remark), (_, theirs, its) in rows)]
