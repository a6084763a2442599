"""Kernels of Triton on a simulated device: tensors, arrays of NumPy and of the device."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, name-defined"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import skip_without

import warpmma as wm

triton = pytest.importorskip("triton.language") and pytest.importorskip("triton")
tl = triton.language


@triton.jit
def scaled_sum(x, y, out, n, factor, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    tl.store(out + places, tl.load(x + places, inside) * factor + tl.load(y + places, inside), inside)


@triton.jit
def product(a, b, c, K, M: tl.constexpr, STEP: tl.constexpr):
    rows, steps = tl.arange(0, M), tl.arange(0, STEP)
    total = tl.zeros((M, M), tl.float32)
    for k in range(0, K, STEP):
        left = tl.load(a + rows[:, None] * K + steps[None, :] + k)
        right = tl.load(b + (steps[:, None] + k) * M + rows[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * M + rows[None, :], total)


N = 1000


def inputs() -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    return rng.standard_normal(N, np.float32), rng.standard_normal(N, np.float32)


def expected(x: Any, y: Any) -> Any:
    return (x.astype(np.float64) * 3 + y).astype(np.float32)  # fused: the product is exact


def test_arrays_of_numpy() -> None:
    x, y = inputs()
    out = np.zeros(N, np.float32)
    with wm.triton.device("sm_90") as gpu:
        scaled_sum[(8,)](x, y, out, N, 3.0, BLOCK=128)
    assert (out == expected(x, y)).all()
    assert [(each.name, each.grid, each.num_warps) for each in gpu.launches] == [("scaled_sum", (8, 1, 1), 4)]
    assert gpu.launches[0].report.costs.instructions and gpu.ptx_target == "sm_90" and gpu.target == "sm_90a"


def test_arrays_of_the_device_and_a_grid_that_is_called() -> None:
    with wm.triton.device("sm_80") as gpu:
        x, y = (gpu.device.array(z) for z in inputs())
        out = gpu.device.empty(N)
        scaled_sum[lambda meta: (triton.cdiv(N, meta["BLOCK"]),)](x, y, out, N, 3.0, BLOCK=256)
    assert (out.numpy() == expected(*inputs())).all()
    assert gpu.launches[0].grid == (4, 1, 1)


def test_tensors() -> None:
    skip_without("PyTorch")
    import torch

    x, y = (torch.from_numpy(z) for z in inputs())
    out = torch.zeros(N)
    with wm.triton.device("sm_90"):
        scaled_sum[(8,)](x, y, out, N, 3.0, BLOCK=128)
    assert (out.numpy() == expected(*inputs())).all()


def test_a_product_has_the_bits_of_its_instructions() -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 128), (128, 64)))
    out = np.zeros((64, 64), np.float32)
    with wm.triton.device("sm_90"):
        product[(1,)](a, b, out, 128, M=64, STEP=32)
    c = np.zeros((64, 64), np.float32)
    whole = wm.matmul(a, b, c, instruction="mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_90")
    assert (out.view(np.uint32) == whole.view(np.uint32)).all()
