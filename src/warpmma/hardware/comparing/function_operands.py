"""Operands of the approximate functions and of divisions: all of them, or as many as are asked for.

Every form with one 32-bit operand takes all 2^32; 16-bit forms all, packed ones with each element paired with a random
one; forms on upper words of f64 all of them, each with a random lower word. Divisions and `rsqrt.approx.f64` take any
codes, and codes near each other, near subnormal numbers or near the end of the range. A range of numbers draws the same
operands, however it is split.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..._arrays import Array
from ...operations import Operation

__all__ = ["Operands", "every_code", "function_plan"]

Operands = Callable[[int, int], tuple[Array, ...]]
"""Registers of so many lanes, from the number of the first one on."""


def _mixed(first: int, count: int, seed: int) -> Array:
    """Draw 64 random bits for each number of a range, however the range is split (splitmix64)."""
    z = (np.arange(first, first + count, dtype=np.uint64) + np.uint64(seed << 40)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    drawn: Array = z ^ (z >> np.uint64(31))
    return drawn


def _codes(first: int, count: int) -> Array:
    """Return 32-bit codes, a permutation of all 2^32 whose every prefix is spread over the range."""
    codes: Array = np.arange(first, first + count, dtype=np.uint64) * np.uint64(0x9E3779B1) & np.uint64(0xFFFFFFFF)
    return codes


def every_code(first: int, count: int, bits: int = 16) -> tuple[Array, ...]:
    """Return codes of so many bits: all of them, each once, within their number."""
    return (_codes(first, count).astype(f"uint{bits}"),)


def _packed(first: int, count: int) -> tuple[Array, ...]:
    low = _codes(first, count) & np.uint64(0xFFFF)
    return ((low | _mixed(first, count, 1) << np.uint64(16)).astype(np.uint32),)


def _upper_words(first: int, count: int) -> tuple[Array, ...]:
    words = _codes(first, count) << np.uint64(32)
    return (words | _mixed(first, count, 2) >> np.uint64(32),)


def _aimed(fields: Array, drawn: Array, fraction_bits: int, exponent_bits: int) -> Array:
    """Give half of the codes these exponent fields, and a quarter fractions near all zeros or all ones."""
    dtype = drawn.dtype.type
    sign = drawn & dtype(1 << (fraction_bits + exponent_bits))
    fraction = drawn & dtype((1 << fraction_bits) - 1)
    near = fraction & dtype(7) | np.where(fraction & dtype(8), dtype((1 << fraction_bits) - 8), dtype(0))
    fraction = np.where(fraction >> dtype(4) & dtype(3), fraction, near)
    aimed: Array = sign | fields.astype(drawn.dtype) << dtype(fraction_bits) | fraction
    return np.where(drawn >> dtype(10) & dtype(1), aimed, drawn)


def _pairs(first: int, count: int, wide: bool) -> tuple[Array, ...]:
    """Dividends and divisors: any codes; quotients near the limits of the range; divisors where scaling begins."""
    a, b, c = (_mixed(first, count, seed) for seed in (3, 4, 5))
    divisors = np.array([0, 1, 2, 23, 24, 25, 100, 127, 128, 200, 251, 252, 253, 254, 255, 126])[(c & 15).astype(int)]
    near = (
        divisors
        + np.array([-127, -126, -125, -150, -149, -1, 0, 1, 2, 126, 127, 128, 100, -100, 24, 25])[
            (c >> np.uint64(4) & np.uint64(15)).astype(int)
        ]
    )
    dividends = np.where(c & 256, near, (c >> np.uint64(16) & np.uint64(255)).astype(int))
    if wide:  # exponents of f64's range instead of f32's
        divisors, dividends = ((x - 127) * 8 + 1023 for x in (divisors, dividends))
        return _aimed(np.clip(dividends, 0, 2047), a, 52, 11), _aimed(np.clip(divisors, 0, 2047), b, 52, 11)
    return _aimed(np.clip(dividends, 0, 255), a.astype(np.uint32), 23, 8), _aimed(divisors, b.astype(np.uint32), 23, 8)


def _roots(first: int, count: int) -> tuple[Array, ...]:
    """Operands of a root in f64: any codes; squares and their neighbours; subnormal numbers; powers of two."""
    a, b = _mixed(first, count, 6), _mixed(first, count, 7)
    root = (a >> np.uint64(38)) | np.uint64(1 << 26)
    even = ((b >> np.uint64(8)) % np.uint64(470) * np.uint64(2) << np.uint64(52)).astype(np.uint64)
    square = (root * root).astype(np.float64).view(np.uint64) + even + (b & np.uint64(7)) - np.uint64(3)
    subnormal = (a >> np.uint64(12)) >> (b & np.uint64(63))
    power = ((a & np.uint64(0x7FF)) << np.uint64(52)) + (b & np.uint64(255)) - np.uint64(128)
    return (np.choose((b >> np.uint64(20) & np.uint64(3)).astype(int), [a, square, subnormal, power]),)


def function_plan(row: Operation, pairs: int) -> tuple[int, Operands]:
    """Return how many operands a form is compared on, and their source; `pairs` is how many where not all are."""
    if row.types == ("f64",) and "ftz" not in row.mnemonic:
        return pairs, _roots
    if len(row.inputs) == 2:
        return pairs, partial(_pairs, wide=row.types[0] == "f64")
    match row.types[0]:
        case "f32":
            return 1 << 32, partial(every_code, bits=32)
        case "f64":
            return 1 << 32, _upper_words
        case "f16x2" | "bf16x2":
            return 1 << 20, _packed
        case _:
            return 1 << 16, every_code
