"""Bits, bytes and integers: logic, shifts, fields, permutations and the arithmetic of addresses.

The rules, for values of W bits (PTX ISA 9.1: Integer Arithmetic, Logic and Shift, Data Movement instructions):

1. `add`, `sub`, `mul.lo`, `mad.lo` keep the low W bits. `mul.hi`, `mad.hi` take the high W bits of the product of 2 W
   bits, `mul.wide`, `mad.wide` all of them; the product is signed for `.s32`, unsigned for `.u32`.
2. `shl` and `shr` clamp: a count of W or more shifts everything out; `shr` of signed types fills with the sign.
3. `shf` shifts the 64 bits b:a and returns the upper half (`.l`) or the lower (`.r`); its count is min(c, 32) for
   `.clamp`, c mod 32 for `.wrap`.
4. A field has a position and a length, and is truncated at bit W - 1. PTX requires both to be 0 to 255; an H200 reads
   the low byte for W = 32, all 32 bits for W = 64. `bfe` fills the bits above the field: with 0 if unsigned; if signed
   with the field's top bit, or bit W - 1 if it is truncated; a length of 0 gives 0. `bfi` puts low bits of a into b's
   field.
5. `lop3` looks up every bit in its immediate: bit number (a, b, c), with a the most significant. With `.or` or `.and`
   it also returns that operation on "the result is not 0" and a predicate.
6. `prmt` numbers the bytes of b:a from 0 to 7 and selects one for each byte of the result, by a nibble of c; if the
   nibble's bit 3 is set, it replicates that byte's sign bit. In a mode, two bits of c select one of four such controls.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..._arrays import Array, frozen
from ...errors import OperandError
from ..carriage import moved
from ..measurements import GROUPS
from ..value_forms import MOVE, Words, chosen_form, unsigned, value_form, width_of

Function = Callable[..., Array]

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


# The following functions take arrays of the operands' PTX types: signed integers for s16, s32, s64.

# Rule 1


def product(a: Array, b: Array) -> Array:
    """All 64 bits: exact, since a product of 32 by 32 bits fits."""
    wide = np.int64 if a.dtype.kind == "i" else np.uint64
    return a.astype(wide) * b.astype(wide)


def high(a: Array, b: Array) -> Array:
    """Return the upper half of products of 32 bits."""
    return (product(a, b) >> 32).astype(a.dtype)


def plus(product: Function) -> Function:
    """Return a product with an addend."""
    return lambda a, b, c: product(a, b) + c


# Rule 2


def shl(a: Array, count: Array) -> Array:
    """Shift up; a count of the width or more shifts everything out."""
    width = width_of(a)
    return np.where(count < width, a << (count % width).astype(a.dtype), 0).astype(a.dtype)


def shr(a: Array, count: Array) -> Array:
    """Shift down, filling signed integers with their sign; a count of the width or more shifts everything out."""
    most = width_of(a) - 1
    shifted = a >> np.minimum(count, most).astype(a.dtype)
    return shifted if a.dtype.kind == "i" else np.where(count > most, 0, shifted).astype(a.dtype)


# Rule 3


def _shf(words: Words) -> Function:
    _, direction, mode, _ = words

    def shf(a: Array, b: Array, c: Array) -> Array:
        pair = (b.astype(np.uint64) << 32) | a
        count = np.minimum(c, 32) if mode == "clamp" else c % 32
        return ((pair << count) >> 32 if direction == "l" else pair >> count) & _ALL

    return shf


# Rule 4


def _field(width: int, position: Array, length: Array) -> tuple[Array, Array, Array]:
    """Position and length of a field truncated at bit W - 1, and the position of its top bit."""
    counts = 0xFF if width == 32 else _ALL
    position, length = position.astype(np.int64) & counts, length.astype(np.int64) & counts
    return position, np.clip(width - position, 0, length), np.clip(position + length - 1, 0, width - 1)


def _low(dtype: np.dtype[Any], count: Array) -> Array:
    """Return masks of so many ones."""
    ones: Array = shl(np.ones_like(count, dtype), count) - dtype.type(1)
    return ones


def _bfe(a: Array, b: Array, c: Array) -> Array:
    code = unsigned(a)
    position, count, top = _field(width_of(a), b, c)
    field: Array = shr(code, position) & _low(code.dtype, count)
    if a.dtype.kind == "u":
        return field
    empty = (c & 0xFF if width_of(a) == 32 else c) == 0
    fill = (shr(code, top) & 1 != 0) & ~empty
    return np.where(fill, ~_low(code.dtype, count), 0).astype(code.dtype) | field


def _bfi(a: Array, b: Array, c: Array, d: Array) -> Array:
    position, count, _ = _field(width_of(a), c, d)
    field = shl(_low(a.dtype, count), position)
    return (b & ~field) | (shl(a, position) & field)


def _brev(a: Array) -> Array:
    ones = (1 << width_of(a)) - 1
    for shift in (1 << i for i in range(width_of(a).bit_length() - 1)):
        keep = ones // ((1 << shift) + 1)  # the lower of every two groups of `shift` bits
        a = ((a >> shift) & keep) | ((a & keep) << shift)
    return a


# Rule 5

_PAIRS: tuple[Callable[[Array, Array], Array], ...] = (
    lambda b, c: np.zeros_like(b), lambda b, c: ~(b | c), lambda b, c: ~b & c, lambda b, c: ~b,
    lambda b, c: b & ~c, lambda b, c: ~c, lambda b, c: b ^ c, lambda b, c: ~(b & c),
    lambda b, c: b & c, lambda b, c: ~(b ^ c), lambda b, c: c, lambda b, c: ~b | c,
    lambda b, c: b, lambda b, c: b | ~c, lambda b, c: b | c, lambda b, c: ~np.zeros_like(b),
)  # fmt: skip
"""Functions of two bits by their tables: bit (b, c). The tables for a = 1 and a = 0 differ by one of these."""


def _lop3(a: Array, b: Array, c: Array, lut: int) -> Array:
    if not 0 <= lut <= 0xFF:
        raise OperandError(f"lop3.b32: the look-up table is {lut}; expected an immediate of 0 to 255")
    low, differ = _PAIRS[lut & 0xF](b, c), lut & 0xF ^ lut >> 4
    if differ == 0:
        return low
    chosen = a if differ == 0xF else a & _PAIRS[differ](b, c)
    return chosen if lut & 0xF == 0 else low ^ chosen


def _lop3_predicate(combine: Function, a: Array, b: Array, c: Array, lut: int, q: Array) -> tuple[Array, Array]:
    result = _lop3(a, b, c, lut)
    return result, combine(result != 0, q)


# Rule 6


def _prmt(a: Array, b: Array, c: Array) -> Array:
    pair = (b.astype(np.uint64) << 32) | a
    result = np.zeros(a.shape, np.uint64)
    for i in range(4):
        nibble = c >> (4 * i) & 0xF
        byte = pair >> (nibble & 7) * 8 & 0xFF
        result |= np.where(nibble & 8, (byte >> 7) * 0xFF, byte) << (8 * i)
    return result.astype(np.uint32)


def _prmt_mode(words: Words) -> Function:
    controls = frozen(np.array(_PERMUTATIONS[words[-1]], np.uint32))
    return lambda a, b, c: _prmt(a, b, controls[c & 3])


# The forms

_integer, _logic, _move = (
    partial(value_form, f"{name} Instructions")
    for name in ("Integer Arithmetic", "Logic and Shift", "Data Movement and Conversion")
)
_FIELD = ((2, 0), GROUPS, "what positions and lengths above 255 do,")

FORMS = (
    _integer("add.<s32 u32 s64 u64>", "T T -> T", np.add),
    _integer("sub.<s32 u32 s64 u64>", "T T -> T", np.subtract),
    _integer("min.<s32 u32 s64 u64>", "T T -> T", np.minimum),
    _integer("max.<s32 u32 s64 u64>", "T T -> T", np.maximum),
    _integer("mul.lo .<s32 u32 s64 u64>", "T T -> T", np.multiply),
    _integer("mul.hi .<s32 u32>", "T T -> T", high),
    _integer("mul.wide .<s32 u32>", "T T -> W", product),
    _integer("mad.lo .<s32 u32 s64 u64>", "T T T -> T", plus(np.multiply)),
    _integer("mad.hi .<s32 u32>", "T T T -> T", plus(high)),
    _integer("mad.wide .<s32 u32>", "T T W -> W", plus(product)),
    _integer("popc.<b32 b64>", "T -> b32", np.bitwise_count, (2, 0)),
    _integer("brev.<b32 b64>", "T -> T", _brev, (2, 0), carriage=moved()),
    _integer("bfe.<u32 s32 u64 s64>", "T u32 u32 -> T", _bfe, *_FIELD, carriage=moved(1, 2)),
    _integer("bfi.<b32 b64>", "T T u32 u32 -> T", _bfi, *_FIELD, carriage=moved(2, 3)),
    _logic("and.<pred b16 b32 b64>", "T T -> T", np.bitwise_and, carriage=moved()),
    _logic("or.<pred b16 b32 b64>", "T T -> T", np.bitwise_or, carriage=moved()),
    _logic("xor.<pred b16 b32 b64>", "T T -> T", np.bitwise_xor, carriage=moved()),
    _logic("not.<pred b16 b32 b64>", "T -> T", np.invert, carriage=moved()),
    _logic("shl.<b16 b32 b64>", "T u32 -> T", shl, carriage=moved(1)),
    _logic("shr.<b16 u16 s16 b32 u32 s32 b64 u64 s64>", "T u32 -> T", shr, carriage=moved(1)),
    chosen_form(
        "Logic and Shift Instructions", "shf.<l r> .<clamp wrap>.b32", "b32 b32 u32 -> b32", _shf, (3, 1),
        carriage=moved(2),
    ),
    _logic("lop3.b32", "b32 b32 b32 imm -> b32", _lop3, (4, 3), sinks=(0,), carriage=moved()),
    *(
        _logic(
            f"lop3.{word}.b32", "b32 b32 b32 imm pred -> b32 pred", partial(_lop3_predicate, combine), (8, 2),
            sinks=(0,), both=True, carriage=moved(),
        )
        for word, combine in (("or", np.logical_or), ("and", np.logical_and))
    ),
    _move("mov.<pred b16 u16 s16 b32 u32 s32 b64 u64 s64>", "T -> T", lambda a: a, **MOVE),
    _move("mov.<f32 f64>", "T -> T", lambda a: a, travels=True, carriage=moved()),
    _move("prmt.b32", "b32 b32 u32 -> b32", _prmt, (2, 0), carriage=moved(2)),
    chosen_form(
        "Data Movement and Conversion Instructions", f"prmt.b32.<{' '.join(_PERMUTATIONS)}>", "b32 b32 u32 -> b32",
        _prmt_mode, (2, 0), carriage=moved(2),
    ),
)  # fmt: skip
"""Every form of this module."""
