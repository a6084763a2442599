"""What kernels and their launches refuse."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kernels import BINARY, COMPARE, COPY, LDSM, MMA, TARGET, run

from warpmma.errors import MnemonicError, OperandError, TargetError, WarpmmaError
from warpmma.kernel.launching import launch
from warpmma.kernel.values import Register
from warpmma.machine.report.hazards import HazardError
from warpmma.operations import operations


@pytest.mark.parametrize(
    "options",
    [
        {"grid": 0}, {"grid": (1, 2, 3, 4)}, {"grid": ()}, {"grid": -1}, {"grid": 1.0}, {"grid": "32"}, {"grid": "1"},
        {"grid": True}, {"block": 1025}, {"block": (32, 33)}, {"block": None}, {"block": [0]}, {"shared": -1},
        {"shared": 1 << 20}, {"shared": "4096"}, {"target": "sm_91"}, {"target": None}, {"engine": "gpu"},
        {"threads": 0}, {"threads": "two"}, {"progress": 3}, {"hazards": "no"},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_launches(options: dict[str, Any]) -> None:
    with pytest.raises(WarpmmaError):
        run(lambda t: t("bar.sync"), **options)


def test_wrong_arguments() -> None:
    wrong: list[Any] = [np.zeros(3), "abc", None, {}]
    for args in wrong:
        with pytest.raises(OperandError, match="args is"):
            launch(lambda t, *args: None, 1, 32, args, target=TARGET)
    with pytest.raises(OperandError, match="kernel is str"):
        launch("kernel", 1, 32, [], target=TARGET)  # type: ignore[arg-type]


WRONG: dict[str, tuple[Callable[[Any], object], type[WarpmmaError], str]] = {
    "no string": (lambda t: t(5), MnemonicError, "a mnemonic is a string"),
    "no such": (lambda t: t("ad.u32", 1, 2), MnemonicError, "Nearest"),
    "no such load": (lambda t: t("ld.locals.b32", 0), MnemonicError, "Nearest: ld.local.b32"),
    "no such type": (lambda t: t("ld.shared.f16", 0), MnemonicError, "Nearest: ld.shared.b16"),
    "too wide": (lambda t: t("ld.global.v4.b64", 0), TargetError, "not legal on sm_90; legal on sm_100"),
    "nc store": (lambda t: t("st.global.nc.b32", 0, 0), MnemonicError, "Nearest: st.global.b32"),
    "no address": (lambda t: t("ld.shared.b32"), OperandError, r"takes \[p\]; got 0 operands"),
    "values of a load": (lambda t: t("ld.shared.b32", 0, 1), OperandError, r"takes \[p\]; got 2 operands"),
    "too few values": (lambda t: t("st.shared.v2.b32", 0, 1), OperandError, r"takes \[p\], \{a0, a1\}; got 2 operands"),
    "float address": (lambda t: t("ld.shared.b32", t.laneid < 3), OperandError, "is pred; expected b32 or b64"),
    "a predicate stored": (lambda t: t("st.shared.b8", 0, t.laneid < 3), OperandError, "pred; expected b16 or wider"),
    "narrow value": (lambda t: t("st.shared.b32", 0, t.constant(0, "b16")), OperandError, "b16; expected b32 or wider"),
    "no register": (lambda t: t("st.shared.b32", 0, None), OperandError, r"a0 of \[p\], a0 is NoneType; expected a"),
    "ldmatrix": (lambda t: t("ldmatrix.sync.aligned.m8n8.x3.shared.b16", 0), MnemonicError, "Nearest"),
    "ldmatrix target": (lambda t: t("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", 0), TargetError, "not legal on"),
    "ldmatrix operands": (lambda t: t(LDSM, 0, 0), OperandError, r"takes \[p\]; got 2"),
    "stmatrix operands": (
        lambda t: t("stmatrix.sync.aligned.m8n8.x2.shared.b16", 0, 0), OperandError,
        r"takes \[p\], \{a0, a1\}; got 2",
    ),
    "cp.async size": (lambda t: t(COPY, 0, 0, 8), OperandError, r"operand size of .* is 8; expected 16"),
    "multimem": (lambda t: t("multimem.red", 0, 0), MnemonicError, "multimem is PTX, not simulated yet"),
    "cp.async alone": (lambda t: t(COPY, 0), OperandError, "size.*; got 1 operand"),
    "cp.async source": (
        lambda t: t(COPY, 0, 0, 16, t.laneid), OperandError, "a source of 31 bytes for a copy of 16",
    ),
    "wait for a register": (lambda t: t("cp.async.wait_group", t.laneid), OperandError, "n is Register; expected an"),
    "wait for none": (lambda t: t("cp.async.wait_group"), OperandError, "takes n; got 0"),
    "wait for less": (lambda t: t("cp.async.wait_group", -1), OperandError, "n is -1; expected 0 to 4294967295"),
    "commit": (lambda t: t("cp.async.commit_group", 1), OperandError, "takes no operands"),
    "another barrier": (lambda t: t("bar.sync", 16), OperandError, "a block has barriers 0 to 15"),
    "no barrier": (lambda t: t("bar.arrive", 0, 31), OperandError, "expected a multiple of 32"),
    "mma operands": (lambda t: t(MMA, [0] * 4), OperandError, r"takes \{a0, .*\{c0, .*; got 4 operands"),
    "mma fragment": (lambda t: t(MMA, [0] * 3, [0] * 2, [0] * 4), OperandError, r"a3\}: got 3 registers; expected 4"),
    "mma kinds": (
        lambda t: t(MMA, [t.constant(0, "b64")] * 4, [0] * 2, [0] * 4), OperandError, "operand a0 is b64; expected b32",
    ),
    "mma more": (lambda t: t(MMA, [0] * 4, [0] * 2, [0] * 4, 1), OperandError, r"c3\}; got 11 operands"),
    "mma target": (
        lambda t: t("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32", [0] * 4, [0] * 2, [0] * 4),
        TargetError, "sm_90",
    ),
    "mma.sp": (
        lambda t: t("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", [0] * 4, [0] * 4, [0] * 4, 0),
        OperandError, r"c3\}, metadata, selector; got 13 operands",
    ),
    "mma.sp metadata": (
        lambda t: t("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", [0] * 4, [0] * 4, [0] * 4, t.laneid < 3, 0),
        OperandError, "operand metadata is pred; expected b32",
    ),
    "float literal": (lambda t: t("add.u32", t.laneid, 1.5), OperandError, "1.5 is a float; .u32 takes integers"),
    "integer literal": (lambda t: t("add.f32", t.laneid, 2), OperandError, r"write 2\.0, or t\.constant\(2\)"),
    "operands": (lambda t: t("add.u32", 1), OperandError, "takes a0, a1; got 1 operand"),
    "kind": (lambda t: t("add.u32", t.laneid, t.constant(1, "b64")), OperandError, "is b64; expected b32"),
    "immediate": (lambda t: t("lop3.b32", 1, 2, 3, t.laneid), OperandError, "immediate"),
    "where": (lambda t: t.where(t.laneid), OperandError, "where takes a predicate"),
    "where of a bool": (lambda t: t.where(True), OperandError, "where takes a predicate"),
    "any": (lambda t: t.any(None), OperandError, "any takes a predicate"),
    "update": (lambda t: t.update(t.laneid, t.laneid < 3), OperandError, "a b32 register with a pred"),
    "if": (lambda t: 1 if t.laneid < 3 else 2, OperandError, r"branch with `with t\.where"),
    "range": (lambda t: range(t.laneid), OperandError, "bind them"),
    "int": (lambda t: int(t.laneid), OperandError, "bind them"),
    "list": (lambda t: list(t.laneid), OperandError, "this is one register"),
    "true division": (lambda t: t.laneid / 2, OperandError, "floats have div.rn, div.full and div.approx"),
    "of a number": (lambda t: 1.0 / t.laneid, OperandError, "which // divides"),
    "float operator": (lambda t: t.laneid + 1.5, OperandError, "operators are of integers"),
    "text operator": (lambda t: t.laneid + "1", OperandError, "an operand is str"),
    "compared with None": (lambda t: t.laneid == None, OperandError, "an operand is NoneType"),  # noqa: E711
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str) -> None:
    kernel, error, says = WRONG[name]
    with pytest.raises(error, match=says):
        run(kernel)


def test_old_targets_lack_copies() -> None:
    with pytest.raises(TargetError, match="legal on sm_80, sm_86"):
        run(lambda t: t("cp.async.wait_all"), target="sm_75")


def test_notes_name_the_line() -> None:
    def kernel(t: Any) -> None:
        t("add.u32", t.laneid)

    with pytest.raises(OperandError) as caught:
        run(kernel)
    line = kernel.__code__.co_firstlineno + 1
    assert caught.value.__notes__ == [f"executing add.u32 at test_kernel_errors.py:{line} on sm_90"]


def test_registers_of_other_launches() -> None:
    kept: list[Any] = []
    run(lambda t: kept.append(t.laneid))
    for use in (lambda t: t.laneid + kept[0], lambda t: kept[0] + t.laneid, lambda t: t("st.shared.b32", 0, kept[0]),
                lambda t: t.where(kept[0] < 3), lambda t: t.update(t.laneid, kept[0])):  # fmt: skip
        with pytest.raises(OperandError, match="of another launch"):
            run(use)


MNEMONICS = [MMA, LDSM, COPY, "ld.shared.b32", "ld.global.v2.b64", "st.shared.v4.f32", "st.global.u8", "bar.sync",
             "cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all", "bar.warp.sync",
             "stmatrix.sync.aligned.m8n8.x1.shared.b16", "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
             "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "shfl.sync.idx.b32", "ld.", "st.x", "bar", "mma.",
             ""]  # fmt: skip


def operand(t: Any, x: Any) -> Any:
    """What a strategy names: registers by text, lists of them, or the thing itself."""
    if isinstance(x, list):
        return [operand(t, y) for y in x]
    named = {"lane": t.laneid, "pred": t.laneid < 7, "wide": t.constant(1 << 40, "b64"), "half": t.constant(3, "b16")}
    return named.get(x, x) if isinstance(x, str) else x


things: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(["lane", "pred", "wide", "half", None, True, 1.5, float("nan"), b"x", (1, 2), (), {}]),
    st.integers(-(2**65), 2**65), st.integers(0, 64),
)  # fmt: skip
calls = st.tuples(
    st.one_of(st.sampled_from(MNEMONICS), st.sampled_from(sorted(row.mnemonic for row in operations()))),
    st.lists(st.one_of(things, st.lists(things, max_size=5), st.just(["lane"] * 4), st.just([0] * 2)), max_size=6),
    st.booleans(),
)


@settings(deadline=None, max_examples=400)
@given(st.lists(calls, min_size=1, max_size=3), st.sampled_from(["error", "warn"]))
@example([("st.shared.v4.f32", [["lane"] * 4, "lane"], False)], "error")
@example([("mma.", [], True)], "error")
@example([("", [None], True)], "error")
@pytest.mark.filterwarnings("ignore::warpmma.machine.report.hazards.HazardWarning")
def test_errors_are_typed(calls: list[tuple[str, list[Any], bool]], policy: Any) -> None:
    """Whatever is called with whatever: an error of ours, or none."""

    def kernel(t: Any, x: Any) -> None:
        for mnemonic, operands, masked in calls:
            given = [operand(t, y) for y in operands]
            try:
                if masked:
                    with t.where(t.laneid < 9):
                        t(mnemonic, *given)
                else:
                    t(mnemonic, *given)
            except HazardError as error:
                assert policy == "error" and str(error)
            except WarpmmaError as error:
                assert str(error) and error.__notes__

    run(kernel, np.zeros(64, np.uint32), hazards=policy)


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from([*BINARY, *COMPARE]), things.filter(lambda x: not isinstance(x, bytes)),  # b"" % x is not ours
    st.sampled_from(["lane", "pred", "wide", "half"]), st.booleans(),
)  # fmt: skip
def test_errors_of_operators_are_typed(name: str, thing: Any, register: str, swap: bool) -> None:
    def kernel(t: Any) -> None:
        x, y = operand(t, register), operand(t, thing)
        try:
            got = getattr(operator, name)(*((y, x) if swap else (x, y)))
        except WarpmmaError as error:
            assert str(error)
        else:
            assert isinstance(got, Register)

    run(kernel)
