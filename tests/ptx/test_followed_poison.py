"""What depends on luck is poison, which is followed to what it decides: rule 5 of `hazards`."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from poison_cases import HEAD, LATER, LUCK, STORED, kind, launch

import warpmma as wm
from warpmma import ptx
from warpmma.kernel import Output
from warpmma.machine import HazardError, HazardWarning
from warpmma.machine.memory import allocation, local_memory
from warpmma.machine.run import branching
from warpmma.machine.run.groups import Group

CARRIED = {  # what becomes of poison in %r6, as %r9; and whether that is poison
    "moved": ("mov.u32 %r9, %r6;", True),
    "added": ("add.u32 %r9, %r6, 1;", True),
    "masked": ("and.b32 %r9, %r6, 0;", False),
    "masked in part": ("and.b32 %r9, %r6, 0xF0;", True),
    "or": ("or.b32 %r9, %r6, -1;", False),
    "shifted out": ("shl.b32 %r9, %r6, 32;", False),
    "a clean byte": ("and.b32 %r7, %r6, 0xFF00; prmt.b32 %r9, %r7, %r1, 0x4440;", False),
    "a poison byte": ("and.b32 %r7, %r6, 0xFF00; prmt.b32 %r9, %r7, %r1, 0x4441;", True),
    "a clean field": ("and.b32 %r7, %r6, 0xFF00; bfe.u32 %r9, %r7, 16, 8;", False),
    "a clean half": ("and.b32 %r7, %r6, 0xFFFF; add.f16x2 %r8, %r7, %r1; shr.u32 %r9, %r8, 16;", False),
    "a poison half": ("and.b32 %r7, %r6, 0xFFFF; add.f16x2 %r8, %r7, %r1; and.b32 %r9, %r8, 1;", True),
    "packed": ("cvt.u16.u32 %h1, %r6; mov.b16 %h2, 1; mov.b32 %r8, {%h1, %h2}; shr.u32 %r9, %r8, 16;", False),
    "not chosen": ("selp.u32 %r9, %r1, %r6, %p1; selp.u32 %r9, %r9, 0, %p1;", False),
    "chosen alike": ("setp.eq.u32 %p2, %r6, 7; selp.u32 %r9, %r1, %r1, %p2;", False),
    "chosen": ("setp.eq.u32 %p2, %r6, 7; selp.u32 %r9, 2, 3, %p2;", True),
    "through shared memory": ("st.shared.u32 [%r5+128], %r6; ld.shared.u32 %r9, [%r5+128];", True),
    "overwritten": ("st.shared.u32 [%r5], %r6; st.shared.u32 [%r5], %r1; ld.shared.u32 %r9, [%r5];", False),
    "one byte of it": ("st.shared.u8 [%r5], 3; ld.shared.u8 %r9, [%r5];", False),
    "another byte of it": ("st.shared.u8 [%r5], 3; ld.shared.u8 %r9, [%r5+1];", True),
    "through local memory": ("st.local.u32 [mine], %r6; ld.local.u32 %r9, [mine];", True),
    "local memory": ("ld.local.u32 %r9, [mine];", True),
    "overwritten locally": ("st.local.u32 [mine], %r6; st.local.u32 [mine], 1; ld.local.u32 %r9, [mine];", False),
    "extended": ("st.local.u8 [mine], %r6; ld.local.u8 %r7, [mine]; shr.u32 %r9, %r7, 8;", False),
    "sign extended": ("st.local.u8 [mine], %r6; ld.local.s8 %r7, [mine]; shr.u32 %r9, %r7, 8;", True),
    "voted": ("setp.eq.u32 %p2, %r6, 7; vote.sync.ballot.b32 %r9, %p2, -1;", True),
    "voted of nothing": ("setp.ne.u32 %p2, %r1, 99; vote.sync.ballot.b32 %r9, %p2, -1;", False),
    "reduced": ("redux.sync.add.u32 %r9, %r6, -1;", True),
    "shuffled": ("shfl.sync.bfly.b32 %r9, %r6, 1, 31, -1;", True),
    "an operand of mma": ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r6, %r1}, {%r1}, "
                          "{%f0, %f0, %f0, %f0}; mov.b32 %r9, %f1;", True),
}  # fmt: skip


@pytest.mark.parametrize("name", CARRIED)
def test_poison_is_carried_by_bits(name: str) -> None:
    body, poison = CARRIED[name]
    body = LUCK + "mov.f32 %f0, 0f00000000;" + body
    assert kind(body + STORED) == ("unwritten" if poison else "")
    assert kind(body) == ""  # it decides nothing
    report, _, _ = launch(body)
    if LUCK in body:
        assert {key[0] for key in report.harmless} == {"unwritten"}


SELECTED = {  # what a poison guard selects is poison, %r9; what it does not is not, %r10
    "a guard": "setp.eq.u32 %p2, %r6, 7; mov.u32 %r9, 3; mov.u32 %r10, 1; @%p2 mov.u32 %r9, 1;",
    "no guard": "setp.eq.u32 %p2, %r6, 0; mov.u32 %r9, 3; mov.u32 %r10, 1; @!%p2 add.u32 %r9, %r9, 1;",
    "a branch": "setp.eq.u32 %p2, %r6, 7; mov.u32 %r9, 3; mov.u32 %r10, 1; @%p2 bra END; add.u32 %r9, %r9, 1; END:",
    "a branch taken": "setp.eq.u32 %p2, %r6, 0; mov.u32 %r9, 3; mov.u32 %r10, 1; @%p2 bra END; mov.u32 %r9, 1; END:",
    "two ways": "setp.eq.u32 %p2, %r6, 7; mov.u32 %r10, 1; @%p2 bra THERE; mov.u32 %r9, 1; bra END; "
                "THERE: mov.u32 %r9, 2; END:",
}  # fmt: skip


@pytest.mark.parametrize("name", SELECTED)
def test_a_guard_of_operations_selects_poison(name: str) -> None:
    body = LUCK + SELECTED[name]
    assert kind(body) == "" and kind(body + STORED) == "unwritten"
    assert kind(body + STORED.replace("%r9", "%r10")) == ""
    part = LUCK + "@%p1 mov.u32 %r6, 0;" + SELECTED[name]  # the lower half is clean
    assert kind(part + "@%p1 " + STORED) == "" and kind(part + STORED) == "unwritten"
    _, _, y = launch(part + "@%p1 " + STORED)
    _, _, whole = launch(LUCK.replace("ld.shared.u32 %r6, [%r5]", "mov.u32 %r6, 0") + SELECTED[name] + STORED)
    np.testing.assert_array_equal(y[:16], whole[:16])


@pytest.mark.parametrize("name", SELECTED)
def test_lanes_that_diverge_at_a_poison_guard_are_all_poison_where_they_meet(name: str) -> None:
    guard = SELECTED[name].replace("setp.eq.u32 %p2, %r6, 7", "setp.lt.u32 %p2, %r6, 16")
    guard = guard.replace("setp.eq.u32 %p2, %r6, 0", "setp.lt.u32 %p2, %r6, 16")
    body = LUCK + "add.u32 %r6, %r6, %r1;" + guard
    for thread in (3, 20, 40, 63):
        some = f"setp.eq.u32 %p4, %r1, {thread}; @%p4 "
        for seed in range(4):
            assert kind(body + some + STORED, threads=64, seed=seed) == "unwritten"
            assert kind(body + some + STORED.replace("%r9", "%r10"), threads=64, seed=seed) == ""


def test_groups_that_arrive_one_by_one_where_a_branch_ends_are_all_spoiled() -> None:
    """Whatever the order, and though the first group to arrive prepares the step there."""

    class Spoilt:
        def __init__(self) -> None:
            self.lanes: list[list[int]] = []

        def spoil(self, slots: list[int], lanes: np.ndarray, by: Any) -> None:
            self.lanes.append(np.flatnonzero(lanes).tolist())

    def group(*lanes: int) -> Any:
        return Group(np.isin(np.arange(32), lanes).reshape(1, 1, 32), len(lanes), False)

    def prepared(group: Group) -> int:
        return 1

    def first(group: Group) -> int:
        code[0] = prepared
        return 1

    for order in itertools.permutations([(1, 2), (3,), (4, 5), (9,)]):
        code: list[Any] = [first]
        state: Any = Spoilt()
        for lanes in ((1, 2, 3), (4, 5)):  # two groups come to the branch
            branching._spoiling(state, code, branching._Hammock(0, [7]), group(*lanes).bits, state)
        assert [code[0](group(*lanes)) for lanes in order] == [1] * 4
        assert sorted(lane for lanes in state.lanes for lane in lanes) == [1, 2, 3, 4, 5] and code == [prepared]


DECIDED = {
    "an address": "mul.wide.u32 %rd7, %r6, 4; add.s64 %rd7, %rd1, %rd7; ld.global.u32 %r9, [%rd7];",
    "a guard": "setp.eq.u32 %p2, %r6, 7; @%p2 ld.global.u32 %r9, [%rd1];",
    "a branch": "setp.eq.u32 %p2, %r6, 7; @%p2 bra END; ld.global.u32 %r9, [%rd1]; END:",
    "a loop": "mov.u32 %r9, 0; AGAIN: add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, %r6; @%p2 bra AGAIN;",
    "a membermask": "or.b32 %r7, %r6, -2; vote.sync.any.pred %p3, %p1, %r7;",
    "a lane": "shfl.sync.idx.b32 %r9, %r1, %r6, 31, -1;",
    "a barrier": "barrier.sync %r6, 32;",
    "an atomic": "atom.global.cas.b32 %r9, [%rd6], %r6, 1;",
    "a store": "st.global.u32 [%rd6], %r6;",
    "a size": "cp.async.cg.shared.global [%r4], [%rd1], 16, %r6;",
    "a trap": "setp.eq.u32 %p2, %r6, 7; @%p2 trap;",
}


def test_what_is_printed_and_allocated_is_decided() -> None:
    call = """{ .param .b64 f; .param .b64 b; .param .b32 r; mov.u64 %rd7, hello; cvta.global.u64 %rd7, %rd7;
        .local .align 8 .b8 values[8]; mov.u64 %rd8, values; cvta.local.u64 %rd8, %rd8; st.u32 [%rd8], VALUE;
        st.param.b64 [f], %rd7; st.param.b64 [b], %rd8; call (r), vprintf, (f, b); }"""
    for value, found in (("%r6", "unwritten"), ("%r1", "")):
        assert kind(LUCK + call.replace("hello", "number").replace("VALUE", value)) == found
    size = "{ .param .b64 n; .param .b64 r; cvt.u64.u32 %rd7, %r6; st.param.b64 [n], %rd7; call (r), malloc, (n); }"
    assert kind(LUCK + size) == "unwritten"


@pytest.mark.parametrize("name", DECIDED)
def test_what_poison_decides_is_an_error_that_names_both_lines(name: str) -> None:
    with pytest.raises(HazardError, match="unwritten") as caught:
        launch(LUCK + DECIDED[name])
    hazard = caught.value.hazard
    assert hazard.kind == "unwritten" and hazard.site.mnemonic == "ld.shared.u32"
    assert hazard.decided is not None and hazard.decided.mnemonic in DECIDED[name]
    assert hazard.element.startswith("tile[")


def test_rows_and_columns_of_a_product() -> None:
    """Lanes 0 to 3 have row 0 of A, and column 0 of B; D[0, *] and D[*, 0] are poison, all else is not."""
    product = """mov.f32 %f0, 0f00000000; mov.u32 %r8, 0; mov.u32 %r7, 0;
        setp.lt.u32 %p2, %r1, 4; @%p2 LOAD
        mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r8, %r1}, {%r7}, {%f0, %f0, %f0, %f0};
        setp.ge.u32 %p3, %r1, GUARD; mov.b32 %r9, RESULT; @%p3 st.global.u32 [%rd6], %r9;"""

    def of(load: str, guard: int, result: str) -> str:
        return kind(product.replace("LOAD", load).replace("GUARD", str(guard)).replace("RESULT", result))

    a, b = "ld.shared.u32 %r8, [%r5];", "ld.shared.u32 %r7, [%r5];"
    assert of(a, 0, "%f1") == "unwritten" and of(a, 4, "%f1") == "" and of(a, 0, "%f3") == ""  # rows 0 and 8
    assert of(b, 0, "%f1") == of(b, 4, "%f1") == of(b, 0, "%f3") == "unwritten" and of(b, 0, "%f2") == ""


def test_matrices_move_with_their_poison() -> None:
    written = "st.shared.u32 [%r5], %r1; bar.sync 0;"
    load = "mul.lo.u32 %r7, %r2, 16; add.u32 %r7, %r7, %r4; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r7];"
    assert kind(written + load + "setp.lt.u32 %p2, %r1, 32; @%p2 " + STORED) == ""  # 8 rows of 16 bytes
    half = "@%p1 st.shared.u32 [%r5], %r1; bar.sync 0;" + load
    assert kind(half + "@%p1 " + STORED) == "" and kind(half + STORED) == "unwritten"


COPY = "cp.async.ca.shared.global [%r5], [%rd4], 4; cp.async.commit_group;"
WAIT = "cp.async.wait_group 0;"


def test_a_pending_copy() -> None:
    early = COPY + "ld.shared.u32 %r9, [%r5];"
    assert kind(early + WAIT + STORED) == "pending" and kind(early + WAIT) == ""
    assert kind(early + WAIT, hazards="strict") == "pending"
    assert kind(COPY + WAIT + "ld.shared.u32 %r9, [%r5];" + STORED) == ""


def test_a_copy_carries_poison() -> None:
    body = COPY + WAIT + "ld.shared.u32 %r9, [%r5];"
    entry = ptx.load(HEAD + body + STORED + "ret;\n}\n")["k"]
    with pytest.raises(HazardError, match=r"unwritten: .*never written: x is an Output, and its value") as caught:
        entry.launch(wm.Device("sm_80"), 1, 32, [Output(np.zeros(32, np.uint32)), np.zeros(64, np.uint32)])
    assert caught.value.hazard.site.mnemonic.startswith("cp.async")


EARLIER = "@%p1 st.shared.u32 [%r5], %r1; ld.shared.u32 %r9, [tile];"


def test_an_earlier_write_that_races() -> None:
    assert kind(EARLIER + STORED) == "race" and kind(EARLIER) == "" and kind(EARLIER, hazards="strict") == "race"
    report, _, _ = launch(EARLIER)
    ((what, read, wrote), lanes) = next(iter(report.harmless.items()))
    assert (what, read.mnemonic, wrote.mnemonic, lanes) == ("race", "ld.shared.u32", "st.shared.u32", 31)
    assert json.loads(report.json())["harmless"][0]["lanes"] == 31
    assert "harmless" in report.text().lower()


@pytest.mark.parametrize("seed", range(3))
def test_random_bits_in_harmless_reads_change_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, changed = np.random.default_rng(seed), []

    def scrambled(load: Any) -> Any:
        def other(*args: Any, **options: Any) -> Any:
            data, poison = load(*args, **options)
            if poison is not None:
                changed.append(poison)
                data = data ^ (rng.integers(0, 256, data.shape, np.uint8) & poison.bits)
            return data, poison

        return other

    product = (
        """mov.f32 %f0, 0f00000000; ld.shared.u32 %r8, [%r5]; setp.ge.u32 %p3, %r1, 4; @%p3 mov.u32 %r8, %r1;
        mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r8, %r1}, {%r1}, {%f0, %f0, %f0, %f0};
        mov.b32 %r9, %f1; @%p3 """
        + STORED
    )
    bodies = [product, LATER + "@%p2 " + STORED, EARLIER, COPY + "ld.shared.u32 %r9, [%r5];" + WAIT]
    bodies += [LUCK + "@%p1 mov.u32 %r6, 0;" + body + "@%p1 " + STORED for body in SELECTED.values()]
    expected = [launch(body, 64 if body.startswith(LATER) else 32) for body in bodies]
    for cls in (allocation.Allocation, local_memory.LocalMemory):
        monkeypatch.setattr(cls, "load", scrambled(cls.load))
    for body, (report, x, y) in zip(bodies, expected, strict=True):
        again = launch(body, 64 if body.startswith(LATER) else 32)
        assert again[0].harmless == report.harmless and changed
        np.testing.assert_array_equal(again[1], x)
        np.testing.assert_array_equal(again[2], y)


def test_warnings_come_once() -> None:
    guard = LUCK + "setp.eq.u32 %p3, %r6, 7; @%p3 ld.global.u32 %r10, [%rd1];"
    with pytest.warns(HazardWarning) as told:
        report, _, _ = launch(guard + LATER + STORED, 64, hazards="warn")
    assert sorted(str(x.message).split(": ")[2] for x in told) == ["race", "unwritten"]
    assert {x.kind for x in report.hazards} == {"race", "unwritten"} and report.harmless == {}


def test_poison_goes_through_global_memory_as_in_a_workspace() -> None:
    """What a launch leaves there decides something, unless the launch has loaded it since."""
    workspace = LUCK + "st.global.u32 [%rd6], %r6; ld.global.u32 %r9, [%rd6];"
    assert kind(workspace) == "" and kind(workspace + "st.global.u32 [%rd4], %r9;") == "unwritten"
    assert kind(LUCK + "st.global.u32 [%rd6], %r6; st.global.u32 [%rd6], 1;") == ""
    with pytest.raises(HazardError, match=r"tile\[0\] .*its value is left in y\[0\] at .*st.global"):
        launch(LUCK + "st.global.u32 [%rd6], %r6;")


def test_atomics_combine_poison() -> None:
    sums = LUCK + "@%p1 red.global.add.u32 [%rd6], %r6; ld.global.u32 %r9, [%rd6];"
    assert kind(sums) == "" and kind(sums + "@%p1 st.global.u32 [%rd4], %r9;") == "unwritten"
    assert kind(sums + "@!%p1 st.global.u32 [%rd4], %r9;") == ""
    # half of the cells hold poison, half are unwritten: a clean store to these does not clean those
    both = (
        LUCK + "@%p1 st.shared.u32 [%r5+512], %r6; red.shared.add.u32 [%r5+512], 1; @!%p1 st.shared.u32 [%r5+512], 1;"
    )
    both += "ld.shared.u32 %r9, [%r5+512];"
    assert kind(both + "@%p1 " + STORED) == "unwritten" and kind(both + "@!%p1 " + STORED) == ""
    one = LUCK + "setp.eq.u32 %p2, %r1, 3; @%p2 mov.u32 %r8, %r6; @!%p2 mov.u32 %r8, 0;"
    assert kind(one + "atom.global.add.u32 %r9, [%rd2], %r8; @!%p2 st.global.u32 [%rd4], %r9;") == "unwritten"


def test_poison_of_a_register_goes_through_memory() -> None:
    body = "@%p1 mov.u32 %r6, 1; st.shared.u32 [%r5], %r6; ld.shared.u32 %r9, [%r5];"
    assert kind(body + STORED) == "poison" and kind(body + "@%p1 " + STORED) == "" and kind(body) == ""


def test_a_strong_write_that_was_observed_does_not_race() -> None:
    """A lock is reset by a plain store of the thread that has read its last value; what else was written does race."""
    text = """ld.param.u64 %rd7, [y]; mov.u32 %r8, %ctaid.x; setp.eq.u32 %p2, %r8, 0; setp.ne.u32 %p3, %r1, 0;
        @%p3 bra END; @%p2 bra WAIT;
        st.global.u32 [%rd1], 7; FENCE red.relaxed.gpu.global.add.u32 [%rd7], 1; bra END;
        WAIT: ld.LOAD.gpu.global.u32 %r9, [%rd7]; setp.eq.u32 %p4, %r9, 0; @%p4 bra WAIT;
        st.global.u32 [%rd7], 0; USE END:"""

    def run(fence: str, load: str, use: str) -> str:
        body = text.replace("FENCE", fence).replace("LOAD", load).replace("USE", use)
        x, y = np.zeros(32, np.uint32), np.zeros(64, np.uint32)
        try:
            ptx.load(HEAD + body + "\n    ret;\n}\n")["k"].launch(wm.Device("sm_80"), 2, 32, [x, y])
        except HazardError as error:
            return error.hazard.kind
        return ""

    data = "ld.global.u32 %r10, [%rd1]; st.global.u32 [%rd7+4], %r10;"
    assert run("", "relaxed", "") == "" and run("", "relaxed", data) == "race"
    assert run("fence.acq_rel.gpu;", "acquire", data) == ""
    assert run("fence.acq_rel.gpu;", "relaxed", data) == "race"


def test_metadata_that_ptx_leaves_undefined_is_poison_of_its_rows() -> None:
    """Lane 0 has the metadata of rows 0 and 8."""
    body = """mov.f32 %f0, 0f00000000; mov.u32 %r7, 0x44444444; setp.eq.u32 %p2, %r1, 0; @%p2 mov.u32 %r7, 0;
        mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r1},
        {%r1, %r1}, {%f0, %f0, %f0, %f0}, %r7, 0x0; mov.b32 %r9, %f1; setp.ge.u32 %p3, %r1, 4; @%p3 """
    assert kind(body + STORED) == "" and kind(body.replace("@%p3 ", "") + STORED) == "metadata"
    assert kind(body + STORED, hazards="strict") == "metadata"
