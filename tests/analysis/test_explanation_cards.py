"""Explanations in notebooks: a card that is well-formed, brings its own style, and says what the text says."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from explanation_cases import ALL

from warpmma.analysis import Explanation
from warpmma.show.sums.exact_text import code_text, typeset

pytestmark = pytest.mark.quick

each_case = pytest.mark.parametrize("explanation", ALL.values(), ids=ALL.keys())


@each_case
def test_cards_are_well_formed_and_hold_picture_and_result(explanation: Explanation) -> None:
    html = explanation._repr_html_()
    card = ElementTree.fromstring(html)
    words = " ".join(card.itertext())
    assert code_text(explanation.result, explanation.format) in words
    assert explanation.svg().strip() in html and not re.search(r"<script|href=|src=", html)
    assert len(html) < 200_000
    if explanation.parting is not None:
        assert explanation.parting.reason in words


def test_styles_speak_of_cards_alone() -> None:
    html = ALL["f16"]._repr_html_()
    for sheet in re.findall(r"<style>(.*?)</style>", html, re.S):
        rules = re.sub(r"@media\([^)]*\)\{", "", re.sub(r"\{[^{}]*\}", "{}", sheet))
        for rule in filter(str.strip, re.split(r"\{\}\}?", rules)):
            assert "warpmma" in rule, rule


def test_steps_have_tables_in_their_order() -> None:
    explanation = ALL["f16 long"]
    html = explanation._repr_html_()
    titles = re.findall(r"<summary>sm_(\d+), step (\d+) of", html)
    for target in ("90", "80"):
        numbers = [int(n) for t, n in titles if t == target]
        assert numbers == sorted(numbers) and numbers[0] == 1 and len(numbers) > 3
    step = explanation.steps[0]
    assert f"E = {typeset(str(step.exponent))}" in html
