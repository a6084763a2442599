"""The campaign of mutants of PTX, on a few of them: what is changed, what is found, and that a missed race fails it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.mutate import programs as tool

PRODUCT = "product f16, 3 stages"


def run(path: Path, only: str, *arguments: str) -> tuple[int, list[dict[str, str]]]:
    status = tool.main(["--out", str(path / "mutants"), "--only", only, *arguments])
    return status, json.loads((path / "mutants.json").read_text())["mutants"]


def test_what_is_changed() -> None:
    text = """
    @%p1 bra $L;
    @!%p2 st.shared.b32 [%r1], %r2;
    bar.sync 0;
    cp.async.wait_group 1;
    shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;
    ld.acquire.gpu.global.u32 %r1, [%rd1]; // a comment
    atom.global.acq_rel.gpu.add.u32 %r1, [%rd1], 1;
    """
    assert [(x.name.partition(":")[0], x.line, x.text.strip()) for x in tool.mutations(text)] == [
        ("guard negated", 2, "@!%p1 bra $L;"),
        ("guard negated", 3, "@%p2 st.shared.b32 [%r1], %r2;"),
        ("guard dropped", 3, "st.shared.b32 [%r1], %r2;"),
        ("barrier dropped", 4, ""),
        ("wait dropped", 5, ""),
        ("wait weaker", 5, "cp.async.wait_group 2;"),
        ("lane 0 not in the mask", 6, "shfl.sync.bfly.b32 %r1, %r2, 1, 31, 0xfffffffe;"),
        ("lane 31 not in the mask", 6, "shfl.sync.bfly.b32 %r1, %r2, 1, 31, 0x7fffffff;"),
        ("order weaker", 7, "ld.global.u32 %r1, [%rd1]; // a comment"),
        ("order weaker", 8, "atom.global.relaxed.gpu.add.u32 %r1, [%rd1], 1;"),
    ]


def test_waits_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found = run(tmp_path, f"{PRODUCT}: wait")
    assert status == 0 and [(x["what"], x["why"]) for x in found] == [("found", "pending")] * 4
    assert f"| {PRODUCT} | 4 |" in capsys.readouterr().out


def test_a_missed_race_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """A kernel whose outputs depend on the seed, and in which nothing was reported."""
    outputs = tool._outputs

    def blind(program: str, text: str, *, hazards: str, seed: int = 0) -> list[bytes]:
        return [bytes([seed % 2])] if hazards == "off" else outputs(program, tool.text_of(program), hazards="off")

    monkeypatch.setattr(tool, "_outputs", blind)
    status, found = run(tmp_path, f"{PRODUCT}: wait weaker", "--seeds", "3", "--sample", "1")
    assert status == 1 and [x["what"] for x in found] == ["unnoticed"]
    assert "2 outputs under 3 seeds" in capsys.readouterr().out


def test_names_that_match_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tool.main(["--only", "no such change"])
    assert "no mutant's name contains 'no such change'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "says"), [("--jobs", "--jobs and --sample"), ("--sample", "--jobs and"), ("--seeds", "--seeds is")]
)
def test_numbers_below_1_are_refused(option: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tool.main([option, "0"])
    assert says in capsys.readouterr().err
