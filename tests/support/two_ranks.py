"""A script of `torch.distributed` for two ranks under the override: the same on CPUs and on GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from oracles import skip_without

import warpmma as wm

skip_without("PyTorch")  # pytest looks for doctests here, too
from torch_cases import torch  # noqa: E402

RANKS, TARGET = 2, "sm_80"
LIBRARIES = {"cpu": "gloo", "cuda": "nccl"}


def operands() -> tuple[Any, Any]:
    made = torch.Generator().manual_seed(0)
    a, b = torch.randn(24, 64, generator=made), torch.randn(64, 16, generator=made)
    return a.bfloat16(), b.bfloat16()


def rank_of_two(rank: int, folder: str, kind: str) -> None:
    """Multiply half of k, and add by the library; then train a layer on half of the rows."""
    device = torch.device(kind, rank if kind == "cuda" else None)
    if kind == "cuda":
        torch.cuda.set_device(device)
    torch.distributed.init_process_group(
        LIBRARIES[kind], init_method=f"file://{folder}/meeting", rank=rank, world_size=RANKS
    )
    a, b = (x.to(device) for x in operands())
    half = slice(32 * rank, 32 * rank + 32)
    with wm.torch.arithmetic(TARGET) as report:
        part = wm.torch.matmul(a[:, half], b[half], target=TARGET, out_dtype=torch.float32)
        torch.distributed.all_reduce(part)
        torch.manual_seed(1)
        layer = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 8).to(device))
        layer(a[12 * rank : 12 * rank + 12].float()).square().mean().backward()
    assert report.products.total() == 2  # of the layer and of its weight's gradient
    torch.save({"sum": part.cpu(), "gradient": layer.module.weight.grad.cpu()}, f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


def compare(folder: Path, kind: str) -> None:
    """Run both ranks: the sum over them is `split_k`, and both have the same gradient."""
    torch.multiprocessing.spawn(rank_of_two, (str(folder), kind), nprocs=RANKS)
    results = [torch.load(folder / f"{rank}.pt") for rank in range(RANKS)]
    a, b = operands()
    expected = wm.matmul(a, b, target=TARGET, split_k=RANKS)
    for result in results:
        assert (result["sum"].numpy().view(np.uint32) == expected.view(np.uint32)).all()
        assert torch.equal(result["gradient"], results[0]["gradient"])
