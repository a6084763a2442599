"""What an entry needs, and what is not simulated, before anything runs."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from oracles import needs

import warpmma as wm
from warpmma import ptx
from warpmma.cli import main
from warpmma.errors import PtxError, TargetError

TEXT = """.version 8.0
.target sm_80
.address_size 64
.shared .align 4 .b8 tile[64];
.extern .shared .align 16 .b8 more[];
.visible .entry good(.param .u64 p)
{
.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>;
.local .align 8 .b8 stack[24];
mov.u32 %r1, tile; mov.u32 %r2, more;
setp.eq.s32 %p1, %r1, %r2;
ld.param.u64 %rd1, [p];
ret;
}
.visible .entry a_name_that_is_much_too_long_for_any_table_that_has_only_so_many_columns()
{
.reg .b32 %r<4>;
add.s32 %r1, %r2, %r3;
frob.s32 %r1, %r2;
  add.s32 %r1, %r2;
ret;
}
"""


def test_what_entries_need() -> None:
    needs = ptx.load(TEXT, "k.ptx").check()
    good, bad = needs.entries
    assert (good.name, good.shared, good.dynamic, good.local, good.parameters) == ("good", 64, True, 32, 8)
    assert good.registers == {"b32": 2, "pred": 1, "b64": 1}
    assert good.instructions == {"mov.u32": 2, "setp.eq.s32": 1, "ld.param.u64": 1, "ret": 1}
    assert not good.problems and [(x.line, x.column) for x in bad.problems] == [(19, 1), (20, 3)]
    assert needs.problems == 2 and needs.target == needs.compiled == "sm_80"


def test_text() -> None:
    text = ptx.load(TEXT, "k.ptx").check("sm_90").text()
    assert text.startswith("k.ptx: PTX 8.0 for sm_80, on sm_90, 2 entries\n")
    assert max(map(len, text.splitlines())) < 120
    assert "  19:1: 'frob.s32' is not a simulated operation\n" in text
    assert "  20:3: add.s32: got 2 operands; expected d0, a0, a1" in text
    assert "good: instructions by kind\n  mov.u32 2, setp.eq.s32 1, ld.param.u64 1, ret 1\n" in text
    simulated = TEXT.replace("frob.s32 %r1, %r2;", "").replace("%r2;\nret", "%r2, 1;\nret")
    assert ptx.load(simulated).check().text().endswith("\nall is simulated")


def test_a_target_that_does_not_take_it() -> None:
    with pytest.raises(TargetError, match="is PTX for sm_80, which sm_75 does not take"):
        ptx.load(TEXT).check("sm_75")
    with pytest.raises(TargetError):
        ptx.load(TEXT).check("sm_81")


def test_a_branch_to_nowhere_is_a_line_of_its_own() -> None:
    text = TEXT.replace("frob.s32 %r1, %r2;", "bra NOWHERE;")
    assert [(x.line, x.column) for x in ptx.load(text).check().entries[1].problems] == [(19, 1)]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.ptx"
    file.write_text(TEXT)
    assert main(["ptx", "check", str(file)]) == 1
    assert "not simulated: 2 lines" in capsys.readouterr().out
    assert main(["ptx", "check", str(file), "--json"]) == 1
    facts, said = json.loads(capsys.readouterr().out), ptx.load(TEXT).check()
    assert (facts["target"], facts["problems"]) == (said.target, said.problems)
    for found, entry in zip(facts["entries"], said.entries, strict=True):
        assert (found["name"], found["registers"]) == (entry.name, dict(entry.registers))
        assert found["instructions"] == dict(entry.instructions)
        assert [(x["line"], x["column"]) for x in found["problems"]] == [(x.line, x.column) for x in entry.problems]
    file.write_text(TEXT[: TEXT.index(".visible .entry a_name")])
    assert main(["ptx", "check", str(file), "--target", "sm_90"]) == 0
    assert "all is simulated" in capsys.readouterr().out
    assert main(["ptx", "check", str(tmp_path / "none.ptx")]) == 2
    assert "none.ptx: No such file" in capsys.readouterr().err
    file.write_text("no text")
    assert main(["ptx", "check", str(file)]) == 2
    assert "k.ptx:1:1: " in capsys.readouterr().err


def test_nothing_is_placed_on_a_device() -> None:
    device = wm.Device("sm_80")
    ptx.load(TEXT).check(device.target)
    assert not device.space.regions


def test_lines_of_the_source_stand_beside_those_of_the_text() -> None:
    head = '.version 8.0\n.target sm_90a\n.address_size 64\n.file 1 "/home/kernels/gemm.cu"\n.file 2 "/cuda/mma.hpp"\n'
    text = f"""{head}.visible .entry k() {{
.reg .b32 %r<3>;
.loc 1 12 3
tcgen05.wait::ld.sync.aligned;
.loc 2 88 1, function_name $L__info_string0, inlined_at 1 14 5
add.s32 %r1, %r2;
ret;
}}"""
    module = ptx.load(text, "k.ptx")
    fence, add = module.check().entries[0].problems
    assert str(fence).splitlines()[0].startswith("k.ptx:9:1: 'tcgen05.wait::ld.sync.aligned'")
    says = "not simulated yet in kernels: compile them for sm_80, where they have mma.sync instead (gemm.cu:12)"
    assert str(fence).splitlines()[0].endswith(f"tcgen05 is PTX, {says}")
    assert str(add).splitlines()[0].endswith("got 2 operands; expected d0, a0, a1 (gemm.cu:14, from mma.hpp:88)")
    with pytest.raises(PtxError, match=re.escape(says)):
        module["k"].launch(wm.Device("sm_90a"), 1, 1, [])
    assert "(gemm.cu:12)" in module.check().text()


LIMITS = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k() {}
{{ setmaxnreg.dec.sync.aligned.u32 40; ret; }}
"""
KNOWN = {
    "": False, ".maxntid 128": False, ".reqntid 128, 1, 1": False, ".minnctapersm 1": False, ".maxnreg 168": True,
    ".maxntid 384 .minnctapersm 1": True, ".reqntid 128 .minnctapersm 2": True, ".maxntid 128 .maxnreg 40": True,
    ".reqntid 128 .maxnreg 168": True, ".minnctapersm 1 .maxnreg 168": True,
}  # fmt: skip


@pytest.mark.parametrize("directives", KNOWN)
def test_an_ignored_setmaxnreg_is_named(directives: str) -> None:
    found = ptx.load(LIMITS.format(directives)).check()
    (entry,) = found.entries
    assert (entry.ignored == ()) == KNOWN[directives] and entry.problems == ()
    assert ("ptxas ignores setmaxnreg, unless" in found.text()) == (not KNOWN[directives])
    assert json.loads(found.json())["entries"][0]["ignored"] == list(entry.ignored)


def test_an_entry_without_setmaxnreg_ignores_nothing() -> None:
    text = LIMITS.format("").replace("setmaxnreg.dec.sync.aligned.u32 40;", "")
    assert ptx.load(text).check().entries[0].ignored == ()


@needs("ptxas")
@pytest.mark.parametrize("directives", KNOWN)
def test_ptxas_ignores_it_there(directives: str, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(LIMITS.format(directives))
    command = ["ptxas", "-arch", "sm_90a", "k.ptx", "-o", "k.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ("'setmaxnreg' ignored" in done.stderr) == (not KNOWN[directives])
