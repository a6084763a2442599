"""Advice on tolerances as text and JSON."""

from __future__ import annotations

import json as json_
import math
from collections.abc import Iterable
from dataclasses import asdict
from textwrap import wrap

from ..._text import table
from ...analysis import Advice, Judged
from .error_tables import figure, shortened

_WIDTH = 118


def text(advice: Advice) -> str:
    """Write a table of outputs, and sentences that follow from it."""
    asked = advice.rtol is not None
    if asked:
        head = f"What rtol = {advice.rtol:g}, atol = {advice.atol:g} lets pass, of D of {advice.product}"
        columns, left = ["output", "verdict", "outside", "largest", "atol below", "what the kernel did"], [0, 1, 5]
    else:
        head = f"Which faults a tolerance finds, of D of {advice.product}"
        columns, left = ["output", "largest", "found by", "what the kernel did"], [0, 3]
    rule = "(an element passes if |output - expected| <= atol + rtol |expected|)"
    rows = [columns, *(_row(x, asked=asked) for x in advice.judged)]
    lines = [head, rule, "", *table(rows, left), ""]
    for sentence in _sentences(advice):
        lines += wrap(sentence, _WIDTH, break_on_hyphens=False, break_long_words=False)
    return "\n".join(lines) + "\n"


def _row(judged: Judged, *, asked: bool) -> list[str]:
    name = shortened(judged.name, 24)
    if not asked:
        found = "" if judged.right else "no change" if judged.hidden else _times(judged.reach)
        return [name, figure(judged.largest), found, judged.meaning]
    verdict = "passes" if judged.passes else "fails"
    if not judged.right:
        verdict = "no change" if judged.hidden else "PASSES" if judged.passes else "found"
    elif not judged.passes:
        verdict = "FAILS"
    needed = "" if judged.right or judged.hidden else figure(judged.below) if judged.below else "none"
    return [name, verdict, f"{judged.outside:,}", figure(judged.largest), needed, judged.meaning]


def _times(reach: float | None) -> str:
    if reach is None or reach <= 1:
        return "none"
    return "any" if math.isinf(reach) else f"{figure(reach)} x"


def _listed(some: Iterable[Judged | str]) -> str:
    return ", ".join(x if isinstance(x, str) else x.name for x in some)


def _sentences(advice: Advice) -> list[str]:
    if not advice.elements:
        return ["Nothing was compared: there is no element whose exact result is finite."]
    sentences = []
    if advice.rtol is not None and advice.atol is not None:
        sentences += _of_the_tolerance(advice, advice.rtol, advice.atol)
    hidden = [x for x in advice.judged if x.hidden]
    if hidden:
        sentences.append(f"These inputs do not show at all, whatever the tolerance: {_listed(hidden)}.")
    best = advice.recommended
    if math.isinf(best.atol):
        return [*sentences, "No tolerance can be recommended: a right output is infinitely far from the exact one."]
    why = {
        "bound": "lets pass whatever stays within the proved bound of the error",
        "measured": "lets pass twice the largest error of the right outputs",
    }[best.basis]
    found = sum(not x.right and not x.hidden for x in advice.judged) - len(best.missed)
    if best.atol == 0 and best.rtol == 0:
        why = "asks for the exact results, which right outputs are"
    reach = "" if not found or math.isinf(best.reach) else f", the nearest of them by a factor of {figure(best.reach)}"
    what = "none of these faults" if not found else "these faults" if not best.missed else f"{found} of these faults"
    sentences.append(f"Recommended: rtol={best.rtol:g}, atol={best.atol:g}. It {why}, and finds {what}{reach}.")
    if best.missed:
        sentences.append(
            f"No tolerance that lets right outputs pass finds, with these inputs: {_listed(best.missed)}. Their "
            "outputs are as near to the exact ones as right outputs may be."
        )
    if "all zero" in best.missed:
        sentences.append(
            f"Not even an output of zeros is told from a right one: the largest that is expected is "
            f"{figure(advice.largest)}. Take inputs whose sums do not vanish, or compare bits with those of `matmul`."
        )
    return sentences


def _of_the_tolerance(advice: Advice, rtol: float, atol: float) -> list[str]:
    who = f"rtol={rtol:g}, atol={atol:g}"
    sentences = []
    if advice.rejected:
        sentences.append(f"{who} rejects outputs that are right: {_listed(advice.rejected)}.")
    if advice.missed:
        sentences.append(f"{who} lets these wrong outputs pass: {_listed(advice.missed)}.")
        zero = next((x for x in advice.missed if x.name == "all zero"), None)
        if zero is not None and zero.below:
            sentences.append(
                f"An output of zeros passes since the largest that is expected is {figure(advice.largest)}: with this "
                f"rtol, atol would have to be below {figure(zero.below)}."
            )
        elif zero is not None:
            why = "rtol is 1 or more" if advice.largest else "zeros are what is expected"
            sentences.append(f"An output of zeros passes whatever atol is, since {why}.")
    elif not advice.rejected:
        sentences.append(f"{who} lets right outputs pass, and none of these wrong ones that differ.")
    return sentences


def json(advice: Advice) -> str:
    """Write all of it: "judged", a list of outputs, and "recommended"; infinities are "inf"."""
    found = {
        "product": advice.product, "rtol": advice.rtol, "atol": advice.atol, "good": advice.good,
        "largest": advice.largest, "least": advice.least,
        "judged": [{**asdict(x), "passes": x.passes, "hidden": x.hidden} for x in advice.judged],
        "recommended": asdict(advice.recommended),
    }  # fmt: skip
    return json_.dumps(_finite(found), indent=2)


def _finite(x: object) -> object:
    """Write infinities and NaN as text, which JSON has no numbers for."""
    if isinstance(x, dict):
        return {name: _finite(each) for name, each in x.items()}
    if isinstance(x, list | tuple):
        return [_finite(each) for each in x]
    return str(x) if isinstance(x, float) and not math.isfinite(x) else x
