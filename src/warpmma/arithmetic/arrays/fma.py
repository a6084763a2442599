"""Chains of IEEE fused multiply-adds over arrays: rules 14 to 16 of `reference`.

An fma of f32 is a product and a sum in float64, rounded to odd, and rounded once more. That of f64 works on 128-bit
integers, as two uint64 each, by the usual plan: both addends in one frame of 128 bits with the larger at the top, bits
that leave the frame gathered in its last bit ("sticky"), one addition, one rounding. The comments state why the frame
is wide enough.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ..._arrays import Array
from ..._rounding import Float64, Rounding, on_magnitude
from ...formats import FORMATS, floating
from ..exact import normalised, rounded_from_odd
from ..recipes import FloatChains, FmaChain, Recipe, steps
from .fused import ieee_add

UInt = npt.NDArray[np.uint64]
Int = npt.NDArray[np.int64]

_U = np.uint64
_F32, _F64 = floating("f32"), floating("f64")
_BITS = _F64.fraction_bits
_SIGN, _INFINITY = _U(_F64.sign_bit), _U(cast(int, _F64.inf_code))
_QUIET = _U(1 << (_BITS - 1))
_MADE_NAN = _SIGN | _INFINITY | _QUIET
_LOW_32 = _U((1 << 32) - 1)


def f32_chains(recipe: Recipe, a: Array, b: Array, c: Array) -> Array:
    """Compute D by chains in f32 (rule 16); parameters and result as for `fused_dot_add`.

    A product of two f16 numbers has 22 bits and an exponent within f32's range, so it is exact in f32, and an fma of
    it is one f32 addition.
    """
    unit = cast(FloatChains, recipe.unit)
    fmt, d = FORMATS["f32"], floating(recipe.d)
    products = floating(recipe.a).decode(a) * floating(recipe.b).decode(b)
    total = floating(recipe.c).decode(c)
    for step in steps("ascending", unit.length, len(a)):
        chain = np.zeros(products.shape[1:])
        for position, i in enumerate(step):
            first = position == 0 and unit.seed == "product"
            chain = products[i] if first else fmt.decode(ieee_add(fmt, products[i], chain))
        total = fmt.decode(ieee_add(fmt, total, chain))
    return d.encode(total, "rn", overflow="infinity")


def fma_chain(recipe: Recipe, a: Array, b: Array, c: Array) -> Array:
    """Compute D by a chain in D's format from C (rule 15); parameters and result as for `fused_dot_add`."""
    rounding, fma = cast(FmaChain, recipe.unit).rounding, _FMA[recipe.d]
    result = c
    for x, y in zip(a, b, strict=True):
        result = fma(x, y, result, rounding)
    return result


def fma32(a: Array, b: Array, c: Array, rounding: Rounding) -> Array:
    """Fused multiply-add of f32 codes, which broadcast; a NaN is the canonical one."""
    x, y, z = (_F32.decode(codes) for codes in (a, b, c))
    with np.errstate(invalid="ignore"):  # infinity times zero
        return _F32.encode(sum_to_odd(x * y, z), rounding, overflow="infinity")


def sum_to_odd(product: Float64, addend: Float64) -> Float64:
    """Add in float64, rounding to odd: what may be rounded once more as if it were the exact sum.

    The product is of two values of at most 24 bits, which is exact in float64; the addend has at most 24 bits. All are
    from f32's range. A sum that is exactly zero has the sign that rounding to nearest gives it.

    The sum s to nearest has an error e that the two-sum finds exactly: no addend is 2^257 or above or has a bit below
    2^-298, so nothing overflows and nothing is subnormal. Where e is not 0, s is moved to its neighbour toward e if
    its last bit is even. That is rounding to odd, to 53 >= 24 + 2 bits, and rounding it once more, in any direction and
    to at most 24 bits, is rounding the exact sum (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums:
    proved algorithms using rounding to odd", 2008). s is 0 only if the sum is.
    """
    with np.errstate(invalid="ignore"):  # infinities
        s = product + addend
        back = s - product
        error = (product - (s - back)) + (addend - back)
    bits = s.view(np.int64)
    move = (error != 0) & (bits & 1 == 0) & np.isfinite(s)
    return (bits + np.where(move, np.where((error > 0) == (s > 0), 1, -1), 0)).view(np.float64)


def fma64(a: Array, b: Array, c: Array, rounding: Rounding) -> Array:
    """Fused multiply-add of f64 codes, which broadcast, with the hardware's choice among NaN operands."""
    a, b, c = np.broadcast_arrays(a, b, c)
    product_sign, c_sign = (a ^ b) & _SIGN, c & _SIGN
    result = _finite(_product(a, b), _parts(c), product_sign, c_sign, rounding)
    a_inf, b_inf, c_inf = ((x & ~_SIGN) == _INFINITY for x in (a, b, c))
    product_inf = a_inf | b_inf
    result = np.where(product_inf, product_sign | _INFINITY, result)
    result = np.where(c_inf, c, result)
    zero_times_inf = product_inf & (((a & ~_SIGN) == 0) | ((b & ~_SIGN) == 0))
    opposite = product_inf & c_inf & (product_sign != c_sign)
    result = np.where(zero_times_inf | opposite, _MADE_NAN, result)
    for operand in (a, c, b):  # the last to be taken is the first in rank
        result = np.where((operand & ~_SIGN) > _INFINITY, operand | _QUIET, result)
    return cast(Array, result)


_FMA = {"f32": fma32, "f64": fma64}


class _Wide(NamedTuple):
    """A magnitude: the 128-bit integer `high * 2^64 + low`, times 2^exponent."""

    high: UInt
    low: UInt
    exponent: Int


def _unpacked(x: UInt) -> tuple[UInt, Int]:
    """Significand with its leading bit at bit 52 (subnormals too), 0 of zero; and the weight of its last bit."""
    size = x & ~_SIGN
    significand, exponent = normalised(_F64, size)
    return np.where(size == 0, _U(0), significand), exponent - _BITS


def _product(a: UInt, b: UInt) -> _Wide:
    """Exact product, with its leading bit at bit 124 or 125 of the frame; 0 stays 0."""
    (x, x_exponent), (y, y_exponent) = _unpacked(a), _unpacked(b)
    # 53 x 53 bits by halves of 32 and 21 bits: every partial product, and the sum of the two middle ones with a carry,
    # stays below 2^64.
    x0, x1, y0, y1 = x & _LOW_32, x >> _U(32), y & _LOW_32, y >> _U(32)
    low = x0 * y0
    middle = x1 * y0 + x0 * y1 + (low >> _U(32))
    high = x1 * y1 + (middle >> _U(32))
    low = (middle << _U(32)) | (low & _LOW_32)
    # 2^104 <= product < 2^106; 20 places up, the leading bit is at 124 or 125, and 20 zero bits lie below.
    return _Wide((high << _U(20)) | (low >> _U(44)), low << _U(20), x_exponent + y_exponent - 20)


def _parts(c: UInt) -> _Wide:
    """Addend with its leading bit at bit 124 of the frame."""
    significand, exponent = _unpacked(c)
    return _Wide(significand << _U(8), np.zeros_like(significand), exponent - 72)


def _finite(p: _Wide, c: _Wide, p_sign: UInt, c_sign: UInt, rounding: Rounding) -> UInt:
    """Sum of two finite numbers, rounded."""
    # A zero takes the other's exponent, so that nothing moves on its account.
    p_zero, c_zero = (p.high | p.low) == 0, c.high == 0
    p_exponent = np.where(p_zero, c.exponent, p.exponent)
    c_exponent = np.where(c_zero, p_exponent, c.exponent)
    exponent = np.maximum(p_exponent, c_exponent)
    # Only the addend with the smaller exponent moves down. If it moves 2 places or more, the sum keeps its leading
    # bit at 122 or above: the 53 bits of the result end at bit 70, and the sticky bit at 0 is only ever below them.
    # If it moves less, nothing is lost: the product has 20 zero bits at its end, the addend 72.
    p_high, p_low = _shift_down(p.high, p.low, exponent - p_exponent)
    c_high, c_low = _shift_down(c.high, c.low, exponent - c_exponent)
    same = p_sign == c_sign
    sum_low = p_low + c_low
    sum_high = p_high + c_high + (sum_low < p_low)
    p_larger = (p_high > c_high) | ((p_high == c_high) & (p_low >= c_low))
    big_high, big_low = np.where(p_larger, p_high, c_high), np.where(p_larger, p_low, c_low)
    small_high, small_low = np.where(p_larger, c_high, p_high), np.where(p_larger, c_low, p_low)
    difference_low = big_low - small_low
    difference_high = big_high - small_high - (big_low < small_low)
    high, low = np.where(same, sum_high, difference_high), np.where(same, sum_low, difference_low)
    sign = np.where(same | p_larger, p_sign, c_sign)
    zero = (high | low) == 0
    exact_zero = np.where(same, p_sign, _SIGN if rounding == "rm" else _U(0))
    return np.where(zero, exact_zero, _round(sign, high, low, exponent, rounding))


def _round(sign: UInt, high: UInt, low: UInt, exponent: Int, rounding: Rounding) -> UInt:
    """Normalise a 128-bit magnitude and round it to f64: its upper 55 bits, the last of them sticky."""
    lead = np.where(high == 0, 64 + _leading_zeros(low), _leading_zeros(high))
    high, low = _shift_up(high, low, lead)
    odd = (high >> _U(9)) | ((high & _U(0x1FF) | low) != 0)
    # The leading bit is at 127 with weight 2^(exponent + 127).
    return sign | rounded_from_odd(_F64, odd, exponent - lead + 127, on_magnitude(rounding, sign != 0))


def _leading_zeros(x: UInt) -> Int:
    """Leading zero bits of 64; 64 for 0. Smearing the leading bit down leaves as many ones as the number has bits."""
    for shift in (1, 2, 4, 8, 16, 32):
        x = x | (x >> _U(shift))
    return 64 - np.bitwise_count(x).astype(np.int64)


def _shift_up(high: UInt, low: UInt, count: Int) -> tuple[UInt, UInt]:
    """Shift a 128-bit integer up by 0 to 127."""
    word = count >= 64
    high, low = np.where(word, low, high), np.where(word, _U(0), low)
    n = (count & 63).astype(np.uint64)
    carried = np.where(n == 0, _U(0), low >> (_U(64) - np.maximum(n, _U(1))))
    return (high << n) | carried, low << n


def _shift_down(high: UInt, low: UInt, count: Int) -> tuple[UInt, UInt]:
    """Shift a 128-bit integer down by any count, gathering what leaves it in the last bit."""
    count = np.minimum(count, 127)  # the frame's top two bits are clear or its lead is at 127: 127 leaves a sticky bit
    word = count >= 64
    lost = np.where(word, low, _U(0))
    high, low = np.where(word, _U(0), high), np.where(word, high, low)
    n = (count & 63).astype(np.uint64)
    lost = lost | (low & ((_U(1) << n) - _U(1)))
    carried = np.where(n == 0, _U(0), high << (_U(64) - np.maximum(n, _U(1))))
    return high >> n, (low >> n) | carried | (lost != 0)
