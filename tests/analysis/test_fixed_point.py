"""Exact sums of products in fixed point, against rational numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpmma.analysis import fixed_point
from warpmma.analysis.fixed_point import Factor, FixedPoint, exact_product

pytestmark = pytest.mark.quick


def power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def product(a: np.ndarray, b: np.ndarray) -> list[list[Fraction]]:
    return [[sum((Fraction(x) * Fraction(y) for x, y in zip(row, column, strict=True)), Fraction(0))
             for column in b.T.tolist()] for row in a.tolist()]  # fmt: skip


def spread(rng: np.random.Generator, shape: tuple[int, int], exponents: int) -> np.ndarray:
    values = np.ldexp(rng.standard_normal(shape), rng.integers(-exponents, exponents + 1, shape))
    values[rng.random(shape) < 0.2] = 0
    return values


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0, 3, 40, 400]), st.integers(0, 30))
def test_sums_are_exact(seed: int, exponents: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, c = (spread(rng, shape, exponents) for shape in ((3, k), (k, 2), (3, 2)))
    sums = product(a, b)
    total = exact_product(Factor(a), Factor(b)).plus(c)
    rounded = np.array([[float(x) for x in row] for row in sums])
    error = total.plus(rounded, -1)
    scaled = total.times(float(np.float32(0.1)) * float(np.float32(3e9)))
    odd, near, lead = error.to_odd(), total.nearest(), total.leading()
    for i in range(3):
        for j in range(2):
            exact = sums[i][j] + Fraction(float(c[i, j]))
            rest = exact - Fraction(float(rounded[i, j]))
            assert total[i, j] == exact
            assert error[i, j] == rest
            assert scaled[i, j] == exact * Fraction(float(np.float32(0.1))) * Fraction(float(np.float32(3e9)))
            assert near[i, j] == float(exact)
            assert bool(error.signs()[i, j]) == (rest < 0)
            told = int(odd.significand[i, j]) * power(int(odd.exponent[i, j]))
            assert told == abs(rest) or (int(odd.significand[i, j]) % 2 and abs(told - abs(rest)) < power(-52) * told)
            assert exact == 0 or power(int(lead[i, j])) <= abs(exact) < power(int(lead[i, j]) + 1)


def test_sums_that_fill_every_bit_of_float64_are_exact() -> None:
    """Rule 3 at its bound: digits of all ones, 2,048 of them and more, on both sides."""
    ones = float((1 << 21) - 1)
    for k in (2048, 2049, 5000):
        total = exact_product(Factor(np.full((2, k), ones)), Factor(np.full((k, 1), -ones)))
        assert total[1, 0] == -k * int(ones) ** 2
        wide = exact_product(Factor(np.full((1, k), 2.0**53 - 1)), Factor(np.full((k, 1), 2.0**53 - 1)))
        assert wide[0, 0] == k * (2**53 - 1) ** 2


def test_carries_between_passes_lose_nothing() -> None:
    """Rule 4 at its bound: more products of digits on one digit than it holds without a pass."""
    k = 3 * 2048 + 5
    wide = np.tile(np.array([[2.0**1000 - 2.0**947, 2.0**-900 * (2.0**53 - 1)]]), (1, k))[:, :k]
    narrow = np.ldexp(wide, -20)
    assert len(Factor(wide).digits) > 85
    total = exact_product(Factor(wide), Factor(narrow.T.copy()))
    assert total[0, 0] == product(wide, narrow.T)[0][0]


@pytest.mark.parametrize("value", [1.0, 1.0 + 2**-52, -(2.0**-1074), 2.0**1023])
def test_powers_of_two_compare_as_the_numbers_do(value: float) -> None:
    number = FixedPoint(0, [np.zeros((1, 1), np.int64)]).plus(np.array([[value]]))
    more = number.plus(np.array([[2.0**-1074]]))
    size, larger = number.to_odd(), more.to_odd()
    assert size.significand[0, 0] * 2.0 ** float(np.clip(size.exponent[0, 0], -1000, 1000)) > 0
    if value == 1:
        assert size.over(np.array(0)) == 1
        assert larger.over(np.array(0)) > 1
        assert more.nearest() == 1


def test_nothing_is_zero() -> None:
    zero = exact_product(Factor(np.zeros((2, 3))), Factor(np.ones((3, 2))))
    assert zero[1, 1] == 0
    assert (zero.nearest() == 0).all()
    assert (zero.to_odd().significand == 0).all()
    assert (zero.leading() == fixed_point.NOTHING).all()
    empty = exact_product(Factor(np.zeros((2, 0))), Factor(np.zeros((0, 2))))
    assert empty.plus(np.full((2, 2), 1.5))[0, 1] == Fraction(3, 2)
