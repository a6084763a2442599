"""What Triton 3.6 made of its kernels writes, on the simulator, what it wrote on an H200, every bit."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import pytest

from lab.programs.archive import Recording, difference, kept, read
from lab.programs.simulating import simulate
from lab.record.triton import TRITON
from lab.triton_programs.calls import TritonCase
from lab.triton_programs.cases import CASES
from lab.triton_programs.kept import kept_case, kept_texts, plain_text, version
from warpmma import ptx

PAGE = Path(__file__).parents[2] / "docs" / "triton_kernels.md"


@cache
def recording() -> Recording:
    return read(TRITON)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.alike(2)
def test_kernel_writes_what_an_h200_wrote(case: TritonCase) -> None:
    made = kept_case(case)
    outputs, _, reports = simulate(ptx.load(kept_texts()[made.program], "triton.ptx"), made.make())
    for name, array in outputs.items():
        assert difference(array, recording().outputs[str(made)][name]) == "", name
    instructions = sum(sum(report.costs.instructions.values()) for report in reports)
    assert f"| {case} | {instructions:,} |" in PAGE.read_text()


def test_recording_is_of_an_h200_and_of_these_texts() -> None:
    about = recording().about
    assert "H200" in about["gpu"]
    assert about["texts"] == {name: hashlib.sha256(text.encode()).hexdigest() for name, text in kept_texts().items()}


def test_another_instruction_gives_other_bits() -> None:
    case = next(case for case in CASES if case.name == "softmax f32")
    made = kept_case(case)
    text = kept_texts()[made.program].replace("div.full.f32", "mul.f32")
    outputs, _, _ = simulate(ptx.load(text, "triton.ptx"), made.make())
    assert kept(outputs["y"])[0] != recording().outputs[str(made)]["y"][0]


def test_texts_are_of_these_cases_and_name_no_machine() -> None:
    texts = kept_texts()
    assert set(texts) == {str(case) for case in CASES}
    assert version() == "3.6.0"
    for text in texts.values():
        assert "/" not in "".join(line for line in text.splitlines() if line.startswith("\t.file"))
        assert plain_text(text) == text


def test_what_names_sections_that_are_left_out_is_left_out() -> None:
    text = """\t.loc\t1 36 12, function_name $L__info_string0, inlined_at 1 48 23 // kernels.py:36:12
\t.file\t1 "/home/me/kernels.py"
\t.section\t.debug_str
\t{
$L__info_string0:
.b8 0
\t}
\tret;
"""
    assert plain_text(text) == '\t.loc\t1 36 12 // kernels.py:36:12\n\t.file\t1 "kernels.py"\n\tret;\n'
