"""Rows of approximate functions, and operations on arrays."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from arrays import Array

import warpmma as wm
from lab.generators import operation_inputs
from warpmma.arithmetic import SEQUENCES, approximate_reference
from warpmma.errors import MnemonicError, OperandError, TargetError
from warpmma.kernel import Output, launch
from warpmma.operations import elementwise, evidence, operation, operations
from warpmma.operations.arithmetic import approximations

MNEMONICS = [mnemonic for form in approximations.FORMS for mnemonic in form.mnemonics]
PACKED = [mnemonic for mnemonic in MNEMONICS if mnemonic.endswith("x2")]
ONE = [mnemonic for mnemonic in MNEMONICS if mnemonic not in PACKED]


def lanes(mnemonic: str, count: int = 256) -> tuple[Array, ...]:
    return operation_inputs(mnemonic, count, 5)


@pytest.mark.parametrize("mnemonic", ONE)
def test_rows_compute_what_their_sequences_do(mnemonic: str) -> None:
    given = lanes(mnemonic)
    (got,) = operation(mnemonic)(*given)
    expected = [
        approximate_reference(mnemonic, *map(int, each)) for each in zip(*(x.ravel() for x in given), strict=True)
    ]
    assert got.ravel().tolist() == expected


@pytest.mark.parametrize("mnemonic", PACKED)
def test_packed_rows_compute_each_half(mnemonic: str) -> None:
    (word,) = lanes(mnemonic)
    (got,) = operation(mnemonic)(word)
    one = operation(mnemonic.removesuffix("x2"))
    low, high = (one((word >> shift).astype(np.uint16))[0].astype(np.uint32) for shift in (0, 16))
    assert np.array_equal(got, low | high << 16)


def test_there_are_the_forms_that_ptxas_takes() -> None:
    """With ptxas 13.0: f16 has no .ftz, bf16 none without, `sqrt` no f64."""
    assert len(MNEMONICS) == len(set(MNEMONICS)) == 30
    assert {mnemonic.removesuffix("x2") for mnemonic in MNEMONICS} == set(SEQUENCES)
    for absent in ("ex2.approx.ftz.f16", "ex2.approx.bf16", "sqrt.approx.f64", "rcp.approx.f64", "tanh.approx.ftz.f32"):
        with pytest.raises(MnemonicError, match=r"Nearest: (ex2|sqrt|rcp|tanh)\."):
            operation(absent)
    for mnemonic, oldest in (("tanh.approx.f32", "sm_75"), ("ex2.approx.ftz.bf16", "sm_90"), ("div.full.f32", "sm_70")):
        assert operation(mnemonic).targets[0] == oldest
    with pytest.raises(TargetError):
        operation("tanh.approx.bf16x2", "sm_89")


def test_evidence_says_what_was_compared_and_what_is_assumed() -> None:
    measured = evidence("ex2.approx.f32", target="sm_90a")
    assert measured.kind == "measured" and "4,294,967,296" in measured.compared
    assert measured.machine == "FMUL, MUFU.EX2, FMUL"
    derived = evidence("ex2.approx.f32", target="sm_120")
    assert derived.kind == "derived" and not derived.device
    assert derived.assumption == (
        "the special-function unit's tables, which warpmma compare on such a GPU compares, as on an H200"
    )
    machine = {target: evidence("ex2.approx.f16x2", target=target).machine for target in ("sm_100", "sm_103")}
    assert machine["sm_100"] != machine["sm_103"] and all("MUFU.EX2.F16" in text for text in machine.values())
    assert all(row.machine is None for row in operations() if row.mnemonic not in MNEMONICS)


def test_a_kernel_has_them() -> None:
    x = np.linspace(-3, 3, 64, dtype=np.float32)
    y = np.empty_like(x)

    def kernel(t: object, x: object, y: object) -> None:
        i = t.tid[0]  # type: ignore[attr-defined]
        exp = t("ex2.approx.ftz.f32", t("ld.global.f32", x + i * 4))  # type: ignore[operator]
        half = t("rcp.approx.ftz.f32", 2.0)  # type: ignore[operator]
        t("st.global.f32", y + i * 4, t("div.full.f32", exp, half))  # type: ignore[operator]

    launch(kernel, 1, 64, (x, Output(y)), target="sm_80")
    assert np.array_equal(y, elementwise("div.full.f32", elementwise("ex2.approx.ftz.f32", x), np.float32(0.5)))


def test_elementwise_takes_numbers_and_codes_of_any_shape() -> None:
    x = np.linspace(-2, 2, 30, dtype=np.float32).reshape(2, 3, 5)
    got = elementwise("tanh.approx.f32", x)
    assert got.dtype == np.float32 and got.shape == x.shape and np.allclose(got, np.tanh(x), atol=1e-3)
    assert np.array_equal(elementwise("tanh.approx.f32", x.view(np.uint32)), got)
    half = elementwise("ex2.approx.ftz.bf16", np.array([1, -1], ml_dtypes.bfloat16), target="sm_90")
    assert half.dtype == ml_dtypes.bfloat16 and half.tolist() == [2, 0.5]
    assert elementwise("rcp.approx.ftz.f64", np.float64(4)) == 0.25
    assert elementwise("setp.lt.f32", x, np.float32(0)).dtype == bool
    assert elementwise("cvt.rzi.s32.f32", x).dtype == np.int32
    assert elementwise("cvt.rn.f16.f32", x).dtype == np.float16
    assert elementwise("mul.wide.s32", np.int32(-3), np.int32(5)).tolist() == 2**64 - 15  # no PTX type of the result
    chosen = elementwise("selp.f32", x, -x, x > 0)
    assert np.array_equal(chosen, np.abs(x).view(np.uint32)) or np.array_equal(chosen, np.abs(x))
    assert elementwise("sqrt.approx.f32", x[:0]).shape == (0, 3, 5)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (("ex2.approx.ftz.f32", np.zeros(3)), OperandError, "ex2.approx.ftz.f32: operand 0: f32: got dtype float64"),
        (("ex2.approx.ftz.f32",), OperandError, "ex2.approx.ftz.f32 takes 1 operand (d0, a0); got 0"),
        (
            ("div.full.f32", np.zeros(3, np.float32), np.zeros(2, np.float32)), OperandError,
            "div.full.f32: operands of [3] and [2] do not broadcast",
        ),
        (
            ("ex2.approx.f16x2", np.zeros(3, np.uint32)), MnemonicError,
            "ex2.approx.f16x2: f16x2 is two numbers; take the form of one, ex2.approx.f16, or call operation('ex2.ap",
        ),
        (
            ("cvt.rn.f16x2.e4m3x2", np.zeros(3, np.uint16)), MnemonicError,
            "cvt.rn.f16x2.e4m3x2: e4m3x2 is two numbers; take the form of one, or call operation('cvt.rn.f16x2.e4m3x2",
        ),
        (("shfl.sync.idx.b32", 1, 2, 3, 4), MnemonicError, "shfl.sync.idx.b32: its operands are not arrays of numbers"),
        (("selp.f32", 0, 0, np.zeros(3)), OperandError, "selp.f32: operand 0: f32: got dtype int64"),
        (
            ("selp.f32", np.float32(0), np.float32(0), np.zeros(3)), OperandError,
            "selp.f32: operand 2 is float64; expected bool",
        ),
        (("exp.f32", np.zeros(3)), MnemonicError, "'exp.f32' is not a simulated operation"),
    ],
)  # fmt: skip
def test_elementwise_refuses(call: tuple[object, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as found:
        elementwise(*call)  # type: ignore[arg-type]
    assert str(found.value).startswith(text)


def test_elementwise_checks_the_target() -> None:
    with pytest.raises(wm.TargetError):
        elementwise("tanh.approx.bf16", np.zeros(3, np.uint16), target="sm_80")
