"""Codes and arrays of codes as hypothesis draws them: weighted towards what breaks kernels, and shrinking to +0."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st

from .._arguments import check_choice
from .._arrays import Array
from ..formats import FloatFormat, Format, IntegerFormat

Draw = st.DrawFn
Kind = Literal["any", "finite", "near", "exact", "ties", "special"]

KINDS: tuple[Kind, ...] = ("any", "finite", "near", "exact", "ties", "special")
"""Kinds of values."""

_FEW = 24  # elements that are drawn one by one
_PALETTE = 6  # codes of a larger matrix
_ALONE = 4  # its elements that are drawn one by one

_MILDER: dict[Kind, tuple[Kind, ...]] = {"any": ("near", "ties", "finite"), "finite": ("near", "ties")}


@dataclass(frozen=True, kw_only=True, eq=False)
class Weighted:
    """Codes to choose from.

    `listed` are those that get more weight, the simplest first. There are `count` in all, and `numbered` maps 0 to
    count - 1 to them, small ones first. `milder` are choices that most of a large array is made of, so that a NaN or
    the largest number is not in every sum.
    """

    name: str
    listed: tuple[int, ...]
    count: int
    numbered: Callable[[Array], Array]
    format: str = ""
    milder: tuple[Weighted, ...] = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # as hypothesis writes it in its messages
        printer.text(self.name)

    @cached_property
    def codes(self) -> st.SearchStrategy[int]:
        """Generate single codes."""
        one = st.integers(0, self.count - 1).map(lambda n: int(self.numbered(np.array(n, np.uint64))))
        return st.one_of(st.sampled_from(self.listed), one)

    @cached_property
    def palette(self) -> st.SearchStrategy[list[tuple[bool, int]]]:
        """Generate entries of a palette: random codes or one, in this order: so hypothesis tries the one first."""
        return st.lists(st.tuples(st.booleans(), self.codes), min_size=1, max_size=_PALETTE)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Of the codes."""
        return self.numbered(np.zeros(1, np.uint64)).dtype

    def random(self, words: Array) -> Array:
        """Make a code of each of 64 random bits; all are as likely as 2**64 allows."""
        return self.numbered(words % np.uint64(self.count) if self.count < 1 << 64 else words)


def weighted(fmt: Format, kind: Kind, simplest: float = 0.0) -> Weighted:
    """Return the codes of a format and a kind; hypothesis shrinks to the code of `simplest`."""
    check_choice("kind", kind, KINDS)
    return _cached_values(fmt, kind, simplest)


@cache
def _cached_values(fmt: Format, kind: Kind, simplest: float) -> Weighted:
    few = _few_floats(fmt, kind) if isinstance(fmt, FloatFormat) else _few_integers(fmt, kind)
    start = int(fmt.encode(simplest if not isinstance(fmt, FloatFormat) or fmt.subnormals else 1.0))
    listed = tuple(dict.fromkeys([start, *few]))
    milder = tuple(weighted(fmt, k, simplest) for k in _MILDER.get(kind, ()))
    made = partial(Weighted, name=f"{kind} {fmt.name}", listed=listed, format=fmt.name, milder=milder)
    if kind in ("exact", "ties", "special"):
        return made(count=len(listed), numbered=np.array(listed, fmt.code_dtype).__getitem__)
    if isinstance(fmt, IntegerFormat):
        least, greatest = (fmt.least, fmt.greatest) if kind != "near" else (max(fmt.least, -8), min(fmt.greatest, 8))
        both = min(-least, greatest)  # 0, 1, -1, 2, -2 and so on as far as both signs go, then the rest

        def integer(n: Array) -> Array:
            n = n.astype(np.int64)
            pair = np.where(n & 1, (n + 1) >> 1, -(n >> 1))
            beyond = n - 2 * both
            return fmt.encode(np.where(n <= 2 * both, pair, beyond + both if greatest > both else -beyond - both))

        return made(count=greatest - least + 1, numbered=integer)
    # A code is a magnitude, and a sign in the bit below it: +0, -0, the least, and so on.
    low, high = 0, (fmt.sign_bit or 1 << fmt.bits) - 1
    if kind == "finite":
        high = fmt.max_code | (1 << fmt.padding) - 1
    elif kind == "near":
        low, high = (int(fmt.encode(value, "rz", overflow="saturate")) for value in (2.0**-4, 2.0**4))
    signs = 2 if fmt.signed else 1

    def code(n: Array) -> Array:
        magnitude = n // np.uint64(signs) + np.uint64(low)
        negative = n % np.uint64(signs) * np.uint64(fmt.sign_bit)
        return np.asarray(magnitude | negative).astype(fmt.code_dtype)

    return made(count=(high - low + 1) * signs, numbered=code)


def _value(fmt: FloatFormat, code: int) -> float:
    return float(fmt.decode(np.array(code, fmt.code_dtype)))


def _few_floats(fmt: FloatFormat, kind: Kind) -> tuple[int, ...]:
    """Return the codes that get more weight, the simplest first."""
    step, one = 1 << fmt.padding, int(fmt.encode(1.0))

    def both(*magnitudes: int) -> list[int]:
        return [m | sign for m in magnitudes for sign in dict.fromkeys((0, fmt.sign_bit))]

    def exactly(values: Sequence[float]) -> list[int]:
        wanted = [v for v in values if v >= 0 or fmt.signed]
        codes = [int(c) for c in np.atleast_1d(fmt.encode(wanted, overflow="saturate"))]
        return [c for c, v in zip(codes, wanted, strict=True) if _value(fmt, c) == v]

    small = exactly([0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 4.0, -4.0])
    if kind == "exact":
        return tuple(small)
    zeros = both(0) if fmt.subnormals else []
    near = both(one, one + step, one - step) + exactly([0.5, -0.5, 1.5, -1.5])
    powers = [2.0**e for e in range(0, -27, -1)]
    ties = exactly([x for p in powers for x in (p, -p)])
    if kind == "ties":
        return (*zeros, *near[: 6 if fmt.signed else 3], *ties)
    if kind == "near":
        several = (*small, *zeros, *near, *ties)
        return tuple(c for c in several if c in zeros or 2.0**-4 <= abs(_value(fmt, c)) <= 2.0**4)
    normal = 1 << fmt.fraction_bits + fmt.padding  # the least normal number
    edges = [step, normal - step, normal] if fmt.subnormals else [0]
    ends = both(*edges, fmt.max_code - step, fmt.max_code)
    if kind != "finite":
        ends += both(*(x for x in (fmt.inf_code, fmt.nan_code) if x is not None))
        ends += both(fmt.inf_code + step, fmt.inf_code + normal // 2) if fmt.inf_code is not None else []
    if kind == "special":
        return (*zeros, *both(one), *ends)
    return (*small, *zeros, *near, *ends, *ties)


def _few_integers(fmt: IntegerFormat, kind: Kind) -> tuple[int, ...]:
    few = [0, 1, -1, 2, -2, 3, -3, 4, -4]
    ends = [fmt.greatest, fmt.least, fmt.greatest - 1, fmt.least + 1]
    chosen = {"exact": few, "ties": few, "near": few, "special": [0, 1, -1, *ends]}.get(kind, few + ends)
    return tuple(int(fmt.encode(v)) for v in chosen if fmt.least <= v <= fmt.greatest)


@st.composite
def drawn_codes(draw: Draw, values: Weighted, shape: tuple[int, ...]) -> Array:
    """Generate codes: few of them one by one; many from a palette, in a block; all else is simple."""
    size, simplest = math.prod(shape), values.listed[0]
    if size <= _FEW:
        return _array([draw(values.codes) for _ in range(size)], values).reshape(shape)
    most = draw(st.sampled_from((*values.milder, values)))
    palette = draw(most.palette)
    seed = draw(_SEEDS)
    words = np.random.Generator(np.random.Philox(seed)).integers(0, 2**64 - 1, (2, *shape), np.uint64, endpoint=True)
    # Seed 0 puts the palette's first everywhere.
    which = (words[0] % np.uint64(len(palette))).astype(np.intp) if seed else np.zeros(shape, np.intp)
    chosen, free = _array([code for _, code in palette], values), np.array([random for random, _ in palette])
    out = np.where(free[which], most.random(words[1]), chosen[which])
    for axis, length in enumerate(shape):
        # The block mostly is everything. It shrinks from its end, and then from its beginning.
        ends, lengths = _sides(length)
        last, kept = min(draw(ends), length - 1), draw(lengths)
        out[(slice(None),) * axis + (slice(last + 1, None),)] = simplest
        out[(slice(None),) * axis + (slice(0, max(0, last + 1 - kept)),)] = simplest
    for place, code in draw(_alone(values, size)):
        out.flat[place] = code
    return out


# Hypothesis validates each strategy that it has not seen, which takes longer than to draw from it: so all are kept.

_SEEDS = st.integers(0, 2**32 - 1)


@cache
def _sides(length: int) -> tuple[st.SearchStrategy[int], st.SearchStrategy[int]]:
    return st.integers(0, 8 * length), st.integers(1, 8 * length)


@lru_cache(1024)
def _alone(values: Weighted, size: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    return st.lists(st.tuples(st.integers(0, size - 1), values.codes), max_size=_ALONE)


def _array(codes: Sequence[int], values: Weighted) -> Array:
    return np.array(codes, np.uint64).astype(values.dtype)
