"""The errors of the approximate functions: the documented figures follow from the rules."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal, getcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.accuracy import functions as tool
from lab.accuracy.forms import FORMS, GRADUAL, Form
from lab.accuracy.jobs import Job, digest, done, jobs
from lab.accuracy.measure import Record, measured, repetition, together
from lab.accuracy.narrow import NARROW, UPPER, measured_narrow, measured_upper, repetition_upper
from lab.accuracy.tables import BOUNDS, extremes, tables, worst, written

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "functions"
WHOLE: dict[str, Any] = json.loads((FOLDER / "errors.json").read_text())
PAGE = (ROOT / "docs" / "functions.md").read_text()
ALL = {**FORMS, **GRADUAL}

getcontext().prec = 50


def value(code: int) -> Decimal:
    return Decimal(float(np.uint32(code).view(np.float32)))


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


def series(x: Decimal, first: int) -> Decimal:
    """cos(x), of first 0, or sin(x), of first 1."""
    x %= 2 * PI
    term = total = x if first else Decimal(1)
    n = first
    while abs(term) > Decimal(10) ** -60:
        n += 2
        term = -term * x * x / (n * (n - 1))
        total += term
    return total


def tanh(x: Decimal) -> Decimal:
    return 1 - 2 / ((2 * x).exp() + 1)


EXACT: dict[str, Callable[[Decimal], Decimal]] = {
    "rcp": lambda x: 1 / x,
    "sqrt": lambda x: x.sqrt(),
    "rsqrt": lambda x: 1 / x.sqrt(),
    "sin": lambda x: series(x, 1),
    "cos": lambda x: series(x, 0),
    "lg2": lambda x: x.ln() / Decimal(2).ln(),
    "ex2": lambda x: (x * Decimal(2).ln()).exp(),
    "tanh": tanh,
}
# Near their zeros errors of sin, cos and lg2 in ulps, and relative ones, say nothing, and are not shown.
KINDS = {"sin": ["absolute"], "cos": ["absolute"], "lg2": ["absolute", "relative"]}
EXTREMES = [
    (name, part, kind, *record[kind])
    for name in ALL
    for part, record in WHOLE["forms"][name]["ranges"].items()
    for kind in KINDS.get(name[:3], ["low", "high", "absolute", "relative"])
]


def test_they_are_of_these_tables_and_nothing_is_an_exception() -> None:
    assert WHOLE["tables"] == digest()
    assert {name: form.get("exceptions", 0) for name, form in WHOLE["forms"].items() if form.get("exceptions", 0)} == {}
    assert set(WHOLE["forms"]) == {*ALL, *NARROW, *UPPER}


@pytest.mark.parametrize(("name", "part", "kind", "size", "code"), EXTREMES)
def test_worst_errors_with_fifty_digits(name: str, part: str, kind: str, size: float, code: int) -> None:
    """To 2^-25 ulp; absolute and relative ones to a millionth of them."""
    exact = EXACT[name.partition(".")[0]](value(code))
    result = value(int(ALL[name].compute(np.array([code], np.uint32))[0]))
    error = result - exact
    octave = Decimal(2) ** max(math.floor(math.log2(abs(exact))), -126)
    found = {"absolute": abs(error), "relative": abs(error / exact)}.get(kind, error / octave * 2**23)
    assert abs(float(found) - size) <= (size * 1e-6 if kind in ("absolute", "relative") else 2.0**-25)


def flat(record: Record) -> dict[str, float]:
    """A record that `pytest.approx` takes: another processor's float64 functions may change the last bits."""
    return {f"{name} {i}": x for name, pair in record.items() for i, x in enumerate(np.atleast_1d(pair).tolist())}


@pytest.mark.parametrize("name", ALL)
def test_measured_again_around_the_worst(name: str) -> None:
    """A small block about an extreme has the same extreme, and nothing worse than the whole."""
    for part, record in WHOLE["forms"][name]["ranges"].items():
        for kind in ("low", "high"):
            code = record[kind][1]
            magnitude, negative = code & 0x7FFFFFFF, code >> 31 == 1
            again = measured(ALL[name], max(magnitude - 200, 1), magnitude + 200, negative)
            if kind == "low":
                assert again["low"][0] <= record["low"][0] + 1e-9, part
            else:
                assert again["high"][0] >= record["high"][0] - 1e-9, part
            assert again["operands"] <= 400


def test_sums_of_records() -> None:
    form = FORMS["ex2.approx.ftz.f32"]
    first = 0x3F800000
    one, two = measured(form, first, first + 1000), measured(form, first + 1000, first + 5000)
    assert flat(together([one, two])) == pytest.approx(flat(measured(form, first, first + 5000)))
    assert one["operands"] == 1000 and one["pairs"] == 1000 and one["low"][0] < 0 < one["high"][0]


def test_what_is_counted() -> None:
    """sqrt falls at 1.25, and there alone in its neighbourhood; an infinite result is none."""
    record = measured(FORMS["sqrt.approx.ftz.f32"], 0x3FA00000 - 64, 0x3FA00000 + 64)
    assert (record["breaks"], record["borders"], record["first_break"]) == (1, 1, 0x3FA00000)
    assert record["worst_break"] == [1.0, 0x3FA00000]
    assert measured(FORMS["ex2.approx.ftz.f32"], 0x43000000, 0x43000010)["operands"] == 0
    assert measured(FORMS["ex2.approx.ftz.f32"], 0x42FC0000, 0x42FC0010, True)["operands"] == 1  # -126
    assert measured(FORMS["cos.approx.ftz.f32"], 0x40C90000, 0x40C90100)["pairs"] == 0  # beyond pi


class Wrong(Form):
    """A form with two results off by one."""

    def compute(self, codes: Any) -> Any:
        results = super().compute(codes)
        return np.where((codes == 0x41200003) | (codes == 0x33000003), results + 1, results)


@pytest.mark.parametrize("name", FORMS)
def test_an_exception_is_noticed(name: str) -> None:
    """One result is not that of its octave, of its sign, or of all that are alike."""
    form = FORMS[name]
    wrong = Wrong(**{field: getattr(form, field) for field in form.__dataclass_fields__})
    exponent = (0x33000003 if form.negative == "own" else 0x41200003) >> 23
    assert repetition(form, exponent) == 0 < repetition(wrong, exponent)


def test_octaves_of_upper_words() -> None:
    for form in UPPER.values():
        assert repetition_upper(form, 1, 3) == repetition_upper(form, 2044, 2047) == 0
        assert measured_upper(form) == WHOLE["forms"][form.mnemonic]["ranges"]["all"]


@pytest.mark.parametrize("name", NARROW)
def test_sixteen_bits(name: str) -> None:
    found, written_down = measured_narrow(NARROW[name]), WHOLE["forms"][name]["ranges"]["all"]
    assert flat(found) == pytest.approx(flat(written_down), rel=1e-6, abs=1e-6)


# What is written


@pytest.mark.parametrize("name", ["bounds", "ulps", "breaks"])
def test_tables_of_the_page(name: str) -> None:
    assert tables(WHOLE)[name] in PAGE


def test_the_page_names_what_does_not_hold() -> None:
    broken = [bound.mnemonic for bound in BOUNDS if worst(WHOLE, bound)[0] > bound.limit]
    assert broken == ["cos.approx.ftz.f32", "tanh.approx.bf16"]
    size, code = worst(WHOLE, next(b for b in BOUNDS if b.mnemonic == broken[0]))
    assert f"`0x{code:08X}`" in PAGE and f"{size:.3e}".replace("e-0", "e-") in PAGE
    result = FORMS[broken[0]].compute(np.array([code], np.uint32))[0]
    assert f"gives `0x{result:08X}`" in PAGE


def test_operands_of_cos_that_break_its_bound() -> None:
    """All of them, as a run over [0, 2 pi] found, lie in this range."""
    first, last = (int(np.float32(x).view(np.uint32)) for x in (4.7, 5.1))
    codes = np.arange(first, last, dtype=np.uint32)
    x, result = (a.view(np.float32).astype(np.float64) for a in (codes, FORMS["cos.approx.ftz.f32"].compute(codes)))
    broken = x[np.abs(result - np.cos(x)) > 2.0**-20.5]
    assert f"{len(broken):,} break it" in PAGE and "all from 4.7369 to 5.0515" in PAGE
    assert 4.7369 < broken.min() < 4.737 and 5.0514 < broken.max() < 5.0515


def test_facts_of_the_page() -> None:
    facts = WHOLE["facts"]
    for name in ("ex2 of integers", "rcp of powers of two", "rsqrt of powers of four", "sqrt of squares up to 4096^2"):
        assert facts[name][0] == facts[name][1]
    assert facts["lg2 of powers of two"] == [128, 254] and "all 126 powers below 1 are off" in PAGE
    assert facts["lg2 falls between octaves"][0] == 0
    nearest, of = facts["rcp of integers up to 2^24, nearest"]
    assert f"{100 * nearest / of:.0f} %" in PAGE
    quotient = facts["worst quotient"]
    assert f"`0x{quotient['dividend']:08X}` by `0x{quotient['divisor']:08X}`" in PAGE
    assert f"{quotient['error']:.3f} ulp" in PAGE and f"is {quotient['steps']} from the nearest" in PAGE
    assert facts["tanh is 1 from"] == 0x41000000 and facts["tanh is its operand up to"] == 0x3B800000
    assert max(abs(facts[f"{end} {name}"]) for end in ("largest", "least") for name in ("sin", "cos")) == 1
    for name in UPPER:
        assert f"2^{math.log2(WHOLE['forms'][name]['ranges']['all']['relative'][0]):.3f}" in PAGE


def test_the_worst_quotient_and_that_no_neighbour_is_worse() -> None:
    quotient = WHOLE["facts"]["worst quotient"]
    divisor = np.arange(quotient["divisor"] - 50, quotient["divisor"] + 50, dtype=np.uint32)
    dividend = np.arange(quotient["dividend"] - 500, quotient["dividend"] + 500, dtype=np.uint32)[:, None]
    reciprocal = FORMS["rcp.approx.ftz.f32"].compute(divisor).view(np.float32)
    exact = dividend.view(np.float32).astype(np.float64) / divisor.view(np.float32)
    inside = exact < 2
    errors = np.abs(dividend.view(np.float32) * reciprocal - exact) * 2.0**23
    assert errors[inside].max() == pytest.approx(quotient["error"], abs=1e-9)


def test_the_figures_are_of_these_errors() -> None:
    text = (FOLDER / "errors.svg").read_text()
    for name in FORMS:
        title = f"{name}: {extremes(WHOLE, name)}"
        assert title in text, title
    assert len(text) < 150_000
    squares = (FOLDER / "squarer.svg").read_text()
    assert len(re.findall(r"style=\"fill: #4c8dd6", squares)) == 63
    assert "63 of 153" in squares


def test_figures_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With little data: every panel has its title and its three lines, and a second drawing is the same."""
    pytest.importorskip("matplotlib")
    from lab.accuracy import figures

    def level(panel: figures.Panel) -> Any:
        return tuple(np.full(panel.bins, x) for x in (-0.5, 0.5, 0.0))

    monkeypatch.setattr(figures, "_binned", level)
    (tmp_path / "errors.json").write_text(written(WHOLE))
    texts = [[path.read_text() for path in figures.draw(tmp_path)] for _ in range(2)]
    assert texts[0] == texts[1]
    assert all(extremes(WHOLE, name) in texts[0][0] for name in FORMS) and "NVIDIA's bound is 64" in texts[0][0]
    assert not re.search(r"\d{4}-\d\d-\d\d", texts[0][0])


def test_bins_hold_all_operands() -> None:
    pytest.importorskip("matplotlib")
    from lab.accuracy import figures

    panel = figures.Panel(
        mnemonic="rcp.approx.ftz.f32", first=1, last=1.0625, unit="ulp", label="", bound=abs, by_code=True, bins=8
    )
    low, high, mean = figures._binned(panel)
    record = measured(FORMS[panel.mnemonic], 0x3F800000, 0x3F880000)
    assert (low.min(), high.max()) == (record["low"][0], record["high"][0])
    assert mean.mean() == pytest.approx(record["sum"] / record["operands"])


# The command


def test_it_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    main, parts = tool.main, tmp_path / "parts.jsonl"
    few = [Job("narrow", name) for name in NARROW]
    made: list[Job] = []

    def counted(job: Job) -> Any:
        if len(made) == 2:
            made.append(job)
            raise KeyboardInterrupt
        made.append(job)
        return done(job)

    monkeypatch.setattr(tool, "jobs", lambda: iter(few))
    monkeypatch.setattr(tool, "done", counted)
    monkeypatch.setattr(tool, "summary", lambda results: WHOLE | {"seen": len(results)})
    arguments = ["--parts", str(parts), "--out", str(tmp_path / "out")]
    assert main(arguments) == 130 and made == few[:3]
    assert len(parts.read_text().splitlines()) == 2 and "stopped" in capsys.readouterr().err
    with parts.open("a") as file:
        file.write('["cut sho')
        file.write('\n["another digest", "narrow", "tanh.approx.f16", 0, 0, false, {}]\n')
    assert main(arguments) == 0 and made[3:] == few[2:]
    assert json.loads((tmp_path / "out" / "errors.json").read_text())["forms"] == WHOLE["forms"]
    assert main(["--tables", "--out", str(tmp_path / "out")]) == 0
    assert tables(WHOLE)["bounds"] in capsys.readouterr().out


def test_jobs_cover_every_octave() -> None:
    every = list(jobs())
    assert len(every) == len(set(every))
    for name, form in FORMS.items():
        assert {j.first for j in every if j.kind == "repetition" and j.name == name} == set(range(1, 255))
        measured_octaves = {j.first >> 23 for j in every if j.kind == "block" and j.name == name}
        alike = {e for part in form.plain for e in range(part.first, part.end)}
        beyond = {e for e in range(1, 255) if e << 23 >= max(r.end for r in form.ranges)}
        assert {form.base(e) for e in range(1, 255)} - alike - beyond == measured_octaves
