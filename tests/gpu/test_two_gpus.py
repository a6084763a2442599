"""This machine's GPUs, if they are two: each product runs on that of its arrays, and ranks of NCCL have one each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from oracles import absent

import warpmma as wm
from warpmma.errors import OperandError


def _why_not_two() -> str:
    if absent("PyTorch"):
        return absent("PyTorch")
    import torch

    count = torch.cuda.device_count()
    return "" if count > 1 else f"PyTorch finds {count} GPUs; expected two"


pytestmark = pytest.mark.skipif(bool(_why_not_two()), reason=_why_not_two())


@pytest.fixture
def torch() -> Any:
    import torch

    torch.cuda.set_device(0)
    return torch


def operands(torch: Any) -> tuple[Any, Any]:
    made = torch.Generator().manual_seed(0)
    a, b = (torch.randn(*shape, generator=made).half() for shape in ((300, 200), (200, 100)))
    return a, b


def same(torch: Any, d: Any, expected: Any, number: int) -> None:
    assert d.device == torch.device("cuda", number)
    assert torch.equal(d.cpu().view(torch.int32), torch.from_numpy(expected).view(torch.int32))


@pytest.mark.parametrize("current", [0, 1])
def test_a_product_runs_on_the_gpu_of_its_arrays(torch: Any, current: int) -> None:
    a, b = operands(torch)
    expected = wm.matmul(a, b, target="sm_80")
    with torch.cuda.device(current):
        for number in (1, 0, 1):
            same(torch, wm.matmul(a.cuda(number), b.cuda(number), target="sm_80"), expected, number)
            with wm.torch.arithmetic("sm_80"):
                d = a.cuda(number) @ b.cuda(number)
            assert d.device.index == number
        assert torch.cuda.current_device() == current


def test_streams_of_the_other_gpu(torch: Any) -> None:
    a, b = operands(torch)
    stream = torch.cuda.Stream(1)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        x, y = a.cuda(1, non_blocking=True), b.cuda(1, non_blocking=True)
        d = wm.matmul(x, y, target="sm_90")
    stream.synchronize()
    same(torch, d, wm.matmul(a, b, target="sm_90"), 1)


def test_a_sparse_a_on_the_other_gpu(torch: Any) -> None:
    i = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    a, b = operands(torch)
    pruned = torch.from_numpy(wm.sparsity.prune(a.numpy(), i))
    same(torch, wm.matmul(pruned.cuda(1), b.cuda(1), target="sm_80", instruction=i),
         wm.matmul(pruned, b, target="sm_80", instruction=i), 1)  # fmt: skip


def test_operands_on_two_gpus_are_refused(torch: Any) -> None:
    a, b = operands(torch)
    with pytest.raises(OperandError, match=r"operands lie on GPUs \[0, 1\]; expected one"):
        wm.matmul(a.cuda(0), b.cuda(1), target="sm_80")


def test_arrays_of_cupy(torch: Any) -> None:
    cupy = pytest.importorskip("cupy")
    a, b = operands(torch)
    with cupy.cuda.Device(1), cupy.cuda.Stream(non_blocking=True) as stream:
        x, y = cupy.asarray(a.numpy()), cupy.asarray(b.numpy())
        stream.synchronize()
    d = wm.matmul(x, y, target="sm_90")
    assert d.device.id == 1
    same(torch, torch.from_dlpack(d), wm.matmul(a, b, target="sm_90"), 1)


def test_two_ranks_of_nccl(tmp_path: Path) -> None:
    from two_ranks import compare

    compare(tmp_path, "cuda")
