"""The fixture `gpu` runs Triton's kernels on its target."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, name-defined"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpmma.errors import OperandError
from warpmma.machine import HazardError
from warpmma.testing import Gpu, assert_same_bits

triton = pytest.importorskip("triton.language") and pytest.importorskip("triton")
tl = triton.language


@triton.jit
def doubled(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) * 2)


def test_triton_runs_on_the_target() -> None:
    gpu, x, y = Gpu("sm_90"), np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with gpu.triton() as device:
        doubled[(2,)](x, y, BLOCK=32)
    assert_same_bits(y, 2 * x)
    assert device.target == "sm_90a" and len(device.launches) == 1


def test_hazards_are_errors_and_options_pass() -> None:
    gpu, x, y = Gpu("sm_80"), np.arange(64, dtype=np.float32), np.zeros(32, np.float32)
    with gpu.triton(), pytest.raises(HazardError, match="bounds"):
        doubled[(2,)](x, y, BLOCK=32)
    with gpu.triton(hazards="warn") as device:
        doubled[(1,)](x, y, BLOCK=32)
    assert not device.launches[0].report.hazards


def test_a_triton_kernel_is_no_kernel_to_launch() -> None:
    kernel: Any = doubled
    with pytest.raises(OperandError, match=r"is a kernel of Triton; expected with gpu.triton\(\): kernel\[grid\]"):
        Gpu("sm_90").launch(kernel, 1, 32, [])
