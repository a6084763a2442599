"""A flag that all threads load and one exchanges, as in the layer norm of Triton's tutorials: a race, no barrier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.machine import HazardError

pytest.importorskip("triton.language")

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def first_stores(flag, x, y, BARRIER: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at)
    seen = tl.load(flag)
    if BARRIER:
        tl.debug_barrier()
    if seen == 0:
        tl.atomic_xchg(flag, 1, sem="relaxed")
    else:
        values += tl.load(y + at)
    tl.store(y + at, values)


def launch(*, barrier: bool) -> Any:
    with wm.triton.device("sm_90") as gpu:
        flag, y = gpu.device.zeros(1, np.int32), gpu.device.zeros(128, np.float32)
        x = gpu.device.array(np.arange(128, dtype=np.float32))
        first_stores[(1,)](flag, x, y, BARRIER=barrier, BLOCK=128)
    return flag.numpy()[0], y.numpy()


def test_race_names_both_lines() -> None:
    with pytest.raises(HazardError) as caught:
        launch(barrier=False)
    hazard = caught.value.hazard
    assert (hazard.kind, hazard.site.mnemonic.split(".")[0]) == ("race", "ld")
    assert hazard.other is not None and hazard.other.mnemonic.startswith("atom.global")
    assert hazard.other.line == hazard.site.line + 4


def test_with_a_barrier_there_is_none() -> None:
    flag, y = launch(barrier=True)
    assert flag == 1
    np.testing.assert_array_equal(y, np.arange(128))
