"""Programs of Triton that run on clusters: `num_ctas`."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, name-defined"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm

tl: Any = pytest.importorskip("triton.language")
triton: Any = pytest.importorskip("triton")


@triton.jit
def doubled(x, y, n: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, n)
    tl.store(y + at, tl.load(x + at) * 2)


@triton.jit
def summed(x, y, n: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, n)
    tl.store(y + tl.program_id(0), tl.sum(tl.load(x + at)))


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_program_has_the_threads_of_a_cluster(count: int) -> None:
    x, y, sums = np.arange(4096, dtype=np.float32), np.zeros(4096, np.float32), np.zeros(4, np.float32)
    with wm.triton.device("sm_90", ptx_target="sm_90") as gpu:
        doubled[(4,)](x, y, 1024, num_ctas=count)
        summed[(4,)](x, sums, 1024, num_ctas=count)
    assert (y == 2 * x).all() and (sums == x.reshape(4, -1).sum(axis=1)).all()
    assert [launch.grid for launch in gpu.launches] == [(4, 1, 1)] * 2
