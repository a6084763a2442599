"""Random programs: the simulator writes what an H200 wrote, register for register; their forms are all simulated."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from oracles import needs

from lab.programs.forms import Form, forms
from lab.programs.random_archive import EVERY, RANDOM, RandomRecording, digests, find, read_random
from lab.programs.random_programs import COUNT, launch, module, target_of, texts_hash
from lab.programs.simulating import simulate
from warpmma import ptx

TARGETS = ("sm_80", "sm_90")


@cache
def recording() -> RandomRecording:
    return read_random()


recorded = pytest.mark.skipif(not RANDOM.exists(), reason="python -m lab.compare.programs --record makes it")


@recorded
@pytest.mark.parametrize("number", range(0, COUNT, EVERY))
@pytest.mark.alike(4)
def test_program_writes_what_an_h200_wrote(number: int) -> None:
    outputs, _, reports = simulate(ptx.load(module([number])), launch(number))
    if number in recording().whole:  # ptxas breaks off at a few
        assert not find(recording(), number, digests(outputs["output"]))
    assert not any(report.hazards for report in reports)


@recorded
def test_recording_is_of_an_h200_and_of_these_programs() -> None:
    assert "H200" in recording().about["gpu"]
    assert recording().about["texts"] == texts_hash()
    assert len(recording().whole) >= 2000


@pytest.mark.parametrize("number", range(4, COUNT, 97))
@pytest.mark.alike(2)
def test_program_has_no_hazard_and_engines_agree(number: int) -> None:
    module_ = ptx.load(module([number]))
    found = [simulate(module_, launch(number), engine=engine) for engine in ("auto", "numpy")]
    assert np.array_equal(found[0][0]["output"], found[1][0]["output"])
    assert not any(report.hazards for _, _, reports in found for report in reports)


def _line(form: Form) -> str:
    counts = dict.fromkeys("hrdp", 0)

    def operand(letter: str) -> str:
        if letter == "n":
            return "90"
        kind = {"!": "p", "/": form.operands[0]}.get(letter, letter if letter in counts else "r")
        counts[kind] += 1
        return f"{'!' * (letter == '!')}%{kind}{counts[kind]}"

    results = ("|" if form.paired else ", ").join([operand(letter) for letter in form.results])
    return f"{form.mnemonic} {results}, {', '.join([operand(letter) for letter in form.operands])};"


def text_of_forms(target: str) -> str:
    lines = [_line(form) for family in forms(target) for form in family]
    registers = ".reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<9>;"
    head = f".version 9.0\n.target {target}\n.address_size 64\n.visible .entry k()\n{{\n{registers}\n"
    return head + "\n".join(lines) + "\nret;\n}\n"


@pytest.mark.parametrize("target", TARGETS)
def test_every_form_is_simulated(target: str) -> None:
    needed = ptx.load(text_of_forms(target)).check()
    assert not [str(problem) for entry in needed.entries for problem in entry.problems]


@needs("ptxas")
@pytest.mark.parametrize("target", TARGETS)
def test_ptxas_takes_forms_and_programs(target: str, tmp_path: Path) -> None:
    programs = [number for number in range(40) if target_of(number) == target]
    for text in (text_of_forms(target), module(programs)):
        (tmp_path / "k.ptx").write_text(text)
        command = ["ptxas", f"-arch={target}", "-O0", "-o", str(tmp_path / "k.cubin"), str(tmp_path / "k.ptx")]
        assert subprocess.run(command, capture_output=True, check=False, text=True).stderr == ""
