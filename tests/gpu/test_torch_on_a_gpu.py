"""PyTorch's tensors on this machine's GPU: groups, scaled sums, quantization and compiled functions, as on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpu_tensors import drawn, same
from oracles import skip_without

import warpmma as wm
from warpmma.errors import OperandError, WarpmmaError
from warpmma.gpu import why_no_gpu

pytestmark = pytest.mark.skipif(bool(why_no_gpu()), reason=why_no_gpu())

MX = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.{0}.{0}.f32.ue8m0"
MXFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
INSTRUCTIONS = [*(MX.format(x) for x in ("e4m3", "e5m2", "e2m3")), MXFP4, NVFP4]
ENDS = [16, 16, 100, 130]
OPTIONS: Any = {"target": "sm_80", "accumulate": "f16"}  # sums that PyTorch's products do not have


@pytest.fixture
def torch() -> Any:
    skip_without("PyTorch")
    import torch

    return torch


def without_waiting(torch: Any, run: Callable[[], Any]) -> None:
    """Run something twice: kernels are loaded at first; then PyTorch raises if the host waits."""
    run()
    torch.cuda.set_sync_debug_mode("error")
    try:
        run()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("shapes", [((136, 64), (4, 64, 48)), ((4, 40, 64), (64, 136)), ((40, 136), (136, 48))])
def test_groups(torch: Any, dtype: str, shapes: Any) -> None:
    x, y = (drawn(torch, *s, dtype=dtype) for s in shapes)
    gradient: list[Any] = []

    def run(device: str) -> list[Any]:
        a, b = (z.detach().to(device).requires_grad_() for z in (x, y))
        with wm.torch.arithmetic("sm_80") as report:
            d = torch._grouped_mm(a, b, offs=torch.tensor(ENDS, dtype=torch.int32, device=device))
            if not gradient:
                gradient.append(drawn(torch, *d.shape, dtype=dtype))
            d.backward(gradient[0].to(device))
        assert not report.left and {p.op for p in report.products} == {"aten::_grouped_mm"}
        return [d, a.grad, b.grad]

    here = run("cpu")
    for there, expected in zip(run("cuda"), here, strict=True):
        same(torch, there, expected)


def test_groups_do_not_wait(torch: Any) -> None:
    a, b = (drawn(torch, *s, dtype="bfloat16").cuda().requires_grad_() for s in ((1000, 64), (4, 64, 48)))
    ends = torch.tensor([100, 100, 700, 1000], dtype=torch.int32).cuda()
    one = torch.ones(1000, 48, dtype=torch.bfloat16, device="cuda")

    def run() -> None:
        with wm.torch.arithmetic("sm_90"):
            torch._grouped_mm(a, b, offs=ends).backward(one)

    without_waiting(torch, run)


@pytest.mark.parametrize("dtype", ["float16", "float64", "float32", "bfloat16"])
@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 1), (1, 0.7), (0.3, 0.7), (2, 0)])
def test_scaled_sums(torch: Any, dtype: str, alpha: float, beta: float) -> None:
    a, b, c = (drawn(torch, *s, dtype=dtype) for s in ((70, 90), (90, 50), (70, 50)))
    accumulate: Any = "f16" if dtype == "float16" else "f32"

    def run(to: Any) -> list[Any]:
        with wm.torch.arithmetic("sm_80", accumulate=accumulate):
            wide = torch.addmm(to(c), to(a), to(b), alpha=alpha, beta=beta)
            return [wide, torch.addmm(to(c)[:, 3:4], to(a), to(b), alpha=alpha, beta=beta)]

    for there, here in zip(run(lambda x: x.cuda()), run(lambda x: x), strict=True):
        same(torch, there, here)


def hard(torch: Any, *shape: int) -> Any:
    """Finite numbers of any size, subnormals, zeros, and normal ones."""
    rng = np.random.default_rng([3, *shape])
    x = rng.integers(0, 1 << 32, shape, np.uint32).view(np.float32)
    x = np.where(np.isfinite(x), x, np.float32(1.5))
    some = np.repeat(rng.random((*shape[:-1], shape[-1] // 32)) < 0.5, 32, axis=-1)
    return torch.from_numpy(np.where(some, rng.standard_normal(shape).astype(np.float32), x))


def agree(torch: Any, there: Any, here: Any) -> None:
    """Compare a `Quantized` of tensors with one of arrays."""
    for got, expected in ((there.elements, here.elements), (there.scales, here.scales)):
        assert got.device.type == "cuda"
        assert (got.cpu().view(torch.uint8).numpy() == np.asarray(expected).view(np.uint8)).all()
    if here.tensor_scale is None:
        assert there.tensor_scale is None
    else:
        assert there.tensor_scale.dtype == torch.float32
        assert (there.tensor_scale.cpu().numpy() == here.tensor_scale).all()


@pytest.mark.parametrize("i", INSTRUCTIONS, ids=lambda i: i[30:])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_quantize(torch: Any, i: str, dtype: str) -> None:
    x = hard(torch, 3, 200, 1024)
    if dtype != "float32":
        x = x.to(getattr(torch, dtype)).nan_to_num(1.5, 1.5, -1.5)
    agree(torch, wm.scaling.quantize(x.cuda(), i), wm.scaling.quantize(x, i))
    agree(torch, wm.scaling.quantize(x.cuda().mT, i, "B"), wm.scaling.quantize(x.mT, i, "B"))
    agree(torch, wm.scaling.quantize(x[1].cuda(), i), wm.scaling.quantize(x[1], i))
    types = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
    assert wm.scaling.quantize(x.cuda(), i).elements.dtype == types.get(wm.parse(i).a_type, torch.uint8)


def test_quantize_of_a_large_matrix(torch: Any) -> None:
    x = hard(torch, 4096, 4096)
    for i in (INSTRUCTIONS[0], NVFP4):
        agree(torch, wm.scaling.quantize(x.cuda(), i), wm.scaling.quantize(x, i))


def test_quantize_of_nan(torch: Any) -> None:
    x = hard(torch, 2, 16, 64)
    x[0, 3, 40] = torch.nan
    q: Any = wm.scaling.quantize(x.cuda(), NVFP4)
    assert q.tensor_scale.isnan().tolist() == [True, False] and bool((q.scales[0] == 0x7F).all())
    agree(torch, wm.scaling.quantize(x.cuda(), MXFP4), wm.scaling.quantize(x, MXFP4))
    with pytest.raises(OperandError, match="holds NaN or infinity"):
        wm.scaling.quantize(x, NVFP4)
    with pytest.raises(WarpmmaError, match="gradient"):
        wm.scaling.quantize(x.cuda().requires_grad_(), MXFP4)


@pytest.mark.parametrize("i", [INSTRUCTIONS[0], NVFP4], ids=lambda i: i[30:])
def test_quantized_products(torch: Any, i: str) -> None:
    x, y = drawn(torch, 70, 256), drawn(torch, 256, 50)
    options: Any = {"target": "sm_120a", "instruction": i}

    def run() -> Any:
        a, b = (wm.scaling.quantize(z, i, name) for z, name in ((there[0], "A"), (there[1], "B")))  # type: ignore[arg-type]
        return wm.matmul(a.elements, b.elements, scale_a=a.scales, scale_b=b.scales, **options)

    there = [z.cuda() for z in (x, y)]
    without_waiting(torch, run)
    a, b = wm.scaling.quantize(x, i), wm.scaling.quantize(y, i, "B")
    expected = wm.matmul(a.elements, b.elements, scale_a=a.scales, scale_b=b.scales, **options)
    same(torch, run(), torch.from_numpy(np.asarray(expected)))


def test_quantize_of_cupy(torch: Any) -> None:
    cupy = pytest.importorskip("cupy")
    x = hard(torch, 40, 256).numpy()
    for i in (INSTRUCTIONS[0], NVFP4):
        q, expected = wm.scaling.quantize(cupy.asarray(x), i), wm.scaling.quantize(x, i)
        assert isinstance(q.elements, cupy.ndarray) and isinstance(q.scales, cupy.ndarray)
        assert (cupy.asnumpy(q.elements.view(np.uint8)) == np.asarray(expected.elements).view(np.uint8)).all()
        assert (cupy.asnumpy(q.scales) == expected.scales).all()


def layer(x: Any, w: Any) -> Any:
    return wm.torch.matmul(x, w, **OPTIONS).relu() * 2


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_compiled_function(torch: Any, backend: str) -> None:
    torch._dynamo.reset()
    x, w = drawn(torch, 3, 64, 256, dtype="float16"), drawn(torch, 256, 48, dtype="float16")
    found = []
    for function, device in ((torch.compile(layer, backend=backend, fullgraph=True), "cuda"), (layer, "cpu")):
        given = [z.to(device).requires_grad_() for z in (x, w)]
        d = function(*given)
        d.sum().backward()
        found.append([d, *(z.grad for z in given)])
    for there, here in zip(*found, strict=True):
        same(torch, there, here)


def test_pytorch_s_checks_of_operators(torch: Any) -> None:
    a, b = (drawn(torch, *s).cuda().requires_grad_() for s in ((3, 4, 40), (40, 6)))
    torch.library.opcheck(wm.torch.operators().matmul.default, (a, b, "sm_80"), {"float32": "tf32"})


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_an_override_around_a_compiled_function(torch: Any, backend: str) -> None:
    """Its products are the target's, or it is an error; never PyTorch's own without a word."""
    torch._dynamo.reset()
    x, w = drawn(torch, 64, 256, dtype="float16").cuda(), drawn(torch, 256, 48, dtype="float16").cuda()
    wanted = wm.torch.matmul(x, w, **OPTIONS)
    assert not torch.equal(wanted, x @ w)

    def inside(x: Any, w: Any) -> Any:
        with wm.torch.arithmetic(**OPTIONS):
            return x @ w

    compiled = torch.compile(lambda x, w: x @ w, backend=backend)
    for _ in range(2):
        with wm.torch.arithmetic(**OPTIONS):
            assert torch.equal(compiled(x, w), wanted)
        compiled(x, w)
    assert torch.equal(torch.compile(inside, backend=backend)(x, w), wanted)
