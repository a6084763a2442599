"""`where` is the inverse of `what`: over all elements of every layout, and some of every instruction."""

from __future__ import annotations

from dataclasses import replace

import check_lookups
import pytest
from check_lookups import differences, every_operand

from warpmma.isa import Instruction, instructions
from warpmma.layouts import Cell
from warpmma.lookup import operand_layout, what, where

EVERY = every_operand()
F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def test_all_elements_of_every_layout_but_the_largest() -> None:
    """Those are of bits, and a warpgroup's accumulators of n beyond 24: the tool asks all of theirs, too."""
    layouts = {(operand_layout(i, operand), operand): i for i, operand in EVERY if operand != "D" and i.n <= 24}
    distinct = {(layout, operand): i for (layout, operand), i in layouts.items() if layout.elements <= 32}
    assert len(distinct) > 50
    assert [line for (_, operand), i in distinct.items() for line in differences(i, operand)] == []


def test_some_elements_of_every_operand_of_every_instruction() -> None:
    assert len({str(i) for i, _ in EVERY}) == 420 + 546
    wrong = [
        line for i, operand in EVERY for line in differences(i, operand, 211 if isinstance(i, Instruction) else 4001)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("broken", "lines"),
    [({"row": 1}, "where of 0, 0 in 0 is Cell"), ({"lane": 1}, "is not what is there"), ({"low": 1}, "is not what is")],
)
def test_what_is_wrong_is_noticed(
    broken: dict[str, int], lines: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(*arguments: object, **options: object) -> Cell:
        found = where(*arguments, **options)  # type: ignore[arg-type]
        return replace(found, **{name: getattr(found, name) ^ bit for name, bit in broken.items()})

    monkeypatch.setattr(check_lookups, "where", wrong)
    assert lines in next(differences(instructions()[0], "A", 4096))
    monkeypatch.setattr(check_lookups, "instructions", lambda: instructions()[:1])
    monkeypatch.setattr(check_lookups, "warpgroup_instructions", tuple)
    assert check_lookups.main(["--step", "4096"]) == 1
    assert capsys.readouterr().out.endswith("4 operands of 1 instructions: 4 wrong\n")


def test_an_element_that_is_lost_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def less(*arguments: object, **options: object) -> tuple[Cell, ...]:
        return what(*arguments, **options)[:-1]  # type: ignore[arg-type]

    monkeypatch.setattr(check_lookups, "what", less)
    assert "places hold" in next(differences(instructions()[0], "A"))
