"""The campaign of mutants of PTX of asynchronous kernels, on a few of them; all are legal texts with the same lines."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from lab.mutate import harmless, harmless_texts, text_operators, text_places, text_subjects
from lab.mutate import texts as tool
from warpmma.machine.report.asynchronous_rules import RULES

TEXT = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry small(.param .align 64 .b8 x[128]) {
.reg .pred %p, %q; .reg .b32 %t, %n, %b, %v; .reg .b64 %x; .shared .align 128 .b8 tile[512]; .shared .b64 full[2];
mov.u64 %x, x; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0; mov.u32 %b, full;
@%p mbarrier.init.shared.b64 [%b], 1;
fence.proxy.async;
bar.sync 0;
@%p mbarrier.arrive.expect_tx.shared.b64 _, [%b],
  256;
@%p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%x, {0, %t}], [%b];
W: mbarrier.try_wait.parity.shared.b64 %q, [%b], %n;
@!%q bra W;
ld.shared.u32 %v, [tile];
ret; }
"""


def subject(text: str = TEXT) -> text_subjects.TextSubject:
    def arguments(device: wm.Device, maps: text_subjects.Maps) -> list[Any]:
        return [maps("x", device.zeros((8, 16), np.uint32), (4, 16))]

    return text_subjects.TextSubject(
        name="small", read=lambda: text, grid=1, block=32, stage=256, arguments=arguments, expected=dict
    )


def run(path: Path, *arguments: str) -> tuple[int, list[dict[str, str]]]:
    status = tool.main(["--out", str(path / "mutants"), *arguments])
    return status, json.loads((path / "mutants.json").read_text())["mutants"]


def test_what_is_changed() -> None:
    made = {x.name: x for x in text_operators.text_mutants(subject())}
    copy = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
    wait = "mbarrier.try_wait.parity.shared.b64"
    added = "{ .reg .b32 mutant; add.s32 mutant, %t, 1;"
    wanted = {
        "guard dropped: line 7: @%p mbarrier.init.shared.b64 [%b], 1": "mbarrier.init.shared.b64 [%b], 1;",
        "count: line 7: -1 in @%p mbarrier.init.shared.b64 [%b], 1": "@%p mbarrier.init.shared.b64 [%b], 0;",
        "proxy fence dropped: line 8: fence.proxy.async": "",
        "weaker: line 8: .global in fence.proxy.async": "fence.proxy.async.global;",
        "barrier dropped: line 9: bar.sync 0": "",
        "expect-tx: line 10: * 2 in @%p mbarrier.arrive.expect_tx.shared.b64 _, [%b], 256":
            "@%p mbarrier.arrive.expect_tx.shared.b64 _, [%b], 512;",
        "expect-tx: line 10: no arrival in @%p mbarrier.arrive.expect_tx.shared.b64 _, [%b], 256":
            "@%p mbarrier.expect_tx.relaxed.cta.shared.b64 [%b], 256;",
        f"stage: line 12: buffer -256 in @%p {copy} [tile], [%x, {{0, %t}}], [%b]":
            f"@%p {copy} [tile+-256], [%x, {{0, %t}}], [%b];",
        f"coordinate: line 12: 1 +1 in @%p {copy} [tile], [%x, {{0, %t}}], [%b]":
            f"{added} @%p {copy} [tile], [%x, {{0, mutant}}], [%b]; }}",
        f"parity: line 13: ^ 1 in {wait} %q, [%b], %n":
            f"{{ .reg .b32 mutant; xor.b32 mutant, %n, 1; {wait} %q, [%b], mutant; }}",
        f"wait dropped: line 13: {wait} %q, [%b], %n": "setp.eq.u32 %q, 0, 0;",
        f"wait dropped: line 13: looks once in {wait} %q, [%b], %n": f"{wait} %q, [%b], %n; setp.eq.u32 %q, 0, 0;",
        f"weaker: line 13: relaxed in {wait} %q, [%b], %n":
            "mbarrier.try_wait.parity.relaxed.cta.shared.b64 %q, [%b], %n;",
    }  # fmt: skip
    assert {name: made[name].edits[0][2] for name in wanted} == wanted
    assert made["box: 8x16 in the map x"].change == ("x", "box", (8, 16))
    assert made["swizzle: 64 in the map x"].change == ("x", "swizzle", 64)


def test_neighbours_in_another_order() -> None:
    made = {x.name: x for x in text_operators.text_mutants(subject()) if x.name.startswith("order")}
    lines = {name: text_places.changed(TEXT, x.edits).splitlines() for name, x in made.items()}
    (init,) = (x for name, x in lines.items() if "line 7" in name)
    assert init[6:8] == ["", "fence.proxy.async; @%p mbarrier.init.shared.b64 [%b], 1;"]
    (wait,) = (x for name, x in lines.items() if "line 13" in name)
    again = "{ .reg .pred mutant; MUTANT: mbarrier.try_wait.parity.shared.b64 mutant, [%b], %n; @!mutant bra MUTANT; }"
    assert wait[12:15] == ["W: setp.eq.u32 %q, 0, 0;", "@!%q bra W;", f"ld.shared.u32 %v, [tile]; {again}"]
    (expect,) = (x for name, x in lines.items() if "line 10" in name)
    assert expect[9:11] == ["", ""] and expect[11].endswith("mbarrier.arrive.expect_tx.shared.b64 _, [%b], 256;")


@pytest.mark.alike(4)
@pytest.mark.parametrize("name", [x.name for x in text_subjects.text_subjects()])
def test_mutants_are_legal_texts_with_the_same_lines(name: str) -> None:
    (kernel,) = (x for x in text_subjects.text_subjects() if x.name == name)
    those, text = text_operators.text_mutants(kernel), kernel.read()
    assert len({x.name for x in those}) == len(those) > 15
    lines = {x.position.line for x in wm.ptx.read(text).functions[name].body}
    for mutant in those[::20]:
        made = text_places.changed(text, mutant.edits)
        assert (made == text) == (mutant.change is not None)
        assert made.count("\n") == text.count("\n")
        module = wm.ptx.load(made)
        assert {x.position.line for x in module.source.functions[name].body} <= lines
    module.check()


SAMPLE: dict[str, list[tuple[str, str]]] = {
    "epilogue: proxy fence dropped": [("found", "proxy")],
    "epilogue: weaker: line 66": [("found", "pending")],
    "epilogue: copy dropped": [("wrong", "")],
    "plain_barriers: expect-tx: line 363: +16": [("found", "deadlock")],
    "ring: wait dropped: line 70: looks once": [("found", "race")],
    "ring: proxy fence dropped: line 80": [("found", "strict")],
    "copy_pipeline: box: 32x32": [("found", "pending")],
}


@pytest.mark.parametrize("only", SAMPLE)
def test_what_becomes_of_some(only: str, tmp_path: Path) -> None:
    status, found = run(tmp_path, "--only", only)
    assert status == 0 and [(x["what"], x["why"]) for x in found] == SAMPLE[only]


def test_an_argued_one_is_unnoticed_without_its_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    only = "plain_barriers: order: line 363"
    status, found = run(tmp_path, "--only", only)
    assert status == 0 and found[0]["what"] == "harmless" and "(A10)" in found[0]["why"]
    monkeypatch.setattr(tool, "HARMLESS", {})
    status, found = run(tmp_path, "--only", only)
    assert status == 1 and [x["what"] for x in found] == ["unnoticed"]
    assert "Unnoticed:\n\n* plain_barriers:363" in capsys.readouterr().out


def test_results_that_depend_on_the_seed_are_unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulator that reports nothing, and whose results differ."""
    seeds = iter(range(9))

    def blind(*_: Any, **__: Any) -> tool.Outcome:
        return tool.Outcome(bits=(bytes([next(seeds)]),))

    monkeypatch.setattr(tool, "original", lambda subject: tool.Original((bytes(1),), frozenset()))
    monkeypatch.setattr(tool, "_outcome", blind)
    (name,) = (x for x in tool._mutants("reduction") if x.startswith("commit dropped"))
    found = tool.judge(("reduction", name))
    assert (found.what, found.detail) == ("unnoticed", "3 results under 3 seeds")


def test_a_kernel_that_does_not_run_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "original", lambda subject: "it has a hazard")
    status, found = run(tmp_path, "--only", "reduction: commit dropped")
    assert status == 1 and found == []
    assert "reduction does not run unchanged: it has a hazard" in capsys.readouterr().err


def test_what_strict_reports_of_a_kernel_is_stated() -> None:
    (kernel,) = (x for x in text_subjects.text_subjects() if x.name == "plain_barriers")
    assert isinstance(tool.original(kernel), tool.Original)
    assert "expected rules none" in str(tool.original(replace(kernel, strict=())))


def test_arguments_about_order_cite_rules() -> None:
    """Those without one are about values, branches, registers and numbers of barriers."""
    cited = {why: re.findall(r"\bA\d+\b", why) for why in harmless_texts.HARMLESS.values()}
    assert {rule for rules in cited.values() for rule in rules} <= set(RULES)
    assert sum(not rules for rules in cited.values()) <= 10 < sum(bool(rules) for rules in cited.values())
    assert harmless.stale([("none", "none")], harmless_texts.HARMLESS) == [*harmless_texts.HARMLESS]


def test_the_page_has_these_kernels_and_so_many_mutants() -> None:
    page = (Path(__file__).parents[2] / "docs" / "mutants.md").read_text().partition("lab.mutate.texts")[2]
    table = page.partition("| kernel|")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.split("|")] for line in table]
    written = {name: int(number.replace(",", "")) for _, name, number, *_ in rows}
    made = {x.name: len(text_operators.text_mutants(x)) for x in text_subjects.text_subjects()}
    assert written == made | {"all": sum(made.values())}
