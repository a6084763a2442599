"""Forms of `wgmma` that ptxas takes: the recording against the table, and ptxas itself against both."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from oracles import needs

from lab.record import wgmma_forms
from warpmma.errors import MnemonicError
from warpmma.isa import WarpgroupInstruction, parse_warpgroup, warpgroup_instructions

RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "wgmma_ptxas.json").read_text())
ALL = warpgroup_instructions()
HEAD = "wgmma.mma_async.sync.aligned"
F16, S8, B1 = f"{HEAD}.m64n8k16.f32.f16.f16", f"{HEAD}.m64n8k32.s32.s8.s8", f"{HEAD}.m64n8k256.s32.b1.b1.and.popc"


def _types(i: WarpgroupInstruction) -> str:
    found = "satfinite." * i.satfinite + f"{i.d_type}.{i.a_type}.{i.b_type}"
    return f"{'sp ' * i.sparse}{found}{'.and.popc' * (i.bit_op is not None)}"


def test_the_table_has_every_form_that_ptxas_takes() -> None:
    """Types, n, a sparse A, A in memory and in registers, and how many immediates follow scale-d."""
    assert RECORDED["ptxas"] == "13.0.88"
    found: dict[str, list[int]] = {}
    for i in ALL:
        for where, signature in zip(("memory", "registers"), i.signatures, strict=True):
            names = [x.names[0] for x in signature]
            immediates = len(names) - 1 - names.index("scale-d")
            found.setdefault(f"{_types(i)} {where} {immediates}", []).append(i.n)
    assert found == RECORDED["legal n"]
    assert sum(map(len, found.values())) == 2 * len(ALL) == 2 * 1074


def test_what_ptxas_refuses_has_no_record() -> None:
    """Statements whose mnemonic alone is wrong; in the others an operand is."""
    refused = [text.split(" ")[0] for text, good in RECORDED["single"].items() if not good]
    taken = {text.split(" ")[0] for text, good in RECORDED["single"].items() if good}
    wrong = [name for name in refused if name not in taken]
    assert len(wrong) == 5
    for name in wrong:
        with pytest.raises(MnemonicError, match=r"Nearest legal: wgmma\.mma_async"):
            parse_warpgroup(name)
    assert {parse_warpgroup(name) for name in taken} < set(ALL)


@pytest.mark.parametrize(
    ("types", "names"),
    [
        ("m64n8k32.f32.f16.f16", "a0 a1 a2 a3 b-desc metadata selector scale-d imm-scale-a imm-scale-b imm-trans-b"),
        ("m64n8k16.f32.tf32.tf32", "a0 a1 a2 a3 b-desc metadata selector scale-d imm-scale-a imm-scale-b"),
        ("m64n8k64.s32.u8.s8", "a0 a1 a2 a3 b-desc metadata selector scale-d"),
    ],
)
def test_operands_of_a_sparse_instruction(types: str, names: str) -> None:
    i = parse_warpgroup(f"wgmma.mma_async.sp.sync.aligned.{types}")
    d, *operands = i.signatures[1]
    assert d.updated and d.names == ("d0", "d1", "d2", "d3")
    assert [name for x in operands for name in x.names] == names.split()
    by_name = {x.names[0]: x for x in operands}
    assert tuple(by_name["selector"].values) == ((0,) if "8" in types.split(".")[2] else (0, 1))
    assert not by_name["metadata"].number and by_name["scale-d"].accepts("imm")
    assert not any(x.problem for signature in i.signatures for x in signature)


@needs("ptxas")
def test_ptxas_says_what_was_recorded() -> None:
    assert wgmma_forms.forms() == RECORDED["legal n"]
    assert wgmma_forms.taken([*RECORDED["single"]]) == [*RECORDED["single"].values()]


def _taken(folder: Path, statements: dict[str, str], target: str = "sm_90a", version: str = "8.4") -> set[str]:
    """Return which mnemonics ptxas takes."""
    header = [
        f".version {version}", f".target {target}", ".address_size 64", ".entry kernel() {",
        ".reg .b32 %r<160>; .reg .f32 %f<160>; .reg .b64 %rd<2>; .reg .pred %p<1>;",
    ]  # fmt: skip
    source = folder / "test.ptx"
    source.write_text("\n".join([*header, *statements.values(), "unreadable;", "}", ""]))
    command = ["ptxas", f"-arch={target}", str(source), "-o", str(folder / "test.cubin")]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    refused = {int(line) - 6 for line in re.findall(r"line (\d+); (?:error|fatal)", said)}
    if len(statements) not in refused:
        pytest.skip(f"this ptxas does not know {target}, or PTX {version}: {said[:200]}")
    return {mnemonic for line, mnemonic in enumerate(statements) if line not in refused}


def _statement(i: WarpgroupInstruction, mnemonic: str = "") -> str:
    names = [x.names[0] for x in i.signature]
    text = wgmma_forms.statement(
        _types(i).removeprefix("sp "), i.n, i.k >> i.sparse, sparse=i.sparse, registers=False,
        immediates=len(names) - 1 - names.index("scale-d"),
    )  # fmt: skip
    return f"{mnemonic or i}{text[text.index(' ') :]}"


@needs("ptxas")
def test_ptxas_takes_them_from_their_versions_on_one_target(tmp_path: Path) -> None:
    n16 = {str(i): _statement(i) for i in ALL if i.n == 16}
    for version in ((8, 0), (8, 1), (8, 2), (8, 3), (8, 4)):
        expected = {str(i) for i in ALL if i.n == 16 and i.ptx <= version}
        assert _taken(tmp_path, n16, version="{}.{}".format(*version)) == expected
    assert _taken(tmp_path, n16, "sm_90") == set()
    assert _taken(tmp_path, n16, "sm_100a", "8.6") == set()


@needs("ptxas")
def test_ptxas_takes_these_orders(tmp_path: Path) -> None:
    f16, s8, b1 = map(parse_warpgroup, (F16, S8, B1))
    orders = [
        (S8.replace("m64n8k32.s32.s8", "s32.s8.m64n8k32") + ".satfinite", s8, True),
        (S8.replace("sync.aligned", "satfinite.aligned.sync"), s8, True),
        (B1.replace("m64n8k256.s32.b1.b1.and.popc", "and.popc.m64n8k256.s32.b1.b1"), b1, True),
        (B1.replace("and.popc", "popc.and"), b1, False),
        (F16.replace("mma_async.sync", "sync.mma_async"), f16, False),
        (F16.replace("f32.f16.f16", "f16.f16.f32"), f16, False),
    ]
    asked = {m: _statement(i, m) for m, i, _ in orders}
    assert _taken(tmp_path, asked) == {m for m, _, taken in orders if taken}
    for mnemonic, _, taken in orders:
        if taken:
            assert parse_warpgroup(mnemonic) in ALL
        else:
            with pytest.raises(MnemonicError):
                parse_warpgroup(mnemonic)
