"""Products in the CuTe DSL: the bits of the same chain of instructions, on both generations."""

from __future__ import annotations

import numpy as np
import pytest

import warpmma as wm
from warpmma.testing import assert_same_bits

pytest.importorskip("cutlass.cute")

import cute_kernels
from cute_kernels import aligned

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
WGMMA = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"


@pytest.mark.parametrize(
    ("product", "target", "instruction"),
    [
        (cute_kernels.ampere_product, "sm_80", MMA),
        (cute_kernels.ampere_product, "sm_90", MMA),
        (cute_kernels.hopper_product, "sm_90", WGMMA),
    ],
)
@pytest.mark.parametrize("k", [64, 192])
def test_the_bits_are_those_of_matmul(product: object, target: str, instruction: str, k: int) -> None:
    rng = np.random.default_rng(k)
    a, b = rng.standard_normal((128, k)).astype(np.float16), rng.standard_normal((64, k)).astype(np.float16)
    c = np.zeros((128, 64), np.float32)
    with wm.cute.device(target) as gpu:
        product(aligned(a), aligned(b), aligned(c))  # type: ignore[operator]
    expected = wm.matmul(a, b.T, target=gpu.target, instruction=instruction)
    assert_same_bits(c, np.asarray(expected))
    assert gpu.launches[0].report.hazards == [] and f".target {gpu.arch}" in gpu.launches[0].ptx


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    cute_kernels.main()
    printed = capsys.readouterr().out
    assert "ampere_product on sm_80: error" in printed and "hopper_product on sm_90a: error" in printed
