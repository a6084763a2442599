"""What Triton made of its kernels, for sm_80 and sm_90a, writes here what it wrote on an H200, every bit."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import pytest

from lab.programs.archive import Recording, difference, kept, read
from lab.programs.simulating import simulate
from lab.triton_programs.calls import TritonCase
from lab.triton_programs.cases import CASES
from lab.triton_programs.kept import KEPT, joined, kept_case, kept_texts, plain_text, version
from warpmma import ptx

PAGE = Path(__file__).parents[2] / "docs" / "triton_kernels.md"


@cache
def recording(target: str) -> Recording:
    return read(KEPT[target].recorded)


def check(case: TritonCase, target: str) -> None:
    """Simulate with hazards as errors; compare all bytes, and what the page says."""
    one_set = KEPT[target]
    made = kept_case(case, one_set)
    text = kept_texts(one_set)[made.program]
    outputs, _, reports = simulate(ptx.load(text, "triton.ptx"), made.make(), one_set.target)
    assert set(outputs) == set(recording(target).outputs[str(made)])
    for name, array in outputs.items():
        assert difference(array, recording(target).outputs[str(made)][name]) == "", name
    instructions = sum(sum(report.costs.instructions.values()) for report in reports)
    _, *tables = PAGE.read_text().split("| kernel | instructions |")
    assert f"| {case} | {instructions:,} |" in dict(zip(KEPT, tables, strict=True))[target]


@pytest.mark.parametrize("case", KEPT["sm_80"].cases, ids=str)
@pytest.mark.alike(2)
def test_kernel_writes_what_an_h200_wrote(case: TritonCase) -> None:
    check(case, "sm_80")


@pytest.mark.parametrize("case", KEPT["sm_90a"].cases, ids=str)
@pytest.mark.alike(5)
def test_kernel_for_hopper_writes_what_an_h200_wrote(case: TritonCase) -> None:
    check(case, "sm_90a")


@pytest.mark.parametrize("target", KEPT)
def test_recording_is_of_an_h200_and_of_these_texts(target: str) -> None:
    about, texts = recording(target).about, kept_texts(KEPT[target])
    assert "H200" in about["gpu"]
    assert about["texts"] == {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    assert set(recording(target).outputs) == {str(kept_case(case, KEPT[target])) for case in KEPT[target].cases}


def test_another_instruction_gives_other_bits() -> None:
    case = next(case for case in CASES if case.name == "softmax f32")
    made = kept_case(case)
    text = kept_texts()[made.program].replace("div.full.f32", "mul.f32")
    outputs, _, _ = simulate(ptx.load(text, "triton.ptx"), made.make())
    assert kept(outputs["y"])[0] != recording("sm_80").outputs[str(made)]["y"][0]


@pytest.mark.parametrize(("target", "triton"), [("sm_80", "3.6.0"), ("sm_90a", "3.9.0")])
def test_texts_are_of_these_cases_and_name_no_machine(target: str, triton: str) -> None:
    texts = kept_texts(KEPT[target])
    assert set(texts) == {str(case) for case in KEPT[target].cases}
    assert version(KEPT[target]) == triton
    for text in texts.values():
        assert "/" not in "".join(line for line in text.splitlines() if line.startswith("\t.file"))
        assert plain_text(text) == text


HOPPER = (
    "k16.f32.f16.f16", "k16.f16.f16.f16", "k16.f32.bf16.bf16", "k8.f32.tf32.tf32", "k32.f32.e4m3.e4m3",
    "k32.f32.e5m2.e5m2", "k32.f32.e5m2.e4m3", "k32.s32.s8.s8", "cp.async.cg.shared.global", "setmaxnreg.inc",
    "cp.async.bulk.tensor.2d.shared::cta.global", "cp.async.bulk.tensor.2d.global.shared::cta",
    "cp.reduce.async.bulk.tensor.2d", "tensormap.replace.tile", "barrier.cluster.arrive", "fence.proxy.tensormap",
)  # fmt: skip


@pytest.mark.parametrize("part", HOPPER)
def test_cases_for_hopper_use_its_instructions(part: str) -> None:
    assert any(part in text for text in kept_texts(KEPT["sm_90a"]).values())


def test_texts_are_joined() -> None:
    """Files are numbered on, and variables are declared once."""
    head = ".version 9.0\n.target sm_90a\n.address_size 64\n"
    first, second = (
        head + f'.extern .shared .b8 all[];\n.entry {name}() {{\n\t.loc\t1 2 3\n\tret;\n}}\n\t.file\t1 "{name}"\n'
        for name in "ab"
    )
    text = joined([first, second, first])
    assert text == first + second.partition("all[];\n")[2].replace("\t.loc\t1", "\t.loc\t2").replace(
        "\t.file\t1", "\t.file\t2"
    )
    assert list(ptx.load(text)) == ["a", "b"]


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
