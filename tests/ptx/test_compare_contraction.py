"""ptxas itself, where it is: what it fuses in random kernels is what the contracted bodies have."""

from __future__ import annotations

import shutil

import pytest
from oracles import skip_without

from lab.compare.contraction import different
from lab.contraction.bodies_run import BodyRun
from lab.contraction.kernels import OUTPUT, drawn
from warpmma.ptx import read
from warpmma.ptx.contraction.fusing import contracted


@pytest.mark.parametrize("type_", ["f32", "f64", "f16x2"])
@pytest.mark.parametrize("seed", [3, 27])
def test_ptxas_fuses_the_same(seed: int, type_: str) -> None:
    skip_without("ptxas")
    skip_without("nvdisasm")
    found = different(seed, type_, "sm_80", shutil.which("nvdisasm") or "")
    assert found in ("", None)


def test_random_kernels_have_something_to_fuse_and_are_read() -> None:
    fused = 0
    for seed in range(40):
        kernel = drawn(seed)
        function = read(kernel.text).functions["k"]
        found = contracted(function, "sm_80")
        fused += len(found.fused)
        stored = BodyRun(found.function, {}).stored
        assert len([place for place in stored if place >= OUTPUT]) == kernel.outputs
    assert fused > 40
