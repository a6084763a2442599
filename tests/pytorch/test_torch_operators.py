"""Products under PyTorch's own `torch.compile`: the operator `warpmma::matmul`, and overrides around compiled code."""

from __future__ import annotations

from typing import Any

import pytest
from messages import exactly
from oracles import skip_without

import warpmma as wm
from warpmma.errors import OperandError, UnsupportedError

skip_without("PyTorch")
from torch_cases import same_tensor, tensors, torch  # noqa: E402

BACKENDS = ["aot_eager", "inductor"]
OPTIONS: Any = {"target": "sm_80", "accumulate": "f16"}  # sums that PyTorch's products do not have


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


def layer(x: Any, w: Any) -> Any:
    return wm.torch.matmul(x, w, **OPTIONS).relu() * 2


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_function_has_the_same_bits(backend: str, dynamic: bool) -> None:
    x, w = tensors("float16", (3, 16, 200), (200, 24))
    compiled = torch.compile(layer, backend=backend, fullgraph=True, dynamic=dynamic)
    found = []
    for function in (compiled, layer):
        given = [z.clone().requires_grad_() for z in (x, w)]
        d = function(*given)
        d.sum().backward()
        found.append([d, *(z.grad for z in given)])
    for got, wanted in zip(*found, strict=True):
        same_tensor(got, wanted)
    same_tensor(compiled(x[:2, :5], w), layer(x[:2, :5], w))


def test_vectors_and_options_in_one_graph() -> None:
    a, b = tensors("float32", (20, 70), (70, 9))
    fp8 = a.to(torch.float8_e4m3fn)

    def run(a: Any, b: Any, fp8: Any) -> list[Any]:
        more: Any = {"target": "sm_90a", "instruction": "wgmma", "promote_every": 32, "out_dtype": torch.bfloat16}
        return [
            wm.torch.matmul(a[0], b, target="sm_80", float32="tf32"), wm.torch.matmul(a, b[:, 0], target="sm_80"),
            wm.torch.matmul(a[0], b[:, 1], target="sm_80", split_k=2), wm.torch.matmul(fp8, fp8.T, **more),
        ]  # fmt: skip

    for got, wanted in zip(torch.compile(run, fullgraph=True)(a, b, fp8), run(a, b, fp8), strict=True):
        same_tensor(got, wanted)


def test_pytorch_s_checks_of_operators() -> None:
    operator = wm.torch.operators().matmul.default
    a, b = tensors("float32", (3, 4, 40), (40, 6))
    check = torch.library.opcheck
    check(operator, (a.requires_grad_(), b.requires_grad_(), "sm_80"), {"float32": "tf32", "split_k": 2})
    check(operator, (a.detach().bfloat16(), b.detach().bfloat16(), "sm_90"), {"out_dtype": torch.float32})
    check(operator, (a.detach().half(), b.detach().half(), "sm_80"), {"instruction": ["mma"], "accumulate": "f16"})


def test_the_operator_alone() -> None:
    a, b = tensors("float16", (20, 70), (70, 9))
    product = wm.torch.operators().matmul
    same_tensor(product(a, b, "sm_80", accumulate="f16"), wm.torch.matmul(a, b, **OPTIONS))
    assert wm.torch.operators() is torch.ops.warpmma
    with pytest.raises(OperandError, match=exactly("A is (70,); expected a matrix: warpmma.torch.matmul takes ~")):
        product(a[0], b, "sm_80")
    with pytest.raises(OperandError, match=exactly("A is float16 and B is float32; expected one type")):
        product(a, b.float(), "sm_80")


def test_errors_are_found_when_a_graph_is_made() -> None:
    a, b = tensors("float16", (20, 70), (70, 9))
    compiled = torch.compile(lambda a, b, target: wm.torch.matmul(a, b, target=target), fullgraph=True)
    for given, message in (
        ((a, b.float(), "sm_80"), "expected one type"),
        ((a, b, "sm_9"), "did you mean"),
        ((a, b[1:], "sm_80"), r"expected \[\.\.\., m, k\]"),
    ):
        with pytest.raises(torch._dynamo.exc.TorchRuntimeError, match=message):
            compiled(*given)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_override_around_a_compiled_function(backend: str) -> None:
    """The function runs as it is written, also where it was compiled before; or, whole graphs asked for, PyTorch's
    error says that a mode is on."""
    x, w = tensors("float16", (16, 256), (256, 32))
    wanted = wm.torch.matmul(x, w, **OPTIONS)
    assert (wanted != x @ w).any()
    compiled = torch.compile(lambda x, w: x @ w, backend=backend)
    for _ in range(2):
        with wm.torch.arithmetic(**OPTIONS) as report:
            same_tensor(compiled(x, w), wanted)
        assert report.products.total() == 1
        compiled(x, w)
    whole = torch.compile(lambda x, w: x @ w, backend=backend, fullgraph=True)
    with pytest.raises(RuntimeError, match="dispatch mode"), wm.torch.arithmetic(**OPTIONS):
        whole(x, w)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_override_inside_of_a_compiled_function(backend: str) -> None:
    x, w = tensors("float16", (16, 256), (256, 32))
    made = wm.torch.arithmetic(**OPTIONS)

    def by_name(x: Any, w: Any) -> Any:
        with wm.torch.arithmetic(**OPTIONS):
            d = (x + 0) @ w
        return d * 1

    def made_before(x: Any, w: Any) -> Any:
        with made:
            return x @ w

    for function in (by_name, made_before):
        compiled = torch.compile(function, backend=backend)
        for _ in range(2):
            same_tensor(compiled(x, w), wm.torch.matmul(x, w, **OPTIONS))
        torch._dynamo.reset()
        with pytest.raises(torch._dynamo.exc.Unsupported):
            torch.compile(function, backend=backend, fullgraph=True)(x, w)


def test_a_backward_that_was_compiled_outside() -> None:
    """Inductor may have made kernels of its products, which an override does not see."""
    x, w = tensors("float16", (16, 256), (256, 32))
    given = x.clone().requires_grad_()
    d = torch.compile(lambda x, w: x @ w, backend="inductor")(given, w)
    with pytest.raises(UnsupportedError, match=r"a graph that torch\.compile compiled runs inside"):  # noqa: SIM117
        with wm.torch.arithmetic(**OPTIONS):
            d.sum().backward()
    eager = torch.compile(lambda x, w: x @ w, backend="aot_eager")(given, w)
    with wm.torch.arithmetic(**OPTIONS) as report:
        eager.sum().backward()
    assert report.products.total() == 1
    same_tensor(given.grad, wm.torch.matmul(torch.ones_like(d), w.T, **OPTIONS))
