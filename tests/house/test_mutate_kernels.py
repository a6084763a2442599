"""The campaign of mutants, on a few of them: what is found, what is harmless, and that an unnoticed one fails it."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from lab.mutate import harmless, subjects, verdicts
from lab.mutate import kernels as tool

STEP = "habits_warps.exchange_and_reuse: barrier dropped"
LOOP = "classics.scan_by_shuffles: loop: 3"  # "- a step" is wrong, "+ a step" harmless


def run(path: Path, *arguments: str) -> tuple[int, list[dict[str, str]]]:
    status = tool.main(["--out", str(path / "mutants"), *arguments])
    return status, json.loads((path / "mutants.json").read_text())["mutants"]


def test_found_wrong_and_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found = run(tmp_path, "--only", STEP)
    assert status == 0
    assert [(x["what"], x["why"]) for x in found] == [("found", "race")] * 2
    assert all(x["line"].startswith("habits_warps.py:") and "bar.warp.sync" in x["mutation"] for x in found)
    status, found = run(tmp_path, "--only", LOOP)
    assert status == 0
    assert [x["what"] for x in found] == ["harmless", "wrong"]
    assert found[0]["why"].endswith(".")
    assert "| scan_by_shuffles | 2 |" in capsys.readouterr().out
    assert "| scan_by_shuffles | 2 |" in (tmp_path / "mutants.md").read_text()


def test_an_unnoticed_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Without its argument, the harmless one is unnoticed."""
    monkeypatch.setattr(harmless, "HARMLESS", {})
    status, found = run(tmp_path, "--only", LOOP)
    assert status == 1
    assert [x["what"] for x in found] == ["unnoticed", "wrong"]
    assert "Unnoticed:\n\n* classics.py:" in capsys.readouterr().out


def test_an_error_of_the_package_that_is_none_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise IndexError

    monkeypatch.setattr(verdicts, "_PACKAGE", str(Path(__file__).parent))  # as if it came from there
    for module in (tool, verdicts):
        monkeypatch.setattr(module, "original", lambda subject: [])
    monkeypatch.setattr(subjects.Subject, "launch", broken)
    status, found = run(tmp_path, "--only", LOOP)
    assert status == 1
    assert {x["what"] for x in found} == {"broken"}


def test_a_kernel_that_does_not_run_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "original", lambda subject: "it has a hazard")
    status, found = run(tmp_path, "--only", LOOP)
    assert status == 1 and found == []
    assert "classics.scan_by_shuffles does not run unchanged: it has a hazard" in capsys.readouterr().err


def test_arguments_of_no_use_are_named() -> None:
    keys = list(harmless.HARMLESS)
    assert harmless.stale([("none", "none")]) == keys
    assert harmless.reason("habits_copies.two_buffers", "branch: buffers < ahead + 2 -> True")
    assert not harmless.reason("habits_copies.two_buffers", "branch: buffers < ahead + 2 -> False")


def test_samples_and_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    only = ("--only", "habits_copies.own_copies", "--sample", "5")
    _, found = run(tmp_path, *only)
    names = [x["mutation"] for x in found]
    assert len(set(names)) == 5
    assert [x["mutation"] for x in run(tmp_path, *only, "--jobs", "2")[1]] == names
    assert [x["mutation"] for x in run(tmp_path, *only, "--seed", "1")[1]] != names
    assert tool.main([*only, "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[-5:] == [f"habits_copies.own_copies: {name}" for name in names]


def test_a_stop_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = verdicts.judge
    seen: list[Any] = []

    def stopped(mutant: Any) -> Any:
        seen.append(mutant)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return judge(mutant)

    monkeypatch.setattr(tool, "judge", stopped)
    assert len(run(tmp_path, "--only", "habits_copies.own_copies: address")[1]) == 2
    assert {path.name for path in tmp_path.iterdir()} == {"mutants.json", "mutants.md"}


def test_every_mutant_is_another_kernel() -> None:
    """Names are different, and no two functions are the same; nor is one as it was."""
    operators = set()
    for subject in subjects.subjects():
        those = subjects.mutants(subject)
        assert len({m.name for m in those}) == len(those)
        operators |= {m.edit.operator for m in those}
    assert len(operators) >= 20
    those = subjects.mutants(next(x for x in subjects.subjects() if x.name == "classics.product_in_tiles"))
    (original,) = {ast.dump(m.function.syntax) for m in those}
    assert len({original, *(ast.dump(m.function.made(m.edit)) for m in those)}) == len(those) + 1


def test_the_page_has_these_kernels_and_so_many_mutants() -> None:
    page = (Path(__file__).parents[2] / "docs" / "mutants.md").read_text()
    table = page.partition("| kernel |")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.split("|")] for line in table]
    written = {name: int(number.replace(",", "")) for _, name, number, *_ in rows}
    made = {x.name.rpartition(".")[2]: len(subjects.mutants(x)) for x in subjects.subjects()}
    assert written == made | {"all": sum(made.values())}
    assert "Unnoticed:" not in page
