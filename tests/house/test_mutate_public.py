"""Mutants of public kernels are judged by one launch a seed for both levels: other kernels stand in for them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lab.mutate import harmless_public, text_operators, text_places, text_subjects
from lab.mutate import public as tool
from lab.programs.launches import Case, Run, Step
from warpmma.machine.report.asynchronous_rules import RULES


def mutant(kernel: str, change: str) -> text_operators.TextMutant:
    (subject,) = (x for x in text_subjects.text_subjects() if x.name == kernel)
    return next(x for x in text_operators.text_mutants(subject) if x.name.startswith(change))


@pytest.mark.parametrize(
    ("kernel", "change", "verdict"),
    [
        ("plain_barriers", "expect-tx: line 363: +16", ("found", "deadlock")),  # "strict" looks no further
        ("ring", "wait dropped: line 70: looks once", ("found", "race")),  # it does, and the default level agrees
        ("ring", "proxy fence dropped: line 80", ("found", "strict")),
        ("epilogue", "copy dropped", ("wrong", "")),
        ("plain_barriers", "order: line 363", ("same", "")),
    ],
)
def test_one_launch_answers_for_both_levels(kernel: str, change: str, verdict: tuple[str, str]) -> None:
    assert tool._tried(mutant(kernel, change))[:2] == verdict


def test_what_strict_reports_of_the_kernel_itself_is_no_find() -> None:
    of = mutant("copy_pipeline", "fence dropped").subject
    right = tool.original(of)
    assert not isinstance(right, str) and {x[1] for x in right.strict} == {"A12"}
    assert tool._tried(mutant("copy_pipeline", "fence dropped"))[:2] == ("same", "")


def test_a_kernel_that_is_reported_itself_is_no_subject() -> None:
    of = mutant("ring", "wait dropped: line 70: looks once")
    wrong = text_places.changed(of.subject.read(), of.edits)
    found = tool.original(replace(of.subject, read=lambda: wrong))
    assert isinstance(found, str) and found.startswith("pending: ")


def test_at_most_so_many_of_each_change() -> None:
    names = [(kernel, f"{what}: line {n}") for kernel in "ab" for what in ("copy", "wait") for n in range(5)]
    assert tool._chosen(names, None) == names
    chosen = tool._chosen(names, 2)
    assert len(chosen) == 8 and chosen == [x for x in names if x in chosen]
    assert {(kernel, name.partition(":")[0]) for kernel, name in chosen} == {
        (x, y) for x in "ab" for y in ("copy", "wait")
    }


TINY = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry tiny(.param .u64 out) {
.reg .pred %p; .reg .b32 %t, %v; .reg .b64 %a; .shared .align 4 .b8 word[4];
mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0; mul.wide.u32 %a, %t, 4;
@%p st.shared.u32 [word], 7;
bar.sync 0;
ld.shared.u32 %v, [word];
{ .reg .b64 %x; ld.param.u64 %x, [out]; add.s64 %a, %a, %x; st.global.u32 [%a], %v; }
bra.uni DONE;
bar.sync 1;
DONE: ret; }
"""


def test_what_the_launch_does_not_execute_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step = Step("tiny", (1,), (64,), ("out",))
    case = Case("tiny", "tiny", lambda: Run({"out": np.zeros(64, np.uint32)}, (step,), ("out",)))
    monkeypatch.setattr(tool, "PUBLIC", {"tiny": tool.Public(launch=0, stage=0)})
    monkeypatch.setattr(tool, "hopper_cases", lambda: [case])
    (tmp_path / "tiny.ptx").write_text(TINY)
    options = [str(tmp_path), "--only", "barrier dropped", "--out", str(tmp_path / "mutants")]
    assert tool.main(options) == 0
    (found,) = json.loads((tmp_path / "mutants.json").read_text())["mutants"]
    assert (found["line"], found["what"], found["why"]) == ("tiny:8", "found", "race")
    assert "1 of 2 are in lines that no launch executes" in capsys.readouterr().err


TURNS = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry turns(.param .u64 out, .param .u32 n) {
.reg .pred %p, %q; .reg .b32 %t, %v, %w, %n; .reg .b64 %a; .shared .align 4 .b8 word[4];
mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0; mul.wide.u32 %a, %t, 4; ld.param.u32 %n, [n]; mov.u32 %v, 0;
LOOP:
@%p st.shared.u32 [word], %n;
bar.sync 0;
ld.shared.u32 %w, [word];
bar.sync 0;
add.u32 %v, %v, %w; sub.u32 %n, %n, 1; setp.ne.u32 %q, %n, 0;
@!%q bra END;
@%p add.u32 %v, %v, 1;
bra.uni LOOP;
END: { .reg .b64 %x; ld.param.u64 %x, [out]; add.s64 %a, %a, %x; st.global.u32 [%a], %v; }
ret; }
"""


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("barrier dropped: line 9", "found"), ("barrier dropped: line 11", "unnoticed"),
        ("barrier dropped: line 11", "found"), ("barrier dropped: line 11", "harmless"),
        ("guard dropped: line 14", "wrong"),
    ],
)  # fmt: skip
def test_what_one_turn_does_not_show_runs_again_with_more(
    change: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second barrier matters from the second turn on, which alone executes the guard; an argument comes first."""

    def run(turns: int) -> Run:
        step = Step("turns", (1,), (64,), ("out", np.uint32(turns)))
        return Run({"out": np.zeros(64, np.uint32)}, (step,), ("out",))

    monkeypatch.setattr(tool, "PUBLIC", {what: tool.Public(launch=0, stage=0)})
    monkeypatch.setattr(tool, "hopper_cases", lambda: [Case(what, what, lambda: run(1))])
    monkeypatch.setattr(tool, "longer_run", lambda title: None if what == "unnoticed" else run(3))
    monkeypatch.setattr(tool, "LONGER", {what: replace(vars(tool)["LONGER"]["flash_f16"], limit=tool.Public.limit)})
    monkeypatch.setattr(tool, "HARMLESS", {("harmless", "barrier dropped: *"): "why"})
    (tmp_path / f"{what}.ptx").write_text(TURNS)
    options = [str(tmp_path), "--only", change, "--out", str(tmp_path / "mutants")]
    assert tool.main(options) == int(what == "unnoticed")
    (verdict,) = json.loads((tmp_path / "mutants.json").read_text())["mutants"]
    assert verdict["what"] == what
    assert verdict["why"] == {"found": "race", "harmless": "why"}.get(what, "")


def test_arguments_cite_rules_and_name_kernels() -> None:
    """Those without one are about a hint, an instruction's choice of a lane, and what nothing reads or names."""
    cited = {why: re.findall(r"\bA\d+\b", why) for why in harmless_public.HARMLESS.values()}
    assert {rule for rules in cited.values() for rule in rules} <= {*RULES}
    assert sum(not rules for rules in cited.values()) <= 9 < sum(bool(rules) for rules in cited.values())
    for kernel, _ in harmless_public.HARMLESS:
        assert any(re.fullmatch(kernel.replace("*", ".*"), x) for x in tool.PUBLIC)
