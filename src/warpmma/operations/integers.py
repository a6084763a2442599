"""Bits, bytes and integers: logic, shifts, fields, permutations and the arithmetic of addresses.

The rules, for values of W bits (PTX ISA 9.1: Integer Arithmetic, Logic and Shift, Data Movement instructions):

1. `add`, `sub`, `mul.lo`, `mad.lo` keep the low W bits. `mul.hi`, `mad.hi` take the high W bits of the product of 2 W
   bits, `mul.wide`, `mad.wide` all of them; it is the signed product of `.s32`, the unsigned one of `.u32`.
2. `shl` and `shr` clamp: a count of W or more shifts everything out; `shr` of signed types fills with the sign.
3. `shf` shifts the 64 bits b:a and returns the upper half (`.l`) or the lower (`.r`); its count is min(c, 32) of
   `.clamp`, c mod 32 of `.wrap`.
4. A field has a position and a length, and ends at bit W - 1 at the latest. PTX wants both to be 0 to 255; an H200
   reads the low byte for W = 32, all 32 bits for W = 64. `bfe` fills above the field: unsigned with 0; signed with the
   field's top bit, bit W - 1 where it would end beyond; a length of 0 gives 0. `bfi` puts low bits of a into b's field.
5. `lop3` looks every bit up: bit (a, b, c), a the most significant, of its immediate. With `.or` or `.and` it also
   returns that operation of "the result is not 0" and a predicate.
6. `prmt` numbers the bytes of b:a from 0 to 7 and picks one for each byte of the result, by a nibble of c; with the
   nibble's bit 3 set it takes that byte's sign eight times. In a mode, two bits of c choose among four such controls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import frozen
from ..errors import OperandError
from .records import Operation, known, register_type

__all__ = ["OPERATIONS", "shl", "shr"]

Array = npt.NDArray[Any]
Function = Callable[..., Array]
Version = tuple[int, int]

_ALL = 0xFFFFFFFF
_PERMUTATIONS = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
"""Rule 6: the controls of each mode of `prmt`, by the low two bits of c."""


def _width(a: Array) -> int:
    return a.dtype.itemsize * 8


def _signed(a: Array) -> Array:
    return a.view(f"int{_width(a)}")


def _unsigned(a: Array) -> Array:
    return a.view(f"uint{_width(a)}")


def _as(type_: str, function: Function) -> Function:
    """Compute on values of this PTX type."""
    if type_[0] != "s":
        return function
    return lambda *operands: _unsigned(function(*(_signed(x) for x in operands)))


# Rule 1


def _product(a: Array, b: Array) -> Array:
    """All 64 bits: exact, as 32 bits by 32 bits fit."""
    wide = np.int64 if a.dtype.kind == "i" else np.uint64
    return a.astype(wide) * b.astype(wide)


def _high(a: Array, b: Array) -> Array:
    return (_product(a, b) >> 32).astype(a.dtype)


# Rule 2


def shl(a: Array, count: Array) -> Array:
    """Shift up; a count of the width or more shifts everything out."""
    width = _width(a)
    return np.where(count < width, a << (count % width).astype(a.dtype), 0).astype(a.dtype)


def shr(a: Array, count: Array) -> Array:
    """Shift down, filling signed integers with their sign; a count of the width or more shifts everything out."""
    most = _width(a) - 1
    shifted = a >> np.minimum(count, most).astype(a.dtype)
    return shifted if a.dtype.kind == "i" else np.where(count > most, 0, shifted).astype(a.dtype)


def _shr_signed(a: Array, count: Array) -> Array:
    return _unsigned(shr(_signed(a), count))


# Rule 3


def _shf(direction: str, mode: str) -> Function:
    def shf(a: Array, b: Array, c: Array) -> Array:
        pair = (b.astype(np.uint64) << 32) | a
        count = np.minimum(c, 32) if mode == "clamp" else c % 32
        return ((pair << count) >> 32 if direction == "l" else pair >> count) & _ALL

    return shf


# Rule 4


def _field(width: int, position: Array, length: Array) -> tuple[Array, Array, Array]:
    """Position and number of bits of a field that has been cut at bit W - 1, and the place of its top bit."""
    counts = 0xFF if width == 32 else _ALL
    position, length = position.astype(np.int64) & counts, length.astype(np.int64) & counts
    return position, np.clip(width - position, 0, length), np.clip(position + length - 1, 0, width - 1)


def _low(dtype: np.dtype[Any], count: Array) -> Array:
    """As many ones."""
    ones: Array = shl(np.ones_like(count, dtype), count) - dtype.type(1)
    return ones


def _bfe(a: Array, b: Array, c: Array) -> Array:
    position, count, _ = _field(_width(a), b, c)
    return shr(a, position) & _low(a.dtype, count)


def _bfe_signed(a: Array, b: Array, c: Array) -> Array:
    _, count, top = _field(_width(a), b, c)
    empty = (c & 0xFF if _width(a) == 32 else c) == 0
    fill = (shr(a, top) & 1 != 0) & ~empty
    return np.where(fill, ~_low(a.dtype, count), 0).astype(a.dtype) | _bfe(a, b, c)


def _bfi(a: Array, b: Array, c: Array, d: Array) -> Array:
    position, count, _ = _field(_width(a), c, d)
    field = shl(_low(a.dtype, count), position)
    return (b & ~field) | (shl(a, position) & field)


def _brev(a: Array) -> Array:
    ones = (1 << _width(a)) - 1
    for shift in (1 << i for i in range(_width(a).bit_length() - 1)):
        keep = ones // ((1 << shift) + 1)  # the lower of every two groups of `shift` bits
        a = ((a >> shift) & keep) | ((a & keep) << shift)
    return a


# Rule 5


def _lop3(a: Array, b: Array, c: Array, lut: int) -> Array:
    if not 0 <= lut <= 0xFF:
        raise OperandError(f"lop3.b32: the look-up table is {lut}; expected an immediate of 0 to 255")
    result = np.zeros_like(a)
    for index in range(8):
        if lut >> index & 1:
            result |= (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
    return result


def _lop3_predicate(combine: Function) -> Callable[..., tuple[Array, Array]]:
    def lop3(a: Array, b: Array, c: Array, lut: int, q: Array) -> tuple[Array, Array]:
        result = _lop3(a, b, c, lut)
        return result, combine(result != 0, q)

    return lop3


# Rule 6


def _prmt(a: Array, b: Array, c: Array) -> Array:
    pair = (b.astype(np.uint64) << 32) | a
    result = np.zeros(a.shape, np.uint64)
    for i in range(4):
        nibble = c >> (4 * i) & 0xF
        byte = pair >> (nibble & 7) * 8 & 0xFF
        result |= np.where(nibble & 8, (byte >> 7) * 0xFF, byte) << (8 * i)
    return result.astype(np.uint32)


def _prmt_mode(mode: str) -> Function:
    controls = frozen(np.array(_PERMUTATIONS[mode], np.uint32))
    return lambda a, b, c: _prmt(a, b, controls[c & 3])


# The rows


def _row(mnemonic: str, operands: str, compute: Callable[..., Any], source: str, ptx: Version) -> Operation:
    """Make the row of an instruction with one result, or of one that lists its operands as PTX writes them."""
    before, after = operands.split(" -> ")
    types = tuple(before.split())
    outputs = tuple(register_type(x) for x in after.split())
    return Operation(
        mnemonic=mnemonic, inputs=tuple(register_type(x) for x in types), input_types=types, outputs=outputs,
        compute=compute if len(outputs) > 1 else lambda *operands: (compute(*operands),),
        since="sm_70", ptx=ptx, evidence=known(f"PTX ISA 9.1, {source}"),
        travels=mnemonic.startswith("mov."),
    )  # fmt: skip


def _table() -> tuple[Operation, ...]:
    rows: list[Operation] = []

    def add(mnemonic: str, operands: str, compute: Callable[..., Any], source: str, ptx: Version = (1, 0)) -> None:
        rows.append(_row(mnemonic, operands, compute, f"{source}: {mnemonic.split('.')[0]}", ptx))

    integer = "Integer Arithmetic Instructions"
    for type_ in ("s32", "u32", "s64", "u64"):
        functions: dict[str, Function] = {
            "add": np.add, "sub": np.subtract, "mul.lo": np.multiply, "min": np.minimum, "max": np.maximum,
        }  # fmt: skip
        for name, function in functions.items():
            add(f"{name}.{type_}", f"{type_} {type_} -> {type_}", _as(type_, function), integer)
        add(f"mad.lo.{type_}", f"{type_} {type_} {type_} -> {type_}", lambda a, b, c: a * b + c, integer)
    for type_ in ("s32", "u32"):
        high, wide, double = _as(type_, _high), _as(type_, _product), f"{type_[0]}64"
        pair = f"{type_} {type_}"
        add(f"mul.hi.{type_}", f"{pair} -> {type_}", high, integer)
        add(f"mad.hi.{type_}", f"{pair} {type_} -> {type_}", lambda a, b, c, high=high: high(a, b) + c, integer)
        add(f"mul.wide.{type_}", f"{pair} -> {double}", wide, integer)
        add(f"mad.wide.{type_}", f"{pair} {double} -> {double}", lambda a, b, c, wide=wide: wide(a, b) + c, integer)
    for r in ("b32", "b64"):
        u, s = f"u{r[1:]}", f"s{r[1:]}"
        add(f"popc.{r}", f"{r} -> b32", np.bitwise_count, integer, (2, 0))
        add(f"brev.{r}", f"{r} -> {r}", _brev, integer, (2, 0))
        add(f"bfe.{u}", f"{u} u32 u32 -> {u}", _bfe, integer, (2, 0))
        add(f"bfe.{s}", f"{s} u32 u32 -> {s}", _bfe_signed, integer, (2, 0))
        add(f"bfi.{r}", f"{r} {r} u32 u32 -> {r}", _bfi, integer, (2, 0))

    logic = "Logic and Shift Instructions"
    for r in ("pred", "b16", "b32", "b64"):
        functions = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
        for name, function in functions.items():
            add(f"{name}.{r}", f"{r} {r} -> {r}", function, logic)
        add(f"not.{r}", f"{r} -> {r}", np.invert, logic)
    for r in ("b16", "b32", "b64"):
        u, s = f"u{r[1:]}", f"s{r[1:]}"
        add(f"shl.{r}", f"{r} u32 -> {r}", shl, logic)
        add(f"shr.{r}", f"{r} u32 -> {r}", shr, logic)
        add(f"shr.{u}", f"{u} u32 -> {u}", shr, logic)
        add(f"shr.{s}", f"{s} u32 -> {s}", _shr_signed, logic)
    for direction in "lr":
        for mode in ("clamp", "wrap"):
            add(f"shf.{direction}.{mode}.b32", "b32 b32 u32 -> b32", _shf(direction, mode), logic, (3, 1))
    add("lop3.b32", "b32 b32 b32 imm -> b32", _lop3, logic, (4, 3))
    add("lop3.or.b32", "b32 b32 b32 imm pred -> b32 pred", _lop3_predicate(np.logical_or), logic, (8, 2))
    add("lop3.and.b32", "b32 b32 b32 imm pred -> b32 pred", _lop3_predicate(np.logical_and), logic, (8, 2))

    moves = "Data Movement and Conversion Instructions"
    for type_ in ("pred", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"):
        add(f"mov.{type_}", f"{type_} -> {type_}", lambda a: a, moves)
    add("prmt.b32", "b32 b32 u32 -> b32", _prmt, moves, (2, 0))
    for mode in _PERMUTATIONS:
        add(f"prmt.b32.{mode}", "b32 b32 u32 -> b32", _prmt_mode(mode), moves, (2, 0))
    return tuple(rows)


OPERATIONS: tuple[Operation, ...] = _table()
