"""GPUs as objects: what they compute is what the package computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_cases import F16

import warpmma as wm
from warpmma.errors import OperandError, PtxError, TargetError
from warpmma.isa import instructions
from warpmma.kernel import HazardError
from warpmma.testing import Gpu, assert_same_bits

pytestmark = pytest.mark.quick


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


SCALE = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 factor)
{
    .reg .f32 %f<4>;  .reg .b32 %r<3>;  .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [x];
    ld.param.f32 %f1, [factor];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.f32 %f2, [%rd3];
    mul.f32 %f3, %f2, %f1;
    st.global.f32 [%rd3], %f3;
    ret;
}
"""
NOTHING = ".entry nothing() { ret; }"


def test_a_gpu_launches_ptx(tmp_path: Path) -> None:
    """An entry, a module of one entry; of a text or a file; on plain arrays or those of a device."""
    gpu, path = Gpu("sm_90"), tmp_path / "scale.ptx"
    path.write_text(SCALE)
    for module in (gpu.load(SCALE), gpu.load(path), gpu.load(str(path)), gpu.load(SCALE.encode(), "x.ptx")):
        for kernel in (module, module["scale"]):
            x = np.arange(32, dtype=np.float32)
            gpu.launch(kernel, 1, 32, [x, 0.5])
            assert_same_bits(x, np.arange(32, dtype=np.float32) / 2)
    device = gpu.device()
    y = device.array(np.ones(32, np.float32))
    gpu.launch(module, 1, 32, [y, 3.0], contract="off", limit=1000, resident=1, seed=3, engine="numpy")
    gpu.launch(module, 1, 32, [y, 3.0])
    assert_same_bits(y.numpy(), np.full(32, 9, np.float32))


def test_what_cannot_be_launched_is_refused() -> None:
    gpu, args = Gpu("sm_90"), [Gpu("sm_80").device().array(np.ones(32, np.float32)), 3.0]
    with pytest.raises(TargetError, match=r"of a device of sm_80; expected gpu.device\(\), of sm_90"):
        gpu.launch(gpu.load(SCALE), 1, 32, args)
    with pytest.raises(
        OperandError, match=r"does not have exactly one entry; expected one, such as .*; it has scale, nothing$"
    ):
        gpu.launch(gpu.load(SCALE + NOTHING), 1, 32, [])
    with pytest.raises(OperandError, match="limit, seed: of entries of PTX alone; the kernel is <function"):
        gpu.launch(lambda t: None, 1, 32, [], limit=3, seed=1)
    with pytest.raises(PtxError, match="No such file"):
        gpu.load("no_such.ptx")
    with pytest.raises(HazardError, match=r"^scale.ptx:13(:5)?: ld.global.f32: race"):
        gpu.launch(gpu.load(SCALE, "scale.ptx"), 2, 32, [np.ones(32, np.float32), 2.0])


def test_a_gpu_has_the_instructions_of_its_target() -> None:
    for target in ("sm_70", "sm_90a", "sm_120a"):
        gpu, mine = Gpu(target), set(instructions(target))
        assert [gpu.has(i) for i in instructions()] == [i in mine for i in instructions()]
    assert Gpu("sm_90a").has("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16")


def test_an_unknown_gpu_is_refused() -> None:
    with pytest.raises(TargetError, match="unknown target 'sm_91'; did you mean"):
        Gpu("sm_91")
