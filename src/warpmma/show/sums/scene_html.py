"""Explanations in notebooks: a card with the picture, the outcome, and tables that open at a click."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ...analysis import Explanation
from ..drawing.cards import card, opened
from ..drawing.cards import page as in_page
from .exact_text import typeset
from .scene import CHAIN_HEAD, Scene, StepScene, scene_of
from .scene_svg import svg
from .shown_steps import folded


def html(explanation: Explanation) -> str:
    """Write a card; its tables have what the text has, except for the bits, which the picture has."""
    scene = scene_of(explanation, [tuple(folded(x)) for x in (explanation, *explanation.others)])
    title = f"{scene.place} of {scene.instruction} on {scene.target}"
    said = (
        ("in a kernel", scene.site), ("computed as", scene.how), ("known by", str(scene.evidence)),
        ("chain", scene.chain), ("elsewhere", scene.note),
    )  # fmt: skip
    rows = [(name, escape(words)) for name, words in said if words]
    parts = []
    if scene.others:
        title += f", against {', '.join(other.target for other, _, _ in scene.others)}"
    for other, parting, _ in scene.others:
        which = f" from {other.target}" if len(scene.others) > 1 else ""
        rows.append((f"first differs{which}", escape(parting.reason if parting else "nowhere: every step is the same")))
        parts.append(_table(scene.beside(other)))
    if not scene.others:
        parts.append(_table([("", "", ""), *scene.summary]))
    parts.append(svg(explanation))
    for x in (scene, *(other for other, _, _ in scene.others)):
        parts += [f"<p>{_typeset(each)}</p>" if isinstance(each, str) else _detail(x, each) for each in x.items]
    return card(title, rows, parts)


def page(explanation: Explanation) -> str:
    """Write a page of HTML: the card."""
    return in_page(f"{explanation.instruction} on {explanation.target}", html(explanation))


def _detail(scene: Scene, step: StepScene) -> str:
    """Write the table of a step, which opens at a click."""
    table = _table([CHAIN_HEAD, step.chain_cells] if step.chain_name else step.table)
    lines = [] if step.chain_name else [step.aligned, step.outcome, step.zeros.partition(":")[0]]
    said = "".join(f"<p>{_typeset(line)}</p>" for line in lines if line)
    return opened(typeset(f"{scene.target}, {step.heading}"), table + said)


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = rows
    top = "".join(f"<th scope='col'>{_typeset(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{_typeset(cell)}</td>" for cell in row) + "</tr>" for row in rest)
    start = f"<thead><tr>{top}</tr></thead>" if any(head) else ""
    return f"<div class='warpmma-numbers'><table>{start}<tbody>{body}</tbody></table></div>"


def _typeset(words: str) -> str:
    return escape(typeset(words))
