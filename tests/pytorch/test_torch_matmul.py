"""`warpmma.torch.matmul`: the bits of `warpmma.matmul`, the shapes of PyTorch's, and gradients by the same products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arrays import same
from oracles import skip_without

import warpmma as wm
from warpmma.operations import elementwise
from warpmma.products import FLOAT32

skip_without("PyTorch")
from torch_cases import array, expected, same_tensor, tensors, torch  # noqa: E402

TARGET = "sm_90"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_bits_are_those_of_matmul(dtype: str) -> None:
    a, b = tensors(dtype, (33, 70), (70, 20))
    same_tensor(wm.torch.matmul(a, b, target=TARGET), expected(a, b))
    same_tensor(wm.torch.matmul(b.T, a.T, target=TARGET), expected(b.T, a.T))
    split: dict[str, Any] = {} if dtype == "float64" else {"split_k": 3}
    same_tensor(wm.torch.matmul(a, b, target=TARGET, **split), expected(a, b, **split))


def test_float32_is_a_chain_of_fma() -> None:
    a, b = tensors("float32", (9, 50), (50, 7))
    x, y = array(a), array(b)
    for split, each in ((1, 50), (4, 13)):
        total = np.zeros((9, 7), np.float32)
        for start in range(0, 50, each):
            chain = np.zeros_like(total)
            for k in range(start, min(50, start + each)):
                chain = elementwise("fma.rn.f32", x[:, k, None], y[None, k], chain)
            total = chain if split == 1 else elementwise("add.rn.f32", total, chain)
        for engine in ("auto", "numpy"):
            d = wm.torch.matmul(a, b, target=TARGET, split_k=split, engine=engine)
            same(array(d), total)


def test_tf32_is_rounded_to_nearest_first() -> None:
    """As libraries do, and `cvt.rn.tf32.f32`; the instruction alone would truncate."""
    a, b = tensors("float32", (17, 64), (64, 8))
    a[0, 0], a[1, 1], a[2, 2] = float("inf"), torch.finfo(torch.float32).max, 1e-40
    x, y = (elementwise("cvt.rn.tf32.f32", array(z)).view(np.float32) for z in (a, b))
    d = wm.torch.matmul(a, b, target=TARGET, float32="tf32")
    same(array(d), wm.matmul(x, y, target=TARGET, float32="tf32-truncated"))
    assert (array(d) != wm.matmul(a, b, target=TARGET, float32="tf32-truncated")).any()
    a[0, 0] = float("nan")
    assert wm.torch.matmul(a, b, target=TARGET, float32="tf32")[0].isnan().all()


@pytest.mark.parametrize("way", FLOAT32)
def test_float32_takes_the_words_of_matmul(way: Any) -> None:
    a, b = tensors("float32", (17, 64), (64, 8))
    for split in (1, 3):
        d = wm.torch.matmul(a, b, target=TARGET, float32=way, split_k=split)
        same(array(d), wm.matmul(a, b, target=TARGET, float32=way, split_k=split))


@pytest.mark.parametrize("types", [("float8_e4m3fn", "float8_e5m2"), ("float8_e4m3fn",) * 2, ("int8", "int8")])
def test_narrow_types(types: tuple[str, str]) -> None:
    a, b = (3 * x for x in tensors("float32", (20, 256), (256, 9)))
    a, b = a.to(getattr(torch, types[0])), b.to(getattr(torch, types[1]))
    d = wm.torch.matmul(a, b, target="sm_90a")
    assert d.dtype == (torch.int32 if types[0] == "int8" else torch.float32)
    same(array(d), wm.matmul(a, b, target="sm_90a"))


def test_instructions_and_promotion() -> None:
    a, b = (x.to(torch.float8_e4m3fn) for x in tensors("float32", (70, 600), (600, 40)))
    wgmma = "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3"
    plain = wm.torch.matmul(a, b, target="sm_90a", instruction="wgmma")
    same(array(plain), wm.matmul(a, b, instruction=wgmma, target="sm_90a"))
    promoted = wm.torch.matmul(a, b, target="sm_90a", instruction=wgmma, promote_every=128)
    same(array(promoted), wm.matmul(a, b, instruction=wgmma, target="sm_90a", promote_every=128))
    mma = wm.torch.matmul(a, b, target="sm_90a")
    assert len({array(x).tobytes() for x in (plain, promoted, mma)}) == 3
    half = wm.torch.matmul(a, b, target="sm_90a", accumulate="f16", out_dtype=torch.float16)
    same(array(half), wm.matmul(a, b, np.zeros((1, 1), np.float16), target="sm_90a"))
    for out in (torch.bfloat16, torch.float8_e5m2):
        assert wm.torch.matmul(a, b, target="sm_90a", out_dtype=out).dtype == out


SHAPES = [
    ((5,), (5,)), ((4, 5), (5,)), ((5,), (5, 3)), ((2, 4, 5), (5, 3)), ((4, 5), (2, 5, 3)), ((2, 1, 4, 5), (3, 5, 2)),
    ((3, 4, 5), (5,)), ((5,), (3, 5, 2)), ((4, 0), (0, 3)), ((0, 5), (5, 3)), ((2, 4, 5), (2, 5, 0)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_shapes_are_those_of_pytorch(shapes: tuple[tuple[int, ...], ...], dtype: str) -> None:
    a, b = (x.requires_grad_() for x in tensors(dtype, *shapes))
    d, plain = wm.torch.matmul(a, b, target=TARGET), torch.matmul(a, b)
    assert d.shape == plain.shape and d.dtype == plain.dtype
    torch.testing.assert_close(d, plain, rtol=2e-3, atol=2e-3)
    gradient = torch.ones_like(plain)
    for mine, theirs in zip(
        torch.autograd.grad(d, (a, b), gradient), torch.autograd.grad(plain, (a, b), gradient), strict=True
    ):
        assert mine.shape == theirs.shape
        torch.testing.assert_close(mine, theirs, rtol=2e-3, atol=2e-3)


def test_gradients_are_products_by_the_same_instruction() -> None:
    a, b = (x.requires_grad_() for x in tensors("bfloat16", (2, 30, 70), (70, 20)))
    [gradient] = tensors("bfloat16", (2, 30, 20), seed=1)
    of_a, of_b = torch.autograd.grad(wm.torch.matmul(a, b, target="sm_80"), (a, b), gradient)
    x, y = a.detach(), b.detach()
    same_tensor(of_a, expected(gradient, y.T, target="sm_80"))
    same_tensor(of_b, expected(x.mT, gradient, target="sm_80").sum(0))


def test_gradients_of_gradients() -> None:
    a, b = (x.requires_grad_() for x in tensors("float64", (3, 4), (4, 2)))

    def product(x: Any, y: Any) -> Any:
        return wm.torch.matmul(x, y, target="sm_80")

    assert torch.autograd.gradcheck(product, (a, b)) and torch.autograd.gradgradcheck(product, (a, b))


def test_large_products_by_threads_are_the_same() -> None:
    a, b = tensors("float16", (600, 64), (64, 600))
    same_tensor(wm.torch.matmul(a, b, target=TARGET, threads=2), wm.torch.matmul(a, b, target=TARGET))
    x, y = (z.float() for z in (a, b))
    same_tensor(wm.torch.matmul(x, y, target=TARGET, threads=2), wm.torch.matmul(x, y, target=TARGET))
