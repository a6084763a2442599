"""Explanations in notebooks: a card with the picture, the outcome, and tables that open at a click."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ...analysis import Explanation
from ..drawing.cards import card, opened
from ..drawing.cards import page as in_page
from .sum_cells import CHAIN_HEAD, CHAINS, addend_cells, chain_cells
from .sum_folding import PlacedStep, StepRun, chosen_addends, folded
from .sum_numbers import number_text, typeset
from .sum_summary import summary, summary_against
from .sum_svg import svg
from .sum_words import aligned_text, chain_text, heading, how, outcome_text, run_text


def html(explanation: Explanation) -> str:
    """Write a card; its tables have what the text has, but for the bits, which the picture has."""
    place = f"D[{explanation.row}, {explanation.column}]"
    title = f"{place} of {explanation.instruction} on {explanation.target}"
    rows = [("computed as", escape(how(explanation.recipe))), ("known by", escape(str(explanation.evidence)))]
    if explanation.site:
        rows.insert(0, ("in a kernel", escape(explanation.site)))
    if len(explanation.links) > 1:
        rows.append(("chain", escape(chain_text(explanation))))
    if explanation.note:
        rows.append(("elsewhere", escape(explanation.note)))
    parts = []
    if explanation.others:
        title += f", against {', '.join(other.target for other in explanation.others)}"
    for other, parting in zip(explanation.others, explanation.partings, strict=True):
        which = f" from {other.target}" if len(explanation.others) > 1 else ""
        rows.append((f"first differs{which}", escape(parting.reason if parting else "nowhere: every step is the same")))
        head, *body = summary_against(explanation, other)
        parts.append(_table(head, body))
    if not explanation.others:
        parts.append(_table(("", "", ""), summary(explanation)))
    parts.append(svg(explanation))
    for x in (explanation, *explanation.others):
        for item in folded(x):
            if isinstance(item, StepRun):
                parts.append(f"<p>{_said(run_text(item))}</p>")
            else:
                parts.append(opened(*_detail(x, item)))
    return card(title, rows, parts)


def page(explanation: Explanation) -> str:
    """Write a page of HTML: the card."""
    return in_page(f"{explanation.instruction} on {explanation.target}", html(explanation))


def _detail(explanation: Explanation, each: PlacedStep) -> tuple[str, str]:
    """Write the table of a step, and what it is called."""
    step = each.step
    title = f"{explanation.target}, {heading(each, len(explanation.steps))}"
    if step.operation in CHAINS:
        return typeset(title), _table(CHAIN_HEAD, [chain_cells(explanation, each)])
    choice = chosen_addends(step)
    head, rows = addend_cells(explanation, each, [step.addends[i] for i in choice.shown])
    at, blank = head.index("product"), [""] * len(head)
    for name, number in (("sum", step.sum), ("result", step.number)):
        rows.append([name, *blank[1:at], number_text(number), *blank[at + 1 :]])
    counts = f"{len(choice.zeros)} products are zero" if choice.zeros else ""
    lines = [aligned_text(each), outcome_text(each), counts]
    said = "".join(f"<p>{_said(line)}</p>" for line in lines if line)
    return typeset(title), _table(head, rows) + said


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th scope='col'>{_said(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{_said(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    start = f"<thead><tr>{top}</tr></thead>" if any(head) else ""
    return f"<div class='warpmma-numbers'><table>{start}<tbody>{body}</tbody></table></div>"


def _said(words: str) -> str:
    return escape(typeset(words))
