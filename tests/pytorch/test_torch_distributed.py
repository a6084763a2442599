"""Two processes under the override: a product split along k over ranks is `split_k`, and gradients are averaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from oracles import skip_without

import warpmma as wm

skip_without("PyTorch")
from torch_cases import torch  # noqa: E402

RANKS, TARGET = 2, "sm_80"


def operands() -> tuple[Any, Any]:
    made = torch.Generator().manual_seed(0)
    a, b = torch.randn(24, 64, generator=made), torch.randn(64, 16, generator=made)
    return a.bfloat16(), b.bfloat16()


def rank_of_two(rank: int, folder: str) -> None:
    """Multiply half of k, and add by the library; then train a layer on half of the rows."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=RANKS)
    a, b = operands()
    half = slice(32 * rank, 32 * rank + 32)
    with wm.torch.arithmetic(TARGET) as report:
        part = wm.torch.matmul(a[:, half], b[half], target=TARGET, out_dtype=torch.float32)
        torch.distributed.all_reduce(part)
        torch.manual_seed(1)
        layer = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 8))
        layer(a[12 * rank : 12 * rank + 12].float()).square().mean().backward()
    assert report.products.total() == 2  # of the layer and of its weight's gradient
    torch.save({"sum": part, "gradient": layer.module.weight.grad}, f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


def test_two_processes(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(rank_of_two, (str(tmp_path),), nprocs=RANKS)
    results = [torch.load(tmp_path / f"{rank}.pt") for rank in range(RANKS)]
    a, b = operands()
    expected = wm.matmul(a, b, target=TARGET, split_k=RANKS)
    for result in results:
        assert (result["sum"].numpy().view(np.uint32) == expected.view(np.uint32)).all()
        assert torch.equal(result["gradient"], results[0]["gradient"])
