"""Python numbers as operands of kernels: values of the operand's type, or refused."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from warpmma.errors import OperandError
from warpmma.kernel import Output, launch
from warpmma.machine.base.literals import literal
from warpmma.operations import operations

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
INT8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
F64 = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e5m2.f32.ue8m0"
COPY = "cp.async.cg.shared.global"
STSM = "stmatrix.sync.aligned.m8n8.x1.shared.b16"


def run(kernel: Callable[..., object], *args: Any, target: str = "sm_90") -> None:
    launch(kernel, 1, 32, args, target=target, shared=1024)


def bits(compute: Callable[[Any], Any], target: str = "sm_90") -> int:
    """Return what the first lane of a register holds."""
    found: list[int] = []
    run(lambda t: found.append(int(compute(t).bits[0, 0, 0])), target=target)
    return found[0]


def f32(x: float) -> int:
    return int(np.float32(x).view(np.uint32))


# What is taken.


@pytest.mark.parametrize(
    ("mnemonic", "x", "expected"),
    [
        ("mov.f32", 1.5, f32(1.5)), ("mov.f32", 0.1, f32(0.1)), ("mov.f32", 0, 0), ("mov.f32", -0.0, 1 << 31),
        ("mov.f32", np.float16(2), f32(2)), ("mov.f32", float("inf"), 0x7F800000), ("mov.f32", 2.0**-149, 1),
        ("mov.f64", 0.1, struct.unpack("<Q", struct.pack("<d", 0.1))[0]), ("mov.b32", 1.5, f32(1.5)),
        ("mov.b32", 7, 7), ("mov.u32", -1, 0xFFFFFFFF), ("mov.s32", 0xFFFFFFFF, 0xFFFFFFFF), ("mov.u16", -1, 0xFFFF),
        ("mov.b64", 1.5, 0x3FF8 << 48), ("mov.u64", np.int8(-1), (1 << 64) - 1), ("mov.pred", True, 1),
    ],
    ids=repr,
)  # fmt: skip
def test_values(mnemonic: str, x: Any, expected: int) -> None:
    assert bits(lambda t: t(mnemonic, x)) == expected


def test_f16_takes_its_values() -> None:
    assert bits(lambda t: t("add.f16", 1.5, 0.25)) == int(np.float16(1.75).view(np.uint16))
    assert bits(lambda t: t("fma.rn.bf16", 1.5, 2.0, 0)) == int(ml_dtypes.bfloat16(3).view(np.uint16))


@pytest.mark.parametrize(
    ("mnemonic", "x", "expected"),
    [
        ("st.global.f32", 2.5, np.float32(2.5)), ("st.global.f32", 0, np.float32(0)),
        ("st.global.u8", 255, np.uint8(255)),
        ("st.global.s8", -128, np.int8(-128)), ("st.global.b16", -1, np.uint16(65535)),
        ("st.global.f64", 0.1, np.float64(0.1)), ("st.global.b32", 2.5, np.float32(2.5)),
    ],
    ids=repr,
)  # fmt: skip
def test_stores(mnemonic: str, x: Any, expected: Any) -> None:
    y = np.zeros(1, expected.dtype)

    def kernel(t: Any, y: Any) -> None:
        with t.where(t.laneid == 0):
            t(mnemonic, y, x)

    run(kernel, Output(y))
    assert y[0] == expected


def test_fragments() -> None:
    """A sum of C alone: C's numbers are values."""
    assert bits(lambda t: t(MMA, [0] * 4, [0] * 2, [2.0, 0, 0, 0])[0]) == f32(2)
    assert bits(lambda t: t(INT8, [0] * 4, [0] * 2, [-2, 0, 0, 0])[0]) == (1 << 32) - 2
    assert bits(lambda t: t(TF32, [1.0] * 4, [0.5] * 2, [0] * 4)[0]) == f32(4)
    assert bits(lambda t: t(F64, [0.5], [2.0], [1.0, 0])[0]) == 0x4014 << 48


# What is refused: it was taken for bits that happened to be as wide, or cut.

WRONG: dict[str, tuple[Callable[..., object], str]] = {
    "st.f32 of an integer": (
        lambda t, y: t("st.global.f32", y, 2),
        r"st\.global\.f32: operand a0 of \[p\], a0: 2 is an integer, and \.f32 takes floats; "
        r"write 2\.0, or t\.constant\(2\) for its bits",
    ),
    "st.f64 of an integer": (lambda t, y: t("st.global.f64", y, 2), r"write 2\.0, or t\.constant\(2, 'b64'\)"),
    "st.v2.f32": (lambda t, y: t("st.global.v2.f32", y, 1.0, 2), r"operand a1 of .*: 2 is an integer"),
    "st.u8 too large": (
        lambda t, y: t("st.global.u8", y, 300),
        r"st\.global\.u8: operand a0 of \[p\], a0: 300 is not a value of u8; expected an integer of -128 to 255",
    ),
    "st.s8 too small": (lambda t, y: t("st.shared.s8", 0, -129), "-129 is not a value of s8"),
    "st.b16 of a float": (lambda t, y: t("st.shared.b16", 0, 1.5), r"1\.5 is a float; \.b16 takes integers"),
    "st.u32 of a float": (lambda t, y: t("st.shared.u32", 0, 1.5), r"1\.5 is a float; \.u32 takes integers"),
    "st.f32 of a bool": (lambda t, y: t("st.shared.f32", 0, True), "True is not a value of a f32 operand"),
    "st.f32 beyond": (lambda t, y: t("st.shared.f32", 0, 1e300), r"1e\+300 is beyond the range of f32, .* be inf"),
    "st.f32 below": (lambda t, y: t("st.shared.f32", 0, 1e-300), r"1e-300 is beyond the range of f32, .* be 0\.0"),
    "a huge integer": (lambda t, y: t("st.shared.f32", 0, 10**400), r"takes floats; t\.constant\(bits\)"),
    "a huger integer": (lambda t, y: t("st.shared.u32", 0, 10**5000), "<int that cannot be shown> is not a value"),
    "a float address": (lambda t, y: t("ld.shared.b32", 4.0), r"p of d0, \[p\]: 4\.0 is a float; \.u32 takes"),
    "a float address of 64 bits": (lambda t, y: t("ld.global.b32", 4.0), r"4\.0 is a float; \.u64 takes integers"),
    "a float row": (lambda t, y: t("ldmatrix.sync.aligned.m8n8.x1.shared.b16", 16.0), r"p of .*: 16\.0 is a float"),
    "stmatrix of a float": (
        lambda t, y: t(STSM, 0, 1.0),
        rf"{STSM}: operand a0 of \[p\], \{{a0\}} is a register of 2 elements of b16; "
        r"as a number it takes 0 alone, got 1\.0\. Use t\.constant\(bits\) for its bits",
    ),
    "cp.async to": (lambda t, y: t(COPY, 16.0, y, 16), "operand p of .*: 16.0 is a float"),
    "cp.async from": (lambda t, y: t(COPY, 0, 16.0, 16), "operand q of .*: 16.0 is a float"),
    "cp.async source": (lambda t, y: t(COPY, 0, y, 16, 8.0), r"src-size \| ignore-src.*: 8.0 is a float"),
    "cp.async size": (lambda t, y: t(COPY, 0, y, 16.0), r"operand size of .* is float; expected an immediate int"),
    "C of integers": (lambda t, y: t(MMA, [0] * 4, [0] * 2, [2] * 4), rf"{MMA}: operand c0: 2 is an integer, and"),
    "A of floats": (
        lambda t, y: t(MMA, [1.0] * 4, [0] * 2, [0] * 4),
        rf"{MMA}: operand a0 is a register of 2 elements of f16; as a number it takes 0 alone, got 1\.0",
    ),
    "A of integers": (lambda t, y: t(MMA, [0, 0, 5, 0], [0] * 2, [0] * 4), r"a2 .* got 5\. Use t\.constant\(5\)"),
    "A of minus zero": (lambda t, y: t(MMA, [-0.0] * 4, [0] * 2, [0] * 4), r"it takes 0 alone, got -0\.0"),
    "C of s32": (lambda t, y: t(INT8, [0] * 4, [0] * 2, [2.0] * 4), r"operand c0: 2\.0 is a float; \.s32 takes"),
    "B of s8": (lambda t, y: t(INT8, [0] * 4, [1] * 2, [0] * 4), r"operand b0 is a register of 4 elements of s8"),
    "A of f64": (lambda t, y: t(F64, [1], [0], [0] * 2), r"write 1\.0, or t\.constant\(1, 'b64'\)"),
    "tf32": (lambda t, y: t(TF32, [0.1] * 4, [0] * 2, [0] * 4), r"0\.1 is not a value of tf32; the nearest is 0\.0999"),
    "metadata": (lambda t, y: t(SPARSE, [0] * 4, [0] * 4, [0] * 4, 1.0, 0), r"metadata: 1\.0 is a float; \.u32 takes"),
    "f16": (lambda t, y: t("add.f16", t.constant(0, "b16"), 0.1), r"0\.1 is not a value of f16; the nearest is 0"),
    "f16 of an integer": (lambda t, y: t("add.f16", 2, 0), r"write 2\.0, or t\.constant\(2, 'b16'\) for its bits"),
    "f16 beyond": (lambda t, y: t("add.f16", 65520.0, 0), r"65520\.0 is not a value of f16; the nearest is inf"),
    "f16x2": (lambda t, y: t("add.f16x2", 1.0, 0), "operand a0 of d0, a0, a1 is a register of 2 elements of f16"),
    "cvt": (lambda t, y: t("cvt.rn.f16.f32", 2), r"2 is an integer, and \.f32 takes floats"),
    "cvt of an integer": (lambda t, y: t("cvt.rn.f32.s32", 2.0), r"2\.0 is a float; \.s32 takes integers"),
    "cvt of a byte": (lambda t, y: t("cvt.rn.f32.u8", 300), "300 is not a value of u8"),
    "setp": (lambda t, y: t("setp.lt.f32", t.laneid, 2), r"2 is an integer, and \.f32 takes floats"),
    "selp": (lambda t, y: t("selp.f32", 1, 0, t.laneid < 3), r"1 is an integer, and \.f32 takes floats"),
    "shift count": (lambda t, y: t("shl.b32", t.laneid, 1.0), r"operand a1 of d0, a0, a1: 1\.0 is a float; \.u32"),
    "field": (lambda t, y: t("bfe.s64", t.constant(0, "b64"), 1.0, 2), r"operand a1 .*: 1\.0 is a float; \.u32 takes"),
    "shfl distance": (lambda t, y: t("shfl.sync.bfly.b32", t.laneid, 1.0, 31, -1), r"1\.0 is a float; \.u32 takes"),
    "shfl mask": (lambda t, y: t("shfl.sync.bfly.b32", 0, 1, 31, 1 << 32), "4294967296 is not a value of u32"),
    "redux mask": (lambda t, y: t("redux.sync.add.s32", 1, 1.0), r"operand a1 of d0, a0, a1: 1\.0 is a float"),
    "vote": (lambda t, y: t("vote.sync.any.pred", 1, -1), "1 is not a value of a pred operand"),
    "bar.warp.sync": (lambda t, y: t("bar.warp.sync", 1.0), r"bar\.warp\.sync: operand membermask: 1\.0 is a float"),
    "prmt": (lambda t, y: t("prmt.b32", 1, 2, 1.0), r"1\.0 is a float; \.u32 takes integers"),
    "add": (lambda t, y: t("add.u32", t.laneid, 1 << 32), "4294967296 is not a value of u32"),
    "text": (lambda t, y: t("add.u32", t.laneid, "1"), "operand a1 of d0, a0, a1 is str; expected a register or a"),
    "operator": (lambda t, y: t.laneid + (1 << 32), r"add\.u32: an operand: 4294967296 is not a value of b32"),
    "update": (lambda t, y: t.update(1 << 32, t.laneid), "update: an operand: 4294967296 is not a value of b32"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str) -> None:
    kernel, says = WRONG[name]
    with pytest.raises(OperandError, match=says):
        run(kernel, np.zeros(64))


def test_scales_are_bits() -> None:
    zeros = ([0] * 4, [0] * 2, [0] * 4)
    with pytest.raises(OperandError, match=r"scale_a: 1\.0 is a float; \.u32 takes integers"):
        run(lambda t: t(SCALED, *zeros, 1.0, (0, 0), 0x7F, (0, 0)), target="sm_120a")
    run(lambda t: t(SCALED, *zeros, 0x7F, (0, 0), 0x7F, (0, 0)), target="sm_120a")


def test_redux_of_floats() -> None:
    full = 0xFFFFFFFF
    assert bits(lambda t: t("redux.sync.min.f32", 1.5, full), target="sm_100a") == f32(1.5)
    with pytest.raises(OperandError, match=r"2 is an integer, and \.f32 takes floats"):
        run(lambda t: t("redux.sync.min.f32", 2, full), target="sm_100a")


# Every operand of every row.


def test_every_operand_has_a_type() -> None:
    """Of the width of its register, or narrower."""
    for row in operations():
        assert len(row.types) == len(row.inputs)
        for type_, kind in zip(row.types, row.inputs, strict=True):
            if kind in ("imm", "pred"):
                assert type_ == kind
            else:
                assert literal(0, type_, kind, "") == 0
                assert row.mnemonic.count("x2") or "x" not in type_ or type_ == "b16x2"


@pytest.mark.parametrize(
    "x", [2, 1.5, 300, 1 << 32, 1 << 64, float("nan"), True, -1, np.float32(2), np.int8(2)], ids=repr
)
def test_whatever_is_taken_is_a_value(x: Any) -> None:
    """As the types' own decoders say."""
    decode: dict[str, Callable[[int], float]] = {
        "f32": lambda code: float(np.uint32(code).view(np.float32)),
        "f64": lambda code: float(np.uint64(code).view(np.float64)),
        "f16": lambda code: float(np.uint16(code).view(np.float16)),
        "bf16": lambda code: float(np.uint16(code).view(ml_dtypes.bfloat16)),
    }
    seen = {(type_, kind) for row in operations() for type_, kind in zip(row.types, row.inputs, strict=True)}
    for type_, kind in seen - {("imm", "imm")}:
        try:
            code = literal(x, type_, kind, "op")
        except OperandError as error:
            assert str(error).startswith("op")
            continue
        if type_ in decode or (kind != "pred" and isinstance(x, float | np.floating)):
            value = decode[type_ if type_ in decode else f"f{kind[1:]}"](code)
            assert value == x or (np.isnan(value) and np.isnan(x))
        elif kind == "pred":
            assert code is not None and isinstance(x, bool)
        else:
            assert code == int(x) % (1 << int(kind[1:])) and not isinstance(x, bool)


@given(st.floats(), st.sampled_from(["f32", "b32", "f16", "bf16", "tf32"]))
@example(3.4028235677973366e38, "f32")  # half an ulp above the largest: infinity
@example(7e-46, "f32")
@example(65519.0, "f16")
def test_floats(x: float, type_: str) -> None:
    """In 32 bits the nearest f32, in others the value itself; or refused."""
    kind = "b16" if type_ in ("f16", "bf16") else "b32"
    with np.errstate(all="ignore"):
        nearest = np.float32(x)
    try:
        code = literal(x, type_, kind, "op")
    except OperandError:
        exact = float(nearest) == x and type_ in ("f32", "b32")
        assert not exact and not np.isnan(x)
        if type_ in ("f32", "b32"):
            assert np.isinf(nearest) or nearest == 0
        return
    if kind == "b32":
        made = np.uint32(code).view(np.float32)
        assert made == nearest or (np.isnan(made) and np.isnan(x))
        assert type_ != "tf32" or float(made) == x or np.isnan(x)
    else:
        value = float(np.uint16(code).view(np.float16 if type_ == "f16" else ml_dtypes.bfloat16))
        assert value == x or (np.isnan(value) and np.isnan(x))
