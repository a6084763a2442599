"""Arrays on this machine's GPU: tensor scales, a sparse A, tiles of one instruction, and what waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpu_tensors import SPARSE
from oracles import skip_without

import warpmma as wm
from warpmma.errors import MetadataError, UnsupportedError
from warpmma.gpu import why_no_gpu
from warpmma.scaling import Quantized

pytestmark = pytest.mark.skipif(bool(why_no_gpu()), reason=why_no_gpu())

F16 = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"


@pytest.fixture
def torch() -> Any:
    skip_without("PyTorch")
    import torch

    return torch


@pytest.fixture
def loaded(torch: Any) -> tuple[Any, Any]:
    """Operands of F16 whose kernels are loaded."""
    rng = np.random.default_rng(0)
    a = wm.sparsity.prune(rng.standard_normal((256, 128)).astype(np.float16), F16)
    x, y = torch.from_numpy(a).cuda(), torch.from_numpy(rng.standard_normal((128, 64)).astype(np.float16)).cuda()
    wm.matmul(x, y, instruction=F16, target="sm_80")
    wm.matmul(x, y, target="sm_80")
    return x, y


def same(d: Any, expected: Any) -> None:
    found = d.cpu().numpy()
    assert found.shape == expected.shape
    assert (found.view(f"u{found.itemsize}") == expected.view(f"u{expected.itemsize}")).all()


def codes(i: str, name: Any, *shape: int) -> Any:
    from warpmma.isa import parse_any

    fmt = parse_any(i).format(name)
    rng = np.random.default_rng(list(shape))
    return rng.integers(0, 1 << min(fmt.bits, 32), shape).astype(fmt.code_dtype)


def to_torch(torch: Any, x: Any) -> Any:
    return torch.from_numpy(np.ascontiguousarray(x)).cuda()


@pytest.mark.parametrize(("i", "target"), SPARSE.items(), ids=[i.rsplit(".", 4)[-2] for i in SPARSE])
def test_a_sparse_a(torch: Any, i: str, target: str) -> None:
    a = wm.sparsity.prune(codes(i, "A", 3, 200, 1024), i)
    a[:, ::5] = 0
    b = codes(i, "B", 1024, 130)
    options: Any = {"instruction": i, "target": target}
    expected = wm.matmul(a, b, **options)
    x, y = to_torch(torch, a), to_torch(torch, b)
    same(wm.matmul(x, y, **options), expected)
    stored, indices = wm.sparsity.compress(a, i)
    for kind in (np.uint8, np.int64):
        same(wm.matmul(to_torch(torch, stored), y, indices=to_torch(torch, indices.astype(kind)), **options), expected)


def test_a_broken_pattern_or_index_raises(torch: Any, loaded: tuple[Any, Any]) -> None:
    x, y = loaded
    stored, indices = (to_torch(torch, z) for z in wm.sparsity.compress(x.cpu().numpy(), F16))
    indices[200, 30] = 2
    with pytest.raises(MetadataError, match=r"indices \(2, 2\), nibble 0xa, of row 200, group 30"):
        wm.matmul(stored, y, indices=indices, instruction=F16, target="sm_80")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        bad = x.clone()
        torch.cuda._sleep(100_000_000)
        bad[255, 124:] = 1  # in time: the check is of the stream
        with pytest.raises(MetadataError, match="breaks the 2:4 pattern at row 255, group 31"):
            wm.matmul(bad, y, instruction=F16, target="sm_80")


def quantized(torch: Any, *shape: int, operand: Any = "A") -> tuple[Quantized, Quantized]:
    """Return it on the host and on the GPU."""
    values = np.random.default_rng(list(shape)).standard_normal(shape).astype(np.float32)
    q = wm.scaling.quantize(values, NVFP4, operand)
    parts: Any = (q.elements.view(np.uint8), q.scales, np.asarray(q.tensor_scale))
    elements, scales, tensor_scale = (to_torch(torch, x) for x in parts)
    return q, Quantized(elements=elements, scales=scales, tensor_scale=tensor_scale.reshape(shape[:-2]))


@pytest.mark.parametrize("epilogue", [None, "bf16"])
def test_tensor_scales(torch: Any, epilogue: str | None) -> None:
    x, of_x = quantized(torch, 3, 2, 70, 512)
    y, of_y = quantized(torch, 2, 512, 90, operand="B")
    options: Any = {"instruction": NVFP4, "target": "sm_120a", "epilogue": epilogue}
    d: Any = wm.matmul(of_x, of_y, **options)
    same(d if epilogue is None else d.view(torch.int16), wm.matmul(x, y, **options))


def test_tiles_of_one_instruction(torch: Any) -> None:
    i = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
    a, b = torch.randn(1000, 16, 16).bfloat16(), torch.randn(1000, 16, 8).bfloat16()
    for target in ("sm_80", "sm_90"):
        same(wm.mma(i, a.cuda(), b.cuda(), target=target), wm.mma(i, a, b, target=target))


def waits(torch: Any, run: Callable[[], object]) -> bool:
    """Whether a call returns after the stream is done with what came before."""
    torch.cuda.synchronize()
    before = torch.cuda.Event()
    torch.cuda._sleep(500_000_000)
    before.record()
    run()
    done = bool(before.query())
    torch.cuda.synchronize()
    return done


def test_nothing_waits_but_for_the_check_of_a_sparse_a(torch: Any, loaded: tuple[Any, Any]) -> None:
    x, y = loaded
    _, p = quantized(torch, 70, 512)
    _, q = quantized(torch, 512, 90, operand="B")
    tile = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    a, b = x[:16, :16], y[:16, :8]
    of_dense: list[Callable[[], object]] = [
        lambda: wm.matmul(x, y, target="sm_80"), lambda: wm.mma(tile, a, b, target="sm_80"),
        lambda: wm.matmul(p, q, instruction=NVFP4, target="sm_120a"),
    ]  # fmt: skip
    for run in of_dense:
        run()  # kernels are loaded at first
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for run in of_dense:
            run()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert [waits(torch, run) for run in of_dense] == [False] * 3
    assert waits(torch, lambda: wm.matmul(x, y, instruction=F16, target="sm_80"))


def test_graphs(torch: Any, loaded: tuple[Any, Any]) -> None:
    x, y = loaded
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        d: Any = wm.matmul(x, y, target="sm_80")
    y.copy_(y.flip(0))
    graph.replay()
    torch.cuda.synchronize()
    same(d, wm.matmul(x.cpu().numpy(), y.cpu().numpy(), target="sm_80"))
    with (
        pytest.raises(UnsupportedError, match="the stream is being captured"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        wm.matmul(x, y, instruction=F16, target="sm_80")


def test_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    rng = np.random.default_rng(0)
    a = wm.sparsity.prune(rng.standard_normal((50, 64)).astype(np.float16), F16)
    b = rng.standard_normal((64, 30)).astype(np.float16)
    stored, indices = wm.sparsity.compress(a, F16)
    expected = wm.matmul(a, b, target="sm_80", instruction=F16)
    with cupy.cuda.Stream(non_blocking=True):
        x, y, of_x, places = (cupy.asarray(z) for z in (a, b, stored, indices))
        for d in (
            wm.matmul(x, y, target="sm_80", instruction=F16),
            wm.matmul(of_x, y, target="sm_80", instruction=F16, indices=places),
        ):
            assert isinstance(d, cupy.ndarray)
            assert (cupy.asnumpy(d).view(np.uint32) == expected.view(np.uint32)).all()
