"""Codes of operands of a recipe, in styles that each target one kind of error.

Every style returns codes: a and b as `[k, rows]`, c as `[rows]`; block scales are `[blocks, rows]`. Values that belong
together in a style, such as the addends of a tie, are in one row of A, B and C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..._arguments import check_choice, is_integer
from ...arithmetic import FusedDotAdd, GroupedDotAdd, Recipe
from ...errors import OperandError, shown
from ...formats import FORMATS, FloatFormat, floating
from .codes import random_codes, with_exponents

__all__ = ["STYLES", "operands", "styles"]

Array = npt.NDArray[Any]
Rng = np.random.Generator
Operands = tuple[Array, Array, Array]


def operands(recipe: Recipe, k: int, rows: int, style: str, rng: Rng, blocks: int = 0) -> dict[str, Array]:
    """Make codes of operands in one style.

    Parameters
    ----------
    recipe : Recipe
    k : int
        Products of a row, at least 2; for a recipe with scales, a multiple of `blocks`.
    rows : int
        How many, positive.
    style : str
        One of `styles(recipe)`.
    rng : numpy.random.Generator
    blocks : int
        Scales of a row, for as many equal parts of k; positive for a recipe with scales, otherwise 0.

    Returns
    -------
    dict of str to ndarray of unsigned int
        Keyword arguments of `warpmma.arithmetic.compute`: `a` and `b` as `[k, rows]`, `c` as `[rows]`, and of a recipe
        with scales `scale_a` and `scale_b` as `[blocks, rows]`.

    Raises
    ------
    OperandError
        Not a recipe, a style that it does not have, or invalid sizes.

    Examples
    --------
    >>> from warpmma.arithmetic import recipe
    >>> half_sum = recipe("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_90")
    >>> drawn = operands(half_sum, 16, 3, "ties", np.random.default_rng(0))
    >>> {name: (str(x.dtype), x.shape) for name, x in drawn.items()}
    {'a': ('uint16', (16, 3)), 'b': ('uint16', (16, 3)), 'c': ('uint32', (3,))}
    """
    check_choice("style", style, tuple(styles(recipe)), OperandError)
    for name, size, least in (("k", k, 2), ("rows", rows, 1), ("blocks", blocks, int(bool(recipe.scale)))):
        if not is_integer(size) or size < least:
            raise OperandError(f"{name} is {shown(size)}; expected an integer from {least} on")
    if blocks and (not recipe.scale or k % blocks):
        came = f"{blocks} blocks of {k} products" if recipe.scale else f"{blocks} blocks of a recipe without scales"
        raise OperandError(f"{came}; expected a divisor of k, of a recipe with scales")
    if not isinstance(rng, Rng):
        raise OperandError(f"rng is {shown(rng)}; expected a numpy.random.Generator")
    if style == "tiny" and recipe.scale == "ue8m0":
        return _tiny_scaled(recipe, k, rows, rng, blocks)
    a, b, c = STYLES[style](recipe, k, rows, rng)
    named = {"a": a, "b": b, "c": c}
    if recipe.scale:
        fmt = floating(recipe.scale)
        for name in ("scale_a", "scale_b"):
            named[name] = _scales(fmt, (blocks, rows), style, rng)
    return named


def _scales(fmt: FloatFormat, shape: tuple[int, ...], style: str, rng: Rng) -> Array:
    """Scales near 1; in the styles of extremes anything, including NaN and zero."""
    about_one = fmt.encode(np.ldexp(1 + rng.integers(0, 8, shape) / 8, rng.integers(-3, 4, shape)))
    if style in ("special", "bits", "zeros"):
        return np.where(rng.random(shape) < 0.5, about_one, random_codes(fmt, shape, rng)).astype(fmt.code_dtype)
    if style in ("wide", "huge"):
        spread = np.ldexp(1.0, rng.integers(-60 if style == "wide" else 0, 61, shape))
        return np.where(rng.random(shape) < 0.5, about_one, fmt.encode(spread)).astype(fmt.code_dtype)
    return about_one


def _tiny_scaled(recipe: Recipe, k: int, rows: int, rng: Rng, blocks: int) -> dict[str, Array]:
    """Make sums that are the least number of f32, less a product about the quantum that the floor Z imposes."""
    unit = cast(FusedDotAdd | GroupedDotAdd, recipe.unit)  # no other has scales
    formats = _formats(recipe)[:2]
    low, high = (sum(x) for x in zip(*((f.emin - f.fraction_bits, f.emax) for f in formats), strict=True))
    quantum = unit.floor - unit.fraction_bits
    exponents = np.full((k, rows), low - 99)  # left out
    total = np.empty((blocks, rows), np.int64)  # of the two scales of a block
    for row in range(rows):
        small = quantum + int(rng.integers(-2, 3))
        if blocks == 1:  # some equal products make up the large one
            total[0, row] = small - low
            count = 1 << int(rng.integers(0, (k // 2).bit_length()))
            exponents[1 : 1 + count, row] = -149 - (small - low) - (count.bit_length() - 1)
            exponents[0, row] = low
        else:
            x, y = rng.integers(low, high, 2, endpoint=True)
            total[:, row] = -149 - x
            total[1, row] = small - y
            exponents[0, row], exponents[k // blocks, row] = x, y
    reachable = (exponents >= low) & (exponents <= high)
    x, y = _split(np.clip(exponents, low, high), *formats, rng)
    a, b = (with_exponents(f, e, rng, powers=True) for f, e in zip(formats, (x, y), strict=True))
    a, b = (np.where(reachable, codes & ~np.uint8(f.sign_bit), 0) for codes, f in zip((a, b), formats, strict=True))
    negative = rng.random(rows) < 0.8
    a[k // blocks if blocks > 1 else 0] |= np.where(negative, formats[0].sign_bit, 0).astype(np.uint8)
    first = np.clip(total // 2, -127, 127)
    scales = [(e + 127).clip(0, 254).astype(np.uint8) for e in (first, total - first)]
    c = np.zeros(rows, np.uint32)
    return {"a": a.astype(np.uint8), "b": b.astype(np.uint8), "c": c, "scale_a": scales[0], "scale_b": scales[1]}


def styles(recipe: Recipe) -> list[str]:
    """List the styles that make sense for a recipe's formats.

    Parameters
    ----------
    recipe : Recipe

    Returns
    -------
    list of str

    Raises
    ------
    OperandError
        No recipe.

    Examples
    --------
    >>> from warpmma.arithmetic import recipe
    >>> styles(recipe("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", "sm_90"))
    ['bits', 'extreme', 'turn']
    """
    if not isinstance(recipe, Recipe):
        raise OperandError(f"a recipe is a record, as warpmma.arithmetic.recipe returns; got {shown(recipe)}")
    if isinstance(FORMATS[recipe.a], FloatFormat):
        return list(_FLOAT_STYLES)
    return list(_INTEGER_STYLES)


def _formats(recipe: Recipe) -> tuple[FloatFormat, FloatFormat, FloatFormat, FloatFormat]:
    return floating(recipe.a), floating(recipe.b), floating(recipe.c), floating(recipe.d)


def _spread(low: int, high: int) -> Callable[[Recipe, int, int, Rng], Operands]:
    def generate(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
        a, b, c, _ = _formats(recipe)
        x, y = rng.integers(low, high, (2, k, rows), endpoint=True)
        z = rng.integers(2 * low, 2 * high + 3, rows)
        return with_exponents(a, x, rng), with_exponents(b, y, rng), with_exponents(c, z, rng)

    return generate


def _split(total: Array, a: FloatFormat, b: FloatFormat, rng: Rng) -> tuple[Array, Array]:
    """Exponents of two factors with this sum, as far as their formats reach."""
    low = np.maximum(a.emin - a.fraction_bits, total - b.emax)
    high = np.maximum(np.minimum(a.emax, total - (b.emin - b.fraction_bits)), low)
    x = rng.integers(low, high, endpoint=True)
    return x, total - x


def _depth(recipe: Recipe) -> int:
    return recipe.unit.fraction_bits if isinstance(recipe.unit, FusedDotAdd | GroupedDotAdd) else 24


def _products(
    recipe: Recipe, exponents: Array, c: Array, rng: Rng, *, density: float = 0.6, powers: bool = True
) -> Operands:
    """Products with these exponents, some of them zero."""
    a_format, b_format, _, _ = _formats(recipe)
    x, y = _split(exponents, a_format, b_format, rng)
    a, b = with_exponents(a_format, x, rng, powers=powers), with_exponents(b_format, y, rng, powers=powers)
    return np.where(rng.random(a.shape) < density, a, 0).astype(a.dtype), b, c


def _ties(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
    """C of any size, and powers of two about F below it: lost, kept, or half a unit of the result."""
    _, _, c_format, d_format = _formats(recipe)
    top = rng.integers(-6, 7, rows)
    c = with_exponents(c_format, top, rng)
    below = rng.choice([_depth(recipe), d_format.fraction_bits, 13], (k, rows)) + rng.integers(-3, 4, (k, rows))
    return _products(recipe, top - below, c, rng)


def _boundary(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
    """One large product somewhere, small ones elsewhere, C small or zero: where steps begin and end."""
    _, _, c_format, d_format = _formats(recipe)
    top = rng.integers(-3, 8, rows)
    depth = rng.choice([_depth(recipe), d_format.fraction_bits, 13], rows)
    exponents = top - depth + rng.integers(-2, 3, (k, rows))
    exponents[rng.integers(0, k, rows), np.arange(rows)] = top
    c = with_exponents(c_format, top - rng.integers(0, 30, rows), rng)
    return _products(recipe, exponents, np.where(rng.random(rows) < 0.5, c, 0).astype(c.dtype), rng, density=0.8)


def _tiny(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
    """One product about the least number of the accumulator, others about the quantum that the floor Z imposes."""
    _, _, c_format, d_format = _formats(recipe)
    least = d_format.emin - d_format.fraction_bits
    quantum = recipe.unit.floor - recipe.unit.fraction_bits if isinstance(recipe.unit, FusedDotAdd) else least
    exponents = np.where(rng.random((k, rows)) < 0.5, quantum, least) + rng.integers(-3, 4, (k, rows))
    exponents[rng.integers(0, k, rows), np.arange(rows)] = least - rng.integers(0, 2, rows)
    c = with_exponents(c_format, least + rng.integers(0, 6, rows), rng, powers=True)
    return _products(recipe, exponents, np.where(rng.random(rows) < 0.3, c, 0).astype(c.dtype), rng, density=0.4)


def _sticky(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
    """Put a sum half way between two results, and products at the last place that alignment keeps, or just beyond."""
    _, _, c_format, d_format = _formats(recipe)
    top = rng.integers(-8, 12, rows)
    exponents = top - _depth(recipe) + rng.integers(-2, 2, (k, rows))
    places = rng.permuted(np.tile(np.arange(k)[:, None], rows), axis=0)[:2]
    exponents[places[0], np.arange(rows)] = top
    exponents[places[1], np.arange(rows)] = top - d_format.fraction_bits - 1
    a, b, c = _products(recipe, exponents, np.zeros(rows, c_format.code_dtype), rng, density=0.25)
    full, both, _ = _products(recipe, exponents, c, rng, density=1.0)
    for place in places:
        a[place, np.arange(rows)], b[place, np.arange(rows)] = (
            full[place, np.arange(rows)],
            both[place, np.arange(rows)],
        )
    return a, b, c


def _full(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
    """Large products of one sign, as many as there are, and a C that matters only where the sum is a tie."""
    a_format, b_format, c_format, _ = _formats(recipe)
    a = with_exponents(a_format, a_format.emax - rng.integers(0, 2, (k, rows)), rng) & ~np.uint64(a_format.sign_bit)
    b = with_exponents(b_format, b_format.emax - rng.integers(0, 2, (k, rows)), rng) & ~np.uint64(b_format.sign_bit)
    top = a_format.emax + b_format.emax
    c = with_exponents(c_format, top - _depth(recipe) + rng.integers(-2, 2, rows), rng, powers=True)
    return a.astype(a_format.code_dtype), b.astype(b_format.code_dtype), c


def _cancel(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
    """Let the second half cancel the first half, except for a small difference."""
    a_format, b_format, c_format, _ = _formats(recipe)
    a = with_exponents(a_format, rng.integers(-4, 5, (k, rows)), rng)
    b = with_exponents(b_format, rng.integers(-4, 5, (k, rows)), rng)
    half = k // 2
    order = rng.permutation(k)
    a[order[half : 2 * half]] = a[order[:half]] ^ a.dtype.type(a_format.sign_bit)
    b[order[half : 2 * half]] = b[order[:half]] ^ (rng.random((half, rows)) < 0.2).astype(b.dtype)
    return a, b, with_exponents(c_format, rng.integers(-30, 2, rows), rng)


def _huge(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
    """Bring sums near the largest number of the accumulator."""
    _, _, c_format, d_format = _formats(recipe)
    top = min(d_format.emax, c_format.emax)
    c = with_exponents(c_format, np.full(rows, top), rng)
    c = np.where(rng.random(rows) < 0.5, c & c.dtype.type(c_format.sign_bit) | c.dtype.type(c_format.max_code), c)
    exponents = top - rng.integers(0, 30, (k, rows)) + rng.integers(0, 3, rows)
    return _products(recipe, exponents, c.astype(c_format.code_dtype), rng, powers=bool(rng.integers(2)))


def _special(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
    """Zeros, ones, subnormals, largest, infinities and NaN of both signs."""

    def choose(fmt: FloatFormat, shape: tuple[int, ...]) -> Array:
        one = int(fmt.encode(1.0)) if fmt.name != "f64" else int(np.float64(1).view(np.uint64))
        least = 1 << fmt.padding
        common = [0, fmt.sign_bit, one, one | fmt.sign_bit]
        rare = [least, least | fmt.sign_bit, fmt.max_code, fmt.max_code | fmt.sign_bit]
        if fmt.inf_code is not None:
            rare += [fmt.inf_code, fmt.inf_code | fmt.sign_bit, fmt.inf_code + least]
        if fmt.nan_code is not None:
            rare += [fmt.nan_code, fmt.nan_code | fmt.sign_bit]
        codes = np.array(common * 12 + rare, fmt.code_dtype)
        return rng.choice(codes, shape)

    a, b, c, _ = _formats(recipe)
    return choose(a, (k, rows)), choose(b, (k, rows)), choose(c, (rows,))


def _zeros(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
    """Almost only zeros of both signs."""
    a_format, b_format, c_format, _ = _formats(recipe)

    def sparse(fmt: FloatFormat, shape: tuple[int, ...]) -> Array:
        zero = rng.choice(np.array([0, fmt.sign_bit], fmt.code_dtype), shape)
        return np.where(rng.random(shape) < 0.9, zero, random_codes(fmt, shape, rng)).astype(fmt.code_dtype)

    return sparse(a_format, (k, rows)), sparse(b_format, (k, rows)), sparse(c_format, (rows,))


def _lone(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
    """Zeros, one product at most, and C of any kind: nothing hides what becomes of subnormals, infinities and signs."""
    a_format, b_format, c_format, _ = _formats(recipe)

    def any_kind(fmt: FloatFormat) -> Array:
        subnormal = rng.integers(0, 1 << fmt.fraction_bits, rows, dtype=np.uint64) << np.uint64(fmt.padding)
        largest = np.uint64(fmt.max_code if fmt.inf_code is None else fmt.inf_code)
        kinds = np.stack([
            random_codes(fmt, (rows,), rng).astype(np.uint64), subnormal, np.zeros_like(subnormal),
            np.full_like(subnormal, largest),
        ])  # fmt: skip
        chosen = kinds[rng.integers(0, len(kinds), rows), np.arange(rows)]
        signed: Array = chosen ^ (rng.random(rows) < 0.5) * np.uint64(fmt.sign_bit)
        return signed.astype(fmt.code_dtype)

    def zeros(fmt: FloatFormat) -> Array:
        """Of one sign in half of the rows."""
        negative = np.where(rng.random(rows) < 0.5, rng.random(rows) < 0.5, rng.random((k, rows)) < 0.5)
        codes: Array = negative * fmt.code_dtype.type(fmt.sign_bit)
        return codes

    a, b = zeros(a_format), zeros(b_format)
    some = np.flatnonzero(rng.random(rows) < 0.3)
    place = rng.integers(0, k, rows)[some]
    a[place, some], b[place, some] = any_kind(a_format)[some], any_kind(b_format)[some]
    return a, b, any_kind(c_format)


def _gradual(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
    """Make the largest product of a subnormal factor, often cancelled, and C about what its exponent truncates."""
    a_format, b_format, c_format, _ = _formats(recipe)
    first = rng.random(rows) < 0.5  # whether A has the subnormal
    both = (a_format, b_format)
    normal = [rng.integers(max(f.emin, -8), min(f.emax, 8), rows, endpoint=True) for f in both]
    subnormal = [rng.integers(f.emin - f.fraction_bits, f.emin - 1, rows, endpoint=True) for f in both]
    top = np.where(first, a_format.emin + normal[1], normal[0] + b_format.emin)
    c = with_exponents(c_format, top - _depth(recipe) + rng.integers(-2, 12, rows), rng)
    a, b, c = _products(recipe, top - _depth(recipe) + rng.integers(-2, 3, (k, rows)), c, rng, density=0.1)
    one, other = rng.permuted(np.tile(np.arange(k)[:, None], rows), axis=0)[:2]
    every = np.arange(rows)
    a[one, every] = with_exponents(a_format, np.where(first, subnormal[0], normal[0]), rng)
    b[one, every] = with_exponents(b_format, np.where(first, normal[1], subnormal[1]), rng)
    some = np.flatnonzero(rng.random(rows) < 0.7)
    a[other[some], some] = a[one[some], some] ^ a.dtype.type(a_format.sign_bit)
    b[other[some], some] = b[one[some], some]
    return a, b, c


def _floor(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
    """Only half a unit or a unit of the least result, and a product about the quantum that the floor Z imposes.

    Factors are normal where they can be, so that no nominal exponent is above Z, and C is zero.
    """
    a_format, b_format, c_format, d_format = _formats(recipe)
    unit = recipe.unit
    least = d_format.emin - d_format.fraction_bits
    quantum = unit.floor - unit.fraction_bits if isinstance(unit, FusedDotAdd | GroupedDotAdd) else least
    a, b = np.zeros((k, rows), a_format.code_dtype), np.zeros((k, rows), b_format.code_dtype)
    one, other = rng.permuted(np.tile(np.arange(k)[:, None], rows), axis=0)[:2]
    for place, total in ((one, least - rng.integers(0, 2, rows)), (other, quantum + rng.integers(-2, 2, rows))):
        x = np.clip(total // 2, a_format.emin - a_format.fraction_bits, a_format.emax)
        a[place, np.arange(rows)] = with_exponents(a_format, x, rng, powers=True)
        b[place, np.arange(rows)] = with_exponents(b_format, total - x, rng, powers=True)
    return a, b, np.zeros(rows, c_format.code_dtype)


def _bits(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
    """Uniformly random bits, padding included."""
    a, b, c = (FORMATS[name] for name in (recipe.a, recipe.b, recipe.c))
    return random_codes(a, (k, rows), rng), random_codes(b, (k, rows), rng), random_codes(c, (rows,), rng)


def _extreme(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
    """Least and greatest integers, and C at the limits of s32."""

    def ends(name: str) -> Array:
        fmt = FORMATS[name]
        sign = 1 << (fmt.bits - 1)
        return rng.choice(np.array([0, 1, sign, sign - 1, fmt.mask], fmt.code_dtype), (k, rows))

    limits = np.where(rng.random(rows) < 0.5, 1 << 31, (1 << 31) - 1)
    reach = k << max(0, FORMATS[recipe.a].bits + FORMATS[recipe.b].bits - 3)
    c = (limits + rng.integers(-reach, reach, rows)) & 0xFFFFFFFF
    return ends(recipe.a), ends(recipe.b), c.astype(np.uint32)


def _turn(recipe: Recipe, k: int, rows: int, rng: Rng) -> Operands:
    """Products of one sign in the first half of k and of the other in the second; C near the limit of the first."""
    up = rng.random(rows) < 0.5
    first = np.arange(k)[:, None] < k // 2

    def half(name: str, turning: bool) -> Array:
        fmt = FORMATS[name]
        sign = 1 << (fmt.bits - 1)
        most = sign - 1 if getattr(fmt, "signed", False) else fmt.mask
        return np.where((first == up) | (not turning), most, sign).astype(fmt.code_dtype)

    a_signed = bool(getattr(FORMATS[recipe.a], "signed", False))
    a, b = half(recipe.a, a_signed), half(recipe.b, not a_signed)
    distance = rng.integers(0, k << max(0, FORMATS[recipe.a].bits + FORMATS[recipe.b].bits - 3), rows)
    c = np.where(up, (1 << 31) - 1 - distance, (1 << 31) + distance) & 0xFFFFFFFF
    return a, b, c.astype(np.uint32)


_FLOAT_STYLES: dict[str, Callable[[Recipe, int, int, Rng], Operands]] = {
    "near": _spread(-2, 2),
    "middle": _spread(-9, 9),
    "wide": _spread(-160, 160),
    "ties": _ties,
    "boundary": _boundary,
    "tiny": _tiny,
    "sticky": _sticky,
    "full": _full,
    "cancel": _cancel,
    "huge": _huge,
    "special": _special,
    "zeros": _zeros,
    "lone": _lone,
    "gradual": _gradual,
    "floor": _floor,
    "bits": _bits,
}
_INTEGER_STYLES = {"bits": _bits, "extreme": _extreme, "turn": _turn}
STYLES: Mapping[str, Callable[[Recipe, int, int, Rng], Operands]] = MappingProxyType(
    {**_FLOAT_STYLES, **_INTEGER_STYLES}
)
"""A maker for each style, by name: `(recipe, k, rows, rng)` to codes of A, B and C."""
