"""Convolutions under the override: the stated order of k, and gradients that are close to PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest
from oracles import skip_without

import warpmma as wm

skip_without("PyTorch")
from torch_cases import same_tensor, torch  # noqa: E402

functional = torch.nn.functional
TARGET = "sm_80"
FORMS: Any = [
    {}, {"stride": 2, "padding": 1}, {"padding": (2, 0), "dilation": (1, 2)}, {"groups": 2, "stride": (1, 3)},
    {"groups": 4, "padding": 1},
]  # fmt: skip


def drawn(*shape: int, dtype: str = "float64") -> Any:
    made = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=made, dtype=torch.float64).to(getattr(torch, dtype))


def test_k_runs_over_places_and_then_channels() -> None:
    x, weight, bias = (
        drawn(2, 6, 9, 8, dtype="bfloat16"),
        drawn(5, 6, 3, 2, dtype="bfloat16"),
        drawn(5, dtype="bfloat16"),
    )
    with wm.torch.arithmetic(TARGET) as report:
        d = functional.conv2d(x, weight, bias, stride=(2, 1), padding=1)
    seen = functional.unfold(x.float(), (3, 2), stride=(2, 1), padding=1).bfloat16()  # [image, (c, r, s), place]
    rows = seen.unflatten(1, (6, 6)).permute(0, 3, 2, 1).reshape(-1, 36)
    columns = weight.permute(2, 3, 1, 0).reshape(36, 5)
    with wm.torch.arithmetic(TARGET):
        expected = functional.linear(rows, columns.T.contiguous(), bias)
    same_tensor(d, expected.view(2, *d.shape[2:], 5).permute(0, 3, 1, 2).contiguous())
    assert [x.op for x in report.products] == ["aten::convolution"] and not report.left


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_gradients(form: dict[str, Any]) -> None:
    def run() -> list[Any]:
        x, weight, bias = (
            drawn(*s).requires_grad_() for s in ((2, 4, 9, 8), (8, 4 // form.get("groups", 1), 3, 3), (8,))
        )
        d = functional.conv2d(x, weight, bias, **form)
        d.square().sum().backward()
        return [d.detach(), x.grad, weight.grad, bias.grad]

    with wm.torch.arithmetic(TARGET) as report:
        found = run()
    for mine, theirs in zip(found, run(), strict=True):
        assert mine.shape == theirs.shape and torch.allclose(mine, theirs, rtol=1e-11, atol=1e-11)
    assert report.products.total() == 3 and not report.left


def test_one_and_three_dimensions() -> None:
    for function, places in ((functional.conv1d, (7,)), (functional.conv3d, (5, 4, 6))):
        x, weight = drawn(2, 3, *places), drawn(4, 3, *[2] * len(places))
        with wm.torch.arithmetic(TARGET), torch.inference_mode():
            d = function(x, weight)
        assert torch.allclose(d, function(x, weight), rtol=1e-12, atol=1e-12)


def test_what_stays_pytorch_s() -> None:
    x, weight = drawn(1, 2, 5, 5), drawn(2, 3, 3, 3)
    with wm.torch.arithmetic(TARGET) as report:
        d = functional.conv_transpose2d(x, weight)
    same_tensor(d, functional.conv_transpose2d(x, weight))
    assert list(report.left) == ["aten::convolution of float64"]
