"""Convolutions of tensors on this machine's GPU: the CPU's bits, no memory beside, nothing waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from gpu_tensors import drawn, same
from oracles import skip_without

import warpmma as wm
from warpmma.gpu import why_no_gpu

pytestmark = pytest.mark.skipif(bool(why_no_gpu()), reason=why_no_gpu())

SHAPES: Any = {  # input, weight, and options
    "strides": ((3, 8, 33, 18), (70, 4, 3, 2), {"stride": (2, 1), "padding": (1, 2), "groups": 2}),
    "dilation": ((2, 24, 17, 20), (40, 24, 3, 3), {"dilation": (2, 3), "padding": 3}),
    "depthwise": ((2, 12, 19, 21), (12, 1, 5, 3), {"stride": 3, "padding": (2, 1), "groups": 12}),
    "1": ((3, 10, 101), (34, 5, 7), {"stride": 4, "padding": 3, "dilation": 2, "groups": 2}),
    "3": ((2, 6, 7, 9, 8), (20, 6, 2, 3, 3), {"stride": (1, 2, 2), "padding": (1, 1, 0)}),
}
ARITHMETIC: Any = [
    ("float16", "sm_90", {}), ("float16", "sm_80", {"accumulate": "f16"}), ("float16", "sm_70", {}),
    ("bfloat16", "sm_80", {}), ("float32", "sm_90", {"float32": "ieee", "split_k": 3}),
    ("float32", "sm_80", {"float32": "tf32"}), ("float64", "sm_90", {}),
]  # fmt: skip


@pytest.fixture
def torch() -> Any:
    skip_without("PyTorch")
    import torch

    return torch


def function(torch: Any, x: Any, *, transposed: bool = False) -> Callable[..., Any]:
    name = f"conv{'_transpose' * transposed}{x.ndim - 2}d"
    found: Callable[..., Any] = getattr(torch.nn.functional, name)
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "target", "options"), ARITHMETIC, ids=str)
def test_bits_are_those_of_the_cpu(torch: Any, shape: str, dtype: str, target: str, options: dict[str, Any]) -> None:
    of_x, of_weight, given = SHAPES[shape]
    x, weight, bias = (drawn(torch, *s, dtype=dtype) for s in (of_x, of_weight, of_weight[:1]))
    x.view(-1)[7], x.view(-1)[300], weight.view(-1)[11] = torch.inf, torch.nan, -0.0

    def run(device: str) -> list[Any]:
        leaves = [z.to(device).requires_grad_() for z in (x, weight, bias)]
        with wm.torch.arithmetic(target, **options) as report:
            d = function(torch, x)(*leaves, **given)
            d.backward(drawn(torch, *d.shape, dtype=dtype, seed=1).to(device))
        assert report.products.total() == 3
        return [d.detach(), leaves[0].grad, leaves[1].grad]

    for there, here in zip(run("cuda"), run("cpu"), strict=True):
        same(torch, there, here)


@pytest.mark.parametrize("shape", SHAPES)
def test_transposed_convolutions(torch: Any, shape: str) -> None:
    of_x, of_weight, given = SHAPES[shape]
    groups = given.get("groups", 1)
    weight, bias = (drawn(torch, *s, dtype="bfloat16") for s in (of_weight, (of_weight[1] * groups,)))
    x = drawn(torch, of_x[0], of_weight[0], *of_x[2:], dtype="bfloat16")

    def run(device: str) -> list[Any]:
        leaves = [z.to(device).requires_grad_() for z in (x, weight, bias)]
        with wm.torch.arithmetic("sm_90"):
            d = function(torch, x, transposed=True)(*leaves, **given)
            d.backward(drawn(torch, *d.shape, dtype="bfloat16", seed=1).to(device))
        return [d.detach(), leaves[0].grad, leaves[1].grad]

    for there, here in zip(run("cuda"), run("cpu"), strict=True):
        same(torch, there, here)


def test_orders_of_k_and_strides(torch: Any) -> None:
    """Operands lie channels last, as slices, and as a gradient that is one number."""
    x, weight = drawn(torch, 2, 20, 15, 30, dtype="float16"), drawn(torch, 24, 16, 3, 3, dtype="float16")
    orders = {"forward": "c-sr", "data": "ksr", "weight": "-pqn"}

    def run(device: str) -> list[Any]:
        a = x.to(device).to(memory_format=torch.channels_last)[:, 2:18, :, ::2].requires_grad_()
        b = weight.to(device).to(memory_format=torch.channels_last).requires_grad_()
        with wm.torch.arithmetic("sm_90", convolution_k=orders):
            d = torch.nn.functional.conv2d(a, b, padding=1)
            a_grad, b_grad = torch.autograd.grad(d.sum(), (a, b))
        assert d.is_contiguous(memory_format=torch.channels_last)
        return [d.detach(), a_grad, b_grad]

    for there, here in zip(run("cuda"), run("cpu"), strict=True):
        same(torch, there, here)


def steps(torch: Any, dtype: str, last: bool) -> Any:
    """Make a convolution's forward and backward: functions that return what they allocate."""
    x, weight, bias = (drawn(torch, *s, dtype=dtype).cuda() for s in ((16, 64, 56, 56), (64, 64, 3, 3), (64,)))
    if last:
        x, weight = (z.to(memory_format=torch.channels_last) for z in (x, weight))
    leaves = [z.requires_grad_() for z in (x, weight, bias)]
    gradient = torch.ones_like(x)

    def forward() -> list[Any]:
        return [torch.nn.functional.conv2d(*leaves, padding=1)]

    def backward(d: Any) -> list[Any]:
        return list(torch.autograd.grad(d, leaves, gradient))

    return forward, backward, [*leaves, gradient]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("last", [False, True])
def test_memory_is_that_of_operands_and_results(torch: Any, dtype: str, last: bool) -> None:
    forward, backward, operands = steps(torch, dtype, last)
    with wm.torch.arithmetic("sm_90"):
        backward(*forward())  # kernels are loaded at first
        for run, given in ((forward, []), (backward, forward())):
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            made = run(*given)
            results = sum(z.numel() * z.element_size() for z in made)
            allowed = sum(z.numel() * z.element_size() for z in operands) + results
            assert torch.cuda.max_memory_allocated() - before - results <= 0.1 * allowed
            del made


def test_nothing_waits(torch: Any) -> None:
    forward, backward, _ = steps(torch, "bfloat16", True)
    with wm.torch.arithmetic("sm_80"):
        backward(*forward())  # kernels are loaded at first
        torch.cuda.set_sync_debug_mode("error")
        try:
            backward(*forward())
        finally:
            torch.cuda.set_sync_debug_mode("default")


def test_streams(torch: Any) -> None:
    x, weight = drawn(torch, 4, 32, 28, 28, dtype="float16"), drawn(torch, 32, 32, 3, 3, dtype="float16")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), wm.torch.arithmetic("sm_90"):
        there = [z.cuda() for z in (x, weight)]
        torch.cuda._sleep(10_000_000)
        d = torch.nn.functional.conv2d(*there)
    stream.synchronize()
    with wm.torch.arithmetic("sm_90"):
        same(torch, d, torch.nn.functional.conv2d(x, weight))
