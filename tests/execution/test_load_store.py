"""Matrices to registers and back: what is loaded and stored, and what cannot be."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array, same
from execution_cases import B1, F16, F64, FP4, FP8, OPERANDS, QUAD, S4, S8, SP, TF32
from messages import exactly

from lab.generators import random_codes
from warpmma import load, store
from warpmma.errors import OperandError
from warpmma.isa import Instruction, instructions, parse
from warpmma.layouts import Operand
from warpmma.registers import LANES

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("instruction", instructions(), ids=str)
def test_load_and_store_are_inverse(instruction: Instruction) -> None:
    rng = np.random.default_rng(1)
    for operand in OPERANDS:
        fmt, layout = instruction.format(operand), instruction.layout(operand)
        codes = random_codes(fmt, (2, 3, *layout.shape), rng)
        registers = load(instruction, operand, codes)
        assert registers.dtype == (np.uint64 if fmt.bits == 64 else np.uint32)
        assert registers.shape == (2, 3, layout.registers, LANES) and registers.flags.c_contiguous
        matrix = store(str(instruction), operand, registers)
        assert matrix.dtype == fmt.dtype
        same(fmt.codes(matrix), codes)
        same(load(str(instruction), operand, matrix), registers)
        same(load(instruction, operand, matrix[1, 2]), registers[1, 2])
        for *which, row, column in rng.integers(0, layout.shape, (5, len(layout.shape))).tolist():
            lane, register, bit = layout.locate(row, column, *which)
            code = int(registers[1, 0, register, lane]) >> bit & layout.packing.mask
            assert code == codes[(1, 0, *which, row, column)]


@pytest.mark.parametrize(
    ("mnemonic", "operand", "codes"),
    [
        (F64, "A", [0x7FF0000000000001, 0xFFF8DEADBEEF0123, 0x7FFFFFFFFFFFFFFF, 1 << 63, 1]),
        (F64, "D", [0xFFF0000000000001, 0x7FF4000000000000]),
        (TF32, "A", [0x3F801FFF, 0x00001FFF, 0x7F801000, 0x7F800001, 0xFFFFFFFF]),
        (F16, "C", [0x7F800001, 0xFFC12345, 1 << 31, 1]), (F16, "B", [0x7C01, 0xFE0F, 0x8000, 1]),
    ],
)  # fmt: skip
def test_every_bit_of_special_values_survives(mnemonic: str, operand: Operand, codes: list[int]) -> None:
    fmt, layout = parse(mnemonic).format(operand), parse(mnemonic).layout(operand)
    given = np.resize(np.array(codes, fmt.code_dtype), layout.shape)
    same(fmt.codes(store(mnemonic, operand, load(mnemonic, operand, fmt.array(given)))), given)


@pytest.mark.parametrize(
    ("mnemonic", "operand", "value", "dtype", "code"),
    [
        (B1, "A", True, "?", 1), (B1, "B", 1, "i8", 1), (S4, "A", -3, "i8", 13), (S4, "B", -3, "int4", 13),
        (S8, "A", -1, "i1", 255), (S8, "C", -2, "i2", 2**32 - 2), (TF32, "B", 1.5, "f4", 0x3FC00000),
        (FP4, "B", -6, "float4_e2m1fn", 15),
    ],
)  # fmt: skip
def test_typed_arrays(mnemonic: str, operand: Operand, value: Any, dtype: str, code: int) -> None:
    record, to = parse(mnemonic), np.dtype(getattr(ml_dtypes, dtype, dtype))
    some = np.random.default_rng(2).random(record.layout(operand).shape) < 0.5
    raw = np.where(some, code, 0).astype(record.format(operand).code_dtype)
    same(load(mnemonic, operand, np.where(some, value, 0).astype(to)), load(mnemonic, operand, raw))


def zeros(*shape: int, dtype: str = "f2") -> Array:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("mnemonic", "operand", "matrix", "message"),
    [
        (F16, "A", zeros(16, 8), "A is (16, 8); expected [..., 16, 16]"),
        (F16, "B", zeros(2, 8, 16), "B is (2, 8, 16); expected [..., 16, 8]"),
        (F16, "C", zeros(8), "C is (8,); expected [..., 16, 8]"), (F16, "D", 0.0, "D is (); expected ~"),
        (F16, "A", [[1], [2, 3]], "A: not an array: ~"),
        (QUAD, "A", zeros(8, 4), "A is (8, 4); expected [..., 4, 8, 4]"),
        (SP, "A", zeros(16, 16), "A is (16, 16); expected [..., 16, 8]"),
        (F16, "A", zeros(16, 16, dtype="f8"), "A: f16: got dtype float64; expected float16, or raw codes ~"),
        (F16, "B", zeros(16, 8, dtype="u4"), "B: f16: got dtype uint32; expected float16, or raw codes as ~"),
        (F16, "C", zeros(16, 8), "C: f32: got dtype float16; expected float32, or raw codes as uint32 (to ~"),
        (F16, "B", zeros(16, 8, dtype="O"), "B: f16: object arrays hold no bits; give float16 or ~"),
        (FP8, "B", zeros(32, 8, dtype="int4"), "B: e5m2: got dtype int4; expected float8_e5m2, or raw ~"),
        (S4, "A", zeros(8, 32, dtype="u1") + 16, "A: s4: 16 at [0, 0] does not fit; expected 0 to 15"),
        (S4, "B", zeros(32, 8, dtype="i1") - 9, "B: s4: -9 at [0, 0] does not fit; expected -8 to 7"),
        (S8, "A", np.eye(16, 32, 3, "i8") << 7, "A: s8: 128 at [0, 3] does not fit; expected -128 to 127"),
        (S8, "C", zeros(1, 16, 8, dtype="i8") + 2**31, "C: s32: 2147483648 at [0, 0, 0] does not fit; ~"),
        (S8, "A", zeros(16, 32), "A: s8: got dtype float16; expected int8, or raw codes as uint8 (to ~"),
        (FP4, "B", zeros(32, 8, dtype="u1") + 16, "B: e2m1: 16 at [0, 0] does not fit; expected 0 to 15"),
        (B1, "A", zeros(16, 256, dtype="u1") + 2, "A: b1: 2 at [0, 0] does not fit; expected 0 to 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded(mnemonic: str, operand: Operand, matrix: Any, message: str) -> None:
    with pytest.raises(OperandError, match=exactly(f"{mnemonic}: {message}")):
        load(mnemonic, operand, matrix)
