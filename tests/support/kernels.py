"""Helpers to launch kernels in tests."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from arrays import Array

from warpmma.kernel import Launch, launch

module = importlib.import_module("warpmma.machine.block.grid")  # `kernel.launch` is the function
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
LDSM = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
COPY = "cp.async.cg.shared.global"
TARGET = "sm_90"


def run(kernel: Callable[..., object], *args: Any, grid: Any = 1, block: Any = 32, **options: Any) -> Launch:
    return launch(kernel, grid, block, args, **{"target": TARGET, "shared": 4096, **options})


def outcome(compute: Callable[[Any], Any], *, block: int = 32, **options: Any) -> Array:
    """Bits of the register that a function of the threads makes, `[thread]`."""
    found: list[Array] = []

    def kernel(t: Any) -> None:
        found.append(compute(t).bits.reshape(-1)[:block].copy())

    run(kernel, block=block, **options)
    return found[0]


BINARY: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda x, y, w: x + y, "sub": lambda x, y, w: x - y, "mul": lambda x, y, w: x * y,
    "floordiv": lambda x, y, w: x // y if y else -1, "mod": lambda x, y, w: x % y if y else -1,
    "and_": lambda x, y, w: x & y, "or_": lambda x, y, w: x | y, "xor": lambda x, y, w: x ^ y,
    "lshift": lambda x, y, w: x << min(y, w), "rshift": lambda x, y, w: x >> min(y, w),
}  # fmt: skip
COMPARE = ("lt", "le", "gt", "ge", "eq", "ne")
