"""IEEE quotients and square roots of f32 and f64: a reference on Python integers, and a form on arrays.

Specification
-------------
P is the number of the format's fraction bits (23, 52) and 2^emin its least normal number.

1.  `.ftz` first makes zeros of operands that are subnormal, of their signs.
2.  Quotient: x / y, exact, is rounded once: to nearest even, toward zero, down or up. Subnormal numbers are kept.
    Beyond the range comes infinity, or the largest number where the rounding leads toward zero. Its sign is the
    exclusive or of both signs, that of zeros and infinities too. A reciprocal is 1 / x.
3.  A number by zero is infinity, a number by infinity zero, infinity by a number infinity. Zero by zero and infinity by
    infinity make a NaN.
4.  Square root: the root of x, exact, is rounded once, as a quotient. That of a zero or of +infinity is the operand. Of
    what is negative otherwise a NaN is made.
5.  `.ftz` makes a zero, of its sign, of a result below 2^emin. Which one is asked, the exact result or the one that is
    rounded to P + 1 bits with no lower bound of the exponent, makes no difference: of integers X and Y of P + 1 bits a
    quotient below a power of two is at most the number of P + 1 bits next below that. (If X < Y it is at most 1 - 1 / Y
    and that number 1 - 2^-(P + 1); otherwise at most (2^(P + 1) - 1) / 2^P, which is that number.) But rounded on the
    grid of subnormal numbers the result may be 2^emin, and is flushed all the same. Roots are not small.
6.  NaN in f32: every NaN result is the canonical one, 0x7FFFFFFF. In f64: of operands that are NaN the first, made
    quiet with its sign and payload; one that is made is 0xFFF8000000000000.

Sources: rules 2 to 4 PTX ISA 9.1, 9.7.3 (`div`, `rcp`, `sqrt`), and IEEE 754; what they leave open, which is NaN and
what is flushed just below 2^emin, was measured on an H200.

On arrays
---------
7.  Significands of operands have 53 bits, whatever the format, with the leading bit set, of subnormal numbers too.
8.  Root and quotient, at least 1 and below 2, are guessed in float64 and put right by their remainders, as integers of
    54 bits. A last bit below them says whether anything remains: what has this bit set lies strictly between two
    integers. That is rounding to odd, to 55 bits.
9.  These are rounded to the format: every place where the result changes is a multiple of the last bit but one, for
    P + 2 <= 54.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from ..._arrays import Array, by_parts
from ..._rounding import Rounding, leads_outward, on_magnitude
from ...formats import FloatFormat, Number
from .exact_numbers import rounded

UInt = npt.NDArray[np.uint64]
Int = npt.NDArray[np.int64]

_U = np.uint64
_BITS = 53  # of a significand
_HIDDEN = _U(1 << (_BITS - 1))
_BELOW_HIDDEN = _U((1 << (_BITS - 1)) - 1)
_FLOAT_BIAS = 1023  # of float64, in which significands are normalised
_ROUNDED_TO_ODD = 55


# Python integers


def quotient_reference(fmt: FloatFormat, x: int, y: int, rounding: Rounding, *, ftz: bool = False) -> int:
    """Divide a code by another: what `quotient` must equal.

    Parameters
    ----------
    fmt : FloatFormat
        f32 or f64.
    x, y : int
        Codes of dividend and divisor.
    rounding : {"rn", "rz", "rm", "rp"}
    ftz : bool

    Returns
    -------
    int

    Examples
    --------
    >>> from warpmma.formats import floating
    >>> hex(quotient_reference(floating("f32"), 0x3F800000, 0x40400000, "rn"))  # 1 / 3
    '0x3eaaaaab'
    """
    x, y = (_flushed_code(fmt, code) if ftz else code for code in (x, y))
    a, b = fmt.unpack(x), fmt.unpack(y)
    sign = a.sign ^ b.sign
    kinds = tuple("zero" if n.kind == "finite" and not n.significand else n.kind for n in (a, b))
    if "nan" in kinds:
        return _nan(fmt, x if a.kind == "nan" else y)
    if kinds in (("zero", "zero"), ("infinity", "infinity")):
        return _nan(fmt)
    if kinds[0] == "infinity" or kinds[1] == "zero":
        return rounded(Number("infinity", sign), fmt, rounding)
    if kinds[0] == "zero" or kinds[1] == "infinity":
        return rounded(Number("finite", sign), fmt, rounding)
    places = 3 * fmt.fraction_bits  # more than the dividend's, the result's and a half
    whole, rest = divmod(a.significand << places, b.significand)
    exact = Number("finite", sign, 2 * whole + (rest > 0), a.exponent - b.exponent - places - 1)
    code = rounded(exact, fmt, rounding)
    return sign * fmt.sign_bit if ftz and _small(fmt, exact, rounding) else code


def square_root_reference(fmt: FloatFormat, x: int, rounding: Rounding, *, ftz: bool = False) -> int:
    """Take the square root of a code: what `square_root` must equal; parameters as of `quotient_reference`.

    Examples
    --------
    >>> from warpmma.formats import floating
    >>> hex(square_root_reference(floating("f32"), 0x40000000, "rp"))
    '0x3fb504f4'
    """
    x = _flushed_code(fmt, x) if ftz else x
    number = fmt.unpack(x)
    if number.kind == "nan":
        return _nan(fmt, x)
    if x in (0, fmt.sign_bit, fmt.inf_code):
        return x
    if number.sign:
        return _nan(fmt)
    places = 4 * fmt.fraction_bits + number.exponent % 2
    square = number.significand << places
    root = math.isqrt(square)
    exact = Number("finite", 0, 2 * root + (root * root < square), (number.exponent - places) // 2 - 1)
    return rounded(exact, fmt, rounding)


def _flushed_code(fmt: FloatFormat, code: int) -> int:
    """Rule 1."""
    return code & fmt.sign_bit if code & ~fmt.sign_bit < 1 << fmt.fraction_bits else code


def _small(fmt: FloatFormat, exact: Number, rounding: Rounding) -> bool:
    """Whether a number is below the least normal one, rounded to as many bits with no bound (rule 5)."""
    length = exact.significand.bit_length()
    between = Number("finite", exact.sign, exact.significand, -length)  # a half and 1
    near = fmt.unpack(rounded(between, fmt, rounding))
    return exact.exponent + length + near.exponent + near.significand.bit_length() - 1 < fmt.emin


def _nan(fmt: FloatFormat, code: int | None = None) -> int:
    """Return the result of a NaN operand, or a new NaN (rule 6)."""
    if fmt.name != "f64":
        return cast(int, fmt.nan_code)
    quiet = 1 << (fmt.fraction_bits - 1)
    return (fmt.sign_bit | cast(int, fmt.inf_code) if code is None else code) | quiet


# Arrays


def quotient(fmt: FloatFormat, x: Array, y: Array, rounding: Rounding, *, ftz: bool = False) -> Array:
    """Divide codes.

    Parameters
    ----------
    fmt : FloatFormat
        f32 or f64.
    x, y : ndarray of uint32 or uint64
        Codes of dividends and divisors; they broadcast.
    rounding : {"rn", "rz", "rm", "rp"}
    ftz : bool
        Of f32 alone.

    Returns
    -------
    ndarray of uint32 or uint64

    Examples
    --------
    >>> from warpmma.formats import floating
    >>> one, three = np.array([0x3F800000], np.uint32), np.array([0x40400000], np.uint32)
    >>> [hex(code) for code in quotient(floating("f32"), one, three, "rz")]
    ['0x3eaaaaaa']
    """
    return by_parts(partial(_quotient, fmt, rounding, ftz), x, y)


def square_root(fmt: FloatFormat, x: Array, rounding: Rounding, *, ftz: bool = False) -> Array:
    """Take square roots of codes; parameters and result as of `quotient`.

    Examples
    --------
    >>> from warpmma.formats import floating
    >>> [hex(code) for code in square_root(floating("f32"), np.array([0x40000000, 0x40800000], np.uint32), "rn")]
    ['0x3fb504f3', '0x40000000']
    """
    return by_parts(partial(_square_root, fmt, rounding, ftz), x)


def _quotient(fmt: FloatFormat, rounding: Rounding, ftz: bool, x: Array, y: Array) -> Array:
    """Rules 1 to 3, 5 and 6."""
    sign_bit, infinity = _U(fmt.sign_bit), _U(cast(int, fmt.inf_code))
    a, b = x.astype(_U), y.astype(_U)
    sign = (a ^ b) & sign_bit
    a, b = _magnitude(fmt, a, ftz), _magnitude(fmt, b, ftz)
    (m, e), (n, f) = normalised(fmt, a), normalised(fmt, b)
    less = m < n
    size = rounded_from_odd(
        fmt, _divided(m << less.astype(_U), n), e - f - less.view(np.int8), on_magnitude(rounding, sign != 0), ftz
    )
    size = np.where((a == 0) | (b == infinity), _U(0), size)
    size = np.where((a == infinity) | (b == 0), infinity, size)
    made = ((a == 0) & (b == 0)) | ((a == infinity) & (b == infinity))
    result = np.where(made, _U(_nan(fmt)), size | sign).astype(fmt.code_dtype)
    for codes, magnitude in ((y, b), (x, a)):  # the last to be taken is the first in rank
        result = _with_nan(fmt, result, codes, magnitude)
    return result


def _square_root(fmt: FloatFormat, rounding: Rounding, ftz: bool, x: Array) -> Array:
    """Rules 1 and 4 to 6."""
    sign_bit, infinity = _U(fmt.sign_bit), _U(cast(int, fmt.inf_code))
    codes = x.astype(_U)
    sign, a = codes & sign_bit, _magnitude(fmt, codes, ftz)
    m, e = normalised(fmt, a)
    odd = e & 1
    how = on_magnitude(rounding, np.zeros(a.shape, bool))
    size = rounded_from_odd(fmt, _rooted(m << odd.view(_U)), e >> 1, how, ftz)
    result = np.where((a == 0) | (a == infinity), a | sign, size)
    result = np.where((sign != 0) & (a != 0), _U(_nan(fmt)), result)
    return _with_nan(fmt, result.astype(fmt.code_dtype), x, a)


def _magnitude(fmt: FloatFormat, codes: UInt, ftz: bool) -> UInt:
    """Codes without their signs (rule 1)."""
    size = codes & _U(fmt.sign_bit - 1)
    return np.where(size < _U(1 << fmt.fraction_bits), _U(0), size) if ftz else size


def _with_nan(fmt: FloatFormat, result: Array, codes: Array, magnitude: UInt) -> Array:
    """Replace results where an operand is NaN (rule 6)."""
    made = codes.dtype.type(_nan(fmt))
    nan = codes | codes.dtype.type(1 << (fmt.fraction_bits - 1)) if fmt.name == "f64" else made
    return np.where(magnitude > _U(cast(int, fmt.inf_code)), nan, result)


def normalised(fmt: FloatFormat, size: UInt) -> tuple[UInt, Int]:
    """Significand by rule 7, and the exponent of its leading bit; arbitrary for zero, infinity and NaN.

    Float64 holds an integer below 2^53 exactly and normalises its leading one. The conversion yields only normal
    numbers and 0, so it does not depend on how the processor treats other values.
    """
    bits = _U(fmt.fraction_bits)
    field = np.maximum(size >> bits, _U(1))
    whole = size - ((field - _U(1)) << bits)
    normal = whole.view(np.int64).astype(np.float64).view(_U)
    exponent = (normal >> _U(_BITS - 1)).view(np.int64) + field.view(np.int64)
    exponent -= _FLOAT_BIAS + fmt.bias + fmt.fraction_bits
    return (normal & _BELOW_HIDDEN) | _HIDDEN, exponent


def _divided(m: UInt, n: UInt) -> UInt:
    """Divide m by n, which is at most m and more than m / 2; the quotient has its point after the leading bit (rule 8).

    float64 has every m and n: m has at most 54 bits, the last of them 0 if so many. In any mode of rounding its
    quotient is off by less than 2^-51, and `guess` by less than 2^2 + 1. So the remainder is below 2^56 in magnitude
    and is what 64 bits have of it. Dividing it, as integers, is exact.
    """
    guess = (m.view(np.int64).astype(np.float64) / n.view(np.int64).astype(np.float64) * 2.0**_BITS).astype(np.int64)
    rest = ((m << _U(_BITS)) - guess.view(_U) * n).view(np.int64)
    return _to_odd(guess, rest, n.view(np.int64), 0)


def _rooted(m: UInt) -> UInt:
    """Take the root of m 2^-52, which is at least 1 and below 4 (rule 8).

    As of `_divided`: the guess is off by less than 2^2 + 1, and the sum of guess and root is below 2^55 + 2^3. So the
    remainder, which is the one times the other, is below 2^58 in magnitude.
    """
    guess = (np.sqrt(m.view(np.int64).astype(np.float64)) * 2.0 ** (_BITS - 26)).astype(np.int64)
    rest = ((m << _U(_BITS + 1)) - (guess * guess).view(_U)).view(np.int64)
    return _to_odd(guess, rest, 2 * guess, 1)


def _to_odd(guess: Int, rest: Int, slope: Int, bend: int) -> UInt:
    """Move a guess by whole steps to less than one from what it should be, and add the bit that says on which side.

    A step of s takes s (slope + bend s) from the remainder. A quotient is left by d below what it should be, with
    0 <= d < 1. A root g that is d below, with |d| < 5, has the remainder 2 g d + d^2. Divided by 2 g that is d and less
    than 2^-48 more, so that it is left by d with -2^-48 < d < 1.
    """
    step = rest // slope
    rest = rest - step * (slope + bend * step)
    return (2 * (guess + step) + np.sign(rest)).view(_U)


def rounded_from_odd(
    fmt: FloatFormat, odd: UInt, exponent: Int, rounding: Literal["rn", "rz"] | Array, ftz: bool = False
) -> UInt:
    """Round magnitudes to codes without sign (rule 9); `odd` has its point after the leading of 55 bits.

    `exponent` is that of the leading bit, and `rounding` as `on_magnitude` returns it.
    """
    bits = fmt.fraction_bits
    # Subnormal numbers keep fewer bits, and what is less than half of the least one none: all 55 are dropped, and one.
    dropped = (np.clip(fmt.emin - exponent, 0, bits + 2) + (_ROUNDED_TO_ODD - 1 - bits)).astype(_U)
    if isinstance(rounding, str):
        nearest = rounding == "rn"
        extra = (_U(1) << (dropped - _U(1))) - _U(1) + ((odd >> dropped) & _U(1)) if nearest else _U(0)
    else:
        extra = np.where(rounding, (_U(1) << dropped) - _U(1), _U(0))
    kept = (odd + extra) >> dropped
    # The leading bit of a normal number adds 1 to its field. Beyond the range the field grows past its bits: to 3,119
    # of f64 at most, which stays below 2^64.
    size = ((np.maximum(exponent, fmt.emin) - fmt.emin).astype(_U) << _U(bits)) + kept
    infinity = _U(cast(int, fmt.inf_code))
    size = np.where(size >= infinity, np.where(leads_outward(rounding), infinity, infinity - _U(1)), size)
    return np.where(exponent < fmt.emin, _U(0), size) if ftz else size
