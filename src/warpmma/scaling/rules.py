"""Blocks of float32 numbers rounded to narrow elements and a scale: the arithmetic of `scaling.quantize`.

Blocks are codes of float32, `[blocks, size, columns]`: those of A one after the other, with one column, those of B as
many side by side as it has columns. All is done in parts that stay in a second-level cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

from .._lazy_numpy import Array, Float64, _arrays, np
from ..formats import FloatFormat, floating

_F32, _BF16, _UE8M0, _UE4M3 = map(floating, ("f32", "bf16", "ue8m0", "ue4m3"))
_PART = 1 << 15  # numbers at a time


def as_float32(fmt: FloatFormat, codes: Array) -> tuple[Array, int | None]:
    """Return codes of the same numbers in float32, and where the first is that has none; NaN becomes any NaN."""
    bits = np.empty(codes.shape, np.uint32)
    flat, of = bits.reshape(-1), codes.reshape(-1)
    for start in range(0, flat.size, _PART):
        part = slice(start, start + _PART)
        values = fmt.decode(of[part])
        flat[part] = _F32.encode(values)
        wrong = (_F32.decode(flat[part]) != values) & ~np.isnan(values)
        if wrong.any():
            return bits, start + int(wrong.argmax())
    return bits, None


def peaks(blocks: Array) -> Array:
    """Codes of the largest magnitudes, `[blocks, columns]`; infinity is above all numbers, and NaN above infinity."""
    found = np.empty((blocks.shape[0], blocks.shape[2]), np.uint32)
    for some, side in _parts(blocks):
        (blocks[some, :, side] & np.uint32(_F32.sign_bit - 1)).max(axis=1, out=found[some, side])
    return found


def mx(top: Float64, fmt: FloatFormat) -> tuple[Array, Float64, None]:
    """Codes of scales and what elements are divided by, `[..., blocks]`, by OCP's rule."""
    # A float32 but 0 is a normal float64, so that the exponent field is floor(log2); that of 0 is the least.
    shared = np.clip((top.view(np.int64) >> 52) - 1023 - fmt.emax, _UE8M0.emin, _UE8M0.emax)
    scales = np.where(np.isfinite(top), shared + _UE8M0.bias, 0xFF).astype(np.uint8)
    return scales, ((1023 + shared) << 52).view(np.float64), None


def nvfp4(top: Float64, fmt: FloatFormat) -> tuple[Array, Float64, Array]:
    """Codes of scales, divisors and tensor scales, by the numbered rules of `quantize`."""
    whole = top.max(axis=-1, initial=0.0)
    tensor = np.where(whole > 0, np.maximum(_float32(whole / (448 * 6)), 2.0**-149), 1.0)
    scales = _UE4M3.encode(_float32(_float32(top / 6) / tensor[..., None]))
    divisors = _float32(_UE4M3.decode(scales) * tensor[..., None])
    return scales, np.where(divisors > 0, divisors, np.inf), _F32.encode(tensor).view(np.float32)[()]


def elements(fmt: FloatFormat, blocks: Array, divisors: Float64) -> Array:
    """Codes of numbers divided by their block's divisor, rounded to float32 and then to a format of narrow elements.

    Parameters
    ----------
    fmt : FloatFormat
    blocks : ndarray of uint32
        Codes of float32, `[blocks, size, columns]`.
    divisors : ndarray of float64
        `[blocks, columns]`.

    Notes
    -----
    A quotient is rounded to float32 through float64, see `_float32`; that of a power of two is exact.
    Values that the machine may flush to zero are below 2**-126, far below half of any element. Then the lower half of
    the code is dropped: if it is not zero, the last bit of the upper half is set. Every midpoint of two elements has at
    most 5 significant bits, the upper half 8: a number that is not a midpoint does not become one, and stays on its
    side. So a table of 65,536 elements has the rounded elements.
    """
    table, codes = _rounded(fmt), np.empty(blocks.shape, fmt.code_dtype)
    for some, side in _parts(blocks):
        with np.errstate(all="ignore"):  # infinity and NaN, and underflow of float32
            quotients = _F32.decode(blocks[some, :, side]) / divisors[some, None, side]
            bits = quotients.astype(np.float32).view(np.uint32)
        upper = bits >> np.uint32(16)
        upper |= (bits & np.uint32(0xFFFF)) != 0
        codes[some, :, side] = table.take(upper.astype(np.intp))
    return codes


@cache
def _rounded(fmt: FloatFormat) -> Array:
    """Codes of what all bfloat16 numbers round to."""
    return _arrays.frozen(fmt.encode(_BF16.decode(np.arange(1 << 16, dtype=np.uint16))))


def _float32(values: Float64) -> Float64:
    """Round to float32, still as float64: products and quotients of float32 become float32 arithmetic's.

    A product is exact in float64. A quotient x / y that is not a midpoint m of two float32 differs from it by
    2**-49 of its size or more, since x and m * y differ and have at most 24 and 49 bits; so float64 does not
    round it to m. The rounding here is done on integers, which no machine flushes to zero.
    """
    return _F32.decode(_F32.encode(values))


def _parts(blocks: Array) -> Iterator[tuple[slice, slice]]:
    """Cut `[blocks, size, columns]` into parts: which blocks, and which columns."""
    count, size, columns = blocks.shape
    wide = max(1, min(columns, _PART // size))
    high = max(1, _PART // (size * wide))
    for start, side in product(range(0, count, high), range(0, columns, wide)):
        yield slice(start, start + high), slice(side, side + wide)
