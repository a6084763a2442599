"""`matmul` with engine="hardware", whose kernels a simulated device runs, has the bits of the CPU's engines."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array, same
from hardware_products import codes, drawn, layouts, on_hopper
from simulated_gpu import GpuArray, SimulatedGpu

import warpmma as wm
from warpmma.arithmetic import recipe
from warpmma.cuda import nvrtc
from warpmma.errors import UnsupportedError
from warpmma.gpu import ProductForm, hardware_kernel
from warpmma.isa import MatrixInstruction, instructions, parse_any, warpgroup_instructions
from warpmma.products import gpu_products

pytestmark = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
WGMMA = "wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16"
SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
EVERY = list(on_hopper(columns=[24]))
EACH = layouts(EVERY)


def name(case: object) -> str:
    return str(case[1]) if isinstance(case, tuple) else ""


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> SimulatedGpu:
    return on(monkeypatch, "sm_90a")


def on(monkeypatch: pytest.MonkeyPatch, target: str, hazards: str = "off") -> SimulatedGpu:
    simulated = SimulatedGpu(hazards, target)
    monkeypatch.setattr(gpu_products, "gpu", lambda number=0: simulated)
    return simulated


def there(gpu: SimulatedGpu, x: Array) -> Any:
    return GpuArray.of(gpu.device, x)


def agree(**given: Any) -> None:
    same(codes(wm.matmul(engine="hardware", **given)), codes(wm.matmul(**given)))


@pytest.mark.alike(2)
@pytest.mark.alike(4)
@pytest.mark.parametrize("case", EACH, ids=name)
def test_every_layout(gpu: SimulatedGpu, case: tuple[str, MatrixInstruction]) -> None:
    target, instruction = case
    agree(**drawn(instruction, target, 19, 26, 1))


@pytest.mark.alike(40)
@pytest.mark.parametrize("case", [x for x in EVERY if x not in EACH], ids=name)
def test_every_instruction(gpu: SimulatedGpu, case: tuple[str, MatrixInstruction]) -> None:
    target, instruction = case
    agree(**drawn(instruction, target, 19, 26, 2))


def test_no_kernel_has_a_race(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "sm_90a", "error")
    for i in (WGMMA.replace("n24", "n8"), SPARSE):
        agree(**drawn(parse_any(i), "sm_90a", 70, 11, 3))


def test_most_columns(gpu: SimulatedGpu) -> None:
    agree(**drawn(parse_any(WGMMA.replace("n24", "n256")), "sm_90a", 5, 259, 3))


@pytest.mark.parametrize("instruction", [F16, WGMMA])
def test_partial_sums_and_epilogues(gpu: SimulatedGpu, instruction: str) -> None:
    rng = np.random.default_rng(4)
    a, b, c = (rng.standard_normal(s).astype(np.float16) for s in ((20, 200), (200, 24), (20, 24)))
    a[3, 0], a[4, :2] = np.inf, (np.inf, np.nan)
    given: Any = {"a": a, "b": b, "c": c.astype(np.float32), "instruction": instruction, "target": "sm_90a"}
    agree(split_k=(64, 16, 120), promote_every=32, **given)
    agree(epilogue="e4m3", **given)


def test_sums_of_f16_round_once(gpu: SimulatedGpu) -> None:
    rng = np.random.default_rng(5)
    a, b, c = (rng.standard_normal(s).astype(np.float16) for s in ((20, 40), (40, 24), (20, 24)))
    agree(a=a, b=b, c=c, instruction=F16.replace("f32", "f16"), target="sm_90", epilogue="e5m2")


@pytest.mark.parametrize("float32", ["ieee", "tf32", "tf32-truncated"])
def test_float32(gpu: SimulatedGpu, float32: Any) -> None:
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((20, 37), (37, 24)))
    agree(a=a, b=b, target="sm_90", float32=float32)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 3, 5), (3, 0, 5), (3, 4, 0), (65, 66, 17)])
def test_sizes(gpu: SimulatedGpu, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float32)
    c.view(np.uint32)[:1] = 0xFFC12345  # a NaN whose payload stays where k is 0
    agree(a=a, b=b, c=c, target="sm_90")
    agree(a=a, b=b, target="sm_90")


def test_batches_and_a_sparse_matrix(gpu: SimulatedGpu) -> None:
    rng = np.random.default_rng(8)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((3, 1, 5, 64), (2, 64, 7)))
    agree(a=a, b=b, target="sm_90")
    agree(a=wm.sparsity.prune(a, SPARSE), b=b, instruction=SPARSE, target="sm_90")


def test_tensor_scales(gpu: SimulatedGpu) -> None:
    rng = np.random.default_rng(10)
    a, b = (rng.standard_normal(s).astype(ml_dtypes.float8_e4m3fn) for s in ((5, 64), (64, 7)))
    nothing: Any = None
    scaled = (wm.scaling.Quantized(elements=x, scales=nothing, tensor_scale=np.float32(0.3)) for x in (a, b))
    agree(a=next(scaled), b=next(scaled), target="sm_90", epilogue="bf16")


@pytest.mark.parametrize("float32", [None, "tf32"])
def test_arrays_on_a_gpu_are_read_in_place(gpu: SimulatedGpu, float32: Any) -> None:
    rng = np.random.default_rng(9)
    kind = np.float16 if float32 is None else np.float32
    a, b = (rng.standard_normal(s).astype(kind) for s in ((2, 20, 40), (24, 40)))
    options: Any = {"target": "sm_90", "engine": "hardware", "split_k": 2, "float32": float32}
    of_a, of_b = (there(gpu, x) for x in (a, b))
    d = wm.matmul(of_a[:, 3:19, 2:36], of_b.mT[2:36], **options)
    expected = wm.matmul(a[:, 3:19, 2:36], b.T[2:36], **{**options, "engine": "auto"})
    assert isinstance(d, GpuArray)
    same(codes(d.numpy()), codes(expected))


def test_it_is_a_choice() -> None:
    a = np.zeros((4, 16), np.float16)
    choice = wm.choose(a, a.T, target="sm_90", engine="hardware")
    assert choice.engine == "hardware" and "engine hardware; measured" in str(choice)


def test_another_gpu_than_the_target(gpu: SimulatedGpu) -> None:
    a = np.zeros((4, 16), np.float16)
    for target in ("sm_80", "sm_100a"):
        with pytest.raises(UnsupportedError, match=f"the GPU is simulated, sm_90, and the target {target}; use engine"):
            wm.matmul(a, a.T, target=target, engine="hardware")
    with pytest.raises(UnsupportedError, match="sm_90, and the target sm_80"):
        wm.matmul(there(gpu, a), there(gpu, a.T), target="sm_80", engine="hardware")
    single = np.zeros((4, 16), np.float32)
    with pytest.raises(UnsupportedError, match="sm_90, and the target sm_89"):
        wm.matmul(single, single.T, target="sm_89", engine="hardware", float32="ieee")


def test_block_scales(gpu: SimulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    i = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
    monkeypatch.setattr(gpu, "capability", (12, 0), raising=False)
    a, b = np.zeros((4, 32), ml_dtypes.float8_e4m3fn), np.zeros((32, 4), ml_dtypes.float8_e4m3fn)
    scales: list[Array] = [np.ones(s, ml_dtypes.float8_e8m0fnu) for s in ((4, 1), (1, 4))]
    with pytest.raises(UnsupportedError, match=r"does not do mma.*was not tested on a GPU with block scales"):
        wm.matmul(a, b, instruction=i, scale_a=scales[0], scale_b=scales[1], target="sm_120a", engine="hardware")


def test_every_instruction_has_a_kernel_for_its_targets() -> None:
    """Kernels are made from records alone, of every target."""
    kernels = {
        hardware_kernel(i, target, ProductForm(recipe=recipe(i, target), k=i.k, result=i.d_type)).text
        for target in ("sm_75", "sm_80", "sm_89", "sm_90", "sm_120a", "sm_90a")
        for i in (*instructions(target), *warpgroup_instructions(target))
        if not i.block_scale
    }
    assert len(kernels) > 1074 + 4 * 100
