"""`matmul` with engine="cuda" on a simulated GPU: the host's arrays, and arrays that lie on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array, same
from simulated_gpu import GpuArray, SimulatedGpu

import warpmma as wm
from warpmma.cuda import nvrtc
from warpmma.errors import OperandError, ScaleError, UnsupportedError
from warpmma.products import gpu_products

pytestmark = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
E4M3 = "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3"
MXFP8 = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
SIZES: Any = (("A", (20, 96)), ("B", (96, 24)))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedGpu]:
    simulated = SimulatedGpu("off")
    monkeypatch.setattr(gpu_products, "gpu", lambda number=0: simulated)
    yield simulated


def drawn(*shape: int, dtype: Any = np.float16, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def codes(x: Array) -> Array:
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


def agree(a: Any, b: Any, c: Any = None, **options: Any) -> None:
    same(codes(wm.matmul(a, b, c, engine="cuda", **options)), codes(wm.matmul(a, b, c, **options)))


@pytest.mark.parametrize("epilogue", ["bf16", "tf32", "e4m3", "e2m1"])
def test_epilogues(gpu: SimulatedGpu, epilogue: str | None) -> None:
    a, b = drawn(20, 40), drawn(40, 24)
    a[:3] *= np.array([[0], [300], [3e-4]], np.float16)
    a[3, 0], a[4, :2] = np.inf, (np.inf, np.nan)
    agree(a, b, target="sm_90", epilogue=epilogue)


def test_partial_sums(gpu: SimulatedGpu) -> None:
    a, b, c = drawn(20, 200), drawn(200, 24), drawn(20, 24, dtype=np.float32)
    agree(a, b, c, target="sm_80", split_k=3)
    agree(a, b, c, target="sm_80", split_k=(64, 16, 120), promote_every=32)
    x, y = (z.astype(ml_dtypes.float8_e4m3fn) for z in (a, b))
    agree(x, y, c, target="sm_90a", instruction=E4M3, promote_every=128, epilogue="bf16")
    with pytest.raises(UnsupportedError, match="at most 64 slices"):
        wm.matmul(drawn(2, 1600), drawn(1600, 2), target="sm_80", split_k=100, engine="cuda")


@pytest.mark.parametrize("float32", ["ieee", "tf32", "tf32-truncated"])
def test_float32(gpu: SimulatedGpu, float32: Any) -> None:
    a, b = drawn(20, 37, dtype=np.float32), drawn(37, 24, dtype=np.float32)
    agree(a, b, target="sm_90", float32=float32, split_k=2 if float32 == "ieee" else 1)


def test_sparse_and_scaled_operands(gpu: SimulatedGpu) -> None:
    a, b = wm.sparsity.prune(drawn(20, 64), "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"), drawn(64, 24)
    agree(a, b, target="sm_80", instruction="mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    x, y = (wm.scaling.quantize(drawn(*s, dtype=np.float32), MXFP8, name) for name, s in SIZES)
    agree(x, y, target="sm_120a", instruction=MXFP8)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 3, 5), (3, 0, 5), (3, 4, 0), (65, 66, 17)])
def test_sizes(gpu: SimulatedGpu, m: int, n: int, k: int) -> None:
    c = drawn(m, n, dtype=np.float32)
    c.view(np.uint32)[:1] = 0xFFC12345  # a NaN whose payload stays where k is 0
    agree(drawn(m, k), drawn(k, n), c, target="sm_90")
    agree(drawn(m, k), drawn(k, n), target="sm_90")


def test_progress_of_the_host_s_arrays(gpu: SimulatedGpu) -> None:
    told: list[tuple[int, int]] = []
    wm.matmul(drawn(5, 16), drawn(16, 7), target="sm_90", engine="cuda", progress=lambda *x: told.append(x))
    assert told[-1] == (1, 1)


def test_batches(gpu: SimulatedGpu) -> None:
    agree(drawn(3, 1, 5, 16), drawn(2, 16, 7), target="sm_90")
    agree(np.broadcast_to(drawn(5, 16), (3, 5, 16)), drawn(3, 16, 7), drawn(7, dtype=np.float32), target="sm_90")


def on(gpu: SimulatedGpu, x: Array) -> Any:
    return GpuArray.of(gpu.device, x)


def test_arrays_on_a_gpu_are_read_in_place(gpu: SimulatedGpu) -> None:
    a, b, c = drawn(2, 1, 20, 40), drawn(3, 24, 40), drawn(24, dtype=np.float32)
    of_a, of_b, of_c = (on(gpu, x) for x in (a, b, c))
    d = wm.matmul(of_a[..., 3:19, 2:36], of_b.mT[:, 2:36], of_c, target="sm_90", split_k=2)
    expected = wm.matmul(a[..., 3:19, 2:36], b.swapaxes(1, 2)[:, 2:36], c, target="sm_90", split_k=2)
    assert isinstance(d, GpuArray) and d.dtype == np.float32
    same(codes(d.numpy()), codes(expected))
    assert len(gpu.launches) == 2  # A's batch and B's have no common stride
    assert {x.streams[-1] for x in (of_a, of_b, of_c)} == {1}  # DLPack's number of the default stream


def test_types_that_a_library_lacks_are_codes(gpu: SimulatedGpu) -> None:
    a, b = (drawn(*s).astype(ml_dtypes.float8_e4m3fn).view(np.uint8) for s in ((20, 64), (64, 24)))
    d = wm.matmul(on(gpu, a), on(gpu, b), target="sm_90a", instruction=E4M3, epilogue="bf16")
    expected = wm.matmul(a, b, target="sm_90a", instruction=E4M3, epilogue="bf16")
    assert d.dtype == np.uint16
    same(d.numpy(), codes(expected))


def test_block_scales_on_a_gpu(gpu: SimulatedGpu) -> None:
    a, b = (drawn(*s).astype(ml_dtypes.float8_e4m3fn).view(np.uint8) for s in ((20, 64), (64, 24)))
    rng = np.random.default_rng(0)
    scales = [rng.integers(120, 134, s).astype(np.uint8) for s in ((20, 2), (2, 24))]
    options: Any = {"target": "sm_120a", "instruction": MXFP8}
    of_a, of_b = (on(gpu, x) for x in scales)
    d = wm.matmul(on(gpu, a), on(gpu, b), scale_a=of_a, scale_b=of_b, **options)
    same(codes(d.numpy()), codes(wm.matmul(a, b, scale_a=scales[0], scale_b=scales[1], **options)))
    with pytest.raises(ScaleError, match="scales of A are float32"):
        wm.matmul(on(gpu, a), on(gpu, b), scale_a=on(gpu, scales[0].astype(np.float32)), scale_b=of_b, **options)


def test_a_scale_with_a_sign_makes_nan_where_the_host_refuses_it(gpu: SimulatedGpu) -> None:
    a, b = (np.full(s, 2, np.uint8) for s in ((16, 64), (64, 8)))  # ones of e2m1
    scales = [np.full(s, 0x38, np.uint8) for s in ((16, 4), (4, 8))]  # ones of ue4m3
    scales[0][3, 1] |= 0x80
    options: Any = {"target": "sm_120a", "instruction": NVFP4}
    with pytest.raises(ScaleError, match="has its top bit set"):
        wm.matmul(a, b, scale_a=scales[0], scale_b=scales[1], **options)
    of_a, of_b = (on(gpu, x) for x in scales)
    d = wm.matmul(on(gpu, a), on(gpu, b), scale_a=of_a, scale_b=of_b, **options).numpy()
    assert np.isnan(d[3]).all() and (np.delete(d, 3, axis=0) == 64).all()


def test_choose_looks_at_arrays_on_a_gpu(gpu: SimulatedGpu) -> None:
    choice = wm.choose(on(gpu, drawn(5, 16)), on(gpu, drawn(16, 7)), target="sm_90")
    assert choice.engine == "cuda" and choice.shape == (5, 7)


def test_refusals(gpu: SimulatedGpu) -> None:
    a, b = on(gpu, drawn(5, 16)), on(gpu, drawn(16, 7))
    with pytest.raises(OperandError, match="B lies on the CPU"):
        wm.matmul(a, drawn(16, 7), target="sm_90")
    with pytest.raises(OperandError, match="expected no out"):
        wm.matmul(a, b, target="sm_90", out=np.empty((5, 7), np.float32))
    with pytest.raises(OperandError, match="expected no progress"):
        wm.matmul(a, b, target="sm_90", progress=print)
    with pytest.raises(OperandError, match="A lies on another device"):
        wm.matmul(a, b, target="sm_90", engine="native")
    with pytest.raises(OperandError, match="engine='cuda' of mma takes arrays on a GPU"):
        wm.mma(F16, drawn(16, 16), drawn(16, 8), target="sm_90", engine="cuda")
    with pytest.raises(UnsupportedError, match="matrices on a GPU go to mma or matmul"):
        wm.execute(F16, a, b, a, target="sm_90")
    zeros = np.zeros((4, 32), np.uint32)
    with pytest.raises(OperandError, match="engine is 'cuda'; expected"):
        wm.execute(F16, zeros, zeros[:2], zeros, target="sm_90", engine="cuda")  # type: ignore[arg-type]


def test_without_a_gpu() -> None:
    from warpmma.gpu import why_no_gpu

    if why_no_gpu():
        with pytest.raises(UnsupportedError, match="needs"):
            wm.matmul(drawn(2, 16), drawn(16, 2), target="sm_90", engine="cuda")
