"""`scaled_dot_product_attention` and layers of it: products by the target's instruction, gradients too."""

from __future__ import annotations

from typing import Any

import pytest
from oracles import skip_without

import warpmma as wm

skip_without("PyTorch")
from torch_cases import same_tensor, tensors, torch  # noqa: E402

attend = torch.nn.functional.scaled_dot_product_attention
NEAR = {"float64": 1e-12, "float32": 1e-5, "bfloat16": 0.06, "float16": 0.01}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {}, "causal": {"is_causal": True}, "mask": {"attn_mask": torch.arange(42).view(6, 7) % 5 > 0},
    "bias": {"attn_mask": torch.linspace(-1, 1, 42).view(1, 1, 6, 7)}, "scale": {"scale": 0.3},
    "groups": {"enable_gqa": True},
}  # fmt: skip


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients(kind: str, dtype: str) -> None:
    """PyTorch's own kernel differs by rounding."""
    more = dict(KINDS[kind])
    if kind == "bias":
        more["attn_mask"] = more["attn_mask"].to(getattr(torch, dtype))
    heads = 2 if kind == "groups" else 4
    operands = [x.requires_grad_() for x in tensors(dtype, (2, 4, 6, 8), (2, heads, 7, 8), (2, heads, 7, 8))]
    [gradient] = tensors(dtype, (2, 4, 6, 8), seed=1)
    plain = attend(*operands, **more)
    with wm.torch.arithmetic("sm_90a") as report:
        d = attend(*operands, **more)
        found = torch.autograd.grad(d, operands, gradient)
    assert report.products.total() == 7 and not report.left
    for x, y in zip((d, *found), (plain, *torch.autograd.grad(plain, operands, gradient)), strict=True):
        torch.testing.assert_close(x, y, rtol=NEAR[dtype], atol=NEAR[dtype])


def test_a_straightforward_implementation() -> None:
    """Scores stay in f32, weights are rounded, and the sum is divided before it is."""
    q, k, v = tensors("float16", (1, 2, 6, 8), (1, 2, 7, 8), (1, 2, 7, 8))
    with wm.torch.arithmetic("sm_80"):
        d = attend(q, k, v)
    scores = wm.torch.matmul(q, k.mT, target="sm_80", out_dtype=torch.float32) * 8**-0.5
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    total = wm.torch.matmul(weights.half(), v, target="sm_80", out_dtype=torch.float32)
    same_tensor(d, (total / weights.sum(-1, keepdim=True)).half())


def test_rows_that_see_nothing_are_zero() -> None:
    q, k, v = tensors("float32", (1, 1, 6, 8), (1, 1, 7, 8), (1, 1, 7, 8))
    mask = torch.ones(6, 7, dtype=torch.bool)
    mask[2] = False
    with wm.torch.arithmetic("sm_80"):
        d = attend(q, k, v, attn_mask=mask)
    assert not d[0, 0, 2].any() and d.isfinite().all()


@pytest.mark.parametrize("grad", [False, True])
def test_layers_without_their_fused_kernels(grad: bool) -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True).train(grad)
    [x] = tensors("float32", (2, 5, 16))
    with torch.set_grad_enabled(grad):
        plain = layer(x)
        with wm.torch.arithmetic("sm_90a") as report:
            d = layer(x)
    torch.testing.assert_close(d, plain, rtol=1e-4, atol=1e-4)
    assert report.products.total() == 6 and not report.left


def test_with_dropout_it_is_made_of_bmm() -> None:
    [q] = tensors("bfloat16", (1, 2, 6, 8))
    with wm.torch.arithmetic("sm_90a") as report:
        attend(q, q, q, dropout_p=0.5)
    assert {p.op for p in report.products} == {"aten::bmm"} and not report.left
