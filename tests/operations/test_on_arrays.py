"""Operations on arrays of any shape: every row gives the same as on lanes, with little memory, or a typed error."""

from __future__ import annotations

import tracemalloc
from functools import cache
from typing import Any

import numpy as np
import pytest
from arrays import Array
from environments import DOWNWARD, FLUSH, TOWARD_ZERO, UPWARD, Environment, x86

from lab.generators import operation_inputs
from warpmma.errors import MnemonicError, OperandError
from warpmma.operations import Operation, elementwise, float_code, operations
from warpmma.operations.elements import TYPES


def numbers(type_: str, register: Array, raw: bool) -> Array:
    """Return what a register holds, as an array of the type or as codes."""
    if type_ == "pred":
        return register
    (codes,) = TYPES[type_].split(register)
    return codes if raw else TYPES[type_].fmt.array(codes)


def bits(x: Array) -> Array:
    return x if x.dtype == bool else np.ascontiguousarray(x).view(f"u{x.itemsize}")


def is_taken(row: Operation) -> bool:
    with pytest.raises((MnemonicError, OperandError)) as found:
        elementwise(row.mnemonic)
    refused = isinstance(found.value, MnemonicError)
    assert ("call operation(" if refused else f"takes {len(row.types)} operand") in str(found.value)
    return not refused


@cache
def taken() -> list[Operation]:
    return [row for row in operations() if is_taken(row)]


def test_operations_on_lanes_immediates_and_packed_registers_are_refused() -> None:
    assert len(taken()) >= 1326
    for row in taken():
        assert not row.lanes and "imm" not in row.types and not any("x2" in x for x in row.types)


def test_every_operation_gives_what_it_does_in_lanes() -> None:
    for row in taken():
        given = [x.ravel()[:251] for x in operation_inputs(row.mnemonic, 256, 5)]
        (expected,) = row(*(np.resize(x, (8, 32)) for x in given))
        for raw in (False, True):
            got = bits(elementwise(row.mnemonic, *(numbers(*x, raw) for x in zip(row.types, given, strict=True))))
            assert np.array_equal(got, expected.ravel()[:251].astype(got.dtype)), row.mnemonic


@pytest.mark.parametrize(
    ("mnemonic", "dtype"),
    [
        ("add.f32.f16", "float32"), ("bfe.s32", "int32"), ("mul.wide.u32", "uint64"), ("cvt.rn.bf16x2.f32", "uint32"),
        ("cvt.pack.sat.u4.s32.b32", "uint32"), ("cvt.pack.sat.s16.s32", "uint32"), ("cvt.s8.u8", "int8"),
    ],
)  # fmt: skip
def test_results_are_numbers_of_the_first_type_or_registers(mnemonic: str, dtype: str) -> None:
    (row,) = (row for row in operations() if row.mnemonic == mnemonic)
    assert elementwise(mnemonic, *(np.zeros(3, TYPES[x].fmt.code_dtype) for x in row.types)).dtype == dtype


def test_a_float_of_python_is_a_value_of_the_type() -> None:
    x = np.array([0.25, 0.5], np.float32)
    assert np.array_equal(elementwise("ex2.approx.ftz.f32", 0.3), elementwise("ex2.approx.ftz.f32", np.float32(0.3)))
    assert elementwise("setp.lt.f32", x, 0.3).tolist() == [True, False]
    assert elementwise("div.rn.f64", 1.0, 3.0) == 1 / 3
    assert elementwise("tanh.approx.f16", 0.5) == elementwise("tanh.approx.f16", np.float16(0.5))
    cases: tuple[tuple[str, Any, str], ...] = (
        (
            "tanh.approx.f16",
            0.3,
            "tanh.approx.f16: operand 0: 0.3 is not a value of f16; the nearest is 0.300048828125",
        ),
        ("neg.f32", 1e39, "neg.f32: operand 0: 1e+39 is beyond the range of f32, where it would be inf"),
        ("neg.f32", np.float64(0.5), "neg.f32: operand 0: f32: got dtype float64; expected float32, or raw codes as"),
        ("neg.f32", [0.5], "neg.f32: operand 0: f32: got dtype float64; expected float32, or raw codes as uint32"),
        ("neg.f32", 1, "neg.f32: operand 0: f32: got dtype int64; expected float32, or raw codes as uint32"),
        ("shr.s32", 0.5, "shr.s32: operand 0: s32: got dtype float64; expected int32"),
    )
    for mnemonic, number, text in cases:
        with pytest.raises(OperandError) as found:
            elementwise(mnemonic, number, *[np.uint32(1)] * (mnemonic == "shr.s32"))
        assert str(found.value).startswith(text)


@pytest.mark.parametrize("mnemonic", ["ex2.approx.f32", "fma.rn.f32", "div.rn.f32", "cvt.rzi.s64.f32"])
def test_little_memory_is_taken_beside_operands_and_results(mnemonic: str) -> None:
    (row,) = (row for row in operations() if row.mnemonic == mnemonic)
    x = [np.linspace(-3, 3, 1 << 21, dtype=np.float32)] * len(row.types)
    elementwise(mnemonic, *(each[:9] for each in x))
    tracemalloc.start()
    try:
        result = elementwise(mnemonic, *x)
        assert tracemalloc.get_traced_memory()[1] < 2.5 * result.nbytes + (16 << 20)
    finally:
        tracemalloc.stop()


def test_what_no_memory_holds_is_refused() -> None:
    column = np.broadcast_to(np.float32(0), (1 << 24, 1))
    with pytest.raises(OperandError, match=r"^add.f32: operands of \[16777216, 1\] and \[1, 16777216\]: no memory"):
        elementwise("add.f32", column, column.T)


@x86
@pytest.mark.parametrize("control", [FLUSH, UPWARD, FLUSH | DOWNWARD, TOWARD_ZERO])
def test_floats_of_python_are_rounded_alike_in_any_environment(control: int) -> None:
    numbers = [0.1, -0.3, 1e-40, 2.0**-149, 3e38, float("inf"), 1 + 2.0**-24, float("nan")]
    with Environment().with_control(control):
        got = [float_code("f32", x, "neg.f32: operand 0") for x in numbers]
    assert got == np.array(numbers, np.float32).view(np.uint32).tolist()
