"""alpha x sums + beta x C on a GPU: the kernel, run on a simulated device, has the bits of PTX's `fma` and `mul`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from arrays import Array, same
from simulated_gpu import GpuArray, SimulatedGpu

from warpmma.cuda import nvrtc
from warpmma.errors import OperandError
from warpmma.gpu import scale_and_add, scaled_sums
from warpmma.operations import elementwise

pytestmark = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedGpu]:
    simulated = SimulatedGpu("error")
    monkeypatch.setattr(scaled_sums, "gpu", lambda number=0: simulated)
    yield simulated


def drawn(dtype: Any, *shape: int) -> Array:
    """Numbers of any size, with subnormals, infinities and NaN."""
    rng = np.random.default_rng([3, *shape])
    of = np.dtype(dtype)
    codes = rng.integers(0, 1 << 63, shape, np.uint64) * np.uint64(2) + rng.integers(0, 2, shape, np.uint64)
    x = codes.astype(f"u{of.itemsize}").view(of)
    near = rng.standard_normal(shape).astype(of)
    return np.where(rng.random(shape) < 0.3, x, near)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("swapped", [False, True])
def test_one_rounding(gpu: SimulatedGpu, dtype: Any, swapped: bool) -> None:
    kind = f"f{8 * np.dtype(dtype).itemsize}"
    for shape in ((3, 20, 30), (20, 30), (30,), (20, 1), ()):
        x, c = drawn(dtype, 3, 20, 30), drawn(dtype, *shape)
        there = GpuArray.of(gpu.device, x)
        scale_and_add(there, GpuArray.of(gpu.device, c), 0.3, -1.7, fuse_c=swapped)
        (one, by), (other, first) = (x, dtype(0.3)), (np.broadcast_to(c, x.shape), dtype(-1.7))
        if swapped:
            one, by, other, first = other, first, one, by
        by, first = (np.full(x.shape, y) for y in (by, first))
        wanted = elementwise(f"fma.rn.{kind}", one, by, elementwise(f"mul.rn.{kind}", other, first))
        bits = f"u{x.itemsize}"
        same(there.numpy().view(bits), np.asarray(wanted).view(bits))


def test_c_may_be_narrower_and_strided(gpu: SimulatedGpu) -> None:
    x, c = drawn(np.float32, 2, 20, 30), drawn(np.float16, 30, 40)
    there, of_c = GpuArray.of(gpu.device, x), GpuArray.of(gpu.device, c).mT[::2]
    scale_and_add(there, of_c, 1, 0.5)
    wide = c.T[::2].astype(np.float32)
    half, one = (np.full(x.shape, y, np.float32) for y in (0.5, 1))
    product = elementwise("mul.rn.f32", np.broadcast_to(wide, x.shape), half)
    same(there.numpy().view(np.uint32), np.asarray(elementwise("fma.rn.f32", x, one, product)).view(np.uint32))


def test_without_c(gpu: SimulatedGpu) -> None:
    x = drawn(np.float64, 7, 9)
    there = GpuArray.of(gpu.device, x)
    scale_and_add(there, None, 0.1, 0)
    wanted = elementwise("mul.rn.f64", x, np.full(x.shape, 0.1))
    same(there.numpy().view(np.uint64), np.asarray(wanted).view(np.uint64))


def test_refusals(gpu: SimulatedGpu) -> None:
    x, c = (GpuArray.of(gpu.device, np.zeros((2, 2), dtype)) for dtype in (np.float16, np.float32))
    with pytest.raises(OperandError, match="C is float32; expected float16"):
        scale_and_add(x, c, 1, 1)
    with pytest.raises(OperandError, match="sums are int32; expected float16, 32 or 64"):
        scale_and_add(GpuArray.of(gpu.device, np.zeros((2, 2), np.int32)), None, 1, 1)
