"""`quantize` of arrays on a GPU: its kernel, run on a simulated device, has the bits of the CPU's."""

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
from warpmma.errors import OperandError
from warpmma.gpu import quantize_launch
from warpmma.layouts import Operand
from warpmma.scaling import Quantized, block_size, quantize

pytestmark = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())

MX = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.{0}.{0}.f32.ue8m0"
MXFP8 = MX.format("e4m3")
MXFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
ALL = [*(MX.format(x) for x in ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")), MXFP4, NVFP4]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedGpu]:
    simulated = SimulatedGpu("error")
    monkeypatch.setattr(quantize_launch, "gpu", lambda number=0: simulated)
    yield simulated


def hard(*shape: int, finite: bool) -> Array:
    """Numbers with any bits, subnormals, ties of narrow types and their neighbours, zeros of both signs."""
    rng = np.random.default_rng([7, *shape])
    size = int(np.prod(shape))
    ties = (rng.integers(1, 1 << 13, size, np.uint32) << np.uint32(18)) + rng.integers(-1, 2, size).astype(np.uint32)
    few = (rng.integers(-64, 65, size) * 2.0 ** rng.integers(-8, 9, size)).astype(np.float32).view(np.uint32)
    styles = [
        rng.integers(0, 1 << 32, size, np.uint32), rng.integers(0, 1 << 24, size, np.uint32), ties, few,
        np.where(rng.random(size) < 0.5, np.uint32(1 << 31), np.uint32(0)),
    ]  # fmt: skip
    which = np.repeat(rng.integers(0, len(styles), -(-size // 64)), 64)[:size]
    x = np.choose(which, styles).astype(np.uint32).view(np.float32).reshape(shape)
    return np.where(np.isfinite(x), x, np.float32(1.5)) if finite else x


def agree(got: Quantized, expected: Quantized) -> None:
    elements, scales = np.asarray(expected.elements), np.asarray(expected.scales)
    codes: Any = got.elements
    assert isinstance(codes, GpuArray) and codes.dtype == np.uint8
    same(codes.numpy(), elements.view(np.uint8))
    of_blocks: Any = got.scales
    same(of_blocks.numpy(), scales)
    if expected.tensor_scale is None:
        assert got.tensor_scale is None
    else:
        whole: Any = got.tensor_scale
        same(whole.numpy(), np.asarray(expected.tensor_scale))


@pytest.mark.alike(3)
@pytest.mark.parametrize("i", ALL, ids=lambda i: i[30:])
@pytest.mark.parametrize("operand", ["A", "B"])
def test_the_bits_are_the_cpu_s(gpu: SimulatedGpu, i: str, operand: Operand) -> None:
    size = block_size(wm.parse(i))
    matrix = hard(2, 9, 3 * size, finite=i == NVFP4)
    if operand == "B":
        matrix = np.ascontiguousarray(matrix.swapaxes(-1, -2))
    there = GpuArray.of(gpu.device, matrix)
    agree(quantize(there, i, operand), quantize(matrix, i, operand))  # type: ignore[arg-type]
    assert set(there.streams) == {1} and len(gpu.launches) == (4 if i == NVFP4 else 1)


@pytest.mark.parametrize("i", [MXFP8, NVFP4], ids=["MXFP8", "NVFP4"])
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_types_are_float32_first(gpu: SimulatedGpu, i: str, dtype: Any) -> None:
    with np.errstate(over="ignore"):
        matrix = hard(4, 64, finite=True).astype(dtype)
    matrix = np.where(np.isfinite(matrix), matrix, dtype(1.5))
    agree(quantize(GpuArray.of(gpu.device, matrix), i), quantize(matrix, i))  # type: ignore[arg-type]


def test_a_float64_is_rounded_to_float32(gpu: SimulatedGpu) -> None:
    """On the CPU it is an error, which the host would have to wait for."""
    matrix = np.random.default_rng(1).standard_normal((4, 64))
    with pytest.raises(OperandError, match="which is not a float32 value"):
        quantize(matrix, MXFP8)
    agree(quantize(GpuArray.of(gpu.device, matrix), MXFP8), quantize(matrix.astype(np.float32), MXFP8))  # type: ignore[arg-type]


def test_nvfp4_of_nan_or_infinity_is_nan(gpu: SimulatedGpu) -> None:
    """The CPU refuses such a matrix; here its scales are NaN, and those of other matrices what they are."""
    matrix = hard(3, 4, 64, finite=True)
    matrix[0, 2, 5], matrix[2, 0, 0] = np.inf, np.nan
    q: Any = quantize(GpuArray.of(gpu.device, matrix), NVFP4)  # type: ignore[arg-type]
    assert np.isnan(q.tensor_scale.numpy()[[0, 2]]).all()
    assert (q.scales.numpy()[[0, 2]] == 0x7F).all() and not q.elements.numpy()[[0, 2]].any()
    expected = quantize(matrix[1], NVFP4)
    same(q.elements.numpy()[1], expected.elements.view(np.uint8))
    same(q.scales.numpy()[1], expected.scales)
    same(q.tensor_scale.numpy()[1], np.asarray(expected.tensor_scale))


@pytest.mark.parametrize("i", [MXFP8, NVFP4], ids=["MXFP8", "NVFP4"])
def test_views_and_sizes(gpu: SimulatedGpu, i: str) -> None:
    matrix = hard(2, 3, 9, 128, finite=True)
    there = GpuArray.of(gpu.device, matrix)
    agree(quantize(there[:, ::2, 1:8, 64:], i), quantize(matrix[:, ::2, 1:8, 64:], i))  # type: ignore[arg-type]
    agree(quantize(there.mT, i, "B"), quantize(matrix.swapaxes(-1, -2), i, "B"))  # type: ignore[arg-type]
    agree(quantize(there[0, 0, :1], i), quantize(matrix[0, 0, :1], i))  # type: ignore[arg-type]
    many = hard(300, 1, 64, finite=True)  # several launches' worth of matrices
    agree(quantize(GpuArray.of(gpu.device, many), i), quantize(many, i))  # type: ignore[arg-type]
    for shape in ((0, 64), (3, 0, 64), (0, 3, 64)):
        empty = np.empty(shape, np.float32)
        agree(quantize(GpuArray.of(gpu.device, empty), i), quantize(empty, i))  # type: ignore[arg-type]


def test_a_product_takes_what_it_gives(gpu: SimulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    from warpmma.products import gpu_products

    monkeypatch.setattr(gpu_products, "gpu", lambda number=0: gpu)
    gpu.hazards = "off"
    a, b = hard(20, 64, finite=True), hard(64, 24, finite=True)
    for i in (MXFP8, NVFP4):
        of_a, of_b = (quantize(GpuArray.of(gpu.device, x), i, name) for x, name in ((a, "A"), (b, "B")))  # type: ignore[arg-type]
        options: Any = {"target": "sm_120a", "instruction": i}
        d: Any = wm.matmul(of_a.elements, of_b.elements, scale_a=of_a.scales, scale_b=of_b.scales, **options)
        x, y = quantize(a, i), quantize(b, i, "B")
        same(d.numpy(), wm.matmul(x.elements, y.elements, scale_a=x.scales, scale_b=y.scales, **options))


def test_refusals(gpu: SimulatedGpu) -> None:
    for shape, message in (((64,), r"A is \(64,\); expected \[\.\.\., rows, K\]"), ((4, 33), "K a multiple of 32")):
        with pytest.raises(OperandError, match=message):
            quantize(GpuArray.of(gpu.device, np.zeros(shape, np.float32)), MXFP8)  # type: ignore[arg-type]
    with pytest.raises(OperandError, match="A is int32; expected float32, 64 or 16, or bfloat16"):
        quantize(GpuArray.of(gpu.device, np.zeros((4, 64), np.int32)), MXFP8)  # type: ignore[arg-type]


def test_bfloat16_on_the_cpu() -> None:
    matrix = hard(4, 64, finite=True).astype(ml_dtypes.bfloat16)
    same(quantize(matrix, MXFP8).scales, quantize(matrix.astype(np.float32), MXFP8).scales)
