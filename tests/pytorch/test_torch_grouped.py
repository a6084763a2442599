"""Products of groups under an override, forward and backward: each group is `warpmma.torch.matmul` of its part."""

from __future__ import annotations

from typing import Any

import pytest
from messages import exactly
from oracles import skip_without

import warpmma as wm
from warpmma.errors import OperandError

skip_without("PyTorch")
from torch_cases import same_tensor, tensors, torch  # noqa: E402

TARGET = "sm_80"
ENDS = [16, 16, 48, 60]


def product(a: Any, b: Any) -> Any:
    return wm.torch.matmul(a, b, target=TARGET)


def parts() -> list[slice]:
    return [slice(start, stop) for start, stop in zip([0, *ENDS], ENDS, strict=False)]


def rows(a: Any, b: Any) -> Any:
    """Groups of rows, each with its own B; rows of no group are zeros."""
    some = [product(a[part], of_b) for part, of_b in zip(parts(), b, strict=True)]
    return torch.cat([*some, a.new_zeros(len(a) - ENDS[-1], b.shape[-1])])


def along_k(a: Any, b: Any) -> Any:
    return torch.stack([product(a[:, part], b[part]) for part in parts()])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_groups_of_rows(dtype: str) -> None:
    a, b = tensors(dtype, (64, 32), (4, 32, 16))
    x, y = (z.clone().requires_grad_() for z in (a, b))
    offs = torch.tensor(ENDS, dtype=torch.int32)
    with wm.torch.arithmetic(TARGET) as report:
        d = torch.nn.functional.grouped_mm(x, y, offs=offs)
        gradient = torch.randn_like(d)
        d.backward(gradient)
    assert {p.op for p in report.products} == {"aten::_grouped_mm"} and not report.left
    same_tensor(d, rows(a, b))
    same_tensor(x.grad, rows(gradient, b.mT))
    same_tensor(y.grad, along_k(a.mT, gradient))


def test_groups_of_columns_and_of_k() -> None:
    a, b, c = tensors("bfloat16", (4, 32, 24), (24, 64), (32, 64))
    offs = torch.tensor(ENDS, dtype=torch.int32)
    x, y, z = (t.clone().requires_grad_() for t in (a, b, c))
    with wm.torch.arithmetic(TARGET) as report:
        d = torch._grouped_mm(x, y, offs=offs)
        gradient = torch.randn_like(d)
        d.backward(gradient)
        e = torch._grouped_mm(z, y.detach().T, offs=offs)
    same_tensor(d, rows(b.T, a.mT).T.contiguous())
    same_tensor(x.grad, along_k(gradient, b.T))
    same_tensor(e, along_k(c, b.T))
    assert y.grad.shape == b.shape and not report.left and report.products.total() == 16


def test_batches() -> None:
    a, b = tensors("bfloat16", (3, 16, 32), (3, 32, 8))
    with wm.torch.arithmetic(TARGET):
        same_tensor(torch._grouped_mm(a, b), product(a, b))
        wide = torch._grouped_mm(a, b, out_dtype=torch.float32)
    same_tensor(wide, wm.torch.matmul(a, b, target=TARGET, out_dtype=torch.float32))


def test_refusals() -> None:
    a, b = tensors("bfloat16", (64, 32), (4, 32, 16))
    with wm.torch.arithmetic(TARGET):
        for ends in ([16, 8, 32, 64], [16, 32, 48, 65]):
            with pytest.raises(OperandError, match=exactly("aten::_grouped_mm: offs is ~; expected ascending ends ~")):
                torch._grouped_mm(a, b, offs=torch.tensor(ends, dtype=torch.int32))
        with pytest.raises(OperandError, match=exactly("aten::_grouped_mm: offs is int64; expected int32")):
            torch._grouped_mm(a, b, offs=torch.tensor([16, 32, 48, 64]))
        with pytest.raises(RuntimeError):  # PyTorch's own
            torch._grouped_mm(a, b, offs=torch.tensor([16, 32], dtype=torch.int32))
