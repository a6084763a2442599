"""Descriptions of mnemonics: what is read, printed and refused follows from slots and rows alone."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import pytest

from warpmma.errors import MnemonicError, TableError, TargetError, UnsupportedError
from warpmma.isa import FAMILIES, Family, Instruction, Version, WarpgroupInstruction, parse
from warpmma.isa.grammar.mnemonic_slots import Choices, Grammar, MnemonicSlot, Refusal
from warpmma.isa.names import mnemonics
from warpmma.isa.tables import MMA, WGMMA, mma
from warpmma.isa.tables.matrix_instructions import MatrixInstruction, Table

pytestmark = pytest.mark.quick

KINDS: dict[str, tuple[type[MatrixInstruction], Grammar[Any]]] = {
    "mma": (Instruction, MMA),
    "wgmma": (WarpgroupInstruction, WGMMA),
}
each_kind = pytest.mark.parametrize(("record", "grammar"), KINDS.values(), ids=KINDS)


# A third kind: a table alone.


@dataclass(frozen=True, kw_only=True)
class Shapes:
    """A row of a kind that is made up."""

    m: tuple[int, ...]
    types: tuple[tuple[str, str], ...]
    targets: tuple[str, ...] = ("sm_100a",)
    ptx: Version = (8, 6)
    documented: bool = True

    @property
    def choices(self) -> Choices:
        return (
            (("m", "n", "k"), tuple((m, 8, 16) for m in self.m)),
            (("d_type", "a_type"), self.types),
            (("cta_group",), (("1",), ("2",))),
            (("ashift", "collector"), ((False, None), (True, "fill"))),
        )


ROWS = (Shapes(m=(64, 128), types=(("f32", "f16"),)), Shapes(m=(64,), types=(("s32", "u8"), ("s32", "s8"))))
TOY: Grammar[Shapes] = Grammar(
    opcode="mma.toy",
    slots=(
        MnemonicSlot(part="cta_group", spelling="cta_group::{}"),
        MnemonicSlot(part="shape", holds=int, fields=("m", "n", "k"), spelling="m{}n{}k{}", needs="one shape"),
        MnemonicSlot(part="type", fields=("d_type", "a_type"), needs="the types of D and A"),
        MnemonicSlot(part="ashift", holds=bool),
        MnemonicSlot(part="collector", spelling="collector::{}", readable=("collector::use",)),
        MnemonicSlot(part="lent", holds=None, partner="collector", follows=True),
        MnemonicSlot(part="sync", holds=None),
    ),
    rows=ROWS,
    weights={"a_type": 3},
    unsupported={"ws": "nobody measured it"},
    refusals=(Refusal(fields={"a_type": "u8", "m": 128}, why="it is too large", nearest="mma.toy"),),
)


@dataclass(frozen=True, kw_only=True)
class Toy(MatrixInstruction):
    """An instruction of the kind that is made up."""

    _grammar: ClassVar[Grammar[Any]] = TOY

    cta_group: str | None = None
    m: int
    n: int
    k: int
    d_type: str
    a_type: str
    ashift: bool = False
    collector: str | None = None

    @cached_property
    def family(self) -> Shapes:
        return TABLE.row(self)


TABLE = Table(record=Toy, grammar=TOY)
FIRST = "mma.toy.cta_group::1.m64n8k16.f32.f16.sync"


def test_a_kind_is_a_table() -> None:
    assert len(TABLE.listed(None)) == len(TOY.legal) == 2 * 2 * 2 + 2 * 2 * 2
    assert TABLE.listed("sm_100a") == TABLE.listed(None) and TABLE.listed("sm_90a") == ()
    with pytest.raises(TargetError, match="unknown target 'sm_91'"):
        TABLE.listed("sm_91")
    for instruction in TABLE.listed(None):
        assert TABLE.parse(str(instruction)) == TABLE.parse(instruction) == instruction
        assert (instruction.targets, instruction.ptx, instruction.documented) == (("sm_100a",), (8, 6), True)
    assert TOY.legal[0] == FIRST
    shuffled = "mma.toy.sync.f32.collector::fill.ashift.f16.lent.m128n8k16.cta_group::2"
    printed = "mma.toy.cta_group::2.m128n8k16.f32.f16.ashift.collector::fill.lent.sync"
    assert str(TABLE.parse(shuffled)) == printed


@pytest.mark.parametrize(
    ("mnemonic", "message"),
    [
        ("mma.toi.sync", "starts with 'mma.toi'; expected 'mma.toy'"),
        (FIRST.replace(".sync", ""), "needs .sync; got none"),
        (FIRST + ".sync", "needs .sync; got .sync, .sync"),
        (FIRST.replace(".m64n8k16", ""), "needs one shape; got none"),
        (FIRST.replace(".f16", ""), "needs the types of D and A; got .f32"),
        (FIRST + ".cta_group::2", "takes one cta_group at the most; got .cta_group::1, .cta_group::2"),
        (FIRST + ".toi", "unknown qualifier '.toi', did you mean '.toy'"),
        (FIRST + ".colector::fill", "unknown qualifier '.colector::fill', did you mean '.collector::fill'"),
        (FIRST + ".lent", ".lent goes with .collector::fill, which comes first"),
        (FIRST + ".collector::fill", ".lent goes with .collector::fill, which comes first"),
        (FIRST + ".lent.collector::fill.ashift", ".lent goes with .collector::fill, which comes first"),
        (FIRST + ".collector::use.lent.ashift", "collector is 'use' where 'fill' is legal"),
        (FIRST.replace("f32.f16", "s32.f16"), "d_type is 's32' where 'f32' is legal"),
        (FIRST.replace("m64", "m128").replace("f32.f16", "s32.u8"), " is refused: it is too large. Nearest legal: mma"),
    ],
)
def test_its_errors_follow_from_the_table(mnemonic: str, message: str) -> None:
    with pytest.raises(MnemonicError) as caught:
        TABLE.parse(mnemonic)
    assert message in str(caught.value)


def test_unsupported_qualifiers_are_named() -> None:
    with pytest.raises(UnsupportedError, match=r"^mma\.toy\.ws\.foo: nobody measured it$"):
        TABLE.parse("mma.toy.ws.foo")


# What is refused when a table is first used.


@each_kind
def test_a_combination_of_two_rows_is_refused(record: type[MatrixInstruction], grammar: Grammar[Any]) -> None:
    """Today's tables have none; one combination of a row again, on other targets say, is enough."""
    assert len(Table(record=record, grammar=grammar).rows) == len(set(grammar.legal)) == len(grammar.legal)
    *_, last = grammar.rows
    twice = replace(grammar, rows=(*grammar.rows, replace(last, ptx=(9, 9))))
    with pytest.raises(TableError, match=rf"^{grammar.opcode}\.\S+ comes from two rows, \w+\(.*\) and \w+\(.*\(9, 9\)"):
        _ = Table(record=record, grammar=twice).rows


def test_a_combination_that_a_row_has_twice_is_refused() -> None:
    twice = replace(TOY, rows=(replace(ROWS[0], m=(64, 64)),))
    with pytest.raises(TableError, match=f"^{FIRST} comes from two rows"):
        Table(record=Toy, grammar=twice).parse(FIRST)


def test_rows_that_overlap_are_refused_although_they_differ() -> None:
    """Two rows of `mma` that share one of their combinations, as a new row would by mistake."""
    row = Family(
        shapes="m16n8k16", accumulators=(("f32", "f32"),), multiplicands=(("f16", "f16"), ("u4", "u4")),
        since="sm_90", ptx=(8, 0),
    )  # fmt: skip
    both = Table(record=Instruction, grammar=replace(MMA, rows=(*FAMILIES, row)))
    with pytest.raises(TableError, match=r"^mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.f16\.f16\.f32 comes from two"):
        both.parse("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64")


def test_a_word_of_two_parts_is_refused() -> None:
    slots = (*TOY.slots, MnemonicSlot(part="stype", readable=("f16",)))
    with pytest.raises(TableError, match=r"^mma\.toy: \.f16 could be of type and of stype$"):
        replace(TOY, slots=slots).read(FIRST, FIRST.split(".")[1:])


def test_a_grammar_for_another_record_is_refused() -> None:
    with pytest.raises(
        TableError, match=r"^WarpgroupInstruction has the fields \['sparsity', 'm', .*; its grammar spells \['spar"
    ):
        _ = Table(record=WarpgroupInstruction, grammar=MMA).rows


# The real ones.


def test_an_instruction_of_known_types_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """What sm_90a might have had: listed, read, printed and explained, with layouts, by one row more."""
    row = Family(
        shapes="m16n8k64", accumulators=(("f32", "f32"),), multiplicands=(("e4m3", "e4m3"),), since="sm_90a", ptx=(9, 9)
    )
    mnemonic = "mma.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32"
    with pytest.raises(MnemonicError, match="k is 64 where 32 is legal"):
        parse(mnemonic)
    longer = Table(record=Instruction, grammar=replace(MMA, rows=(*FAMILIES, row)))
    for module in (mma, mnemonics):
        monkeypatch.setattr(module, "MMA_TABLE", longer)
    found = parse("mma.m16n8k64.aligned.f32.e4m3.e4m3.f32.sync.row.col")
    assert str(found) == mnemonic and found in mma.instructions("sm_90a") and found not in mma.instructions("sm_90")
    assert (found.ptx, found.targets[0], found.layout("A").shape) == ((9, 9), "sm_90a", (16, 64))


@each_kind
def test_types_of_fields_are_those_of_slots(record: type[MatrixInstruction], grammar: Grammar[Any]) -> None:
    written: Mapping[Any, type] = {"int": int, "bool": bool, "str": str, "str | None": str}
    assert {f.name: written[f.type] for f in fields(record)} == grammar.types  # type: ignore[arg-type]


@each_kind
def test_the_vocabulary_is_what_rows_spell(record: type[MatrixInstruction], grammar: Grammar[Any]) -> None:
    spelled = {word for mnemonic in grammar.legal for word in mnemonic.split(".")[1:]}
    readable = {word for slot in grammar.slots for word in slot.readable}
    assert set(grammar.words) == spelled | readable
    for mnemonic in grammar.legal[::7]:
        assert grammar.printed(grammar.read(mnemonic, mnemonic.split(".")[1:])) == mnemonic


def test_grammars_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(parse("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"))).family in FAMILIES
