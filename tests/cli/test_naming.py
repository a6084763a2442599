"""Words that name an instruction: what they leave, what is chosen and said, and what would tell the rest apart."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from warpmma.cli import main
from warpmma.cli.arguments.naming import instruction_of
from warpmma.cli.output.streams import write
from warpmma.errors import MnemonicError
from warpmma.isa import instructions, named, warpgroup_instructions

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


@pytest.mark.parametrize(
    ("words", "mnemonic"),
    [
        (F16, F16),
        (F16.replace(".m16n8k16.row.col", ".row.col.m16n8k16"), F16),
        ("m16n8k16 f16", F16),
        ("M16N8K16 FP16", F16),
        ("16x8x16 half float", F16),
        ("m16n8k16.f16", F16),
        ("mma.m16n8k16.f16", F16),
        ("HMMA.16816.F32", F16),
        ("m16n8k16 f16 f16", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
        ("m16n8k16 d=f16 a=f16", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
        ("k16 f32 e4m3 e5m2", "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32"),
        ("m16n8k32 e4m3 e5m2", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"),
        ("m16n8k32 torch.float8_e4m3fn f16", "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16"),
        ("m16n8k32 int8", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"),
        ("m16n8k32 s8 u8 satfinite", "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32"),
        ("m8n8k4 f64 rz", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rz"),
        ("m8n8k4 f16 row row", "mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f32"),
        ("m16n8k128 and", "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc"),
        ("sp e4m3", "mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32"),
        ("sp::ordered_metadata m16n8k64 e4m3",
         "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32"),
        ("mxf4", "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"),
        ("mxf4 2X", "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"),
        ("nvfp4", "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"),
        ("wgmma n128 bf16", "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"),
        ("m64n8k32 e4m3 f16", "wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e4m3"),
    ],
)  # fmt: skip
def test_words_leave_one(words: str, mnemonic: str) -> None:
    assert str(named(words).instruction) == mnemonic == str(named(words.split()).instruction)


def test_every_mnemonic_names_itself_in_any_order() -> None:
    rng = random.Random(0)
    for i in (*instructions(), *warpgroup_instructions()):
        found = named(str(i))
        assert (found.instruction, found.note) == (i, "")
    for i in rng.sample(instructions(), 40):
        words = [f"d={i.d_type}", f"a={i.a_type}", f"b={i.b_type}", f"c={i.c_type}", i.shape, i.a_layout, i.b_layout]
        words += [i.sparsity or "dense", *(x for x in (i.kind, i.stype, i.rounding, i.bit_op) if x)]
        words += ["satfinite"] * i.satfinite + [f"{i.scales_per_row}X"] * i.block_scale
        layouts = [words.pop(5), words.pop(5)]  # whose order counts
        rng.shuffle(words)
        assert named([*words, *layouts]).instruction.canonical == i.canonical


def test_what_was_chosen_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert str(instruction_of(["m16n8k16", "f16"])) == F16
    write("result")
    assert capsys.readouterr().err == f"warpmma: m16n8k16 f16 is taken as {F16}: dense, accumulators of 32 bits\n"
    instruction_of("m16n8k16 dense f16 f32")
    write("result")
    assert capsys.readouterr() == ("result\n", "")


def test_nothing_is_said_of_a_choice_beside_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["execute", "m16n8k16", "f16", "none.npy", "none.npy", "--target", "sm_90"]) == 2
    assert capsys.readouterr() == ("", "warpmma: A: none.npy: No such file or directory\n")
    assert main(["list", "dense", "b1"]) == 0
    assert "taken as" not in capsys.readouterr().err


def test_the_target_is_heard() -> None:
    blackwell = named("m16n8k32 e2m1 f32", "sm_120a")
    assert blackwell.instruction.kind == "f8f6f4"
    assert named("m16n8k32 f8f6f4 e4m3", "sm_120a").instruction.kind == "f8f6f4"
    assert "on sm_90" in named("m16n8k32 e4m3", "sm_90").note and "sm_90" in named("m16n8k32 e4m3").instruction.targets


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("f16", "3 instructions are left; say the shape: m8n8k4, m16n8k8, m16n8k16"),
        ("m16n8k128 b1", "2 instructions are left; say the operation of bits: xor, and"),
        ("m16n8k64 e2m1", "say the kind: mxf4, mxf4nvf4"),
        ("m16n8k17 f16", "no such instruction is m16n8k17; did you mean 'm16n8k16'?"),
        ("n24 k2 f64", "no such instruction is n24 k2; there are m8n8k4, m16n8k4, m16n8k8, m16n8k16"),
        ("e4m3 f64", "no such instruction has the types e4m3 f64; did you mean 'f32 e4m3 e4m3'?"),
        ("m16n8k16 f15", "'f15' is nothing that an instruction is; did you mean 'f16'?"),
        ("mxf4 4X", "no instruction is all of this; without 4x there are some"),
        ("m16n8k32 fp8", "fp8 is e4m3 or e5m2; say which"),
        ("m16n8k16 k=x", "k=x cannot be read; expected such as k=16"),
        ("m16n8k16 a=q", "a=q cannot be read; expected such as a=f16"),
        ("__syncthreads", "this is CUDA C++; in PTX it is bar.sync"),
        ("add.f32", "add is PTX, for kernels: warpmma.kernel"),
        (F16.replace("k16", "k17"), "unknown qualifier '.m16n8k17', did you mean '.m16n8k16'"),
        ("", "no words; expected a mnemonic"),
        ("f16 " * 200, "no mnemonic has so many"),
        ("f16 f16 f16 f16 f16", "no such instruction has the types"),
    ],
)
def test_words_that_leave_none_or_several(words: str, message: str) -> None:
    with pytest.raises(MnemonicError) as raised:
        named(words)
    assert message in str(raised.value) and "\n" not in str(raised.value) and len(str(raised.value)) < 400


def test_naming_needs_no_numpy() -> None:
    code = "import sys; sys.modules['numpy'] = None\nfrom warpmma.isa import named; print(named('m16n8k16 f16'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not done.returncode, done.stderr
