"""A mnemonic is split into words once: code that follows reads words, or the record of its instruction."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import warpmma as wm
from warpmma.operations import MatrixMove, matrix_moves, row
from warpmma.operations.table import FORMS
from warpmma.ptx.flow.fusion_regions import BREAKS
from warpmma.ptx.text.syntax import Mnemonic, Statement, words_of

ROOM = Path(wm.__file__).parent / "ptx"


def test_words() -> None:
    words = words_of("ld.global.L2::128B.v4.u32")
    assert words == Mnemonic("ld", ("global", "L2::128B", "v4", "u32")) and str(words) == "ld.global.L2::128B.v4.u32"
    assert words.type == "u32" and words.modifiers == ("global", "L2::128B", "v4") and not words.uniform
    assert words_of("ret") == Mnemonic("ret") and words_of("ret").type == "" and words_of("bra.uni").uniform
    assert str(words_of("div.full.f32 factors")) == "div.full.f32 factors"
    assert Statement("call.uni", ()).opcode == "call"


_LETTERS = re.compile(
    r"mnemonic\)?(\.strip\(\))?\.(split|partition|rpartition|startswith|endswith|removeprefix|removesuffix|replace)\("
    r"|mnemonic\[|\bin [\w.]+\.mnemonic\b|\.match\([\w.]*mnemonic\)"
)
_READ_LETTERS = {
    "analysis/in_launches.py": "the text of an error",
    "cli/arguments/naming.py": "compares the words of mnemonics with the words that a user types",
    "cli/commands/completion_command.py": "offers the words of mnemonics to a user",
    "hardware/comparing/access_cases.py": "a row does not state its cache operators, nor which parameter it reads",
    "hardware/comparing/function_operands.py": "a row does not state that it flushes",
    "hardware/comparing/row_cases.py": "names opcodes in a report; and a row does not state that it is a function",
    "hardware/comparing/row_variants.py": "writes a row in another way, in PTX",
    "hardware/generators/lane_values.py": "a row does not state which operands are hard for it",
    "isa/grammar/instruction_forms.py": "parses: a form reads the words of a mnemonic",
    "isa/grammar/mnemonic_slots.py": "parses",
    "isa/grammar/vocabulary.py": "parses",
    "isa/grammar/nearest.py": "the text of an error",
    "isa/names/mnemonics.py": "parses",
    "isa/names/parsing.py": "parses",
    "isa/tables/fragment_record.py": "parses: finds the form of a mnemonic",
    "machine/report/watching.py": "a user gives a part of a mnemonic to watch",
    "machine/sync/timeline_recorder.py": "the words of a picture",
    "operations/arithmetic/floats.py": "parses: finds the form of a mnemonic",
    "operations/on_arrays.py": "the text of an error; and a row does not state whether its result is a number",
    "operations/table.py": "the text of an error",
    "ptx/text/bodies.py": "the text of an error: a register stands where a mnemonic is expected",
    "show/fragments/fragment_pictures.py": "the title of a picture",
}
"""Modules that read the letters of a mnemonic, and why."""


def test_no_module_reads_the_letters_of_a_mnemonic_after_parsing() -> None:
    package = Path(wm.__file__).parent
    found = {str(x.relative_to(package)) for x in package.rglob("*.py") if _LETTERS.search(x.read_text())}
    assert found == {*_READ_LETTERS}, "read the record instead; if it cannot say so, argue why in the table"


@pytest.mark.parametrize("move", matrix_moves(), ids=str)
def test_a_matrix_move_derives_what_its_mnemonic_says(move: MatrixMove) -> None:
    words = move.mnemonic.split(".")
    assert move.shape_name == words[3]
    assert move.space == ("shared" if "shared" in move.mnemonic else "generic")


def test_the_machine_finds_the_record_of_a_site() -> None:
    assert wm.machine.Site("k", 1, "ld.shared.u32").instruction is row("ld.shared.u32")
    assert wm.machine.Site("k", 0, "launch").instruction is None


def test_only_the_syntax_splits_a_mnemonic() -> None:
    letters = re.compile(
        r"mnemonic\.(split|partition|rpartition|startswith|endswith)\(|in \w+\.mnemonic\b|\.split\(\"\.\"\)"
    )
    found = [
        f"{x.name}: {line}" for x in ROOM.rglob("*.py") for line in x.read_text().splitlines() if letters.search(line)
    ]
    assert found == ['syntax.py:     opcode, *qualifiers = name.split(".")']


_BREAKS = (
    r"(div|rcp|sqrt)\.(rn|rz|rm|rp)\b.*", r"rsqrt\.approx(\.ftz)?\.f64", r"(div|rem)\.([su]64|s32|[su]16)",
    r"membar\.(cta|gl|sys)", r"fence(\.(sc|acq_rel|acquire|release))?\.(cta|cluster|gpu|sys)",
    r"brkpt|pmevent.*|call\b.*", r"(atom|red)\..*\b(acq_rel|release)\.(cluster|gpu|sys)\b.*",
    r"(shfl|vote|match|redux)\..*\bsync\b.*|bar\.warp\.sync",
)  # fmt: skip


def test_breaks_are_the_instructions_that_were_measured() -> None:
    measured = re.compile("|".join(_BREAKS))
    mnemonics = {"call.uni", *(x for form in FORMS for x in form.mnemonics)}
    assert len(mnemonics) > 5000
    different = [x for x in mnemonics if bool(measured.fullmatch(x)) != any(one.has(words_of(x)) for one in BREAKS)]
    assert different == []


@pytest.mark.parametrize("mnemonic", ["mov.v2.u32", "mov.u32.v2"])
def test_a_vector_is_copied_whatever_the_order_of_the_words(mnemonic: str) -> None:
    text = f""".version 8.0 .target sm_80 .address_size 64 .entry k(.param .u64 p) {{
        .reg .b32 %r<9>; .reg .b64 %rd<3>; ld.param.u64 %rd1, [p]; mov.u32 %r1, 5; mov.u32 %r2, 7;
        {mnemonic} {{%r1, %r2}}, {{%r2, %r1}}; st.global.v2.u32 [%rd1], {{%r1, %r2}}; ret; }}"""
    device = wm.Device("sm_80")
    x = device.zeros(2, "uint32")
    wm.ptx.load(text)["k"].launch(device, 1, 1, [x])
    assert device.read(x.address, 8) == bytes((7, 0, 0, 0, 5, 0, 0, 0))
