"""`where` is the inverse of `what`: over all elements of every layout, and some of every instruction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.check import lookups as tool
from lab.check.lookups import differences, every_operand
from warpmma.isa import FragmentInstruction, Instruction, WarpgroupInstruction, fragment_instructions, instructions
from warpmma.layouts import Cell
from warpmma.lookup import operand_layout, what, where

EVERY = every_operand()
F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def test_all_elements_of_every_layout_but_the_largest() -> None:
    """Those are of bits, and a warpgroup's accumulators of n beyond 24: the tool asks all of theirs, too."""
    layouts = {(operand_layout(*asked), asked[1]): asked for asked in EVERY if operand_layout(*asked).repeats <= 3}
    distinct = {key: asked for key, asked in layouts.items() if key[0].elements <= 32}
    assert len(distinct) > 50
    assert [line for i, operand, target in distinct.values() for line in differences(i, operand, 1, target)] == []


def test_some_elements_of_every_operand_of_every_instruction() -> None:
    assert len({str(i) for i, *_ in EVERY}) == 420 + 1074 + 676
    steps = ((WarpgroupInstruction, 4001), (Instruction, 211), (FragmentInstruction, 67))
    wrong = [
        line
        for i, operand, target in EVERY
        for line in differences(i, operand, next(step for kind, step in steps if isinstance(i, kind)), target)
    ]
    assert wrong == []


def test_some_elements_of_every_fragment_on_every_target() -> None:
    """Layouts of targets that are alike are one layout: any target names it."""
    for i in fragment_instructions():
        for operand in i.operands:
            for target in i.targets:
                assert i.fragment(operand, target) in i.fragments(operand)
                assert target in i.fragments(operand)[operand_layout(i, operand, target)]


@pytest.mark.parametrize(
    ("broken", "lines"),
    [({"row": 1}, "where of 0, 0 in 0 is Cell"), ({"lane": 1}, "is not what is there"), ({"low": 1}, "is not what is")],
)
def test_what_is_wrong_is_noticed(
    broken: dict[str, int], lines: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(*arguments: object, **options: object) -> Cell:
        found: Cell = where(*arguments, **options)  # type: ignore[call-overload]
        return replace(found, **{name: getattr(found, name) ^ bit for name, bit in broken.items()})

    monkeypatch.setattr(tool, "where", wrong)
    assert lines in next(differences(instructions()[0], "A", 4096))
    monkeypatch.setattr(tool, "instructions", lambda: instructions()[:1])
    monkeypatch.setattr(tool, "warpgroup_instructions", tuple)
    monkeypatch.setattr(tool, "fragment_instructions", tuple)
    assert tool.main(["--step", "4096"]) == 1
    assert capsys.readouterr().out.endswith("4 operands of 1 instructions: 4 wrong\n")


def test_an_element_that_is_lost_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def less(*arguments: object, **options: object) -> tuple[Cell, ...]:
        found: tuple[Cell, ...] = what(*arguments, **options)  # type: ignore[call-overload]
        return found[:-1]

    monkeypatch.setattr(tool, "what", less)
    assert "places hold" in next(differences(instructions()[0], "A"))
