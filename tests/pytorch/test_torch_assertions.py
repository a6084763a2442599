"""`assert_same_bits` and `assert_close` of tensors: the types that NumPy lacks, and tensors that are not contiguous."""

from __future__ import annotations

import pytest
from oracles import skip_without

from warpmma.errors import OperandError
from warpmma.testing import assert_close, assert_same_bits

skip_without("PyTorch")
from torch_cases import torch  # noqa: E402


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float32", "float64"])
def test_tensors_are_compared_as_they_are(name: str) -> None:
    dtype = getattr(torch, name)
    expected = torch.linspace(0.5, 4, 64, dtype=torch.float64).reshape(8, 8).T
    actual = expected.to(dtype)
    assert_same_bits(actual, actual.clone())
    assert_close(actual, expected, rtol=0.15)
    wrong = actual.clone()
    wrong[2:4] = 8
    with pytest.raises(AssertionError, match=r"where: rows 2-3; all columns \(all 16 elements\)"):
        assert_same_bits(wrong, actual)
    with pytest.raises(AssertionError, match=r"16 of 64 elements are not close \(.*; rtol 0.15, atol 0\)"):
        assert_close(wrong, expected, rtol=0.15)


def test_tensors_that_require_a_gradient_are_refused() -> None:
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(OperandError, match=r"actual: not an array: .*require gradient.*detach"):
        assert_close(x, x, rtol=0)
