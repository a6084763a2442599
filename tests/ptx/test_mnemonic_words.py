"""A mnemonic is split into words once: code that follows reads words, or the record of its instruction."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import warpmma as wm
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
