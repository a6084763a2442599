"""Correct kernels with the habits of real libraries (`lab.compare.asynchronous_habits`): no report, right words."""

from __future__ import annotations

import numpy as np
import pytest

from lab.compare.asynchronous_habits import KERNELS, expected, inputs, simulated
from warpmma.cuda import nvrtc
from warpmma.machine import HazardError

pytestmark = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", KERNELS)
def test_no_report_at_the_default_level(name: str, seed: int) -> None:
    x = inputs(9 + seed, seed)
    np.testing.assert_array_equal(simulated(name, x, seed=seed), expected(x))


STRICT = {
    "plain_barriers": "A12",  # threads' reads, and then a copy
    "one_releases": "A12",
    "remote_release": "A12",
}


@pytest.mark.parametrize("name", KERNELS)
def test_what_strict_says_of_them(name: str) -> None:
    x = inputs(9, 0)
    if name not in STRICT:
        np.testing.assert_array_equal(simulated(name, x, hazards="strict"), expected(x))
        return
    with pytest.raises(HazardError) as error:
        simulated(name, x, hazards="strict")
    assert error.value.hazard.rule == STRICT[name]
