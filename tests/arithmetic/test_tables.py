"""Tables of recipes and evidence: exactly one row answers, and what would break that is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import warpmma as wm
from warpmma.arithmetic import LOWERINGS, Evidence, evidence_of, lowering, variants
from warpmma.arithmetic.recipes import evidence
from warpmma.arithmetic.recipes import lowerings as recipes
from warpmma.arithmetic.recipes.evidence import EVIDENCE, EvidenceRow
from warpmma.arithmetic.recipes.scopes import Scope, ScopedTable
from warpmma.errors import TableError
from warpmma.isa import Instruction, MatrixInstruction, WarpgroupInstruction, instructions, warpgroup_instructions

EVERY: tuple[MatrixInstruction, ...] = (*instructions(), *warpgroup_instructions())
KINDS = (Instruction, WarpgroupInstruction)
TABLES: list[tuple[str, tuple[Any, ...], Callable[[MatrixInstruction], tuple[str, ...]]]] = [
    ("LOWERINGS", LOWERINGS, recipes._generations),
    ("EVIDENCE", EVIDENCE, lambda record: tuple(record.targets)),
]
F16 = wm.parse("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")


def checked(name: str, rows: tuple[Any, ...], places: Callable[[MatrixInstruction], tuple[str, ...]]) -> None:
    """Make a table and ask whether it is complete, as it is before anything is looked up."""
    table = ScopedTable(name, rows, places)
    for kind in KINDS:
        table.check_complete(kind)


@pytest.mark.parametrize(("name", "rows", "places"), TABLES, ids=lambda x: x if isinstance(x, str) else "")
def test_exactly_one_row_answers(
    name: str, rows: tuple[Any, ...], places: Callable[[MatrixInstruction], tuple[str, ...]]
) -> None:
    """Without what the table itself knows: of all rows that fit, one lies within every other and stands first."""
    checked(name, rows, places)
    table, used = ScopedTable(name, rows, places), set()
    for record in EVERY:
        for place in places(record):
            fit = [row for row in rows if row.fits(record, place)]
            assert all(fit[0].within(row) and not row.within(fit[0]) for row in fit[1:])
            assert table.find(record, place) is fit[0]
            used.add(id(fit[0]))
    assert used == {id(row) for row in rows}


@pytest.mark.parametrize(("name", "rows", "places"), TABLES, ids=lambda x: x if isinstance(x, str) else "")
def test_a_table_that_lacks_any_row_is_refused(
    name: str, rows: tuple[Any, ...], places: Callable[[MatrixInstruction], tuple[str, ...]]
) -> None:
    """Or another row takes its place: then that one is the wider one of a nest."""
    for row in rows:
        rest = tuple(x for x in rows if x is not row)
        if any(row.within(x) for x in rest):
            checked(name, rest, places)
        else:
            with pytest.raises(TableError, match=f"^{name} has no row for .* of the group '{row.group}'$"):
                checked(name, rest, places)


@pytest.mark.parametrize(("name", "rows", "places"), TABLES, ids=lambda x: x if isinstance(x, str) else "")
def test_a_table_that_has_any_row_twice_is_refused(
    name: str, rows: tuple[Any, ...], places: Callable[[MatrixInstruction], tuple[str, ...]]
) -> None:
    for number, row in enumerate(rows):
        with pytest.raises(TableError) as caught:
            ScopedTable(name, (*rows[: number + 1], *rows[number:]), places)
        assert str(caught.value) == f"{name} speaks of the same twice: {row}; {row}"
        for elsewhere in ((row, *rows), (*rows, row)):
            with pytest.raises(TableError):
                ScopedTable(name, elsewhere, places)


def half(*targets: str, **only: tuple[object, ...]) -> EvidenceRow:
    known = Evidence(kind="derived", source="a test", assumption="nothing")
    return EvidenceRow(group="half", places=targets, only=tuple(only.items()), evidence=known)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            [half("sm_80"), half("sm_80", k=(8,))],
            "EVIDENCE has a row that never answers, behind one that speaks of all it does: 'half' on sm_80; "
            "'half' on sm_80 where k is 8",
        ),
        (
            [half("sm_80", "sm_86"), half("sm_86", "sm_87")],
            "EVIDENCE has rows that overlap without being nested: 'half' on sm_80, sm_86; 'half' on sm_86, sm_87",
        ),
        (
            [half("sm_80", k=(8,)), half("sm_80", a_type=("f16", "bf16"))],
            "EVIDENCE has rows that overlap without being nested: 'half' on sm_80 where k is 8; "
            "'half' on sm_80 where a_type is f16 or bf16",
        ),
        (
            [half("sm_80", k=(8,)), half("sm_80", "sm_86", k=(8, 16), sparse=(False,))],
            "EVIDENCE has rows that overlap without being nested: 'half' on sm_80 where k is 8; "
            "'half' on sm_80, sm_86 where k is 8 or 16 and sparse is False",
        ),
        (
            [half("sm_80", k=(8, 16)), half("sm_80", k=(16, 8))],
            "EVIDENCE speaks of the same twice: 'half' on sm_80 where k is 8 or 16; 'half' on sm_80 where k is 16 or 8",
        ),
    ],
    ids=["order", "targets", "attributes", "both", "twice"],
)
def test_rows_that_meet_are_nested(rows: list[EvidenceRow], says: str) -> None:
    with pytest.raises(TableError) as caught:
        ScopedTable("EVIDENCE", rows, lambda record: record.targets)
    assert str(caught.value) == says


@pytest.mark.parametrize(
    "rows",
    [
        [half("sm_80"), half("sm_86")],
        [half("sm_80", k=(8,)), half("sm_80", k=(16,))],
        [half("sm_80", k=(8,)), half("sm_80", k=(16,), sparse=(True,))],
        [
            half("sm_80", k=(8,), sparse=(True,)), half("sm_80", k=(8,)), half("sm_80", "sm_86", k=(8, 16)),
            half("sm_80", "sm_86"),
        ],
        [half("sm_80"), replace(half("sm_80"), group="fp8")],
    ],
    ids=["targets", "values", "one value", "nest", "groups"],
)  # fmt: skip
def test_rows_that_do_not_meet_or_are_nested_are_taken(rows: list[EvidenceRow]) -> None:
    assert ScopedTable("EVIDENCE", rows, lambda record: record.targets).rows == tuple(rows)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (replace(half("sm_80"), group="hlaf"), "'hlaf' on sm_80"),
        (replace(half("sm_90a"), group="wgmma haf"), "'wgmma haf' on sm_90a"),
        (half("sm_75", k=(16,), sparse=(False,)), "'half' on sm_75 where k is 16 and sparse is False"),
        (half("sm_70"), "'half' on sm_70"),
    ],
    ids=["no group", "no group of wgmma", "not legal there", "target without any"],
)
def test_a_row_that_answers_for_nothing_is_refused(row: EvidenceRow, says: str) -> None:
    with pytest.raises(TableError) as caught:
        checked("EVIDENCE", (row, *EVIDENCE), lambda record: record.targets)
    assert str(caught.value) == f"EVIDENCE has a row that answers for no instruction: {says}"


def test_a_row_that_asks_for_what_no_instruction_has_is_refused() -> None:
    row = half("sm_80", sparse=(False,), mode=(1,))
    with pytest.raises(TableError, match=r"^EVIDENCE asks for 'mode', which mma.* does not have: 'half' on sm_80 w"):
        checked("EVIDENCE", (row, *EVIDENCE), lambda record: record.targets)


def test_nothing_is_looked_up_in_a_table_with_holes() -> None:
    """Not even what the other rows would answer; and `wgmma` is asked apart, for it takes as long."""
    holes = ScopedTable("EVIDENCE", [x for x in EVIDENCE if x.group != "b1"], lambda record: record.targets)
    for _ in range(2):
        with pytest.raises(TableError, match=r"EVIDENCE has no row for mma.*\.b1\.b1\.s32\.xor\.popc on sm_75, of the"):
            holes.find(F16, "sm_90")
    assert holes.find(warpgroup_instructions()[0], "sm_90a")


def test_a_scope_that_speaks_of_more_is_not_within() -> None:
    wide, narrow = half("sm_80", "sm_86"), half("sm_80", k=(8,))
    assert narrow.within(wide) and not wide.within(narrow) and wide.within(wide)
    assert not half("sm_80", k=(8, 16)).within(narrow) and not narrow.within(half("sm_80", m=(16,)))
    assert isinstance(wide, Scope) and str(wide) == "'half' on sm_80, sm_86"


def test_what_was_measured_has_the_shapes_that_there_are() -> None:
    """No shape that a row says was asked is one that none of its instructions has; and none is left out."""
    for row in EVIDENCE:
        mine = {(i, t) for i in instructions() for t in i.targets if row.fits(i, t)}
        shapes = {i.shape for i, _ in mine}
        assert not row.shapes or shapes <= set(row.shapes), str(row)
        assert bool(row.shapes) == bool(row.evidence.device and mine), str(row)
    known = {shape for row in EVIDENCE for shape in row.shapes}
    assert known == {i.shape for i in instructions()}


def test_the_evidence_of_a_record() -> None:
    assert evidence_of(F16, "sm_90") == wm.evidence(F16, target="sm_90")
    assert lowering(F16, "sm_90") is recipes.lowering_of(F16, "sm_90")
    assert variants(100, 90) == ("sm_90", "sm_90a", "sm_100", "sm_100f", "sm_100a")
    assert callable(evidence.evidence_of)  # the module is not hidden by a function
