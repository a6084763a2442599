"""`where`, `what`, `layout` and `show` of `ldmatrix`, `stmatrix`, `movmatrix` and `wmma`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from warpmma.cli import main
from warpmma.cli.arguments.naming import holder_of
from warpmma.cli.commands.completion_command import candidates
from warpmma.errors import MnemonicError
from warpmma.isa import fragment_instructions

Capture = pytest.CaptureFixture[str]
Run = Callable[..., tuple[str, str]]
LOAD = "ldmatrix.sync.aligned.m8n8.x4.trans.b16"


@pytest.fixture
def run(capsys: Capture) -> Run:
    def ran(*arguments: str, status: int = 0) -> tuple[str, str]:
        assert main(arguments) == status
        said = capsys.readouterr()
        return said.out.rstrip("\n"), said.err.rstrip("\n")

    return ran


@pytest.mark.parametrize(
    ("words", "mnemonic"),
    [
        ("ldmatrix x4", "ldmatrix.sync.aligned.m8n8.x4.b16"),
        ("ldmatrix.x4.trans", LOAD),
        ("ldmatrix shared x2", "ldmatrix.sync.aligned.m8n8.x2.shared.b16"),
        ("ldmatrix m16n16 x1 b4x16_p64", "ldmatrix.sync.aligned.m16n16.x1.trans.b8x16.b4x16_p64"),
        ("stmatrix x1", "stmatrix.sync.aligned.m8n8.x1.b16"),
        ("movmatrix", "movmatrix.sync.aligned.m8n8.trans.b16"),
        ("wmma.load.b m16n16k16 f16", "wmma.load.b.sync.aligned.col.m16n16k16.f16"),
        ("wmma mma m16n16k16 f16", "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"),
        ("wmma mma m8n8k128 and", "wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32"),
        ("wmma mma int8 m8n32k16", "wmma.mma.sync.aligned.row.col.m8n32k16.s32.s8.s8.s32"),
        ("m16n8k16 f16 f32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
    ],
)
def test_words_name_instructions(words: str, mnemonic: str) -> None:
    assert str(holder_of(words)) == mnemonic


def test_every_mnemonic_names_itself() -> None:
    for i in fragment_instructions():
        assert holder_of(str(i)) == i


@pytest.mark.parametrize(
    ("words", "operand", "text"),
    [
        ("ldmatrix", "D", "ldmatrix: 3 instructions are left; say the number of matrices: x1, x2, x4"),
        ("wmma", "D", "wmma: 10 instructions are left; say the shape: m16n16k16, m8n32k16, m32n8k16, m16n16k8, m8n8k4"),
        ("ldmatrix x3", "D", "ldmatrix x3: no ldmatrix has 'x3'; did you mean 'x"),
        ("wmma s4 m16n16k16", "A", "wmma s4 m16n16k16: no wmma has 'm16n16k16'"),
        ("wmma m16n16k16 f16", "", "wmma m16n16k16 f16: 3 instructions are left; say the instruction: wmma.load.a"),
        ("wmma mma b1", "", "wmma mma b1: 2 instructions are left; say the instruction: wmma.mma.xor.popc"),
        ("ldmatrix x4", "B", "ldmatrix x4: ldmatrix has no operand B; expected D, address"),
        ("ldmatrix.sync.aligned.m8n8.x5.b16", "D",
         "unknown instruction ldmatrix.sync.aligned.m8n8.x5.b16; the nearest is ldmatrix.sync.aligned.m8n8.x1.b16"),
    ],
)  # fmt: skip
def test_words_that_name_none_or_several(words: str, operand: str, text: str) -> None:
    with pytest.raises(MnemonicError) as caught:
        holder_of(words, operand)
    assert str(caught.value).startswith(text)


def test_where_of_matrices_says_whose_address_a_row_is_at(run: Run) -> None:
    out, said = run("where", "ldmatrix", "x4", "trans", "D", "3", "5", "--matrix", "2")
    first, known = out.splitlines()
    assert first == (
        "d5 of lane 21, bits 16-31 of register 2, for D[3, 5] of matrix 2, whose row is at the address of lane 19"
    )
    assert known.startswith("published: PTX ISA 9.1, ldmatrix; measured on an H200, ")
    assert said == f"warpmma: ldmatrix x4 trans is taken as {LOAD}: without state space"
    assert run("where", LOAD, "address", "5", "0", "--matrix", "1")[0].splitlines()[0] == (
        "p0 of lane 13, for row 5 of matrix 1"
    )
    found = json.loads(run("where", LOAD, "D", "3", "5", "--matrix", "2", "--json")[0])
    assert (found["lane"], found["matrix"], found["address_lane"], found["known"]) == (21, 2, 19, known)


def test_where_of_wmma_lists_copies_and_says_how_it_is_known(run: Run) -> None:
    words = ("wmma", "m16n16k16", "f16", "A", "3", "5")
    out, said = run("where", *words)
    assert out.splitlines() == [
        "a1 of lane 14, bits 16-31 of register 0, for A[3, 5], copy 0",
        "a9 of lane 14, bits 16-31 of register 4, for A[3, 5], copy 1",
        "opaque in PTX; measured on an H200, 6,093,930,496 outputs of all 594 forms of sm_90a, 0 differences",
    ]
    assert said.endswith("warpmma: the fragment is that of sm_75 to sm_121a; --target for that of sm_70, sm_72")
    out, said = run("where", *words, "--target", "sm_70", "--matrix", "1")
    assert out.splitlines() == [
        "a5 of lane 11, bits 16-31 of register 2, for A[3, 5], copy 1",
        "opaque in PTX; read from machine code of ptxas for sm_70; not measured on such a GPU",
    ]
    assert "--target" not in said
    both = json.loads(run("where", *words, "--json")[0])
    assert (both["register"], both["copies"][0]["register"]) == (0, 4)
    assert "A has 16 rows; row is 16" in run("where", *words[:4], "16", "0", status=2)[1]


def test_what_of_matrices(run: Run) -> None:
    out = run("what", LOAD, "D", "--lane", "9", "--register", "1", "--word", "0x12345678")[0].splitlines()
    assert out[:3] == [
        "register  bits   name  holds                code    meaning",
        "1         0-15   d2    D[2, 2] of matrix 1  0x5678  0x5678",
        "1         16-31  d3    D[3, 2] of matrix 1  0x1234  0x1234",
    ]
    lanes = run("what", "ldmatrix", "x1", "address", "--lane", "9")[0]
    assert lanes == "the address of lane 9 does not count; those of lanes 0 to 7 do"
    words = ("wmma.load.a", "m16n16k16", "f16", "row", "A", "--lane", "3", "--register", "2", "--target", "sm_75")
    assert run("what", *words, "--word", "0x3c00bc00")[0].splitlines()[1:3] == [
        "2         0-15   a4    A[0, 14], copy 0  0xbc00  -1",
        "2         16-31  a5    A[0, 15], copy 0  0x3c00  1",
    ]
    found = json.loads(run("what", *words, "--json")[0])
    assert [cell["matrix"] for cell in found["cells"]] == [0, 0] and found["known"].startswith("opaque in PTX")


def test_layout_and_show(run: Run) -> None:
    text = run("layout", LOAD, "D")[0]
    assert text.startswith(f"D of {LOAD}\nlane: elements of its fragment\n\nmatrix 0:\n")
    assert text.splitlines()[-1].startswith("published: PTX ISA 9.1, ldmatrix; measured")
    table = json.loads(run("layout", "wmma", "m16n16k16", "f16", "A", "--format", "json")[0])
    assert table["matrices"] == ["copy 0", "copy 1"] and len(table["cells"]) == 512
    assert (table["target"], table["known"][:13]) == ("sm_90", "opaque in PTX")
    page = run("show", "wmma.load.a", "m16n16k16", "f16", "row")[0]
    assert "16 x 16, 2 copies" in page and "sm_70 to sm_72" in page and "opaque in PTX" in page
    assert "warpmma where wmma.load.a.sync.aligned.row.m16n16k16.f16 A 0 0" in page
    facts = json.loads(run("show", LOAD, "--json")[0])
    assert [x["counted"] for x in facts["operands"]["address"]["layouts"]] == [4]


def test_completion_offers_qualifiers_and_operands() -> None:
    def offered(*words: str) -> list[str]:
        return [word for word, _ in candidates(words).words]

    assert offered("where", "ldm") == ["ldmatrix"]
    assert offered("where", "ldmatrix", "x") == ["x1", "x2", "x4"]
    assert offered("layout", "ldmatrix", "x4", "b16", "t") == ["trans"]
    assert offered("what", "stmatrix", "x4", "")[-2:] == ["A", "address"]
    assert offered("where", "movmatrix", "") == ["A", "D"]
    assert offered("where", "m16n8k16", "a") == ["A"]


def test_no_look_up_needs_numpy() -> None:
    for words in (("where", "wmma", "m16n16k16", "f16", "A", "3", "5"), ("what", LOAD, "D", "--lane", "3")):
        code = f"import sys; sys.modules['numpy'] = None\nfrom warpmma.cli import main\nraise SystemExit(main({words}))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
