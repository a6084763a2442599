"""The NumPy form of every recipe equals the reference, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from lab.generators import STYLES, RecipeCase, by_reference, operands, random_codes, recipe_cases, styles
from warpmma._rounding import Rounding
from warpmma.arithmetic import compute
from warpmma.arithmetic.arrays.fma import fma32, fma64
from warpmma.arithmetic.exact.reference import dot
from warpmma.arithmetic.recipes.units import FmaChain, FusedDotAdd, Recipe
from warpmma.formats import FORMATS

SEEDS = st.integers(0, 2**32 - 1)


def _check(case: RecipeCase, style: str, seed: int, rows: int) -> None:
    given = operands(case.recipe, case.k, rows, style, np.random.default_rng(seed), case.blocks)
    fast, slow = compute(case.recipe, **given), by_reference(case.recipe, **given)
    if not np.array_equal(fast, slow):
        row = int(np.flatnonzero(fast != slow)[0])
        operand = {name: [hex(x) for x in codes[..., row].ravel()] for name, codes in given.items()}
        pytest.fail(f"{case}, {style}: numpy {fast[row]:#x}, reference {slow[row]:#x} for {operand}")


@pytest.mark.parametrize("case", recipe_cases(), ids=str)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(style=st.sampled_from(sorted(STYLES)), seed=SEEDS)
@pytest.mark.alike(2)
def test_numpy_equals_reference(case: RecipeCase, style: str, seed: int) -> None:
    assume(style in styles(case.recipe))
    _check(case, style, seed, rows=max(2, 128 // case.k))


@pytest.mark.parametrize("case", recipe_cases(), ids=str)
@pytest.mark.alike(2)
def test_numpy_equals_reference_in_every_style(case: RecipeCase) -> None:
    for style in styles(case.recipe):
        _check(case, style, 1, rows=max(2, 96 // case.k))


_F32 = FusedDotAdd(fraction_bits=25, products=16, floor=-133, result_bits=23, rounding="rz")
_BF16 = Recipe(d="f32", a="bf16", b="bf16", c="f32", unit=_F32)
CODES = st.one_of(
    st.integers(0, 0xFFFF), st.sampled_from([0, 0x8000, 0x3F80, 0xBF80, 1, 0x8001, 0x7F80, 0xFF80, 0x7FC0, 0x7F7F])
)


@settings(max_examples=300, deadline=None)
@given(
    pairs=st.lists(st.tuples(CODES, CODES), min_size=1, max_size=16),
    c=st.one_of(st.integers(0, 2**32 - 1), st.sampled_from([0, 1 << 31, 1, 0x3F800000, 0x7F7FFFFF, 0xFF800000])),
)
@example(pairs=[(0x0001, 0x3F80)] * 16, c=0)  # subnormals only
@example(pairs=[(0x7F7F, 0x7F7F), (0x7F7F, 0xFF7F)], c=0x3F800000)  # beyond f32 on the way
@example(pairs=[(0x0080, 0x3480), (0x8001, 0x2F00)], c=0)  # a negative rest below the quantum of the floor
def test_single_dot_products(pairs: list[tuple[int, int]], c: int) -> None:
    """Element by element, so that a failure shrinks to a readable one."""
    a, b = ([pair[i] for pair in pairs] for i in (0, 1))
    x, y = (np.array(codes, np.uint16)[:, None] for codes in (a, b))
    assert int(compute(_BF16, x, y, np.array([c], np.uint32))[0]) == dot(_BF16, a, b, c)


F64 = st.one_of(
    st.integers(0, 2**64 - 1),
    st.floats(width=64).map(lambda x: int(np.float64(x).view(np.uint64))),
    st.sampled_from([0, 1 << 63, 1, 0x3FF0000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF0000000000001]),
)


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
@settings(max_examples=400, deadline=None)
@given(a=F64, b=F64, c=F64)
@example(a=0x3FF0000000000001, b=0x3FF0000000000001, c=0xBFF0000000000002)  # the product's last bit is all there is
@example(a=1, b=0x3FE0000000000000, c=0)  # half of the least subnormal
@example(a=0x7FEFFFFFFFFFFFFF, b=0x4000000000000000, c=0)  # overflow
@example(a=0x3FF0000000000000, b=0x0010000000000000, c=0x8010000000000000)  # exact zero
@example(a=0x7FF0000000000000, b=0, c=0x7FF8000000000001)  # NaN made and NaN passed on
def test_fma64(rounding: Rounding, a: int, b: int, c: int) -> None:
    recipe = Recipe(d="f64", a="f64", b="f64", c="f64", unit=FmaChain(rounding=rounding))
    x, y, z = (np.array([code], np.uint64) for code in (a, b, c))
    got = fma64(x, y, z, rounding)
    assert int(got[0]) == dot(recipe, [a], [b], c)


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_fma32_in_every_rounding(rounding: Rounding) -> None:
    """Of any codes, and of sums that nearly cancel or lie half-way."""
    rng = np.random.default_rng(5)
    a, b, c = (random_codes(FORMATS["f32"], (800,), rng) for _ in "abc")
    with np.errstate(all="ignore"):
        product = a.view(np.float32).astype(np.float64) * b.view(np.float32)
        near = (-product * (1 + np.ldexp(rng.integers(-2, 3, 800), -24))).astype(np.float32).view(np.uint32)
    c = np.where(rng.random(800) < 0.6, near, c)
    recipe = Recipe(d="f32", a="f32", b="f32", c="f32", unit=FmaChain(rounding=rounding))
    slow = [dot(recipe, [int(x)], [int(y)], int(z)) for x, y, z in zip(a, b, c, strict=True)]
    assert fma32(a, b, c, rounding).tolist() == slow


def test_fma64_near_cancellation_and_ties() -> None:
    """Sums whose addends nearly cancel, at every distance of their exponents."""
    rng = np.random.default_rng(3)
    a, b = (random_codes(FORMATS["f64"], (2000,), rng) & np.uint64((1 << 52) - 1) for _ in "ab")
    a, b = a | np.uint64(1023 << 52), b | np.uint64(1023 << 52)
    product = -(a.view(np.float64) * b.view(np.float64))
    distance = rng.integers(-110, 111, 2000)
    c = np.where(rng.random(2000) < 0.5, product, np.ldexp(product, distance)).view(np.uint64)
    c = c + rng.integers(0, 3, 2000).astype(np.uint64)
    for rounding in ("rn", "rz", "rm", "rp"):
        recipe = Recipe(d="f64", a="f64", b="f64", c="f64", unit=FmaChain(rounding=rounding))
        slow = [dot(recipe, [int(x)], [int(y)], int(z)) for x, y, z in zip(a, b, c, strict=True)]
        assert fma64(a, b, c, rounding).tolist() == slow


def test_the_sum_stays_exact_at_its_bound() -> None:
    """The largest sum there is: every addend just below 2^(F + 2), for the greatest F and the most products."""
    unit = FusedDotAdd(fraction_bits=35, products=32, floor=-133, result_bits=23, rounding="rz")
    recipe = Recipe(d="f32", a="tf32", b="tf32", c="f32", unit=unit)
    largest = 0x3FFFE000  # 2 - 2^-10
    a = np.full((32, 1), largest, np.uint32)
    for c in (0, 0x3FFFFFFF, 0x407FFFFF):
        assert int(compute(recipe, a, a, np.array([c], np.uint32))[0]) == dot(recipe, [largest] * 32, [largest] * 32, c)
    integers = Recipe(d="s32", a="u8", b="u8", c="s32", unit=next(
        case.recipe.unit for case in recipe_cases() if case.recipe.a == "u8"
    ))  # fmt: skip
    full = np.full((256, 1), 0xFF, np.uint8)
    assert int(compute(integers, full, full, np.zeros(1, np.uint32))[0]) == 256 * 255 * 255
