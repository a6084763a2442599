"""Integer arithmetic beyond what addresses need: 16 bits, upper halves, saturation, 24 bits, division, dot products.

The rules, for values of W bits (PTX ISA 9.1: Integer Arithmetic Instructions; rules of module `integers` hold here):

1. `mul.hi`, `mad.hi` take the high W bits of the product of 2 W bits, also for W = 16 and 64; `mul.wide`, `mad.wide` of
   16-bit operands give 32 bits.
2. `.sat` of s32 clamps the exact sum or difference; `mad.hi.sat` and `mad24.hi.sat` that of the upper half and c.
3. `mul24`, `mad24` multiply the low 24 bits, extended by bit 23 if they are signed. `.lo` is bits 31:0 and `.hi` bits
   47:16 of the 48-bit product.
4. `sad` adds the distance of a and b to c, in W bits. `abs` and `neg` of the least number give that number.
5. `div` truncates the quotient toward zero; `rem` has the sign of the dividend. The least number divided by -1 is
   itself, with remainder 0. Division by zero gives all ones for both. (PTX leaves that open; the code that ptxas 13.0
   emits for each type defines it.)
6. `.relu` of `min` and `max` gives 0 for a negative result. `.s16x2` and `.u16x2` compute on each half alone.
7. `dp4a` adds the four products of bytes, `dp2a` two products of halves of a and of bytes of b, the lower two (`.lo`)
   or the upper (`.hi`), to c. The first type says whether bytes and halves of a are signed, the second whether bytes of
   b are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..._arrays import Array
from ..carriage import per_element
from ..measurements import OPERATIONS
from ..value_forms import Words, chosen_form, unsigned, width_of
from .integers import high, plus, product

Function = Callable[..., Array]

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


# Rule 1


def upper(a: Array, b: Array) -> Array:
    """Return the upper half of products: of 64 bits by 32 bits at a time."""
    width = width_of(a)
    if width == 32:
        return high(a, b)
    if width == 16:
        return (product(a, b) >> 16).astype(a.dtype)
    x, y = unsigned(a), unsigned(b)
    low_x, high_x, low_y, high_y = x & _LOW, x >> _32, y & _LOW, y >> _32
    middle = high_x * low_y + (low_x * low_y >> _32)
    other = low_x * high_y + (middle & _LOW)
    result: Array = high_x * high_y + (middle >> _32) + (other >> _32)
    if a.dtype.kind == "i":  # each negative factor counts 2^64 too much
        result = result - np.where(a < 0, y, 0).astype(np.uint64) - np.where(b < 0, x, 0).astype(np.uint64)
    return result.view(a.dtype)


# Rule 2


def _clamped(values: Array) -> Array:
    return np.clip(values, -(1 << 31), (1 << 31) - 1).astype(np.int32)


def _saturated(function: Function) -> Function:
    return lambda *x: _clamped(function(*(a.astype(np.int64) for a in x)))


def _upper_saturated(a: Array, b: Array, c: Array) -> Array:
    return _clamped((product(a, b) >> 32) + c)


# Rule 3


def _product24(a: Array, b: Array) -> Array:
    x, y = (
        ((v.astype(np.int64) << 40) >> 40) if v.dtype.kind == "i" else v.astype(np.int64) & 0xFFFFFF for v in (a, b)
    )
    return x * y


def _part24(words: Words) -> Function:
    shift = 16 if "hi" in words else 0
    return lambda a, b: (_product24(a, b) >> shift).astype(a.dtype)


def _added24(words: Words) -> Function:
    if "sat" in words:
        return lambda a, b, c: _clamped((_product24(a, b) >> 16) + c)
    return plus(_part24(words))


# Rules 4 and 5


def _sad(a: Array, b: Array, c: Array) -> Array:
    return c + np.where(a < b, b - a, a - b)


def _size(a: Array) -> Array:
    """Magnitudes, as unsigned integers."""
    return unsigned(np.where(a < 0, -a, a)) if a.dtype.kind == "i" else a


def _divided(words: Words) -> Function:
    quotient = words[0] == "div"

    def divide(a: Array, b: Array) -> Array:
        x, y = _size(a), _size(b)
        by = np.where(y == 0, 1, y).astype(y.dtype)
        result = x // by if quotient else x % by
        negative = (a < 0) ^ (b < 0) if quotient else a < 0
        result = np.where(negative, ~result + result.dtype.type(1), result)
        return np.asarray(np.where(y == 0, ~np.zeros_like(result), result), x.dtype)

    return divide


# Rule 6


def halves(a: Array, signed: bool) -> tuple[Array, Array]:
    """Return the lower and the upper half of words."""
    dtype = np.int16 if signed else np.uint16
    return tuple((a >> np.uint32(shift)).astype(np.uint16).view(dtype) for shift in (0, 16))  # type: ignore[return-value]


def _paired(function: Function, words: Words) -> Function:
    signed = words[-1][0] == "s"

    def pair(a: Array, b: Array) -> Array:
        low, up = (unsigned(function(x, y)) for x, y in zip(halves(a, signed), halves(b, signed), strict=True))
        return low.astype(np.uint32) | (up.astype(np.uint32) << np.uint32(16))

    return pair


_CHOICES: dict[str, Function] = {"min": np.minimum, "max": np.maximum, "add": np.add, "sub": np.subtract}


def _chosen(words: Words) -> Function:
    function = _CHOICES[words[0]]
    return (lambda a, b: np.maximum(function(a, b), 0).astype(a.dtype)) if "relu" in words else function


# Rule 7


def _piece(a: Array, shift: int, bits: int, signed: bool) -> Array:
    code = (a >> np.uint32(shift)).astype(f"uint{bits}")
    return (code.view(f"int{bits}") if signed else code).astype(np.int64)


def _dot(words: Words) -> Function:
    signed_a, signed_b = (word[0] == "s" for word in words[-2:])
    if words[0] == "dp4a":
        pairs = [(8 * i, 8, 8 * i) for i in range(4)]
    else:
        first = 16 if "hi" in words else 0
        pairs = [(16 * i, 16, first + 8 * i) for i in range(2)]

    def dot(a: Array, b: Array, c: Array) -> Array:
        total = c.astype(np.int64)
        for at, bits, other in pairs:
            total = total + _piece(a, at, bits, signed_a) * _piece(b, other, 8, signed_b)
        return total.astype(np.uint32)

    return dot


# The forms

_by_words = partial(chosen_form, "Integer Arithmetic Instructions", compared=OPERATIONS)


def _form(spelling: str, text: str, function: Function, **more: Any) -> Any:
    return _by_words(spelling, text, lambda words: function, **more)


_WHOLE = "s16 u16 s32 u32 s64 u64"
_ZERO = "what division by zero gives,"

FORMS = (
    *(_form(f"{name}.<s16 u16>", "T T -> T", function) for name, function in _CHOICES.items()),
    _form("<mul.lo> .<s16 u16>", "T T -> T", np.multiply),
    _form("<mul.hi> .<s16 u16 s64 u64>", "T T -> T", upper),
    _form("<mul.wide> .<s16 u16>", "T T -> W", product),
    _form("<mad.lo> .<s16 u16>", "T T T -> T", plus(np.multiply)),
    _form("<mad.hi> .<s16 u16 s64 u64>", "T T T -> T", plus(upper)),
    _form("<mad.wide> .<s16 u16>", "T T W -> W", plus(product)),
    _form("add.sat.s32", "T T -> T", _saturated(np.add)),
    _form("sub.sat.s32", "T T -> T", _saturated(np.subtract)),
    _form("mad.hi .sat.s32", "T T T -> T", _upper_saturated),
    _by_words("mul24.<lo hi>.<s32 u32>", "T T -> T", _part24),
    _by_words("mad24.<lo hi>.<s32 u32>", "T T T -> T", _added24),
    _by_words("mad24.hi.sat.s32", "T T T -> T", _added24),
    _form(f"sad.<{_WHOLE}>", "T T T -> T", _sad),
    _by_words(f"<div rem>.<{_WHOLE}>", "T T -> T", _divided, left_open=_ZERO),
    _form("abs.<s16 s32 s64>", "T -> T", np.abs),
    _form("neg.<s16 s32 s64>", "T -> T", np.negative),
    _by_words("<min max>.relu.s32", "T T -> T", _chosen, since="sm_90", ptx=(8, 0)),
    _by_words(
        "<min max>{.relu}.s16x2", "b32 b32 -> b32", lambda words: _paired(_chosen(words), words), since="sm_90",
        ptx=(8, 0), carriage=per_element(16),
    ),
    _by_words(
        "<add min max>.u16x2", "b32 b32 -> b32", lambda words: _paired(_chosen(words), words), since="sm_90",
        ptx=(8, 0), carriage=per_element(16),
    ),
    _by_words(
        "add.s16x2", "b32 b32 -> b32", lambda words: _paired(np.add, words), since="sm_90", ptx=(8, 0),
        carriage=per_element(16),
    ),
    _by_words("dp4a.<s32 u32>.<s32 u32>", "b32 b32 b32 -> b32", _dot, ptx=(5, 0)),
    _by_words("dp2a.<lo hi>.<s32 u32>.<s32 u32>", "b32 b32 b32 -> b32", _dot, ptx=(5, 0)),
)  # fmt: skip
"""Every form of this module."""
