"""Forms: the mnemonics that a spelling enumerates and reads, and the errors of tables."""

from __future__ import annotations

import itertools
import pickle
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpmma as wm
from warpmma.errors import MnemonicError, TableError, TargetError, WarpmmaError
from warpmma.isa import FRAGMENT_FORMS, KEPT, REQUIRED, WORDS, InstructionTable, Spelling
from warpmma.isa.grammar.instruction_forms import common
from warpmma.isa.grammar.vocabulary import ABSENT, SIMULATED
from warpmma.operations import InstructionRow, MatrixMove, Operation, operation, operations, row, rows, table
from warpmma.operations.forms import Form
from warpmma.operations.measurements import elsewhere
from warpmma.operations.memory import addresses
from warpmma.operations.table import FORMS, FormTable

KNOWN = wm.Evidence(kind="published", source="a text")
ALL = tuple(rows())
ADDRESSES = {x for form in addresses.FORMS for x in form.mnemonics if not x.startswith(("mapa", "getctarank"))}
"""What depends on where things lie in memory, which is not compared with a GPU, except in clusters."""
UNCOMPARED = ADDRESSES | {f"fma.rn.oob{relu}.{type_}x2" for relu in ("", ".relu") for type_ in ("f16", "bf16")}


def form(spelling: str, **given: Any) -> Form:
    """An operation of one b32 that turns its bits."""
    fields: Callable[[tuple[str, ...]], Mapping[str, Any]] = lambda words: {  # noqa: E731
        "inputs": ("b32",), "outputs": ("b32",), "compute": lambda a: (~a,),
    }  # fmt: skip
    return Form(spelling=spelling, kind=Operation, fields=fields, **{"evidence": KNOWN, **given})


# Spellings


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("exit", ["exit"]),
        ("bar{.cta} .<sync arrive>", ["bar.sync", "bar.arrive", "bar.cta.sync", "bar.cta.arrive"]),
        ("<min max>{.NaN.abs}.f32", ["min.f32", "min.NaN.abs.f32", "max.f32", "max.NaN.abs.f32"]),
        ("cvt.<f16.f32 f32.f64>", ["cvt.f16.f32", "cvt.f32.f64"]),
        ("ld[.weak].global.L2::<64B 128B>", ["ld.global.L2::64B", "ld.global.L2::128B"]),
    ],
)
def test_spellings(spelling: str, expected: list[str]) -> None:
    assert Spelling(spelling).mnemonics == expected == form(spelling).mnemonics


@pytest.mark.parametrize("spelling", ["add.{f32", "add..f32", "add.<f32", "add.f32}", "add .f 32", "add.[f32]]"])
def test_what_is_no_spelling_is_refused(spelling: str) -> None:
    with pytest.raises(TableError, match=r"is not a qualifier, \{\}, \[\] or <>"):
        _ = Spelling(spelling).mnemonics


# Reading


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("ldmatrix.sync.aligned.x4.m8n8.b16.shared", "ldmatrix.sync.aligned.m8n8.x4.shared.b16"),
        ("ld.v4.u32.L2::128B.L1::no_allocate.nc.global", "ld.global.nc.L1::no_allocate.L2::128B.v4.u32"),
        ("cvt.f16.f32.rn", "cvt.rn.f16.f32"),
        ("cvt.f16.rn.f32.relu", "cvt.rn.relu.f16.f32"),
        ("setp.f32.ftz.lt", "setp.lt.ftz.f32"),
        ("shfl.b32.bfly.sync", "shfl.sync.bfly.b32"),
        ("redux.s32.sync.add", "redux.sync.add.s32"),
        ("min.abs.f32.xorsign.NaN", "min.NaN.xorsign.abs.f32"),
        ("cp.async.shared.L2::64B.global.ca", "cp.async.ca.shared.global.L2::64B"),
        ("barrier.aligned.sync", "barrier.sync.aligned"),
        ("prmt.f4e.b32", "prmt.b32.f4e"),
        ("lop3.b32.or", "lop3.or.b32"),
    ],
)
def test_qualifiers_come_in_any_order(given: str, expected: str) -> None:
    """ptxas 13.0 reads each of these."""
    assert str(row(given)) == expected
    assert row(given) is row(expected)


@pytest.mark.parametrize(
    "given",
    [
        "cvt.f32.rn.f16",  # another conversion, which takes no .rn
        "cvt.s32.rn.f32",
        "cp.async.ca.global.shared",
        "cp.ca.async.shared.global",
        "cp.wait_all.async",
        "mul.s32.wide",
        "shf.wrap.l.b32",
        "bar.sync.cta",
        "bar.sync.warp",
        "cvt.pack.sat.u8.b32.s32",
        "ldmatrix.sync.aligned.m8n16.x1.b6x16_p32.b8x16.shared",
    ],
)
def test_heads_stay_and_types_and_spaces_keep_their_order(given: str) -> None:
    """ptxas 13.0 refuses each of these."""
    with pytest.raises(MnemonicError):
        row(given)


@given(st.sampled_from(ALL), st.randoms())
@settings(max_examples=300, deadline=None)
def test_a_row_is_found_by_its_words_in_any_order(given: InstructionRow, chance: random.Random) -> None:
    found = next(f for f in table._table().forms(given.mnemonic.partition(".")[0]) if given.mnemonic in f.mnemonics)
    head = max((h for h in found.heads if f"{given.mnemonic}.".startswith(f"{'.'.join(h)}.")), key=len)
    words = given.mnemonic.split(".")[len(head) :]
    shuffled = words.copy()
    chance.shuffle(shuffled)
    for kept in KEPT:  # as they were among each other
        order = iter([word for word in words if word in kept])
        shuffled = [next(order) if word in kept else word for word in shuffled]
    assert row(".".join((*head, *shuffled))) is given


def test_every_spelling_prints_as_it_is_written() -> None:
    for x in ALL:
        assert str(row(x.mnemonic)) == x.mnemonic and row(x.mnemonic) is x


def test_what_changes_nothing_but_speed_is_read_and_not_listed() -> None:
    names = {x.mnemonic for x in rows(opcode="ld")}
    assert "ld.global.v4.f32" in names and not any(".ca" in x or "L2::128B" in x or "weak" in x for x in names)
    assert str(row("ld.weak.global.ca.L2::128B.v4.f32")) == "ld.weak.global.ca.L2::128B.v4.f32"


def test_rows_are_listed_by_target_and_opcode() -> None:
    assert {str(x).split(".")[0] for x in rows(opcode="mul")} == {"mul"}
    assert set(rows("sm_80")) < set(rows("sm_100a"))
    assert {x for x in rows("sm_90a") if isinstance(x, Operation)} == set(operations("sm_90a"))
    with pytest.raises(TargetError):
        rows("sm_1")
    says = "no row has the opcode 'foo'; expected one such as 'ld', 'cvt' or 'bar'"
    with pytest.raises(MnemonicError, match=f"^{says}$"):
        rows(opcode="foo")


def test_a_word_can_want_a_later_target_or_version_than_its_form() -> None:
    for word, (since, version) in REQUIRED.items():
        named = next((x for f in FORMS for x in _with(f, word)), None)
        assert named is not None, word
        found = row(named)
        assert isinstance(found, InstructionRow) and found.ptx >= version
        assert set(found.targets) <= set(wm.isa.since(since))
    with pytest.raises(TargetError):
        row("ld.global.L2::256B.b32", "sm_75")
    assert row("ld.global.L2::128B.b32", "sm_75") is row("ld.global.L2::128B.b32")


def _with(given: Form, word: str) -> list[str]:
    """Return a mnemonic of a form that has a word, if there is one."""
    if word in given.heads[-1]:
        return [name for name in given.mnemonics if word in name.split(".")][:1]
    if word not in given.vocabulary:
        return []
    shown = (next((c for c in slot.choices if word in c), slot.choices[0]) for slot in given.slots)
    return [".".join((*given.heads[0], *itertools.chain(*shown)))]


# What a table refuses


def test_adding_an_operation_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operation without memory, by an opcode that no row has."""

    def clz(a: Any) -> tuple[Any]:
        return (np.array([32 - int(x).bit_length() for x in a.flat], np.uint32).reshape(a.shape),)

    added = Form(
        spelling="txq.b32", kind=Operation, ptx=(2, 0), evidence=KNOWN,
        fields=lambda words: {"inputs": ("b32",), "outputs": ("b32",), "compute": clz},
    )  # fmt: skip
    mine = FormTable((*FORMS, added))
    monkeypatch.setattr(table, "_table", lambda: mine)
    found = row("txq.b32", "sm_90")
    assert isinstance(found, Operation) and found is operation("txq.b32") and found in operations("sm_70")
    assert found(np.full(32, 0x00FF0000, np.uint32))[0].tolist() == [8] * 32
    assert pickle.loads(pickle.dumps(found)) is found
    assert wm.operations.evidence("txq.b32", target="sm_90") == KNOWN


@pytest.mark.parametrize(
    ("added", "says"),
    [
        (form("not.b32"), "not.<pred b16 b32 b64> and not.b32 overlap: both read not.b32"),
        (form("ld{.weak}.shared.v2.f32"), "both read ld.shared.v2.f32"),
        (form("cvt.<f32 bf16>.bf16{.rni}"), "both read cvt."),
        (form("bar.cta .sync"), "bar.cta .<sync arrive> and bar.cta .sync overlap: both read bar.cta.sync"),
        (form("clz.b32", evidence=None), "clz.b32: no evidence; a row says how we know what it does"),
        (form("clz.b33"), "clz.b33: '.b33' is not a word of `vocabulary`"),
        (form("cls.b32"), "cls.b32: PTX has no 'cls'"),
        (form("clz{.ftz}{.ftz}.b32"), "clz{.ftz}{.ftz}.b32 reads clz.ftz.b32 in two ways"),
        (form("clz.<b32 b64 b32>"), "clz.<b32 b64 b32> reads clz.b32 in two ways"),
        (form("clz{.ftz}{.sat}{.ftz.sat}.b32"), "reads clz.ftz.sat.b32 in two ways"),
        (form("clz.<b32"), "is not a qualifier"),
    ],
)
def test_forms_that_no_table_may_have(added: Form, says: str) -> None:
    with pytest.raises(TableError) as error:
        FormTable((*FORMS, added))
    assert says in str(error.value) and isinstance(error.value, WarpmmaError)


def test_a_duplicate_is_refused() -> None:
    with pytest.raises(TableError, match=r"^clz\.b32 occurs in the table twice: both read clz\.b32$"):
        FormTable((form("clz.b32"), form("clz.b32")))


def test_forms_of_fragments_do_not_overlap_either() -> None:
    InstructionTable(FRAGMENT_FORMS).prove()
    with pytest.raises(TableError, match=r"occurs in the table twice: both read ldmatrix\."):
        InstructionTable((*FRAGMENT_FORMS, replace(FRAGMENT_FORMS[0]))).prove()


SLOTS = ("", "{.ftz}", "{.sat}", ".<rn rz>", "{.<rn rm>}", "{.ftz.sat}", "[.relu]")
TYPES = (".<f32 f16>", ".f32", ".<f16.f32 f32.f16>", ".<f32 f16>.<f32 f16>")


@given(*[st.tuples(*[st.sampled_from(SLOTS)] * 3, st.sampled_from(TYPES)) for _ in range(2)])
@settings(max_examples=400, deadline=None)
def test_forms_overlap_where_both_read_a_mnemonic(x: tuple[str, ...], y: tuple[str, ...]) -> None:
    """Against all mnemonics, written out; words keep the order of types alone."""
    a, b = (form("add" + "".join(parts)) for parts in (x, y))

    def every(given: Form) -> set[tuple[Any, ...]]:
        written = Spelling(given.spelling.replace("[", "{").replace("]", "}")).mnemonics
        words = [name.split(".")[1:] for name in written]
        return {(tuple(sorted(w)), tuple(v for v in w if v in KEPT[0])) for w in words}

    found = common(a, b)
    assert (found is not None) == bool(every(a) & every(b))
    if found is not None:
        assert a.match(tuple(found.split("."))) and b.match(tuple(found.split(".")))
    if a.spelling != b.spelling and found is not None:
        with pytest.raises(TableError):
            FormTable((a, b))


# The table


def test_opcodes_and_words_are_those_that_other_messages_name() -> None:
    opcodes = {head[0] for f in FORMS for head in f.heads}
    assert opcodes == {opcode for opcode, door in SIMULATED.items() if door != "mma"}
    used = {word for f in FORMS for word in f.words} - opcodes
    assert used - WORDS == set() and WORDS - used - opcodes == set()
    for x in ALL:
        assert not any(f"{x.mnemonic}.".startswith(f"{start}.") for start in ABSENT), x


def test_every_row_says_how_we_know() -> None:
    for x in ALL:
        assert x.evidence.source.startswith("PTX ISA 9.1, "), x
        assert (x.evidence.kind == "derived") == bool(x.evidence.assumption), x
        assert (x.evidence.kind == "measured") == bool(x.evidence.compared), x
        if isinstance(x, Operation | MatrixMove):
            assert (x.evidence.kind == "measured") == ("sm_90a" in x.targets and x.mnemonic not in UNCOMPARED), x


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ld.acquire.global.b32", "is not a simulated instruction. Nearest: ld.acquire."),
        ("ld.acquire.gpu.const.b32", "is not a simulated instruction. Nearest: ld.acquire.gpu."),
        ("st.const.b32", "is not a simulated instruction. Nearest: st."),
        ("ld.gobal.b32", "Nearest: ld.global.b32"),
        ("ld.global.b32.ca.L1::evict_last", "is not a simulated instruction. Nearest: ld.global."),
        ("cp.async.cg.shared", "Nearest: cp.async.cg.shared.global"),
        ("bar.sink", "Nearest: bar.sync"),
        ("cp.async.bulk.tensor.1d", "Nearest: cp.async.bulk.prefetch.tensor.1d.L2.global"),
        ("multimem.red.add.u32", "multimem is PTX, not simulated yet"),
        ("add.f31", "is not a simulated operation. Nearest: add.f32"),
        ("mma.foo", "mma.foo: unknown qualifier '.foo'"),
        ("wgmma.mma_async.sync.aligned", "wgmma.mma_async.sync.aligned: needs one shape"),
    ],
)
def test_names_of_no_row_are_explained(name: str, says: str) -> None:
    with pytest.raises(MnemonicError) as error:
        row(name)
    assert says in str(error.value)


@pytest.mark.parametrize("given", [None, 3, b"add.f32", ["add.f32"], {}])
def test_what_is_no_string_names_no_row(given: Any) -> None:
    with pytest.raises(MnemonicError, match=r"^a mnemonic is a string"):
        row(given)
    target: Any = given or {}
    with pytest.raises(TargetError):
        row("add.f32", target)


def test_an_mma_is_its_record() -> None:
    name = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    assert row(name) == wm.parse(name) and row(f" {name}; ", "sm_90") == wm.parse(name)
    with pytest.raises(TargetError):
        row(name, "sm_75")
    assert wm.operations.evidence(name, target="sm_90") == wm.evidence(name, target="sm_90")


def test_every_assumption_is_in_the_docs() -> None:
    """As `evidence` words it, and no other."""
    text = " ".join((Path(__file__).parents[2] / "docs" / "evidence.md").read_text("utf-8").split())
    section = text.partition("## Instructions around `mma`")[2].partition(" ## ")[0]
    found = {elsewhere(x.evidence, x.left_open, target).assumption for x in ALL for target in x.targets} - {""}
    assert set(re.findall(r"\* \*\*(.+?)\*\*: ", section)) == found


def test_evidence_of_other_targets_than_the_measured_one() -> None:
    evidence = wm.operations.evidence
    measured = evidence("add.f32", target="sm_90")
    assert measured.kind == "measured" and "H200" in measured.device and "0 differences" in measured.compared
    elsewhere = evidence("add.f32", target="sm_80")
    assert elsewhere.kind == "derived" and elsewhere.assumption.endswith("as on an H200") and not elsewhere.device
    assert evidence("add.u32", target="sm_80").kind == evidence("bar.sync", target="sm_90").kind == "published"
    assert evidence("add.f32x2", target="sm_100").kind == "derived"
    with pytest.raises(TargetError):
        evidence("add.f32x2", target="sm_90")


def test_the_look_up_forgets_before_it_grows_without_end() -> None:
    mine = FormTable([form("not.b32")])
    for before, after in itertools.product(range(75), range(75)):
        assert mine.look_up(" " * before + "not.b32" + " " * after, None) is mine.find("not.b32")
    assert len(mine._seen) < 75 * 75
