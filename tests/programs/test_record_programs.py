"""Programs of CUDA C++ as nvcc compiles them write what an H200 wrote, every bit, and have no hazard."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from lab.programs.archive import Recording, difference, read
from lab.programs.cases import CASES
from lab.programs.launches import Case
from lab.programs.simulating import simulate
from lab.programs.texts import read_text
from warpmma import ptx

RACES = {"histogram swapped": "histogram.cu:42"}
"""Kernels with a race in their source, and its line: a word is read as any other, and then compared and swapped."""


@cache
def recording() -> Recording:
    return read()


@cache
def module(program: str) -> Any:
    return ptx.load(read_text(f"{program}.ptx"))


@pytest.mark.filterwarnings("ignore::warpmma.machine.HazardWarning")
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.alike(3)
def test_program_writes_what_an_h200_wrote(case: Case) -> None:
    run = case.make()
    race = next((place for name, place in RACES.items() if str(case).startswith(name)), "")
    outputs, lines, reports = simulate(module(case.program), run, hazards={"race": "warn"} if race else "error")
    for name, array in outputs.items():
        assert difference(array, recording().outputs[str(case)][name]) == "", name
    if case.prints:
        assert tuple(lines) == recording().printed[str(case)]
    hazards = [hazard for report in reports for hazard in report.hazards]
    assert all(race in (hazard.site.place, hazard.other and hazard.other.place) for hazard in hazards)
    assert bool(hazards) == bool(race)


def test_recording_is_of_an_h200_and_of_these_texts() -> None:
    about = recording().about
    assert "H200" in about["gpu"]
    assert about["driver"]
    assert {str(case) for case in CASES} <= set(recording().outputs)
