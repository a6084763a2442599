"""Explanations as text and JSON: both say what the record says, in fewer than 120 columns, and long ones fold."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from explanation_cases import ALL, E4M3, F16, F64, MXF4, explained

from warpmma.analysis import Explanation
from warpmma.errors import OperandError
from warpmma.show.sums.exact_text import code_text, rational_of

each_case = pytest.mark.parametrize("explanation", ALL.values(), ids=ALL.keys())


@each_case
def test_lines_are_short_and_name_the_result(explanation: Explanation) -> None:
    for whole in (False, True):
        text = explanation.text(whole=whole)
        assert max(map(len, text.splitlines())) < 120
        assert [line for line in text.splitlines() if line != line.rstrip()] == []
        assert re.search(rf"^result +\S+ +{code_text(explanation.result, explanation.format)}$", text, re.M)


@each_case
@pytest.mark.parametrize("width", [60, 80, 100])
def test_lines_fit_narrow_terminals(explanation: Explanation, width: int) -> None:
    lines = explanation.text(width=width).splitlines()
    wide = [line for line in lines if len(line) > width]
    assert all("mma." in line for line in wide)  # no mnemonic is broken


@pytest.mark.parametrize("bad", [59, "80", None, 1.5])
def test_a_width_is_a_number_of_columns(bad: Any) -> None:
    with pytest.raises(OperandError, match=r"width is .*; expected 60 columns or more"):
        ALL["f16"].text(width=bad)


def test_a_mark_is_a_function() -> None:
    mark: Any = 3
    with pytest.raises(OperandError, match="mark is 3; expected a function"):
        ALL["f16"].text(mark=mark)


def test_narrow_terminals_keep_the_bits_longest() -> None:
    text = ALL["f16 low bits"].text(width=80)
    assert "0000000010|0" in text and "0x3c00" not in text and "0x3f800001" in text


@each_case
def test_json_has_the_record(explanation: Explanation) -> None:
    found = json.loads(explanation.json())
    assert found["result"] == code_text(explanation.result, explanation.format)
    assert found["exact"] == (None if explanation.exact is None else str(explanation.exact))
    steps = [step for link in found["links"] for step in link["steps"]]
    assert len(steps) == len(explanation.steps)
    for step, record in zip(steps, explanation.steps, strict=True):
        assert step["value"] == rational_of(record.number)
        assert (step["exponent"], step["quantum"]) == (record.exponent, record.quantum)
        for addend, of_record in zip(step["addends"], record.addends, strict=True):
            assert addend["value"] == rational_of(of_record.number)
            if addend["lost"] is not None:
                assert Fraction(addend["value"]) == Fraction(addend["kept"]) + Fraction(addend["lost"])


def bits_of(line: str) -> tuple[str, str] | None:
    found = re.search(r"  ([- ][.01]+) *(?:\|([01>. ]*))?$", line)
    return (found[1].strip(), (found[2] or "").strip()) if found else None


def test_bits_are_those_of_the_addends() -> None:
    """What stands left of the bar is kept, in multiples of the quantum; what stands right of it was cut."""
    rng = np.random.default_rng(3)
    explanation = explained(F16, rng.standard_normal(16) * 2.0 ** rng.integers(-9, 1, 16), rng.standard_normal(16), 1.5)
    [step] = explanation.steps
    assert step.quantum is not None
    lines = {line.split()[0]: line for line in explanation.text().splitlines() if line.startswith("  ")}
    compared = 0
    for addend in step.addends:
        name = str(addend.products[0]) if addend.products else "C"
        bits = bits_of(lines[name])
        assert bits is not None
        kept = bits[0].replace(".", "").replace(" ", "")
        digits = kept.removeprefix("-")
        low = step.quantum if bits[1] else addend.number.exponent
        value = int(digits or "0", 2) * Fraction(2) ** low * (-1 if kept.startswith("-") else 1)
        assert addend.lost is not None and addend.value is not None and value == addend.value - addend.lost
        if addend.lost and ">" not in bits[1]:
            cut = int(bits[1].replace(".", ""), 2) * Fraction(2) ** addend.number.exponent
            assert cut == abs(addend.lost)
            compared += 1
    assert compared


def test_zeros_are_counted() -> None:
    text = explained(F16, [1] + [0] * 6 + [2**-24] * 2 + [0] * 7, [1] * 16).text()
    assert "13 products are zero: k 1-6, 9-15" in text
    assert "13 products" not in explained(F16, [1] + [0] * 15, [1] * 16).text(whole=True)


def test_long_chains_fold_and_say_what_the_rest_lost() -> None:
    rng = np.random.default_rng(1)
    explanation = explained(F16, rng.standard_normal(4096), rng.standard_normal(4096))
    text = explanation.text()
    assert text.count("\n") < 160 and explanation.text(whole=True).count("\nstep ") == 256
    shown = {int(n) for n in re.findall(r"^step (\d+) of 256", text, re.M)}
    assert {1, 256} < shown and len(shown) <= 5
    losses = [float(abs(step.lost or Fraction(0))) for step in explanation.steps]
    assert int(np.argmax(losses)) + 1 in shown
    counted: set[int] = set()
    for first, last in re.findall(r"^steps? (\d+)(?: to (\d+))? \(k [-\d]+\): lost \S+ together", text, re.M):
        counted |= set(range(int(first), int(last or first) + 1))
    assert counted | shown == set(range(1, 257)) and not counted & shown


def test_a_nan_is_shown_where_it_begins() -> None:
    values = np.ones(512)
    values[300] = np.nan
    text = explained(F16, values, np.ones(512)).text()
    assert "step 19 of 32" in text and "NaN (rule 8)" in text
    assert re.search(r"^error +none: not finite$", text, re.M)


def test_chains_of_multiply_adds_have_a_line_for_each() -> None:
    rng = np.random.default_rng(1)
    text = explained(F64, rng.standard_normal(16), rng.standard_normal(16), 1.0).text(whole=True)
    assert [int(n) for n in re.findall(r"^ +(\d+)  fma", text, re.M)] == list(range(1, 17))


def test_groups_name_their_scales_and_products() -> None:
    scales = ([1.0, 2.0, 0.5, 8.0], [1.0, 1.0, 2.0, 1.0])
    text = explained(MXF4, [1.0] * 64, [3.0] * 64, 1e-3, target="sm_120a", scales=scales).text()
    assert re.search(r"k 48-63 +8 x 1 +384 +3 ", text) and "k 0-15: 1 x 3 + 1 x 3" in text


def test_software_fp8_adds_c_after() -> None:
    text = explained(E4M3, [1.0] * 32, [1.0] * 32, 2.0).text()
    assert "step 3 of 3: addition, rounded to nearest even" in text and "add C + sum" in text


def test_against_shows_both_and_why() -> None:
    explanation = explained(F16, [1] + [0] * 6 + [2**-24] * 2 + [0] * 7, [1] * 16, against="sm_80")
    text = explanation.text()
    assert "They first differ in step 1 of sm_90" in text and text.count("on sm_80:") == 2
    found: dict[str, Any] = json.loads(explanation.json())
    assert found["against"]["result"] == "0x3f800000" and found["parting"]["step"] == 0


def test_marks_add_nothing_but_themselves() -> None:
    explanation = explained(E4M3, np.linspace(-1, 1, 32), np.linspace(0.01, 3, 32), 1.5, target="sm_89")
    seen: set[str] = set()

    def mark(kind: str, text: str) -> str:
        seen.add(kind)
        return f"<{kind}>{text}</{kind}>"

    marked = explanation.text(mark=mark)
    assert re.sub(r"</?[a-z]+>", "", marked) == explanation.text()
    assert seen == {"heading", "dim", "kept", "cut"}


def test_the_page_names_every_key() -> None:
    page = (Path(__file__).parents[2] / "docs" / "explain.md").read_text()
    table = re.findall(r"^\| (\w[\w\' ]*?) \| (.*) \|$", page[page.index("| object |") :], re.M)
    named: dict[str, set[str]] = {}
    for name, keys in table:
        kind = (
            name.split()[0].removesuffix("'s")
            if name.split()[0] in ("link", "step", "step's", "addend")
            else "document"
        )
        named.setdefault(kind, set()).update(re.findall(r"`(\w+)`", keys))
    document = json.loads(ALL["f16 low bits"].json())
    link = document["links"][0]
    step = link["steps"][0]
    assert named["document"] - {"link", "step", "reason"} == set(document)
    assert set(document["parting"]) == {"link", "step", "reason"}
    found = {"link": set(link), "step": set(step), "addend": set(step["addends"][0])}
    assert {kind: named[kind] for kind in found} == found


def test_print_shows_the_text() -> None:
    assert str(ALL["f16 low bits"]) == ALL["f16 low bits"].text()
