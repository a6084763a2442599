"""GPUs as objects: what they compute is what the package computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from report_cases import F16

import warpmma as wm
from warpmma.errors import TargetError
from warpmma.isa import instructions
from warpmma.testing import Gpu, assert_same_bits


def test_a_gpu_computes_what_the_package_does() -> None:
    gpu, rng = Gpu("sm_80"), np.random.default_rng(4)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((16, 16), (16, 8)))
    c = rng.standard_normal((16, 8)).astype(np.float32)
    assert_same_bits(gpu.mma(F16, a, b, c), wm.mma(F16, a, b, c, target="sm_80"))
    assert_same_bits(gpu.mma(F16, a, b, engine="numpy"), wm.mma(F16, a, b, target="sm_80"))
    registers = [wm.load(F16, "A", a), wm.load(F16, "B", b), wm.load(F16, "C", c)]
    assert_same_bits(gpu.execute(F16, *registers), wm.execute(F16, *registers, target="sm_80"))
    assert_same_bits(gpu.matmul(a, b, c), wm.matmul(a, b, c, target="sm_80"))
    assert_same_bits(gpu.matmul(a, b, split_k=2), wm.matmul(a, b, target="sm_80", split_k=2))
    assert gpu.evidence(F16) == wm.evidence(F16, target="sm_80")
    assert str(gpu) == gpu.target == "sm_80"


def test_a_gpu_computes_for_its_own_target() -> None:
    """The README's example, which an A100 and an H100 answer differently."""
    a, b = np.zeros((16, 16), np.float16), np.ones((16, 8), np.float16)
    a[0, [0, 7, 8]] = 1, 2.0**-24, 2.0**-24
    assert Gpu("sm_80").mma(F16, a, b)[0, 0] != Gpu("sm_90").mma(F16, a, b)[0, 0]
    with pytest.raises(TargetError):
        Gpu("sm_70").mma(F16, a, b)


def test_a_gpu_launches_kernels() -> None:
    def double(t: Any, x: Any) -> None:
        at = x + (t.ctaid[0] * 64 + t.tid[0]) * 4
        t("st.global.b32", at, t("ld.global.b32", at) * 2)

    numbers = np.arange(128, dtype=np.uint32)
    Gpu("sm_90").launch(double, 2, 64, [numbers], engine="numpy")
    assert_same_bits(numbers, 2 * np.arange(128, dtype=np.uint32))


def test_a_gpu_has_the_instructions_of_its_target() -> None:
    for target in ("sm_70", "sm_90a", "sm_120a"):
        gpu, mine = Gpu(target), set(instructions(target))
        assert [gpu.has(i) for i in instructions()] == [i in mine for i in instructions()]
    assert Gpu("sm_90a").has("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16")


def test_an_unknown_gpu_is_refused() -> None:
    with pytest.raises(TargetError, match="unknown target 'sm_91'; did you mean"):
        Gpu("sm_91")
