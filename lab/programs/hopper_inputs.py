"""Inputs of Hopper kernels: bytes by the kind of their elements and a seed, the same on every machine.

1. Floats of 16 bits and more have a random sign and fraction, and a magnitude of 2^-6 to 2^1; `f32` has all 23 bits of
   the fraction, which tf32 cuts. Factors of scales are floats of these kinds.
2. fp8 codes have a random sign and fraction, and one of 8 exponents around 1.
3. `meta16` and `meta8` are nibbles of two different positions in rising order.
4. `out` is 0xFF everywhere: what a kernel does not write is seen; so is `scratch`, which is not compared. `zero` and
   `result` are zero.
"""

from __future__ import annotations

import numpy as np

from .launches import Array, words

__all__ = ["filled"]

_FP8 = {"e4m3": (3, 3), "e5m2": (2, 11)}  # bits of the fraction, least exponent
_NIBBLES = np.array([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110], np.uint8)


def _floats(seed: int, count: int) -> Array:
    word = words(seed, count)
    fractions = 1 + (word >> np.uint64(12)).astype(np.float64) * 2.0**-52
    signed = np.where(word & np.uint64(0x200), -fractions, fractions)
    made: Array = np.ldexp(signed, -6 + (word & np.uint64(0x1FF)).astype(np.int32) % 8)
    return made


def _fp8(kind: str, seed: int, count: int) -> Array:
    fraction, least = _FP8[kind]
    word = words(seed, count)
    exponents = least + (word >> np.uint64(8) & np.uint64(7))
    codes = exponents << np.uint64(fraction) | word & np.uint64((1 << fraction) - 1)
    made: Array = (codes | (word >> np.uint64(20) & np.uint64(1)) << np.uint64(7)).astype(np.uint8)
    return made


def filled(kind: str, seed: int, count: int) -> Array:
    """Return so many bytes of a kind, as an array of its elements' width."""
    if kind in ("out", "scratch"):
        return np.full(count, 0xFF, np.uint8)
    if kind in ("zero", "result"):
        return np.zeros(count, np.uint8)
    if kind in _FP8:
        return _fp8(kind, seed, count)
    made: Array
    if kind.startswith("meta"):
        nibbles = _NIBBLES[words(seed, 2 * count) % np.uint64(6)]
        made = nibbles[::2] | nibbles[1::2] << 4
    elif kind in ("s8", "u8", "s4"):
        made = words(seed, count).astype(np.uint8)
    elif kind == "s32":
        made = words(seed, count // 4).astype(np.int32) // np.int32(1 << 16)
    elif kind == "bf16":
        made = (_floats(seed, count // 2).astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    else:
        dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
        made = _floats(seed, count // np.dtype(dtype).itemsize).astype(dtype)
    return made
