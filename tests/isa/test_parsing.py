"""Words in Python: what the command line takes, `parse` and all that takes a mnemonic takes too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from messages import exactly

import warpmma as wm
from warpmma.errors import MnemonicError
from warpmma.isa import (
    Instruction,
    MatrixInstruction,
    instructions,
    named,
    parse_any,
    plainest,
    warpgroup_instructions,
    words_of,
)

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
WORDS = "m16n8k16 f32 f16"
A, B = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16)


@pytest.mark.parametrize(
    ("words", "mnemonic"),
    [
        (WORDS, F16),
        ("f16, f32; 16x8x16", F16),
        ("M16N8K16 float32 half", F16),
        ("mma m16n8k16 f16 f16", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
        ("m16n8k32 s8", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"),
        ("m8n8k4 f64", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
        ("sp m16n8k32 f32 f16", "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"),
        ("m16n8k64 nvfp4", "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
                           ".f32.e2m1.e2m1.f32.ue4m3"),
    ],
)  # fmt: skip
def test_words_name_an_instruction(words: str, mnemonic: str) -> None:
    assert str(wm.parse(words)) == str(parse_any(words)) == mnemonic
    assert wm.evidence(words, target=wm.parse(words).targets[-1]) == wm.evidence(
        mnemonic, target=wm.parse(words).targets[-1]
    )


def test_short_words_of_every_instruction_name_it() -> None:
    every: list[MatrixInstruction] = [*instructions(), *warpgroup_instructions()[::17]]
    for i in every:
        short = words_of(i)
        found = named(short, for_bits=True).instruction
        assert found.canonical == i.canonical and parse_any(short) == found
        assert not isinstance(i, Instruction) or wm.parse(short) == found


BITS: list[Callable[[str], Any]] = [
    wm.parse,
    parse_any,
    lambda words: wm.mma(words, A, B, target="sm_90"),
    lambda words: wm.load(words, "A", A),
    lambda words: wm.matmul(A, B, instruction=words, target="sm_90"),
    lambda words: wm.choose(A, B, instruction=words, target="sm_90"),
    lambda words: wm.error(A, B, instruction=words, target="sm_90"),
    lambda words: wm.evidence(words, target="sm_90"),
]


@pytest.mark.parametrize("call", BITS, ids=range(len(BITS)))
def test_where_bits_come_out_words_must_say_the_type_of_d(call: Callable[[str], Any]) -> None:
    with pytest.raises(
        MnemonicError, match=exactly("m16n8k16 f16: 2 instructions are left; say the type of D: f16, f32")
    ):
        call("m16n8k16 f16")
    call(WORDS)


def test_results_are_those_of_the_mnemonic() -> None:
    assert (wm.mma(WORDS, A, B, target="sm_90") == wm.mma(F16, A, B, target="sm_90")).all()
    by_words, by_name = (wm.matmul(A, B, instruction=i, target="sm_90") for i in (WORDS, F16))
    assert (by_words == by_name).all()


def test_where_the_answer_names_it_or_is_a_place_the_plainest_is_taken() -> None:
    assert str(plainest("m16n8k16 f16")) == F16
    assert wm.where("m16n8k16 f16", "A", 3, 5) == wm.where(F16, "A", 3, 5)
    assert wm.what("m16n8k16 f16", "D", lane=5) == wm.what(F16, "D", lane=5)
    assert wm.explain("m16n8k16 f16", A, B, target="sm_90") == wm.explain(F16, A, B, target="sm_90")
    assert (
        wm.explain("m16n8k4 tf32", np.ones((16, 4), "f4"), np.ones((4, 8), "f4"), target="sm_80").result == 0x40800000
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("f32 f16", "f32 f16: ~ instructions are left; say the shape: ~"),
        ("m16n8k17 f32 f16", "m16n8k17 f32 f16: no such instruction is m16n8k17; did you mean 'm16n8k16'?"),
        ("m16n8k16 f15", "m16n8k16 f15: 'f15' ~; did you mean 'f16'?~"),
        ("wgmma m64n8k16 f16", "wgmma m64n8k16 f16: 2 instructions are left; say the type of D: f16, f32"),
        ("ldmatrix x4", "ldmatrix x4: ~"),
        ("foo bar", "foo bar: expected a mnemonic alone, without operands"),
        (f"{F16} a, b, c", f"{F16} a, b, c: expected a mnemonic alone, without operands"),
        ("m16n8k16", "m16n8k16: starts with 'm16n8k16'; expected 'mma'"),
        ("mma.m16n8k16.f32.f16", "mma.m16n8k16.f32.f16: ~"),
    ],
)  # fmt: skip
def test_errors(words: str, message: str) -> None:
    """A text of one word is a mnemonic, as in PTX: words between dots are not taken."""
    for read in (wm.parse, parse_any, plainest):
        if read is plainest and words.startswith("wgmma"):
            continue
        with pytest.raises(MnemonicError, match=exactly(message)):
            read(words)


def test_words_that_name_a_wgmma_are_not_an_mma() -> None:
    with pytest.raises(wm.WarpmmaError, match="wgmma"):
        wm.parse("wgmma m64n8k32 f32 e4m3")
    assert parse_any("wgmma m64n8k32 f32 e4m3").m == 64
