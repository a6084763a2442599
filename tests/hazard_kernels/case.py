"""What the kernels with a hazard share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpmma.kernel import Launch, Output, launch

Kernel = Callable[..., object]
BASE = 0x7F0000000000  # where the first array lies
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SP = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
LDSM = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
LDSM1 = "ldmatrix.sync.aligned.m8n8.x1.shared.b16"
STSM1 = "stmatrix.sync.aligned.m8n8.x1.shared.b16"
COPY = "cp.async.cg.shared.global"
COMMIT, WAIT, WAIT_ALL = "cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all"
EVERY = 0xFFFFFFFF


def run(kernel: Kernel, *args: Any, block: Any = 64, grid: Any = 1, target: str = "sm_90", **options: Any) -> Launch:
    return launch(kernel, grid, block, args, target=target, **{"shared": 4096, **options})


@dataclass
class Case:
    """A kernel with a hazard, at its line marked `# here`, and where it is met."""

    kernel: Kernel
    kind: str
    warp: int = 0
    lane: int = 0
    address: int | None = None
    block: int = 0
    count: int = 1
    says: str = ""
    args: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


def words(n: int = 256) -> np.ndarray[Any, Any]:
    return np.arange(n, dtype=np.uint32)


X = (words(),)


ONE = {"block": 32}
OUT = (words(), Output(words()))
