"""Statements with one changed token: ptxas and warpmma accept the same ones, except for documented differences."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from oracles import needs

from lab.compare.statements import KNOWN, TARGETS, compared, drawn, known, main, ours, refused


def test_statements_are_the_same_for_a_seed() -> None:
    first, second = (drawn(Random(3), "sm_90a", 200) for _ in range(2))
    assert first == second
    assert sum(changed for _, changed in first) == 180
    assert all(not ours(text, "sm_90a") or "mapa" in text for text, changed in first if not changed)


@needs("ptxas")
def test_ptxas_names_what_it_refuses_among_many() -> None:
    statements = ["add.u32 %r1, %r2, 1;", "add.u32 %r1, %r2;", "exit;", "add.u32 %r1, [%r2, 1;", "frob.u32 %r1;"]
    assert sorted(refused(statements, "sm_90a")) == [1, 3, 4]
    assert [i for i, x in enumerate(statements) if ours(x, "sm_90a")] == [1, 3, 4]


@needs("ptxas")
@pytest.mark.parametrize("target", TARGETS)
def test_ptxas_and_we_take_the_same_statements(target: str) -> None:
    verdicts = list(compared(drawn(Random(29), target, 120), target))
    assert sum(bool(x.ptxas) for x in verdicts) > 60  # most changes are mistakes
    different = [x for x in verdicts if bool(x.ptxas) != bool(x.ours)]
    assert not [x for x in different if not known(x)]


def test_what_is_listed_is_on_the_page() -> None:
    page = re.sub(r"\s+", " ", (Path(__file__).parents[2] / "docs" / "programs.md").read_text().replace("`", ""))
    assert [x.what for x in KNOWN if x.what not in page] == []


@needs("ptxas")
def test_the_tool_counts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "new.json"
    assert main(["--statements", "40", "--batch", "20", "--seed", "2", "--out", str(out)]) == 0
    assert "40 statements" in capsys.readouterr().out and out.exists()
