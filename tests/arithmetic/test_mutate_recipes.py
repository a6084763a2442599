"""Mutants of recipes: each is noticed by the styles that campaigns choose, or argued; and the command that says so."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lab.generators import by_reference, operands, styles
from lab.generators.power import PATH, ROUNDS, recipe_class, styles_in_turn, styles_of_round
from lab.mutate import recipes as tool
from lab.mutate.harmless_recipes import argument, read_fields
from lab.mutate.recipe_changes import Mutant, Subject, mutants, subjects
from lab.mutate.recipe_power import chosen, counts, jobs_needed
from warpmma.arithmetic import compute
from warpmma.formats import FORMATS, FloatFormat

QUICK = (256, 768)


def sample() -> list[tuple[Subject, list[Mutant]]]:
    """Recipes in which each parameter of each unit is changed as each rule says, and the arguments are all used."""
    seen: set[tuple[str, str, str]] = set()
    found = []
    for subject in subjects():
        those = []
        for mutant in mutants(subject):
            key = (subject.unit, mutant.parameter, argument(subject, mutant))
            if key not in seen:
                seen.add(key)
                those.append(mutant)
        if those:
            found.append((subject, those))
    return found


SAMPLE = sample()


@pytest.mark.parametrize(("subject", "those"), SAMPLE, ids=[subject.name for subject, _ in SAMPLE])
def test_every_parameter_is_noticed_or_argued(subject: Subject, those: list[Mutant]) -> None:
    needed = list(json.loads(PATH.read_text())[recipe_class(subject.recipe, subject.k, subject.blocks)])
    assert 0 < len(needed) < len(styles(subject.recipe))
    for mutant in those:
        of = needed if not argument(subject, mutant) else styles(subject.recipe)
        found = counts(subject, [mutant], of, seed=5, chunks=QUICK if of is needed else (128,))[mutant.name]
        noticed = sum(count.differ for count in found.values())
        assert bool(noticed) == (not argument(subject, mutant)), mutant.name


def test_what_is_changed() -> None:
    names = {(s.unit, m.parameter) for s, those in SAMPLE for m in those}
    special = {"order of k", "subnormals", "signs of zeros", "infinities", "NaN"}
    fused = {
        "a",
        "b",
        "order",
        "accumulate",
        "convert",
        "fraction_bits",
        "products",
        "floor",
        "result_bits",
        "rounding",
    }
    assert {p for unit, p in names if unit == "FusedDotAdd"} == fused | special
    assert {p for unit, p in names if unit == "IntegerSum"} == {
        "a",
        "b",
        "order",
        "accumulate",
        "saturate",
        "clamp",
        "order of k",
    }
    subject = subjects()[0]
    assert [m.change for m in mutants(subject) if m.parameter == "products"] == ["4 to 3", "4 to 5", "4 to 2", "4 to 8"]
    assert [m.change for m in mutants(subject) if m.parameter == "rounding"] == ["rn to rz"]
    assert not any(m.parameter == "result_bits" and m.change == "10 to 11" for m in mutants(subject))


@pytest.mark.parametrize(("subject", "those"), SAMPLE[::3], ids=[subject.name for subject, _ in SAMPLE[::3]])
def test_mutants_compute_what_their_records_say(subject: Subject, those: list[Mutant]) -> None:
    rng = np.random.default_rng(3)
    for mutant in those:
        if mutant.read or mutant.written or mutant.halves:
            continue
        for style in styles(subject.recipe)[::5]:
            codes = operands(subject.recipe, subject.k, 3, style, rng, subject.blocks)
            assert np.array_equal(mutant.compute(codes), by_reference(mutant.recipe, **codes)), (mutant.name, style)


@pytest.mark.parametrize("d", ["f16", "f32"])
def test_arguments_hold_for_all_pairs_of_products(d: str) -> None:
    """All sums of two products of e2m1, with zeros of both signs, the least number and infinity in C."""
    name = f"kind::f8f6f4.{d}.e2m1.e2m1.{d}"
    subject = next(s for s in subjects() if s.name.startswith("sm_120f m16n8k32") and s.name.endswith(name))
    fmt = FORMATS[d]
    assert isinstance(fmt, FloatFormat)
    a = np.stack(np.meshgrid(*[np.arange(16, dtype=np.uint8)] * 2, indexing="ij")).reshape(2, -1, 1, 1)
    c = np.array([0, fmt.sign_bit, 1, fmt.inf_code], fmt.code_dtype)
    codes = {"a": a, "b": a.reshape(2, 1, -1, 1), "c": c}
    shape = (256, 256, len(c))
    codes = {n: np.broadcast_to(x, (2, *shape) if n != "c" else shape) for n, x in codes.items()}
    expected, argued = compute(subject.recipe, **codes), 0
    for mutant in mutants(replace(subject, k=2)):
        if argument(subject, mutant) and argument(replace(subject, k=2), mutant):
            argued += 1
            assert np.array_equal(mutant.compute(codes), expected), mutant.name
    assert argued > 5


def test_what_a_unit_reads() -> None:
    read = {s.unit: read_fields(s) for s, _ in SAMPLE}
    assert {unit for unit, names in read.items() if {"order", "accumulate"} <= names} == {"FusedDotAdd"}
    assert all("unit" in names for names in read.values())


def test_styles_are_chosen() -> None:
    rates = [{"near": 0.5, "ties": 0.1, "wide": 0.0}, {"near": 0.0, "ties": 0.003, "wide": 0.0}]
    assert chosen(rates) == {"ties": 2}
    assert chosen([]) == chosen([{"near": 0.0}]) == {}
    assert chosen([{"near": 1.0, "wide": 0.0}, {"near": 0.0, "wide": 0.01}]) == {"near": 1, "wide": 1}
    assert jobs_needed(rates, {"ties": 2}) == 2 and jobs_needed(rates, {"near": 1, "ties": 1, "wide": 1}) == 6


def test_the_table_of_styles_is_that_of_the_recipes() -> None:
    table = json.loads(PATH.read_text())
    assert table.keys() == {recipe_class(s.recipe, s.k, s.blocks) for s in subjects()}
    for s in subjects():
        needed = table[recipe_class(s.recipe, s.k, s.blocks)]
        assert needed.keys() <= set(styles(s.recipe)) and all(n > 0 for n in needed.values())
        rounds = [styles_of_round(s.recipe, s.k, s.blocks, number) for number in range(ROUNDS)]
        assert all(styles_now.count(style) == n for styles_now in rounds for style, n in needed.items())
        assert Counter(x for styles_now in rounds for x in styles_now) == {
            style: ROUNDS * needed.get(style, 0) or 1 for style in styles(s.recipe)
        }
        assert styles_of_round(s.recipe, s.k, s.blocks, ROUNDS) == rounds[0]
        in_turn = styles_in_turn(s.recipe, s.k, s.blocks, np.random.default_rng(0))
        assert sorted(in_turn[: len(rounds[0])]) == sorted(rounds[0]) and len(in_turn) == sum(map(len, rounds))
    unknown = replace(subjects()[0].recipe, accumulate="after")
    assert styles_of_round(unknown, 4, 0, 1) == styles(unknown)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "recipes.json"
    command = ["--only", "Popcount", "--outputs", "20000", "--json", str(path)]
    assert tool.main(command) == 0
    out, err = capsys.readouterr()
    assert "| Popcount | order | 4 | 4 | | | |" in out and "bits 1" in out and "Missed" not in out
    assert "4 of 4 recipes" in err and len(json.loads(path.read_text())["recipes"]) == 4

    def again(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(tool, "judged", again)
    assert tool.main(command) == 0  # what the file has is not computed again


def test_a_mutant_that_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "argument", lambda _, mutant: "It is." if mutant.parameter == "operation" else "")
    command = [
        "--only",
        "m8n8k128.row.col.s32.b1.b1.s32.xor",
        "--outputs",
        "0",
        "--json",
        str(tmp_path / "recipes.json"),
    ]
    assert tool.main(command) == 1
    missed = capsys.readouterr().out.partition("Missed:")[2]
    assert "`order: ascending to halves`: not noticed" in missed
    assert "`operation: xor to and`: noticed, though argued" in missed


def test_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    judged = tool.judged

    def once(index: int, **given: int) -> dict[str, object]:
        if (tmp_path / "one").exists():
            raise KeyboardInterrupt
        (tmp_path / "one").touch()
        return judged(index, **given)

    monkeypatch.setattr(tool, "judged", once)
    path = tmp_path / "recipes.json"
    assert tool.main(["--only", "Popcount", "--json", str(path)]) == 130
    out, err = capsys.readouterr()
    assert "stopped" in err and "| | operation | 1 | | 1 | 1 | bits 1 |" in out
    assert len(json.loads(path.read_text())["recipes"]) == 1


@pytest.mark.parametrize("wrong", [["--only", "nothing"], ["--jobs", "0"], ["--choose", "--only", "Popcount"]])
def test_options(wrong: list[str]) -> None:
    with pytest.raises(SystemExit):
        tool.main(wrong)
