"""Kernels of Triton, for `test_triton`; as a program, one of them in Triton's own interpreter.

`TRITON_INTERPRET=1 python -m benchmarks.triton_kernels NAME` prints the processor time of one run. The interpreter asks
tensors for no more than `Interpreted` has, so that neither PyTorch nor a copy of the arrays is needed.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

__all__ = ["RUNS", "Run", "arrays"]


@triton.jit
def product(a, b, c, m, n, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """As tutorials have it: programs in groups of rows, and masks."""
    program, across = tl.program_id(0), tl.cdiv(n, BN)
    first = program // (GROUP * across) * GROUP
    rows = min(tl.cdiv(m, BM) - first, GROUP)
    i = (first + program % (GROUP * across) % rows) * BM + tl.arange(0, BM)
    j = program % (GROUP * across) // rows * BN + tl.arange(0, BN)
    along = tl.arange(0, BK)
    left = a + (i % m)[:, None] * K + along[None, :]
    right = b + along[:, None] * n + (j % n)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(left, mask=along[None, :] < K - start, other=0.0)
        y = tl.load(right, mask=along[:, None] < K - start, other=0.0)
        total = tl.dot(x, y, total)
        left += BK
        right += BK * n
    tl.store(c + i[:, None] * n + j[None, :], total.to(c.dtype.element_ty), mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * columns + at, powers / tl.sum(powers, axis=0), mask=at < columns)


@triton.jit
def attention(q, k, v, y, scale, L: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    first = tl.program_id(1) * L * D
    rows, along, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    query = tl.load(q + first + rows[:, None] * D + along[None, :])
    most, weight = tl.full([BM], -float("inf"), tl.float32), tl.zeros([BM], tl.float32)
    total = tl.zeros([BM, D], tl.float32)
    for start in range(0, L, BN):
        scores = tl.dot(query, tl.load(k + first + (start + columns)[None, :] * D + along[:, None])) * scale
        now = tl.maximum(most, tl.max(scores, 1))
        powers, less = tl.math.exp2(scores - now[:, None]), tl.math.exp2(most - now)
        weight = weight * less + tl.sum(powers, 1)
        values = tl.load(v + first + (start + columns)[:, None] * D + along[None, :])
        total = tl.dot(powers.to(values.dtype), values, total * less[:, None])
        most = now
    tl.store(y + first + rows[:, None] * D + along[None, :], (total / weight[:, None]).to(y.dtype.element_ty))


@dataclass(frozen=True)
class Run:
    """A kernel, shapes and types of its arrays, numbers behind them, and what is constant."""

    kernel: Any
    grid: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtype: type[Any]
    numbers: tuple[Any, ...]
    constants: Mapping[str, int] = field(default_factory=dict)


def _product(size: int, dtype: type[Any] = np.float16, tile: int = 64, **options: int) -> Run:
    constants = {"K": size, "BM": tile, "BN": tile, "BK": tile // 2, "GROUP": 8, **options}
    return Run(product, ((size // tile) ** 2,), ((size, size),) * 3, dtype, (size, size), constants)


RUNS = {
    "product 512": _product(512),
    "product 1024": _product(1024),
    "product 1024, bf16": _product(1024, ml_dtypes.bfloat16),
    "product 1024, tiles of 128": _product(1024, tile=128, num_warps=8),
    "softmax": Run(softmax, (1024,), ((1024, 781),) * 2, np.float32, (781,), {"BLOCK": 1024}),
    "attention": Run(
        attention, (8, 4), ((4, 512, 64),) * 4, np.float16, (0.125,), {"L": 512, "D": 64, "BM": 64, "BN": 64}
    ),
}


def arrays(run: Run) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, np.float32).astype(run.dtype) for shape in run.shapes]


class Interpreted:
    """An array, with what Triton's interpreter asks of a tensor."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array, self.dtype = array, f"torch.{array.dtype}"

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def untyped_storage(self) -> Interpreted:
        return self

    def cpu(self) -> Interpreted:
        return self

    def new_empty(self, *_: Any, **__: Any) -> Interpreted:
        return Interpreted(self.array)

    def set_(self, *_: Any) -> None:
        """Be the same memory."""

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.array.shape
        return shape

    def stride(self) -> tuple[int, ...]:
        return self.array.strides

    def copy_(self, _: Any) -> None:
        """Be the same memory."""


def _interpret(name: str) -> None:
    run = RUNS[name]
    given = [Interpreted(x) for x in arrays(run)]
    start = time.process_time()
    run.kernel[run.grid](*given, *run.numbers, **run.constants)
    print(time.process_time() - start)


if __name__ == "__main__":
    _interpret(sys.argv[1])
