"""Positions and lengths in words of bits: `clz`, `bfind`, `fns`, `szext`, `bmsk`, `cnot`.

The rules (PTX ISA 9.1: Integer Arithmetic, Logic and Shift Instructions):

1. `clz` counts the zeros above the most significant 1; `clz` of 0 is the width.
2. `bfind` finds the most significant bit that differs from the sign, for unsigned integers the most significant 1. It
   returns its position, or with `.shiftamt` the shift that moves it to the top; all ones if there is no such bit.
3. `fns` finds the n-th 1 of a mask, counting from a base upward (n > 0) or downward (n < 0), the base's own bit
   included; n = 0 tests that bit only. If there is none, the result is all ones. PTX leaves bases above 31 undefined:
   here they find none. -2^31 has no magnitude in 32 bits: ptxas expands `fns`, and its code then gives 0.
4. `szext` extends the lowest N bits, where N is b: `.wrap` takes b mod 32, and 0 bits give 0; `.clamp` returns a
   where b is 32 or more.
5. `bmsk` sets b bits from bit a upward, truncated at the top: `.wrap` takes both mod 32; with `.clamp`, an a of 32 or
   more gives 0, and a b of 32 or more sets all bits up to the top.
6. `cnot` gives 1 for 0, and 0 for anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..._arrays import Array
from ..carriage import moved
from ..measurements import OPERATIONS
from ..value_forms import Words, chosen_form, unsigned, width_of
from .integers import shl

Function = Callable[..., Array]

_NONE = np.uint32(0xFFFFFFFF)


def _length(a: Array) -> Array:
    """Return the number of bits up to the most significant 1."""
    smeared = a
    for shift in (1 << i for i in range(width_of(a).bit_length() - 1)):
        smeared = smeared | (smeared >> a.dtype.type(shift))
    return np.bitwise_count(smeared).astype(np.uint32)


def _clz(a: Array) -> Array:
    return np.uint32(width_of(a)) - _length(a)


def _bfind(words: Words) -> Function:
    def bfind(a: Array) -> Array:
        length = _length(unsigned(np.where(a < 0, ~a, a)) if a.dtype.kind == "i" else a)
        found = np.uint32(width_of(a)) - length if "shiftamt" in words else length - np.uint32(1)
        return np.where(length == 0, _NONE, found)

    return bfind


def _fns(mask: Array, base: Array, offset: Array) -> Array:
    """Rule 3, one position after the other, for all lanes at once."""
    left, position = np.abs(offset.astype(np.int64)) - (offset != 0), base.astype(np.int64)
    position = np.where(base < 32, position, 32 * np.where(offset < 0, -1, 1))
    step, found = np.where(offset < 0, -1, 1), np.where(offset == -(1 << 31), np.uint32(0), _NONE)
    for _ in range(32):
        inside = (position >= 0) & (position < 32)
        one = inside & (mask >> np.where(inside, position, 0).astype(np.uint32) & np.uint32(1) != 0)
        hit = one & (left == 0)
        found = np.where(hit, position.astype(np.uint32), found)
        left = left - one
        position = np.where(offset == 0, 32, position + step)
    return found


def _szext(words: Words) -> Function:
    clamp = "clamp" in words

    def szext(a: Array, b: Array) -> Array:
        count = b & np.uint32(31)
        keep = shl(np.ones_like(b), count) - np.uint32(1)
        if clamp:
            keep = np.where(b >= 32, _NONE, keep)
        code = unsigned(a) if a.dtype.kind == "i" else a
        result = code & keep
        if a.dtype.kind == "i":
            top = keep & ~(keep >> np.uint32(1))
            result = np.where(code & top != 0, result | ~keep, result)
        return result

    return szext


def _bmsk(words: Words) -> Function:
    clamp = "clamp" in words

    def bmsk(a: Array, b: Array) -> Array:
        count = np.minimum(b, np.uint32(32)) if clamp else b & np.uint32(31)
        ones = shl(np.ones_like(b), count) - np.uint32(1)
        return shl(ones, a if clamp else a & np.uint32(31))

    return bmsk


def _cnot(a: Array) -> Array:
    return np.asarray(a == 0, a.dtype)


_integer, _logic = (
    partial(chosen_form, f"{name} Instructions", compared=OPERATIONS)
    for name in ("Integer Arithmetic", "Logic and Shift")
)
_MODES = (7, 6)

FORMS = (
    _integer("clz.<b32 b64>", "T -> b32", lambda words: _clz, ptx=(2, 0)),
    _integer("bfind{.shiftamt}.<s32 u32 s64 u64>", "T -> b32", _bfind, ptx=(2, 0)),
    _integer("fns.b32", "b32 b32 s32 -> b32", lambda words: _fns, ptx=(6, 0), left_open="what bases above 31 give,"),
    _integer("szext.<clamp wrap>.<s32 u32>", "T u32 -> T", _szext, ptx=_MODES, carriage=moved(1)),
    _integer("bmsk.<clamp wrap>.b32", "u32 u32 -> b32", _bmsk, ptx=_MODES),
    _logic("cnot.<b16 b32 b64>", "T -> T", lambda words: _cnot),
)
"""Every form of this module."""
