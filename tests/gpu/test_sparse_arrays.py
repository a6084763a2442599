"""A sparse A that lies on a simulated GPU: dense with zeros, and stored elements with indices; and their checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from arrays import Array, same
from gpu_tensors import SPARSE as EACH
from simulated_gpu import GpuArray, SimulatedGpu

import warpmma as wm
from warpmma.cuda import nvrtc
from warpmma.errors import MetadataError, OperandError, UnsupportedError
from warpmma.execution import on_gpu
from warpmma.isa import parse_any
from warpmma.products import gpu_products

pytestmark = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())

F16 = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
BF16 = "mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32"


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedGpu]:
    simulated = SimulatedGpu("off")
    for room in (gpu_products, on_gpu):
        monkeypatch.setattr(room, "gpu", lambda number=0: simulated)
    yield simulated


def on(gpu: SimulatedGpu, x: Array) -> Any:
    return GpuArray.of(gpu.device, x)


def codes(x: Array) -> Array:
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


def drawn(i: str, name: Any, *shape: int, seed: int = 0) -> Array:
    """Draw codes, among them infinities, NaN, subnormals and zeros of both signs."""
    fmt, rng = parse_any(i).format(name), np.random.default_rng([seed, *shape])
    x = rng.integers(0, 1 << min(fmt.bits, 32), shape).astype(fmt.code_dtype)
    return np.where(rng.integers(0, 6, shape) == 0, x.dtype.type(1 << (fmt.bits - 1)), x)


def sparse(i: str, *shape: int) -> Array:
    x = wm.sparsity.prune(drawn(i, "A", *shape), i)
    return np.where(np.random.default_rng(1).integers(0, 4, (*shape[:-1], 1)) == 0, x.dtype.type(0), x)


@pytest.mark.alike(3)
@pytest.mark.parametrize(("i", "target"), EACH.items(), ids=[i.rsplit(".", 4)[-2] for i in EACH])
def test_both_ways_to_give_a(gpu: SimulatedGpu, i: str, target: str) -> None:
    k = parse_any(i).k + 3 * wm.sparsity.pattern(i).width
    a, b = sparse(i, 20, k), drawn(i, "B", k, 12)
    options: Any = {"instruction": i, "target": target}
    expected = codes(wm.matmul(a, b, **options))
    same(codes(wm.matmul(on(gpu, a), on(gpu, b), **options).numpy()), expected)
    assert gpu.waits == 1
    stored, indices = wm.sparsity.compress(a, i)
    places = on(gpu, indices.astype((np.uint8, np.int16, np.uint32, np.int64)[parse_any(i).k // 16 % 4]))
    d: Any = wm.matmul(on(gpu, stored), on(gpu, b), indices=places, **options)
    same(codes(d.numpy()), expected)


def test_batches_and_strides(gpu: SimulatedGpu) -> None:
    a, b = sparse(F16, 2, 3, 9, 32), drawn(F16, "B", 3, 32, 5)
    stored, indices = wm.sparsity.compress(a, F16)
    options: Any = {"instruction": F16, "target": "sm_80"}
    expected = codes(wm.matmul(a[:, 2:, 1:], b[2:], **options))
    there = on(gpu, np.ascontiguousarray(a.swapaxes(2, 3))).mT
    same(codes(wm.matmul(there[:, 2:, 1:], on(gpu, b)[2:], **options).numpy()), expected)
    places = on(gpu, np.ascontiguousarray(indices[..., ::-1].astype(np.int32)))[..., ::-1]
    d: Any = wm.matmul(on(gpu, stored)[:, 2:, 1:], on(gpu, b)[2:], indices=places[:, 2:, 1:], **options)
    same(codes(d.numpy()), expected)


def test_block_scales_of_a_sparse_a(gpu: SimulatedGpu) -> None:
    i = "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
    i += ".f32.e2m1.e2m1.f32.ue4m3"
    a, b = sparse(i, 16, 256), drawn(i, "B", 256, 8)
    size = wm.scaling.block_size(i)
    rng = np.random.default_rng(2)
    scales = [rng.integers(0, 0x7F, s).astype(np.uint8) for s in ((16, 256 // size), (256 // size, 8))]
    of_a, of_b = (on(gpu, x) for x in scales)
    options: Any = {"instruction": i, "target": "sm_120a"}
    d: Any = wm.matmul(on(gpu, a), on(gpu, b), scale_a=of_a, scale_b=of_b, **options)
    same(codes(d.numpy()), codes(wm.matmul(a, b, scale_a=scales[0], scale_b=scales[1], **options)))


def error_of(**options: Any) -> Exception:
    with pytest.raises(wm.WarpmmaError) as caught:
        wm.matmul(**options)
    return caught.value


def test_a_broken_pattern_is_the_host_s_error(gpu: SimulatedGpu) -> None:
    for i, target in EACH.items():
        k = parse_any(i).k
        a = sparse(i, 2, 300, k)
        a[1, 7, -wm.sparsity.pattern(i).width :] = 1 << parse_any(i).format("A").bits - 2
        a[1, 299, : wm.sparsity.pattern(i).width] = 1 << parse_any(i).format("A").bits - 2
        b: Any = np.zeros((k, 3), parse_any(i).format("B").code_dtype)
        options: Any = {"instruction": i, "target": target}
        here, there = error_of(a=a, b=b, **options), error_of(a=on(gpu, a), b=on(gpu, b), **options)
        assert type(there) is type(here) is MetadataError
        assert str(there) == str(here).replace("warp", "matrix") and "(1,), row 7, group" in str(there)


@pytest.mark.parametrize(
    ("pairs", "target"),
    [([[1, 1], [0, 4]], "sm_90"), ([[3, 3], [3, 2]], "sm_90"), ([[3, 2], [2, 2]], "sm_100"), ([[3, 2]], "sm_100")],
)
def test_illegal_indices_are_the_host_s_errors(gpu: SimulatedGpu, pairs: Any, target: str) -> None:
    """Undefined ones come before those of unknown effect, wherever they are."""
    a = sparse(BF16, 2, 20, 64)
    stored, indices = wm.sparsity.compress(a, BF16)
    indices[1, 4, 3 : 3 + len(pairs)] = pairs
    b: Any = drawn(BF16, "B", 64, 4)
    options: Any = {"instruction": BF16, "target": target}
    here = error_of(a=stored, b=b, indices=indices, **options)
    for kind in (np.uint8, np.int32):
        places = on(gpu, np.ascontiguousarray(indices.astype(kind)))
        there = error_of(a=on(gpu, stored), b=on(gpu, b), indices=places, **options)
        assert type(there) is type(here)
        if "indices go from" in str(here):
            assert "indices are (0, 4) of matrix (1,), row 4, group 4" in str(there)
        else:
            assert str(there) == str(here)


def test_negative_indices_are_none(gpu: SimulatedGpu) -> None:
    stored, indices = wm.sparsity.compress(sparse(F16, 4, 32), F16)
    bad = indices.astype(np.int16)
    bad[2, 1] = -1, 1
    with pytest.raises(MetadataError, match=r"indices are \(-1, 1\) of row 2, group 1"):
        wm.matmul(
            on(gpu, stored), on(gpu, drawn(F16, "B", 32, 4)), indices=on(gpu, bad), instruction=F16, target="sm_80"
        )
    with pytest.raises(OperandError, match="indices lies on the CPU"):
        wm.matmul(on(gpu, stored), on(gpu, drawn(F16, "B", 32, 4)), indices=indices, instruction=F16, target="sm_80")


def test_nothing_to_check(gpu: SimulatedGpu) -> None:
    d: Any = wm.matmul(
        on(gpu, np.zeros((0, 32), np.float16)), on(gpu, np.zeros((32, 4), np.float16)), instruction=F16, target="sm_80"
    )
    assert d.shape == (0, 4) and gpu.waits == 0


def test_mma_of_a_sparse_a(gpu: SimulatedGpu) -> None:
    for i, target in list(EACH.items())[3:]:
        record = parse_any(i)
        a, b = sparse(i, 1, record.m, record.k), drawn(i, "B", record.k, record.n)
        d: Any = wm.mma(i, on(gpu, a), on(gpu, b), target=target)
        same(codes(d.numpy()), codes(wm.mma(i, a, b, target=target)))
    with pytest.raises(UnsupportedError, match="metadata of arrays on a GPU are not read"):
        wm.mma(i, on(gpu, a), on(gpu, b), target=target, metadata=np.zeros(128, np.uint32))
