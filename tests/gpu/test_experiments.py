"""Experiments: their candidates differ on the CPU engine, and a simulated GPU gets the answer that it computes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compared_gpu import ComparedGpu

from warpmma.arithmetic import FusedDotAdd, recipe
from warpmma.cli import main
from warpmma.cli.commands import gpu_commands
from warpmma.hardware import EXPERIMENTS, Experiment, Room, answer, experiments_of, matrix_groups, separating
from warpmma.hardware.comparing import candidates as tool
from warpmma.isa import TARGETS


def cases(x: Experiment) -> Iterator[tuple[Any, Any, str]]:
    """Give each group of instructions with each set of candidates once, and a target that has it."""
    seen = set()
    for target in x.targets:
        for record in x.asked(target):  # type: ignore[operator]
            candidates = tuple(x.candidates(record, target))  # type: ignore[misc]
            (of,) = matrix_groups(target, [record])
            key = (candidates, of.k, of.width, of.scales)
            if key not in seen:
                seen.add(key)
                yield of, candidates, f"{record} on {target}"


@pytest.mark.parametrize("name", [name for name, x in EXPERIMENTS.items() if x.candidates])
def test_candidates_give_different_outputs(name: str) -> None:
    found = list(cases(EXPERIMENTS[name]))
    assert found
    for of, candidates, text in found:
        assert len(candidates) >= 2 and len({x.answer for x in candidates}) == len(candidates), text
        pieces, left = separating(of, candidates)
        assert pieces and not left, (text, left)


def test_the_first_candidate_is_the_model() -> None:
    for x in EXPERIMENTS.values():
        for of, candidates, text in cases(x) if x.candidates else ():
            first = candidates[0]
            assert (first.recipe, first.cut, first.order, first.zero) == (of.recipe, 0, (), "plus"), text


def test_every_target_that_was_not_measured_has_experiments() -> None:
    for target in TARGETS.values():
        names = {x.name for x in experiments_of(target.name)}
        assert names if target.generation != "Hopper" else not names
    assert {"turing-quad-depth", "function-tables", "zeros"} <= {x.name for x in experiments_of("sm_75")}
    assert {"mxf4-zeros", "mxf4-groups", "sparse-groups"} <= {x.name for x in experiments_of("sm_120a")}


def test_questions_are_sentences() -> None:
    for x in EXPERIMENTS.values():
        assert x.question.endswith("?") and len(x.question) < 110 and set(x.targets) <= TARGETS.keys()
        assert (x.candidates is None) == isinstance(x.asked, str)


def on_turing() -> Any:
    return Room(ComparedGpu("sm_75", (7, 5)), "sm_75")


def test_a_gpu_that_computes_as_the_model_does() -> None:
    with on_turing() as room:
        for found in list(answer(room, EXPERIMENTS["turing-quad-depth"], "sm_75"))[:2]:
            assert found.equal == ("F = 23",) and found.differences["F = 23"] == 0 < found.differences["F = 24"]


def test_a_gpu_that_computes_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated GPU keeps F = 23: to a model with F = 24 it is the second answer, to others none."""

    def deeper(record: Any, target: str) -> Any:
        how = recipe(record, target)
        assert isinstance(how.unit, FusedDotAdd)
        return replace(how, unit=replace(how.unit, fraction_bits=how.unit.fraction_bits + 1))

    monkeypatch.setattr(tool, "recipe", deeper)
    with on_turing() as room:
        found = next(answer(room, EXPERIMENTS["turing-quad-depth"], "sm_75"))
        assert found.equal == ("F = 23",) and next(iter(found.differences)) == "F = 24"
        others = [x for x in tool.depths_of(*_first("turing-quad-depth", "sm_75")) if x.answer != "F = 23"]
        changed = replace(EXPERIMENTS["turing-quad-depth"], candidates=lambda *_: others)
        assert next(answer(room, changed, "sm_75")).equal == ()


def _first(name: str, target: str) -> tuple[Any, str]:
    return EXPERIMENTS[name].asked(target)[0], target  # type: ignore[operator]


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(gpu_commands, "why_no_gpu", lambda: "engine='cuda' needs an NVIDIA GPU: the driver has none")
    assert main(["compare", "--experiments"]) == 0
    said = capsys.readouterr()
    assert all(f"{name} (sm_" in said.out and x.question in said.out for name, x in EXPERIMENTS.items())
    assert said.err == "warpmma: an experiment needs an NVIDIA GPU: the driver has none\n"
    assert main(["compare", "--experiments", "nothing"]) == 2
    assert "there is no experiment like nothing" in capsys.readouterr().err
    simulated, path = ComparedGpu("sm_75", (7, 5)), tmp_path / "r.json"
    monkeypatch.setattr(gpu_commands, "why_no_gpu", lambda: "")
    monkeypatch.setattr(gpu_commands, "first_gpu", lambda: simulated)
    words = ["--report", str(path), "--processes", "1"]
    assert main(["compare", "--experiments", "quad-*", *words]) == 0
    out = capsys.readouterr().out
    assert "quad-mixed-c: does a C of f16" in out and "C enters with the exponents of f16 (4 of 4 instructions)" in out
    found = json.loads(path.read_text())["experiments"]
    assert found["quad-half-results"]["as the model"] and found.keys() == {"quad-half-results", "quad-mixed-c"}
    assert main(["compare", "--experiments", "function-tables", "--outputs", "10", *words]) == 0
    assert " outputs of 24, 0 differences\n" in capsys.readouterr().out
