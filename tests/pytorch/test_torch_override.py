"""`warpmma.torch.arithmetic`: which of PyTorch's products it computes, forward and backward, and with which bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from messages import exactly
from oracles import skip_without

import warpmma as wm
from warpmma.errors import OperandError, UnsupportedError

skip_without("PyTorch")
from torch_cases import array, same_tensor, tensors, torch  # noqa: E402

TARGET = "sm_90"
functional = torch.nn.functional
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def product(a: Any, b: Any, **more: Any) -> Any:
    return wm.torch.matmul(a, b, target=TARGET, **more)


def calls(dtype: str) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Of each a call of PyTorch's, and what it must give."""
    a, b, w, v = tensors(dtype, (20, 70), (70, 9), (9, 70), (70,))
    x, y = tensors(dtype, (3, 20, 70), (3, 70, 9))
    return {
        "@": (lambda: a @ b, lambda: product(a, b)),
        "mm of views": (lambda: torch.mm(b.T, a.T), lambda: product(b.T, a.T)),
        "bmm": (lambda: torch.bmm(x, y), lambda: product(x, y)),
        "matmul of a batch": (lambda: x @ b, lambda: product(x, b)),
        "mv": (lambda: torch.mv(a, v), lambda: product(a, v)),
        "vector @ matrix": (lambda: v @ b, lambda: product(v, b)),
        "dot": (lambda: torch.dot(v, a[0]), lambda: product(v, a[0])),
        "vdot": (lambda: torch.vdot(v, a[0]), lambda: product(v, a[0])),
        "linear": (lambda: functional.linear(x, w), lambda: product(x, w.T)),
        "einsum": (lambda: torch.einsum("bij,bjk->bik", x, y), lambda: product(x, y)),
        "tensordot": (lambda: torch.tensordot(a, b, 1), lambda: product(a, b)),
        "out": (lambda: torch.mm(a, b, out=torch.empty(0, dtype=a.dtype)), lambda: product(a, b)),
        "vmap": (lambda: torch.vmap(torch.mm)(x, y), lambda: product(x, y)),
    }


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", calls("float64"))
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_products(name: str, dtype: str) -> None:
    call, wanted = calls(dtype)[name]
    with wm.torch.arithmetic(TARGET) as report:
        found = call()
    same_tensor(found, wanted())
    assert report.products.total() == 1 and not report.left


def test_without_gradients_operators_are_taken_apart() -> None:
    a, b = tensors("float16", (20, 70), (70, 9))
    layer = torch.nn.Linear(70, 5, dtype=torch.float16)
    with torch.inference_mode(), wm.torch.arithmetic(TARGET) as report:
        d, linear = a @ b, layer(a)
    same_tensor(d, product(a, b))
    with wm.torch.arithmetic(TARGET):
        same_tensor(linear, layer(a))
    assert {p.op for p in report.products} == {"aten::mm", "aten::addmm"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_bias_is_added_to_the_sum_and_a_matrix_to_what_is_rounded(dtype: str) -> None:
    a, b, row, matrix = tensors(dtype, (20, 70), (70, 9), (9,), (20, 9))
    wide = product(a, b, out_dtype=torch.float32)
    with wm.torch.arithmetic(TARGET):
        with_row, with_matrix = torch.addmm(row, a, b), torch.addmm(matrix, a, b)
        half = torch.addmm(row[None], a, b, alpha=0.3)
        scaled = torch.addmm(matrix, a, b, alpha=0.5, beta=2)
        into = matrix.clone().addmm_(a, b)
        nothing = torch.addmm(torch.full_like(matrix, torch.nan), a, b, beta=0)
    same_tensor(with_row, (wide + row.float()).to(a.dtype))
    same_tensor(half, ((wide * torch.tensor(0.3)).to(a.dtype).float() + row.float()).to(a.dtype))
    same_tensor(with_matrix, (product(a, b).float() + matrix.float()).to(a.dtype))
    same_tensor(scaled, (wide * 0.5 + matrix.float() * 2).to(a.dtype))
    same_tensor(into, with_matrix)
    same_tensor(nothing, product(a, b))


def test_alpha_and_beta_of_f64_are_fused_and_of_slices_the_other_way() -> None:
    from warpmma.operations import elementwise

    for dtype, split, kind in (("float64", 1, "f64"), ("float32", 1, "f32"), ("float32", 4, "f32")):
        a, b, c = tensors(dtype, (20, 70), (70, 9), (20, 9))
        with wm.torch.arithmetic(TARGET, split_k=split):
            d = torch.addmm(c, a, b, alpha=0.7, beta=-1.3)
        total, addend = array(product(a, b, split_k=split)), array(c)
        scalars = [array(torch.tensor(x, dtype=a.dtype)) for x in (0.7, -1.3)]
        (one, other), (alpha, beta) = (total, addend), scalars
        if split > 1:
            one, other, alpha, beta = other, one, beta, alpha
        wanted = elementwise(f"fma.rn.{kind}", one, alpha, elementwise(f"mul.rn.{kind}", other, beta))
        assert (array(d) == wanted).all()
        assert (array(d) != one * alpha + other * beta).any()


def test_baddbmm_and_addmv() -> None:
    x, y, c = tensors("float64", (3, 20, 70), (3, 70, 9), (20, 9))
    v, e = tensors("float64", (70,), (20,))
    with wm.torch.arithmetic(TARGET) as report:
        d, f = torch.baddbmm(c, x, y), torch.addmv(e, x[0], v)
        into = c.expand(3, 20, 9).clone().baddbmm_(x, y)
    same_tensor(d, product(x, y) + c)
    same_tensor(into, d)
    same_tensor(f, product(x[0], v) + e)
    assert [p.op for p in report.products.elements()] == ["aten::baddbmm"] * 2 + ["aten::addmv"]


def test_out_dtype() -> None:
    a, b = tensors("float16", (20, 70), (70, 9))
    with wm.torch.arithmetic(TARGET):
        d = torch.mm(a, b, out_dtype=torch.float32)
        with pytest.raises(OperandError, match=exactly("aten::mm: out_dtype is torch.bfloat16; expected ~")):
            torch.mm(a, b, out_dtype=torch.bfloat16)
        with pytest.raises(OperandError, match=exactly("aten::bmm: out_dtype is torch.int32; expected ~")):
            torch.bmm(a[None], b[None], out_dtype=torch.int32)
    same_tensor(d, product(a, b, out_dtype=torch.float32))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_backward_is_a_straightforward_implementation(dtype: str) -> None:
    """Two layers by hand, from products of ours alone."""
    x, w1, b1, w2, b2 = (
        z.requires_grad_() for z in tensors(dtype, (30, 40), (24, 40), (24,), (5, 24), (5,))
    )  # fmt: skip
    with wm.torch.arithmetic(TARGET) as report:
        hidden = functional.linear(x, w1, b1)
        out = functional.linear(hidden.relu(), w2, b2)
        loss = (out.float() ** 2).sum()
        loss.backward()
    assert report.products.total() == 6
    with torch.no_grad():

        def linear(a: Any, w: Any, b: Any) -> Any:
            return (product(a, w.T, out_dtype=torch.float32) + b.float()).to(a.dtype)

        first = linear(x, w1, b1)
        active = first.relu()
        second = linear(active, w2, b2)
        gradient = (2 * second.float()).to(second.dtype)
        same_tensor(w2.grad, product(gradient.T, active))
        inner = product(gradient, w2) * (first > 0)
        same_tensor(w1.grad, product(inner.T, x))
        same_tensor(x.grad, product(inner, w1))
        torch.testing.assert_close(b1.grad, inner.sum(0))


def test_gradcheck_inside() -> None:
    x, w, b = (z.requires_grad_() for z in tensors("float64", (4, 6), (3, 6), (3,)))
    with wm.torch.arithmetic("sm_80"):
        assert torch.autograd.gradcheck(functional.linear, (x, w, b))
        assert torch.autograd.gradgradcheck(functional.linear, (x, w, b))


def test_the_innermost_computes_and_afterwards_nothing_does() -> None:
    a, b = tensors("float32", (20, 300), (300, 9))
    plain = a @ b
    outer, inner = wm.torch.arithmetic(TARGET), wm.torch.arithmetic(TARGET, float32="tf32")
    with outer as first:
        with inner as second:
            d = a @ b
        again = a @ b
        with outer:  # the same, once more
            same_tensor(a @ b, again)
    same_tensor(d, product(a, b, float32="tf32"))
    same_tensor(again, product(a, b))
    same_tensor(a @ b, plain)
    assert (first.products.total(), second.products.total()) == (2, 1) and outer.report is first


def test_an_error_inside_ends_it() -> None:
    fused = torch.backends.mha.get_fastpath_enabled()
    with pytest.raises(KeyError), wm.torch.arithmetic(TARGET) as report:
        assert not torch.backends.mha.get_fastpath_enabled()
        raise KeyError
    assert torch.backends.mha.get_fastpath_enabled() == fused
    torch.ones(2, 2) @ torch.ones(2, 2)
    assert not report.products


def test_autocast_and_modules() -> None:
    [x] = tensors("float32", (8, 32))
    model = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    with wm.torch.arithmetic("sm_100a") as report, torch.autocast("cpu", torch.bfloat16):
        model(x)
    assert {p.dtypes for p in report.products} == {("bfloat16",) * 3}
    assert all(p.instruction == "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" for p in report.products)


def test_tensors_of_subclasses_follow_their_own_rules() -> None:
    class Doubled(torch.Tensor):  # type: ignore[misc]
        @staticmethod
        def __new__(cls, x: Any) -> Any:
            made = torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype)
            made.inner = x
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return 2 * func(*(x.inner if isinstance(x, cls) else x for x in args), **(kwargs or {}))

    a, b = tensors("float64", (4, 5), (5, 3))
    with wm.torch.arithmetic(TARGET) as report:
        d = Doubled(a) @ b
    same_tensor(d, 2 * product(a, b))
    assert report.products.total() == 1


def test_what_is_not_replaced_is_counted_or_refused() -> None:
    whole = torch.ones(3, 3, dtype=torch.int64)
    with wm.torch.arithmetic(TARGET) as report:
        same_tensor(whole @ whole, 3 * whole)
        torch.linalg.inv(torch.eye(3))
        torch.nn.Bilinear(2, 3, 4)(torch.ones(5, 2), torch.ones(5, 3))
        whole.sum().exp() + 1
        torch.eye(3).to_sparse() @ torch.eye(3)
        torch.eye(3, dtype=torch.int32).addmm_(*[torch.eye(3, dtype=torch.int32)] * 2)
    assert list(report.left) == [
        "aten::mm of int64", "aten::linalg_inv_ex of float32", "aten::_trilinear of float32", "aten::mm of float32",
        "aten::addmm_ of int32",
    ]  # fmt: skip
    with wm.torch.arithmetic(TARGET, others="refuse"):
        message = "aten::mm of int64 has products that are not replaced; others='leave' leaves them"
        with pytest.raises(UnsupportedError, match=exactly(message)):
            whole @ whole


def test_pytorch_s_own_errors_stay() -> None:
    with wm.torch.arithmetic(TARGET):
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            torch.ones(2, 3) @ torch.ones(4, 2)
        with pytest.raises(RuntimeError, match="dtype"):
            torch.ones(2, 3) @ torch.ones(3, 2, dtype=torch.float16)
        with pytest.raises(RuntimeError, match=r"dtype|scalar type"):
            torch.mm(torch.ones(2, 3), torch.ones(3, 2), out=torch.ones(2, 2, dtype=torch.float64))


def test_the_report_in_words() -> None:
    a, b, x, y = *tensors("bfloat16", (20, 70), (70, 9)), *tensors("float64", (3, 4, 5), (3, 5, 2))
    with wm.torch.arithmetic("sm_100a", split_k=2) as report:
        torch.mm(a, b)
        torch.mm(a, b)
        torch.bmm(x, y)
    assert str(report).splitlines() == [
        "products with the arithmetic of sm_100a: 3",
        "  2 x aten::mm 20x9x70 bfloat16 -> bfloat16: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32, "
        "2 slices of k",
        "  1 x aten::bmm 3 of 4x2x5 float64 -> float64: mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64",
        "  (mma.sync: libraries on such a GPU take tcgen05.mma, which is not simulated)",
    ]
    assert {p.evidence.kind for p in report.products} <= {"measured", "published", "derived"}
    with wm.torch.arithmetic("sm_90a", float32="tf32", instruction=["wgmma"]) as report:
        a.float() @ b.float()
        torch.mm(x[0], y[0])
    assert "tcgen05" not in str(report) and "libraries" not in str(report)
    assert list(report.instructions) == [
        "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32", "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64",
    ]  # fmt: skip
