"""Products on this machine's GPU: PyTorch's and CuPy's arrays, and the override of PyTorch's products there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu_tensors import drawn, same
from oracles import skip_without

import warpmma as wm
from warpmma.gpu import why_no_gpu

pytestmark = pytest.mark.skipif(bool(why_no_gpu()), reason=why_no_gpu())

E4M3 = "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3"


@pytest.fixture
def torch() -> Any:
    skip_without("PyTorch")
    import torch

    return torch


def with_specials(torch: Any, x: Any) -> Any:
    x[0, 0], x[1, 0], x[2, 1] = torch.inf, -torch.inf, torch.nan
    return x


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_products_of_pytorch(torch: Any, dtype: str) -> None:
    a, b = with_specials(torch, drawn(torch, 70, 90, dtype=dtype)), drawn(torch, 90, 50, dtype=dtype)
    c, bias = drawn(torch, 70, 50, dtype=dtype), drawn(torch, 50, dtype=dtype)
    many, more = drawn(torch, 3, 20, 40, dtype=dtype), drawn(torch, 3, 40, 10, dtype=dtype)

    def run(to: Any) -> list[Any]:
        with wm.torch.arithmetic("sm_80"):
            return [
                to(a) @ to(b), torch.bmm(to(many), to(more)), torch.addmm(to(c), to(a), to(b)), to(a) @ to(b)[:, 0],
                torch.nn.functional.linear(to(a), to(b).T, to(bias)), torch.dot(to(a)[3], to(b)[:, 3]),
                torch.einsum("bij,bkj->bik", to(many), to(more).mT),
            ]  # fmt: skip

    for there, here in zip(run(lambda x: x.cuda()), run(lambda x: x), strict=True):
        same(torch, there, here)


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (0.3, 1), (1, 0.7), (0.3, 0.7), (2, 0)])
def test_scaled_sums(torch: Any, alpha: float, beta: float) -> None:
    for dtype in ("float32", "bfloat16"):
        a, b, c = (drawn(torch, *s, dtype=dtype) for s in ((70, 90), (90, 50), (70, 50)))

        def run(to: Any, x: Any = (a, b, c)) -> Any:
            with wm.torch.arithmetic("sm_90", split_k=2):
                return torch.addmm(to(x[2]), to(x[0]), to(x[1]), alpha=alpha, beta=beta)

        same(torch, run(lambda x: x.cuda()), run(lambda x: x))


def test_gradients(torch: Any) -> None:
    a, b = drawn(torch, 70, 90, dtype="bfloat16"), drawn(torch, 90, 50, dtype="bfloat16")

    def run(device: str) -> list[Any]:
        x, y = (z.to(device).requires_grad_() for z in (a, b))
        d = wm.torch.matmul(x, y, target="sm_90")
        d.float().square().sum().backward()
        return [d.detach(), x.grad, y.grad]

    for there, here in zip(run("cuda"), run("cpu"), strict=True):
        same(torch, there, here)


@pytest.mark.parametrize("fast", [False, True])
def test_scaled_products_of_8_bits(torch: Any, fast: bool) -> None:
    a, b = (drawn(torch, *s).to(torch.float8_e4m3fn) for s in ((64, 320), (48, 320)))
    one, two = torch.tensor(0.37), torch.tensor(1.9)
    rows, columns, bias = drawn(torch, 64, 1).abs(), drawn(torch, 1, 48).abs(), drawn(torch, 48, dtype="bfloat16")

    def run(to: Any) -> list[Any]:
        with wm.torch.arithmetic("sm_90a", instruction="wgmma"):
            options: Any = {"out_dtype": torch.bfloat16, "use_fast_accum": fast}
            return [
                torch._scaled_mm(to(a), to(b).T, to(one), to(two), **options),
                torch._scaled_mm(to(a), to(b).T, to(one), to(two), bias=to(bias), **options),
                torch._scaled_mm(to(a), to(b).T, to(rows), to(columns), **options),
            ]

    for there, here in zip(run(lambda x: x.cuda()), run(lambda x: x), strict=True):
        same(torch, there, here)


def test_block_scales(torch: Any) -> None:
    a, b = (drawn(torch, *s).to(torch.float8_e4m3fn) for s in ((128, 256), (128, 256)))
    scales = [torch.randint(120, 134, (128 * 8,), dtype=torch.uint8).view(torch.float8_e8m0fnu) for _ in range(2)]

    def run(to: Any) -> Any:
        with wm.torch.arithmetic("sm_120a"):
            return torch._scaled_mm(to(a), to(b).T, to(scales[0]), to(scales[1]), out_dtype=torch.bfloat16)

    same(torch, run(lambda x: x.cuda()), run(lambda x: x))


def test_convolutions(torch: Any) -> None:
    x, weight, bias = (drawn(torch, *s, dtype="bfloat16") for s in ((2, 8, 9, 10), (16, 4, 3, 3), (16,)))

    def run(device: str) -> list[Any]:
        given = [z.to(device).requires_grad_() for z in (x, weight, bias)]
        with wm.torch.arithmetic("sm_90"):
            d = torch.nn.functional.conv2d(*given, stride=(2, 1), padding=1, groups=2)
            d.backward(torch.ones_like(d))
        return [d.detach(), given[0].grad, given[1].grad]

    for there, here in zip(run("cuda"), run("cpu"), strict=True):
        same(torch, there, here)


def test_attention_is_two_products(torch: Any) -> None:
    q, k, v = (drawn(torch, 2, 3, 40, 16, dtype="bfloat16", seed=i).cuda().requires_grad_() for i in range(3))
    with wm.torch.arithmetic("sm_80") as report:
        d = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        d.sum().backward()
    assert not report.left and report.products.total() == 6
    assert {x.dtypes[0] for x in report.products} == {"bfloat16"}


def test_nothing_waits(torch: Any) -> None:
    a, b = drawn(torch, 64, 64, dtype="bfloat16").cuda(), drawn(torch, 64, 64, dtype="bfloat16").cuda()
    scale = torch.ones((), device="cuda")
    x, y = (z.to(torch.float8_e4m3fn) for z in (a, b))

    def run() -> None:
        with wm.torch.arithmetic("sm_89"):
            torch.addmm(a, a, b, alpha=0.5)
            torch._scaled_mm(x, y.T, scale, scale, out_dtype=torch.bfloat16)

    run()  # kernels are loaded at first
    torch.cuda.set_sync_debug_mode("error")
    try:
        run()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_streams(torch: Any) -> None:
    a, b = drawn(torch, 512, 512).half(), drawn(torch, 512, 512).half()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x, y = a.cuda(), b.cuda()
        torch.cuda._sleep(10_000_000)
        d = wm.matmul(x, y, target="sm_90")
    stream.synchronize()
    assert (d.cpu().numpy() == wm.matmul(a.numpy(), b.numpy(), target="sm_90")).all()


def test_memory_is_that_of_the_result(torch: Any) -> None:
    a = torch.zeros(2048, 2048, dtype=torch.float16, device="cuda")
    wm.matmul(a, a, target="sm_90")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    d = wm.matmul(a, a, target="sm_90")
    assert torch.cuda.max_memory_allocated() - before <= 1.1 * d.numel() * 4


def test_more_than_2_31_elements(torch: Any) -> None:
    rows = (1 << 31) // 64 + 100
    a = torch.ones(rows, 64, dtype=torch.float16, device="cuda")
    a[-1] = 2
    b = torch.ones(64, 80, dtype=torch.float16, device="cuda")
    d = wm.matmul(a, b, target="sm_90")
    assert d.numel() > 1 << 31 and float(d[-1, -1]) == 128 and float(d[-2, 0]) == 64 and float(d[1 << 25, 3]) == 64
    del a, d
    torch.cuda.empty_cache()


def test_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((50, 70), (70, 30)))
    d = wm.matmul(cupy.asarray(a), cupy.asarray(b), target="sm_90", epilogue="bf16")
    expected = wm.matmul(a, b, target="sm_90", epilogue="bf16")
    assert isinstance(d, cupy.ndarray)
    assert (cupy.asnumpy(d.view(np.uint16)) == expected.view(np.uint16)).all()


def test_arrays_of_the_host() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((50, 70), (70, 30)))
    assert wm.matmul(a, b, target="sm_80", engine="cuda").tobytes() == wm.matmul(a, b, target="sm_80").tobytes()
