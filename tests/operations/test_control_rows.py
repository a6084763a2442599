"""Fences, hints, traps and `mbarrier`: what their rows say, and which of them ptxas takes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from oracles import needs

import warpmma as wm
from warpmma.errors import MnemonicError, TargetError
from warpmma.isa import address, check_since, value
from warpmma.operations import Barrier, Control, Fence, Hint, Mbarrier, row, rows

CONTROLS = [x for x in rows() if isinstance(x, Control) and not any(y.within for y in x.signature)]


@pytest.mark.parametrize(
    ("mnemonic", "expected"),
    [
        ("fence.gpu", {"order": "acq_rel", "scope": "gpu", "syntax": ""}),
        ("fence.sc.cta", {"order": "sc", "scope": "cta", "since": "sm_70"}),
        ("fence.release.cluster", {"order": "release", "scope": "cluster", "since": "sm_90"}),
        ("membar.gl", {"order": "sc", "scope": "gpu"}),
        ("fence.proxy.async.shared::cta", {"order": "weak"}),
        ("fence.proxy.tensormap::generic.acquire.gpu", {"order": "acquire", "maps": "acquire", "syntax": "[p], a1"}),
        ("nanosleep.u32", {"observes": True, "sources": (value("a0", "u32"),)}),
        ("pmevent.mask", {"observes": False, "sources": (value("a0", "imm"),)}),
        ("setmaxnreg.inc.sync.aligned.u32", {"since": "sm_90a", "syntax": "a0"}),
        ("mbarrier.arrive.shared.b64", {"action": "arrive", "syntax": "d0, [p]{, a1}", "orders": True, "last": True}),
        ("mbarrier.arrive_drop.noComplete.b64",
         {"drop": True, "last": False, "space": "generic", "syntax": "d0, [p], a1"}),
        ("mbarrier.try_wait.parity.relaxed.cluster.shared.b64", {"parity": True, "orders": False, "scope": "cluster",
         "observes": True, "syntax": "d0, [p], a1{, a2}",
         "sources": (address("p", "shared"), value("a1", "u32"), value("a2", "u32", optional=True))}),
        ("mbarrier.test_wait.b64", {"sources": (address("p", "generic"), value("a1", "b64")),
                                  "results": (value("d0", "pred", role="result"),)}),
        ("cp.async.mbarrier.arrive.noinc.shared::cta.b64", {"action": "copy", "counts": True, "space": "shared"}),
        ("bar.red.popc.u32", {"action": "red", "reduction": "popc", "outputs": ("b32",), "aligned": True}),
        ("barrier.cta.red.or.aligned.pred", {"outputs": ("pred",), "aligned": True, "ptx": (7, 8)}),
    ],
)  # fmt: skip
def test_what_rows_say(mnemonic: str, expected: dict[str, Any]) -> None:
    found = row(mnemonic)
    assert isinstance(found, Barrier | Fence | Hint | Mbarrier)
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    "mnemonic",
    ["fence.acq_rel", "fence.relaxed.gpu", "membar.gpu", "mbarrier.init.shared.b32", "mbarrier.arrive.acquire.b64",
     "mbarrier.test_wait.release.cta.b64", "bar.red.popc.pred", "bar.red.xor.pred", "trap.u32"],
)  # fmt: skip
def test_what_is_no_such_row(mnemonic: str) -> None:
    with pytest.raises(MnemonicError):
        row(mnemonic)


def test_what_came_with_sm_90() -> None:
    for mnemonic in ("mbarrier.try_wait.b64", "griddepcontrol.wait", "fence.acquire.cluster"):
        with pytest.raises(TargetError):
            row(mnemonic, "sm_80")


_HEAD = """.version 9.0
.target {target}
.address_size 64
.entry k() {{ .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<3>;
"""
_OPERAND = {"address": "[%d8]", "imm": "96", "u32": "%r1", "u64": "%d2", "b64": "%d1", "pred": "%p1"}


def _statement(given: Control) -> str:
    results = [{"b32": "%r0", "b64": "%d0", "pred": "%p0"}[x.kind] for x in given.results]
    sink = "::cluster" in str(given) and bool(results)
    operands = [_OPERAND["address" if x.role == "address" else x.type] for x in given.sources if not x.optional]
    if "tensormap" in str(given):
        operands[1:] = ["128"] * (len(operands) > 1)
    if str(given) == "pmevent":
        operands = ["7"]
    return f"{given} {', '.join([*(['_'] if sink else results), *operands])};"


@needs("ptxas")
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_90a"])
def test_ptxas_takes_what_a_target_has(target: str, tmp_path: Path) -> None:
    statements = {str(x): _statement(x) for x in CONTROLS}
    source = tmp_path / "controls.ptx"
    source.write_text(_HEAD.format(target=target) + "\n".join(statements.values()) + "\nret; }\n")
    done = subprocess.run(
        ["ptxas", "-arch", target, str(source), "-o", str(tmp_path / "x")], capture_output=True, text=True, check=False
    )
    first = _HEAD.count("\n") + 1
    refused = {
        list(statements)[int(line.split("line ")[1].split(";")[0]) - first]
        for line in (done.stdout + done.stderr).splitlines()
        if "error" in line and "line " in line
    }
    assert refused == {str(x) for x in CONTROLS if target not in x.targets}


@pytest.mark.parametrize("mnemonic", ["mbarrier.arrive", "mbarrier.arrive_drop"])
@pytest.mark.parametrize("space", ["", ".shared", ".shared::cta"])
@pytest.mark.parametrize("result", ["%d2", "_"])
def test_an_arrival_takes_a_count_from_sm_90_on(mnemonic: str, space: str, result: str) -> None:
    """ptxas 13.0: "mbarrier.arrive with count argument and without '.noComplete' modifier" requires sm_90."""
    text = (
        ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k() {{ .reg .b32 %r<3>; .reg .b64 %d<3>;\n"
        f"{mnemonic}{{}}{space}.b64 {result}, [{'%r1' if space else '%d1'}]{{}}; ret; }}}}"
    )

    def problems(target: str, *words: str) -> list[str]:
        entries = wm.ptx.load(text.format(*words).replace("sm_80", target)).check(target).entries
        return [str(problem) for entry in entries for problem in entry.problems]

    for target in ("sm_80", "sm_86", "sm_89"):
        assert problems(target, "", "") == []
        (problem,) = problems(target, "", ", %r2")
        assert "takes the operand a1 from sm_90 on" in problem and target in problem
    for target in ("sm_90", "sm_90a", "sm_120a"):
        assert problems(target, "", ", %r2") == []
    if result == "%d2":
        assert problems("sm_80", ".noComplete", ", %r2") == []


def test_a_target_without_an_operand_says_from_which_on_it_is() -> None:
    spec = row("mbarrier.arrive.shared.b64", "sm_80").sources[-1]
    check_since("mbarrier.arrive.shared.b64", spec, "sm_90")
    with pytest.raises(TargetError, match=r"takes the operand a1 from sm_90 on; got sm_86"):
        check_since("mbarrier.arrive.shared.b64", spec, "sm_86")
