"""The examples with Triton: one of them is a set of tests; and where an A100 and an H100 differ."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("triton.language")

import a100_against_h100
from test_triton_attention import (
    test_a_head_has_the_same_bits_beside_any_other_and_in_any_order,
    test_a_wrong_length_is_found_where_it_is_read,
    test_attention_is_near_float64,
)

__all__ = [
    "test_a_head_has_the_same_bits_beside_any_other_and_in_any_order",
    "test_a_wrong_length_is_found_where_it_is_read",
    "test_attention_is_near_float64",
]


def test_a_sum_of_products_differs_and_an_exact_one_does_not() -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((32, 64)).astype(np.float16) for _ in "ab")
    a100, h100 = a100_against_h100.products(a, b.T)
    count, first = a100_against_h100.parted(a100, h100)
    assert count > 100
    assert first is not None and a100[first] != h100[first]
    np.testing.assert_allclose(a100, h100, rtol=1e-3, atol=1e-4)
    whole = a100_against_h100.products(np.rint(2 * a), np.rint(2 * b.T))
    assert a100_against_h100.parted(*whole) == (0, None)
