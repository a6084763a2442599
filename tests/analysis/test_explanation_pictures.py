"""Explanations as pictures: what is drawn, read from the SVG itself, is what the record and its JSON say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree

import pytest
from explanation_cases import ALL, F16, explained

from warpmma.analysis import Explanation
from warpmma.show import PALETTE

SVG = "{http://www.w3.org/2000/svg}"
each_case = pytest.mark.parametrize("explanation", ALL.values(), ids=ALL.keys())


def rows(explanation: Explanation, theme: str = "auto") -> Iterator[tuple[dict[str, str], ElementTree.Element]]:
    for element in ElementTree.fromstring(explanation.svg(theme)).iter(f"{SVG}g"):
        data = {name.removeprefix("data-"): value for name, value in element.attrib.items() if name.startswith("data-")}
        if "row" in data:
            yield data, element


def steps_of(explanation: Explanation) -> dict[tuple[str, int], dict[str, Any]]:
    """Steps of both targets as JSON has them, by target and number."""
    document = json.loads(explanation.json())
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for x in (document, document["against"]):
        if x is not None:
            steps = [step for link in x["links"] for step in link["steps"]]
            found |= {(x["target"], i): step for i, step in enumerate(steps)}
    return found


def value_of(data: dict[str, str], kept: bool = False) -> Fraction:
    low = int(data["high"]) - len(data["bits"]) + 1
    cut = int(data["cut"]) if kept else 0
    digits = data["bits"][: len(data["bits"]) - cut]
    return int(digits or "0", 2) * Fraction(2) ** (low + cut) * (-1 if data["sign"] == "-" else 1)


@each_case
def test_data_are_those_of_the_record(explanation: Explanation) -> None:
    steps, seen = steps_of(explanation), 0
    for data, _ in rows(explanation):
        step = steps[data["target"], int(data["step"])]
        if data["row"] == "addend":
            addend = step["addends"][int(data["addend"])]
            assert (data["value"], data["kept"], data["source"]) == (addend["value"], addend["kept"], addend["source"])
            if "bits" in data:
                assert value_of(data) == Fraction(data["value"]) and value_of(data, True) == Fraction(data["kept"])
        elif data["row"] == "sum":
            assert data["value"] == step["sum"]
            if "bits" in data:
                assert value_of(data) == Fraction(data["value"])
        elif data["row"] == "result":
            assert (data["value"], data["code"]) == (step["value"], step["result"])
            if "bits" in data:
                assert value_of(data) == Fraction(data["value"])
        seen += 1
    assert seen >= (3 if explanation.steps else 0)


def columns(explanation: Explanation) -> dict[float, int]:
    """Weights by the middle of their columns, all of them, from those that are named."""
    named: list[tuple[float, int]] = []
    for element in ElementTree.fromstring(explanation.svg()).iter(f"{SVG}text"):
        if "data-weight" in element.attrib:
            named.append((float(element.attrib["x"]), int(element.attrib["data-weight"])))
    (x1, w1), (x2, w2) = min(named), max(named)
    cell = (x2 - x1) / (w1 - w2)
    return {round(x1 + (w1 - w) * cell, 3): w for w in range(w1 + 40, w2 - 60, -1)}


@pytest.mark.parametrize("name", ["f16", "f16 spread", "f16 low bits", "fp8 of Ada", "s8 clamped"])
def test_digits_stand_in_the_columns_of_their_weights(name: str) -> None:
    """Read from the glyphs: where they stand, and on which ground."""
    explanation = ALL[name]
    weights = columns(explanation)
    grounds = {PALETTE[fill].light: fill for fill in ("fraction", "lost", "mark")}
    for data, element in rows(explanation):
        if "bits" not in data:
            continue
        drawn: dict[int, str] = {}
        for word in element.iter(f"{SVG}text"):
            if set(word.text or "") <= {"0", "1"} and "Mono" in word.attrib.get("font-family", ""):
                places = [weights[round(float(x), 3)] for x in word.attrib["x"].split()]
                drawn |= dict(zip(places, word.text or "", strict=True))
        assert "".join(drawn[w] for w in sorted(drawn, reverse=True)) == data["bits"]
        assert max(drawn) == int(data["high"])
        for rect in element.iter(f"{SVG}rect"):
            x, width = float(rect.attrib["x"]), float(rect.attrib["width"])
            within = [w for middle, w in weights.items() if x < middle < x + width]
            border = min(drawn) + int(data["cut"])
            ground = grounds[rect.attrib["fill"]]
            assert ground == ("lost" if data["row"] == "addend" else "mark") or min(within) == border
            assert ground == "fraction" or (max(within), min(within)) == (border - 1, min(drawn))
        stripes = [p for p in element.iter(f"{SVG}path") if p.attrib["fill"] == "none"]
        assert bool(stripes) == (int(data["cut"]) > 0)  # not by colour alone


def test_ones_of_a_popcount_are_those_of_the_products() -> None:
    explanation = ALL["b1"]
    made = "".join(data["bits"] for data, _ in rows(explanation) if data.get("operand") == "xor")
    [step] = explanation.steps
    assert made == "".join(str(x.number.significand) for x in step.addends if x.source == "product")
    assert next(data["bits"] for data, _ in rows(explanation) if data.get("operand") == "A") == "1011" * 16


@each_case
def test_pictures_stay_small_and_have_both_themes(explanation: Explanation) -> None:
    auto, light, dark = (explanation.svg(theme) for theme in ("auto", "light", "dark"))
    width, height = map(int, re.findall(r"(?:width|height)='(\d+)'", auto)[:2])
    assert width <= 1600 and height <= 2100 and len(auto) < 120_000
    assert "prefers-color-scheme" in auto and "<style>" not in light + dark
    assert PALETTE["paper"].dark in dark and PALETTE["paper"].light not in dark
    for picture in (light, dark):  # nothing but texts and colours: no scripts, no links
        assert not re.search(r"<script|href|url\(", picture)


def test_two_targets_share_their_columns() -> None:
    explanation = ALL["f16 low bits"]
    found = {
        (data["target"], data["step"]): data["kept"]
        for data, _ in rows(explanation)
        if data["row"] == "addend" and data.get("k") == "7"
    }
    assert found == {("sm_90", "0"): "1/16777216", ("sm_80", "0"): "1/16777216"}
    assert "They first differ here" in explanation.svg()


def test_long_chains_draw_where_targets_part() -> None:
    drawn = {(data["target"], data["step"]) for data, _ in rows(ALL["f16 long"])}
    assert drawn == {("sm_90", "0"), ("sm_80", "0"), ("sm_80", "1")}
    alone = explained(F16, [1.0] * 256, [2.0**-12] * 256)
    steps = {int(data["step"]) for data, _ in rows(alone)}
    assert {0, 15} <= steps and len(steps) <= 3 and "together" in alone.svg()


def test_rows_say_codes_when_pointed_at() -> None:
    notes = {data.get("k", data["row"]): element.find(f"{SVG}title") for data, element in rows(ALL["fp8 of Ada"])}
    explanation = ALL["fp8 of Ada"]
    for k, (a, b) in enumerate(zip(explanation.a, explanation.b, strict=True)):
        note = notes[str(k)]
        assert note is not None and (note.text or "").startswith(f"k {k}: 0x{a:02x} × 0x{b:02x} = ")


def test_a_kernel_is_named_in_every_view() -> None:
    told = replace(ALL["f16 low bits"], site="k.py:12 (block 0, warp 1, occurrence 2)")
    for view in (told.text(), told.json(), told.svg(), told._repr_html_()):
        assert told.site in view
