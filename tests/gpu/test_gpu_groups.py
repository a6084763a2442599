"""Products of groups that end where a GPU says, on a simulated device: each group has the bits of its own product."""

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
from warpmma.errors import OperandError, UnsupportedError
from warpmma.products import ProductOptions, grouped_product_on_gpu, grouped_products

pytestmark = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())

E4M3 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedGpu]:
    simulated = SimulatedGpu("off")
    monkeypatch.setattr(grouped_products, "gpu", lambda number=0: simulated)
    yield simulated


def drawn(*shape: int, dtype: Any = np.float16) -> Array:
    x = np.random.default_rng([5, *shape]).standard_normal(shape).astype(dtype)
    return x.view(np.uint8) if dtype is ml_dtypes.float8_e4m3fn else x


def product(gpu: SimulatedGpu, a: Array, b: Array, ends: list[int], **options: Any) -> Array:
    of_a, of_b, of_ends = (GpuArray.of(gpu.device, x) for x in (a, b, np.array(ends, np.int32)))
    d: Any = grouped_product_on_gpu(of_a, of_b, of_ends, ProductOptions(engine="cuda", **options))
    found: Array = d.numpy()
    return found.view(np.uint64 if found.dtype == np.float64 else np.uint32)


CASES: list[tuple[Any, dict[str, Any]]] = [
    (np.float16, {"target": "sm_90"}), (np.float32, {"target": "sm_80", "float32": "ieee"}),
    (np.float64, {"target": "sm_80"}), (ml_dtypes.float8_e4m3fn, {"target": "sm_90", "instruction": E4M3}),
]  # fmt: skip


@pytest.mark.alike(2)
@pytest.mark.parametrize(("dtype", "options"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_groups_of_rows(gpu: SimulatedGpu, dtype: Any, options: Any) -> None:
    a, b, ends = drawn(150, 40, dtype=dtype), drawn(4, 40, 12, dtype=dtype), [3, 3, 80, 141]
    expected = np.zeros((150, 12), np.float64 if dtype is np.float64 else np.float32)
    for start, stop, of_b in zip([0, *ends], ends, b, strict=False):
        expected[start:stop] = wm.matmul(a[start:stop], of_b, **options)
    got = product(gpu, a, b, ends, **options)
    same(got, expected.view(got.dtype))
    assert len(gpu.launches) == 1


def test_slices_of_k(gpu: SimulatedGpu) -> None:
    a, b = drawn(20, 100), drawn(2, 100, 12)
    got = product(gpu, a, b, [7, 20], target="sm_80", split_k=3)
    expected = [wm.matmul(x, y, target="sm_80", split_k=3) for x, y in ((a[:7], b[0]), (a[7:], b[1]))]
    same(got, np.concatenate(expected).view(np.uint32))


@pytest.mark.parametrize(("dtype", "options"), CASES[:3], ids=lambda x: getattr(x, "__name__", ""))
def test_groups_along_k(gpu: SimulatedGpu, dtype: Any, options: Any) -> None:
    """An instruction never has products of two groups; a group of none is zeros."""
    a, b, ends = drawn(20, 100, dtype=dtype), drawn(100, 12, dtype=dtype), [17, 17, 66, 90]
    parts = [slice(start, stop) for start, stop in zip([0, *ends], ends, strict=False)]
    got = product(gpu, a, b, ends, **options)
    same(got, np.stack([np.asarray(wm.matmul(a[:, k], b[k], **options)) for k in parts]).view(got.dtype))


def test_wrong_ends_stay_inside(gpu: SimulatedGpu) -> None:
    a, b = drawn(30, 16), drawn(3, 16, 12)
    got = product(gpu, a, b, [20, 10, 1000], target="sm_80")
    expected = [wm.matmul(x, y, target="sm_80") for x, y in ((a[:20], b[0]), (a[20:], b[2]))]
    same(got, np.concatenate(expected).view(np.uint32))


def test_refusals(gpu: SimulatedGpu) -> None:
    a, b = drawn(20, 100), drawn(100, 12)
    with pytest.raises(OperandError, match=r"A is \(20, 100\), B \(2, 50, 12\) and ends are \(3,\)"):
        product(gpu, a, b.reshape(2, 50, 12), [1, 2, 3], target="sm_80")
    with pytest.raises(UnsupportedError, match="of groups along k, which end where a GPU says"):
        product(gpu, a, b, [1, 2], target="sm_80", split_k=2)
    of_a, of_b, of_ends = (GpuArray.of(gpu.device, x) for x in (a, b, np.array([1, 2])))
    with pytest.raises(OperandError, match="ends are int64, 1 apart; expected contiguous int32"):
        grouped_product_on_gpu(of_a, of_b, of_ends, ProductOptions(target="sm_80", engine="cuda"))
