"""Operands whose quotients and roots are next to a rounding boundary.

M is an integer of up to P + 2 bits, one more than the format's significands: if odd it is halfway between two numbers,
with fewer bits a number. Its neighbours are constructed backwards, from small remainders r. Arithmetic modulo 2^64 is
that of uint64.

1.  A quotient A / B = (M - r / B) 2^-k: for an odd B, M is r times the inverse of B modulo 2^k, so that 2^k divides
    M B - r, which is A 2^k.
2.  A root of A 2^k = M^2 - r: for an r that is 1 modulo 8, M is a root of r modulo 2^(P + 3), found bit by bit
    (Hensel); k is P + 2 or P + 3, so that A has P + 1 bits.
3.  Exponents are chosen so that the quotient is near 1, or at the least normal number or at the largest number, or
    anywhere; or so that the last bit of M is half of the least subnormal number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...formats import FloatFormat

__all__ = ["hard_dividends", "hard_divisors", "hard_radicands"]

Array = npt.NDArray[Any]
Rng = np.random.Generator

_U = np.uint64


def hard_dividends(fmt: FloatFormat, count: int, rng: Rng) -> tuple[Array, Array]:
    """Draw dividends and divisors: codes, positive ones, as uint64 (rules 1 and 3)."""
    bits = fmt.fraction_bits
    length = np.where(rng.random(count) < 0.5, bits + 1, rng.integers(1, bits + 1, count))
    b = rng.integers(0, 1 << bits, count, _U) >> (bits + 1 - length).astype(_U)
    b |= (_U(1) << (length - 1).astype(_U)) | _U(1)
    k = bits + 2 - np.where(rng.random(count) < 0.5, 0, rng.integers(0, bits, count))
    r = (2 * rng.integers(-1 << bits // 3, 1 << bits // 3, count) + 1).view(_U)
    m = (r * _inverse(b)) & _ones(k)
    a = np.maximum(_divided(m.astype(np.float64) * b.astype(np.float64), m * b - r, k), _U(1))
    step = _leading(m) - k  # exponent of A / B
    wanted = np.choose(
        rng.integers(0, 6, count),
        [
            rng.integers(-3, 4, count),
            rng.integers(fmt.emin - 1, fmt.emin + 1, count),
            rng.integers(fmt.emax, fmt.emax + 2, count),
            rng.integers(fmt.emin - bits - 2, fmt.emax + 2, count),
            *[fmt.emin - bits - 1 + _leading(m)] * 2,
        ],
    )
    apart = wanted - step + _leading(a) - _leading(b)  # of the operands' exponents
    low, high = np.maximum(fmt.emin, fmt.emin - apart), np.minimum(fmt.emax, fmt.emax - apart)
    exponent = low + (rng.random(count) * (high - low + 1)).astype(np.int64)
    return _codes(fmt, a, exponent + apart), _codes(fmt, b, exponent)


def hard_divisors(fmt: FloatFormat, count: int, rng: Rng) -> Array:
    """Draw operands of reciprocals: codes, positive ones, as uint64.

    With a small j, 1 / (1 + j 2^-P) is just above 1 - j 2^-P, which is a number; 2 / (2 - j 2^-P) just above
    1 + j 2^-(P + 1), which is halfway between two for an odd j.
    """
    bits = fmt.fraction_bits
    j = rng.integers(0, 1 << bits // 2, count, _U) >> rng.integers(0, bits // 2, count, _U)
    fraction = np.choose(rng.integers(0, 3, count), [j, _U((1 << bits) - 1) - j, rng.integers(0, 1 << bits, count, _U)])
    field = np.choose(
        rng.integers(0, 4, count),
        [
            np.zeros(count, np.int64),
            rng.integers(fmt.emax + fmt.bias - 3, fmt.emax + fmt.bias + 1, count),
            rng.integers(fmt.bias - 2, fmt.bias + 3, count),
            rng.integers(0, fmt.emax + fmt.bias + 1, count),
        ],
    )
    few = np.where(rng.random(count) < 0.5, rng.integers(0, bits, count), 0).astype(_U)  # short ones too
    return (field.astype(_U) << _U(bits)) | (fraction >> few << few)


def hard_radicands(fmt: FloatFormat, count: int, rng: Rng) -> Array:
    """Draw operands of square roots: codes, positive ones, as uint64 (rule 2); and squares and their neighbours."""
    bits = fmt.fraction_bits
    r = (8 * rng.integers(-1 << bits // 4, 1 << bits // 4, count) + 1).view(_U)
    m = np.ones(count, _U)
    for place in range(3, bits + 4):  # m m = r modulo 2^place; 2^(place - 1) more changes the bit of this place
        m |= ((r - m * m) >> _U(place) & _U(1)) << _U(place - 1)
    m &= _U((1 << (bits + 2)) - 1)
    m = np.where(m >> _U(bits + 1) == 0, _U(1 << (bits + 2)) - m, m)
    square = m.astype(np.float64) ** 2
    k = np.where(square < 2.0 ** (2 * bits + 3), bits + 2, bits + 3)
    a = np.clip(_divided(square, m * m - r, k), _U(1 << bits), _U((2 << bits) - 1))
    exponent = 2 * rng.integers(fmt.emin // 2, (fmt.emax + 1) // 2, count)
    hard = _codes(fmt, a, exponent + (k + bits) % 2)
    root = rng.integers(1, 1 << (bits // 2 + 1), count, _U)
    whole = _codes(fmt, root * root, np.clip(_leading(root * root) + exponent, fmt.emin, fmt.emax))
    whole = whole + rng.integers(-1, 2, count).view(_U)
    return np.where(rng.random(count) < 0.75, hard, whole)


def _inverse(b: Array) -> Array:
    """Invert odd integers modulo 2^64: each step doubles the number of correct bits, 3 at first."""
    inverse = b
    for _ in range(5):
        inverse = inverse * (_U(2) - b * inverse)
    return inverse


def _divided(near: Array, low: Array, k: Array) -> Array:
    """Divide an integer by 2^k, given its approximate value and its lower 64 bits."""
    guess = np.ldexp(near, -k).astype(_U)
    shift = k.astype(_U)
    error = ((low >> shift) - guess) << shift  # its lower bits, at the top: its sign too
    return guess + (error.view(np.int64) >> k).view(_U)


def _ones(k: Array) -> Array:
    return (_U(1) << k.astype(_U)) - _U(1)


def _leading(x: Array) -> Array:
    """Position of the leading bit of nonzero integers of at most 54 bits; one too high only if 54 ones round up."""
    return np.frexp(x.astype(np.float64))[1].astype(np.int64) - 1


def _codes(fmt: FloatFormat, significand: Array, exponent: Array) -> Array:
    """Codes of normal numbers: their significands as integers, and the exponents of the leading bits."""
    bits = fmt.fraction_bits
    up = (bits - _leading(significand)).astype(_U)
    return ((exponent + (fmt.bias - 1)).astype(_U) << _U(bits)) + (significand << up)
