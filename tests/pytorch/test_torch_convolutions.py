"""Convolutions under the override: the stated order of k, and gradients that are close to PyTorch's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from arrays import Array, same
from convolution_cases import CASES, Case
from oracles import skip_without
from simulated_gpu import SimulatedGpu

import warpmma as wm
from warpmma._arrays import as_array
from warpmma.cuda import nvrtc
from warpmma.errors import OperandError
from warpmma.gpu import GpuTensor
from warpmma.products import gpu_implicit

skip_without("PyTorch")
from torch_cases import array, same_tensor, torch  # noqa: E402

from warpmma.torch import convolutions, laid_out_parts  # noqa: E402
from warpmma.torch.convolution_orders import ConvolutionOrders  # noqa: E402

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


ORDERS: Any = [
    {}, {"forward": "crs", "data": "krs", "weight": "-qnp"}, {"forward": "c-tsr", "data": "k-srt", "weight": "-nq-zp"},
]  # fmt: skip
DEFAULTS = {"forward": "rsc", "data": "-r-sk", "weight": "npq"}
MEANT: Any = [DEFAULTS, {"forward": "cs", "data": "ks", "weight": "-qn"}, ORDERS[2]]  # in the case's dimensions


def leaves(case: Case, dtype: str, last: bool = False) -> tuple[Any, ...]:
    """Input, weight and the gradient of the output."""
    made = [torch.from_numpy(z).to(getattr(torch, dtype)) for z in case.drawn(np.float64)]
    if last:
        made = [z.movedim(1, -1).contiguous().movedim(-1, 1) for z in made]
    return tuple(made)


def computed(case: Case, given: tuple[Any, ...], bias: Any = None, *, transposed: bool = False, **options: Any) -> Any:
    """Compute forward and backward: what follows the letters of `case`, and the report."""
    x, weight, y = given
    dimensions = len(case.stride)
    source, grad = (y, x) if transposed else (x, y)
    with wm.torch.arithmetic(TARGET, **options) as report:
        source, weight = source.clone().requires_grad_(), weight.clone().requires_grad_()
        more = [0] * dimensions
        if transposed:
            reached = [
                (n - 1) * s - 2 * p + e * (k - 1) + 1
                for n, s, p, e, k in zip(
                    y.shape[2:], case.stride, case.padding, case.dilation, weight.shape[2:], strict=True
                )
            ]
            more = [n - r for n, r in zip(x.shape[2:], reached, strict=True)]
        d = torch.convolution(
            source, weight, bias, case.stride, case.padding, case.dilation, transposed, more, case.groups
        )
        d.backward(grad)
    names = ("data", "forward", "weight") if transposed else ("forward", "data", "weight")
    return dict(zip(names, (d.detach(), source.grad, weight.grad), strict=True)), report


def expected(case: Case, name: str, order: str, given: tuple[Any, ...], **options: Any) -> Array:
    """Multiply what is laid out, and round the sums."""
    a, b = case.factors(name, order, *(array(z) for z in given))
    dtype = a.dtype.name
    d = wm.matmul(a, b, target=TARGET, epilogue={"bfloat16": "bf16", "float16": "f16"}.get(dtype), **options)
    return np.ascontiguousarray(case.image(name, d))


def agrees(found: Any, wanted: Array) -> None:
    mine = np.ascontiguousarray(as_array(found, "d"))
    assert mine.dtype == wanted.dtype
    same(mine.view(f"u{mine.itemsize}"), wanted.view(f"u{mine.itemsize}"))


@pytest.mark.parametrize("number", range(3), ids=["2", "1", "3"])
@pytest.mark.parametrize("transposed", [False, True], ids=["", "transposed"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_bits_are_those_of_factors_that_are_laid_out(number: int, transposed: bool, dtype: str) -> None:
    case = CASES[number]
    given = leaves(case, dtype, last=dtype == "float16")
    found, report = computed(case, given, transposed=transposed, convolution_k=ORDERS[number])
    for name, d in found.items():
        order = MEANT[number][name]
        agrees(d, expected(case, name, order, given))
        assert order in [x.order for x in report.products]
    assert report.products.total() == 3 and not report.left


@pytest.mark.parametrize(
    "options", [{"float32": "ieee"}, {"float32": "tf32"}, {"float32": "tf32", "split_k": 3}], ids=str
)
def test_float32_and_slices_of_k(options: dict[str, Any]) -> None:
    given = leaves(CASES[0], "float32")
    found, _ = computed(CASES[0], given, **options)
    for name, d in found.items():
        agrees(d, expected(CASES[0], name, DEFAULTS[name], given, **options))


@pytest.mark.parametrize("case", CASES, ids=["2", "1", "3"])
def test_no_bit_depends_on_parts(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    given, bias = leaves(case, "bfloat16"), drawn(case.weight[0], dtype="bfloat16")
    whole, _ = computed(case, given, bias)
    sizes: list[int] = []
    lay = laid_out_parts.laid_out

    def watched(*x: Any) -> Any:
        sizes.append((part := lay(*x)).numel())
        return part

    monkeypatch.setattr(laid_out_parts, "laid_out", watched)
    for most in (0, 500, 2000):
        sizes.clear()
        monkeypatch.setattr(laid_out_parts, "MOST", most)
        for found, wanted in zip(computed(case, given, bias)[0].values(), whole.values(), strict=True):
            same_tensor(found, wanted)
        longest = max(
            np.prod(case.output) // case.weight[0], np.prod(case.weight[1:]), np.prod(case.weight) // case.weight[1]
        )
        operands = sum(z.numel() * 2 for z in given)
        assert max(sizes) <= max(most / 2, operands / 20, longest)
        assert len(sizes) > 6 or most


def test_padding_is_plus_zero_and_multiplied() -> None:
    """An infinity of the weight meets the zeros of padding, and those between elements of a stride."""
    x, weight = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 3, 3)
    weight[0, 0, 0, 0] = torch.inf
    with wm.torch.arithmetic(TARGET):
        d = functional.conv2d(x, weight, padding=1)
        e = functional.conv_transpose2d(x, weight, stride=2)
    assert d.isnan().sum() == 5 and d.isinf().sum() == 4
    assert e.isnan().sum() == 49 - 9 and e.isinf().sum() == 9


def test_results_lie_as_their_operands() -> None:
    x, weight = drawn(2, 4, 5, 6).to(memory_format=torch.channels_last), drawn(3, 4, 2, 2)
    with wm.torch.arithmetic(TARGET):
        x.requires_grad_(), weight.requires_grad_()
        d = functional.conv2d(x, weight)
        d.sum().backward()
    assert d.is_contiguous(memory_format=torch.channels_last) and not d.is_contiguous()
    assert x.grad.is_contiguous(memory_format=torch.channels_last) and weight.grad.is_contiguous()


def test_a_report_names_the_order() -> None:
    with wm.torch.arithmetic("sm_90", convolution_k={"forward": "crs"}) as report:
        functional.conv2d(drawn(1, 2, 5, 5, dtype="float16"), drawn(2, 2, 3, 3, dtype="float16"))
    assert "k = crs" in str(report)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("rsc", "convolution_k is 'rsc'; expected a mapping such as {'forward': 'rsc'}"),
        ({"foward": "rsc"}, "has 'foward'; expected 'forward', 'data', 'weight'; did you mean 'forward'"),
        ({"forward": "rs"}, "'forward' is 'rs'; expected r, s, c once each, and t or not, .*; did you mean 'rsc'"),
        ({"data": "rsc"}, "'data' is 'rsc'; expected r, s, k once each"),
        ({"weight": "np-"}, "'weight' is 'np-'; .* did you mean 'npq'"),
        ({"weight": "n--pq"}, "'weight' is 'n--pq'"), ({"forward": 3}, "'forward' is 3; .* the default is 'rsc'"),
    ],
)  # fmt: skip
def test_orders_that_are_refused(given: Any, message: str) -> None:
    with pytest.raises(OperandError, match=message):
        wm.torch.arithmetic(TARGET, convolution_k=given)


def test_what_pytorch_refuses() -> None:
    x, weight = drawn(1, 2, 5, 5), drawn(2, 3, 3, 3)
    with wm.torch.arithmetic(TARGET), pytest.raises(RuntimeError):
        functional.conv2d(x, weight)
    with wm.torch.arithmetic(TARGET) as report:
        d = functional.conv2d(drawn(0, 2, 5, 5), drawn(4, 2, 3, 3))
    assert d.shape == (0, 4, 3, 3) and list(report.left) == ["aten::convolution of float64"]


def test_depth_goes_before_rows() -> None:
    orders = ConvolutionOrders.of({"forward": "c-rs", "weight": "-zqpn"})
    assert [orders.in_dimensions("forward", n) for n in (1, 2, 3)] == ["cs", "c-rs", "c-t-rs"]
    assert [orders.in_dimensions("weight", n) for n in (1, 2, 3)] == ["qn", "qpn", "-zqpn"]
    assert [orders.in_dimensions("data", n) for n in (1, 2, 3)] == ["-sk", "-r-sk", "-t-r-sk"]


@pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())
def test_tensors_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of tensors on a GPU, to a simulated one."""
    simulated = SimulatedGpu("off")
    storages: dict[str, Any] = {}

    def read(x: Any, name: str, stream: int) -> GpuTensor:
        storage = torch.empty(0, dtype=torch.uint8).set_(x.untyped_storage())
        storages[name] = storage, simulated.device.array(storage.numpy())
        address = storages[name][1].address + x.storage_offset() * x.element_size()
        return GpuTensor(address=address, shape=(), strides=(), dtype=array(x).dtype, device=0, owner=None)

    def launch(what: Any, stream: int) -> None:
        SimulatedGpu.launch(simulated, what, stream)
        storage, memory = storages["D"]
        storage.copy_(torch.from_numpy(memory.numpy()))

    case, bias = CASES[0], drawn(CASES[0].weight[0], dtype="bfloat16")
    given = leaves(case, "bfloat16", last=True)
    here, _ = computed(case, given, bias)
    monkeypatch.setattr(convolutions, "is_on_gpu", lambda x: True)
    monkeypatch.setattr(gpu_implicit, "stream_of", lambda x: 0)
    monkeypatch.setattr(gpu_implicit, "read", read)
    monkeypatch.setattr(gpu_implicit, "gpu", lambda number: SimpleNamespace(launch=launch))
    there, report = computed(case, given, bias)
    for name, d in here.items():
        same_tensor(there[name], d)
    assert len(simulated.launches) == report.products.total() == 3
    with pytest.raises(OperandError, match="engine='numpy' takes no arrays on a GPU; expected 'auto'"):
        computed(case, given, engine="numpy")
