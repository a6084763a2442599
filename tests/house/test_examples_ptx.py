"""The example that runs PTX."""

from __future__ import annotations

import numpy as np
import pytest
import row_sums

from warpmma.machine import HazardError


@pytest.mark.parametrize("shape", [(1, 1), (3, 127), (6, 1000)])
def test_sums(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    sums, report = row_sums.launch(row_sums.TEXT, x)
    np.testing.assert_array_equal(sums.view(np.uint32), row_sums.expected(x).view(np.uint32))
    assert {site.file for site in report.costs.instructions} == {"row_sums.cu", "include/sm_30_intrinsics.hpp"}


def test_a_barrier_that_is_cut_out_is_missed() -> None:
    with pytest.raises(HazardError, match=r"^row_sums\.cu:13: .* race: .* wrote it at row_sums\.cu:11 "):
        row_sums.launch(row_sums.without_barrier(), np.ones((1, 128), np.float32))
