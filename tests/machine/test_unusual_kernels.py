"""Correct kernels with unusual techniques, and classics: no hazards, and the right bits."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest

MODULES = ("habits_warps", "habits_barriers", "habits_memory", "habits_copies", "classics")
KERNELS: dict[str, Any] = {}
for _module in MODULES:
    KERNELS |= {f"{_module}.{name}": x for name, x in import_module(_module).KERNELS.items()}


@pytest.mark.parametrize("name", KERNELS)
def test_no_hazard_and_the_right_bits(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result, arrays = KERNELS[name].simulate(hazards="error")
    assert result.hazards == []
    assert np.array_equal(arrays[-1], KERNELS[name].right())


def test_wrong_bits_would_be_noticed() -> None:
    """What is expected is not what was there before, so that a kernel that does nothing is wrong."""
    for name, kernel in KERNELS.items():
        assert not np.array_equal(kernel.arrays()[-1], kernel.right()), name


def test_there_are_enough() -> None:
    assert sum(name.startswith("habits") for name in KERNELS) >= 40
    assert all(x.kernel.__doc__ for x in KERNELS.values())
