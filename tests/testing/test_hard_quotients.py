"""Hard operands of quotients and roots: how near the results are to where a rounding changes, and where they lie."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import cast

import numpy as np
import pytest
from operation_references import exact, float_format

from lab.generators import operation_inputs
from warpmma.formats import FloatFormat
from warpmma.hardware.generators.hard_quotients import hard_dividends, hard_divisors, hard_radicands

each_format = pytest.mark.parametrize("fmt", [float_format("f32"), float_format("f64")], ids=lambda fmt: fmt.name)
COUNT = 2000


def exponent(x: Fraction) -> int:
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if x >= Fraction(2) ** e else e - 1


def distance(fmt: FloatFormat, x: Fraction) -> float:
    """Return how far a number is from the next multiple of half of its last place, in these halves."""
    halves = x / Fraction(2) ** (max(exponent(x), fmt.emin) - fmt.fraction_bits - 1)
    return float(abs(halves - round(halves)))


def near(fmt: FloatFormat, distances: list[float]) -> int:
    """Count those that are next to a multiple, and not at it: what a random number is hardly ever."""
    return sum(0 < x < 2.0 ** (1 - fmt.fraction_bits // 2) for x in distances)


@each_format
def test_quotients_are_next_to_where_a_rounding_changes(fmt: FloatFormat) -> None:
    x, y = hard_dividends(fmt, COUNT, np.random.default_rng(1))
    assert (np.maximum(x, y) < np.uint64(cast(int, fmt.inf_code))).all() and (y > 0).all()
    quotients = [exact(fmt, a) / exact(fmt, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    exponents = np.array([exponent(q) for q in quotients])
    subnormal = exponents < fmt.emin
    assert near(fmt, [distance(fmt, q) for q in quotients]) > COUNT // 3
    assert near(fmt, [distance(fmt, quotients[i]) for i in np.flatnonzero(subnormal)]) > COUNT // 20
    for border in (fmt.emin - 1, fmt.emin, fmt.emax, fmt.emax + 1):
        assert (exponents == border).sum() > COUNT // 40
    assert (exponents < fmt.emin - fmt.fraction_bits).any()


@each_format
def test_roots_are_next_to_where_a_rounding_changes(fmt: FloatFormat) -> None:
    x = hard_radicands(fmt, COUNT, np.random.default_rng(2)).tolist()
    assert min(x) > 0 and max(x) < cast(int, fmt.inf_code)
    distances = []
    for code in x:
        square = exact(fmt, code)
        scale = 4 ** (fmt.emax + 3 * fmt.fraction_bits)
        root = math.isqrt(square.numerator * scale // square.denominator)
        distances.append(distance(fmt, Fraction(root, 2 ** (fmt.emax + 3 * fmt.fraction_bits))))
    assert near(fmt, distances) > COUNT // 2
    assert sum(code < 1 << (fmt.fraction_bits + 4) for code in x) > 0  # small ones too
    assert len({code >> fmt.fraction_bits & 1 for code in x}) == 2


@each_format
def test_divisors_are_at_the_ends_of_exponents_and_fractions(fmt: FloatFormat) -> None:
    x = hard_divisors(fmt, COUNT, np.random.default_rng(3))
    assert (x < np.uint64(cast(int, fmt.inf_code))).all()
    fields, fractions = x >> np.uint64(fmt.fraction_bits), x & np.uint64((1 << fmt.fraction_bits) - 1)
    assert (fields == 0).mean() > 0.2 and (fields >= 2 * fmt.bias - 3).mean() > 0.2
    for end in (fractions, np.uint64((1 << fmt.fraction_bits) - 1) - fractions):
        assert (end < np.uint64(1 << fmt.fraction_bits // 2)).mean() > 0.15


@pytest.mark.parametrize("opcode", ["div", "rcp", "sqrt"])
@each_format
def test_half_of_the_lanes_of_an_operation_get_them(opcode: str, fmt: FloatFormat) -> None:
    x, *y = (a.reshape(-1)[:COUNT] for a in operation_inputs(f"{opcode}.rn.{fmt.name}", 2048, 0))
    if opcode == "div":
        pairs = zip(x.tolist(), y[0].tolist(), strict=True)
        finite = [p for p in pairs if all(0 < c & ~fmt.sign_bit < cast(int, fmt.inf_code) for c in p)]
        assert near(fmt, [distance(fmt, abs(exact(fmt, a) / exact(fmt, b))) for a, b in finite]) > COUNT // 8
    negative = (x >> x.dtype.type(fmt.bits - 1)).mean()
    assert 0.4 < negative < 0.6 or (opcode == "sqrt" and 0.25 < negative < 0.4)
