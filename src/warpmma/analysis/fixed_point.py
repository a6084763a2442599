"""Arrays of exact numbers in fixed point of any width: sums of products without rounding.

Specification
-------------
1. A number is the sum of its digits, each times 2^(base + 21 t), t = 0, 1, ...; a digit is an int64 of any sign. An
   array of numbers has one base and as many digits each.
2. A float64 other than infinity and NaN is a significand of at most 53 bits times a power of two; where `base` is at
   most the exponent of its last bit that is set, it is cut into digits below 2^21 in magnitude, of its own sign.
3. A product of matrices is the sum, over pairs of digits of A and of B, of products of matrices of digits. Each is
   computed in float64 on at most 2,048 of k: every product of two digits is an integer below 2^42, every partial sum
   of any of them, in whatever order and with or without fused multiply-adds, an integer of at most 2^53. All of these
   are float64s, so nothing is rounded, whichever library multiplies.
4. Products of digits s and t are added to digit s + t, and then carries are passed upward, so that all digits but the
   highest lie in 0 to 2^21 - 1. Between two passes, digits hold at most 2^8 such products and stay below 2^62.
5. A number is converted to float64 from its 63 highest bits and a sticky bit for the bits below them. `to_odd` keeps
   53 bits and sets the last one if any discarded bit was nonzero: the result compares with a power of two as the
   number itself does. `nearest` is rounded once to nearest even.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

NOTHING = -1 << 20
"""The exponent that is given as that of the leading bit of zero."""

DIGIT_BITS = 21
"""Distance of two digits."""

_ALONG_K = 1 << (53 - 2 * DIGIT_BITS)
_PRODUCTS = 1 << 8
_MASK = (1 << DIGIT_BITS) - 1


class Scaled(NamedTuple):
    """Numbers `significand * 2^exponent`; of zero, both are 0."""

    significand: Float64
    exponent: Int64

    def over(self, exponent: Int64) -> Float64:
        """Divide by powers of two; exact unless the quotient leaves float64's range."""
        shift = np.clip(self.exponent - exponent, -4096, 4096).astype(np.int32)
        with np.errstate(over="ignore", under="ignore"):
            quotient: Float64 = np.ldexp(self.significand, shift)
            return quotient


def _parts(values: Float64) -> tuple[Int64, Int64]:
    """Signed significands and exponents of their last places."""
    fraction, exponent = np.frexp(values)
    return np.ldexp(fraction, 53).astype(np.int64), exponent.astype(np.int64) - 53


def extent(values: Float64) -> tuple[int, int] | None:
    """Exponent of the last bit that is set in any of some values, and of the place above their first; None of zeros."""
    significand, exponent = _parts(values[values != 0])
    if not significand.size:
        return None
    last = np.frexp((significand & -significand).astype(np.float64))[1] - 1
    return int((exponent + last).min()), int(exponent.max()) + 53


def _digit(significand: Int64, place: Int64) -> Int64:
    """One digit of numbers (rule 2); `place` is that of their last bits, counted from the digit's."""
    up, down = np.clip(place, 0, DIGIT_BITS), np.clip(-place, 0, 63)
    magnitude = np.abs(significand)
    found: Int64 = np.where(place >= 0, (magnitude & (_MASK >> up)) << up, magnitude >> down & _MASK)
    return np.where(significand < 0, -found, found)


def _digits(values: Float64) -> tuple[int, list[Float64 | None]]:
    """Cut values into digits, as float64; None stands for digits that all are zero."""
    found = extent(values)
    if found is None:
        return 0, []
    base, top = found
    significand, exponent = _parts(values)
    digits = []
    for start in range(base, top, DIGIT_BITS):
        digit = _digit(significand, exponent - start)
        digits.append(digit.astype(np.float64) if digit.any() else None)
    return base, digits


@dataclass(eq=False)
class FixedPoint:
    """Exact numbers (rule 1), with digits of one shape, from the lowest. After a `carry`, the highest has the sign."""

    base: int
    digits: list[Int64]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of numbers."""
        return self.digits[0].shape

    def carry(self) -> None:
        """Bring all digits but the highest into 0 to 2^21 - 1 (rule 4), and the highest below 2^21 in magnitude."""
        for low, high in zip(self.digits, self.digits[1:], strict=False):
            high += low >> DIGIT_BITS
            low &= _MASK
        while (np.abs(self.digits[-1]) > _MASK).any():
            low = self.digits[-1]
            self.digits.append(low >> DIGIT_BITS)
            low &= _MASK

    def plus(self, values: Float64, sign: int = 1) -> FixedPoint:
        """Add float64 values, or take them away, exactly; they broadcast."""
        digits, base = [digit.copy() for digit in self.digits], self.base
        if (found := extent(values)) is not None:
            low, top = found
            while base > low:
                base -= DIGIT_BITS
                digits.insert(0, np.zeros(self.shape, np.int64))
            while base + DIGIT_BITS * len(digits) < top:
                digits.append(np.zeros(self.shape, np.int64))
            significand, exponent = _parts(values)
            first = (low - base) // DIGIT_BITS
            for t, digit in enumerate(digits[first : -(-(top - base) // DIGIT_BITS)], first):
                digit += sign * _digit(significand, exponent - (base + DIGIT_BITS * t))
        total = FixedPoint(base, digits)
        total.carry()
        return total

    def times(self, factor: float) -> FixedPoint:
        """Multiply by one float64, exactly."""
        base, parts = _digits(np.array([factor]))
        digits = [np.zeros(self.shape, np.int64) for _ in range(len(self.digits) + len(parts) + 1)]
        for t, part in enumerate(parts):
            if part is not None:
                for s, digit in enumerate(self.digits):  # carried: below 2^21, and so are the factor's
                    digits[s + t] += digit * int(part[0])
        product = FixedPoint(self.base + base, digits)
        product.carry()
        return product

    def __getitem__(self, index: tuple[int, ...]) -> Fraction:
        """One number."""
        total = sum(int(digit[index]) << (DIGIT_BITS * t) for t, digit in enumerate(self.digits))
        return Fraction(total) * Fraction(2) ** self.base

    def signs(self) -> npt.NDArray[np.bool_]:
        """Mask of negative numbers."""
        return self.digits[-1] < 0  # which has the sign, after a carry

    def _highest(self) -> tuple[Int64, Int64]:
        """Rule 5: the 63 highest bits of magnitudes, with the last set where anything is below, and their exponent."""
        negative = self.signs()
        magnitude = FixedPoint(self.base, [np.where(negative, -digit, digit) for digit in self.digits])
        magnitude.carry()
        digits = np.stack([np.zeros(self.shape, np.int64)] * 3 + magnitude.digits)
        found = digits != 0
        top = len(digits) - 1 - np.argmax(found[::-1], axis=0)
        top = np.maximum(top, 3)
        below = found.any(axis=0) & (np.argmax(found, axis=0) < top - 3)
        first, second, third, fourth = (np.take_along_axis(digits, (top - i)[None], 0)[0] for i in range(4))
        length = np.frexp(first.astype(np.float64))[1].astype(np.int64)
        bits = (first << 42 | second << 21 | third) << (DIGIT_BITS - length) | fourth >> length
        rest = below | ((fourth & ((1 << length) - 1)) != 0)
        return bits | rest, self.base + DIGIT_BITS * (top - 6) + length

    def to_odd(self) -> Scaled:
        """Tell magnitudes with 53 bits (rule 5)."""
        bits, exponent = self._highest()
        kept = bits >> 10 | ((bits & 1023) != 0)
        return Scaled(kept.astype(np.float64), np.where(bits != 0, exponent + 10, 0))

    def nearest(self) -> Float64:
        """Round to float64, once (of subnormals of float64, twice)."""
        bits, exponent = self._highest()
        value = Scaled(bits.astype(np.float64), exponent).over(np.zeros((), np.int64))
        return np.where(self.signs(), -value, value)

    def leading(self) -> Int64:
        """Exponents of the leading bits of magnitudes; of zero, far below all others."""
        bits, exponent = self._highest()
        return np.where(bits != 0, exponent + 62, np.int64(NOTHING))


class Factor:
    """A matrix of finite values that is multiplied, cut into digits once."""

    def __init__(self, values: Float64) -> None:
        self.shape = values.shape
        self.base, self.digits = _digits(values)


def exact_product(a: Factor, b: Factor) -> FixedPoint:
    """Multiply matrices `[m, k]` and `[k, n]` exactly (rules 3 and 4)."""
    shape = a.shape[0], b.shape[1]
    count = len(a.digits) + len(b.digits)
    total = FixedPoint(a.base + b.base, [np.zeros(shape, np.int64) for _ in range(max(2, count))])
    since = 0
    for start in range(0, a.shape[1], _ALONG_K):
        run = slice(start, start + _ALONG_K)
        since += min(len(a.digits), len(b.digits))
        if since > _PRODUCTS:
            total.carry()
            since = min(len(a.digits), len(b.digits))
        for s, of_a in enumerate(a.digits):
            for t, of_b in enumerate(b.digits):
                if of_a is not None and of_b is not None:
                    total.digits[s + t] += (of_a[:, run] @ of_b[run]).astype(np.int64)
    total.carry()
    return total
