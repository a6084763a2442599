"""Kernels of Numba on a machine without a GPU: Numba compiles, warpmma runs. Needs `pip install numba-cuda[cu13]`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import cuda, float32, float64

import warpmma as wm

ROWS, COLUMNS = 16, 8


def scaled(x: Any, factor: Any, y: Any) -> None:
    """Give y = exp(x) * factor, an element for each thread."""
    i = cuda.grid(1)
    if i < x.size:
        y[i] = math.exp(x[i]) * factor


def column_sums(matrix: Any, sums: Any) -> None:
    """Add up columns: a tile of 16 x 8 in shared memory, and an atomic for each of its columns."""
    tile = cuda.shared.array((ROWS, COLUMNS), float32)
    row, column = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tile[x, y] = matrix[row, column] if row < matrix.shape[0] and column < matrix.shape[1] else 0
    cuda.syncthreads()
    if x == 0 and column < matrix.shape[1]:
        total = float32(0)
        for i in range(ROWS):
            total += tile[i, y]
        cuda.atomic.add(sums, column, total)


def entry(function: Any, types: tuple[Any, ...]) -> Any:
    """Compile a kernel by Numba, and load what it made; `lineinfo` names lines of Python in hazards."""
    ptx, _ = cuda.compile(function, types, device=False, abi="numba", cc=(8, 0), lineinfo=True)
    return wm.ptx.load(ptx)[function.__name__]


def main() -> None:
    """Run both."""
    device = wm.Device("sm_90")
    x, y = np.linspace(0, 1, 100, dtype=np.float32), np.zeros(100, np.float32)
    kernel = entry(scaled, (float32[::1], float64, float32[::1]))
    kernel.launch(device, 4, 32, wm.ptx.numba_arguments(x, 3.0, y))
    print(f"exp: the greatest error is {np.abs(y - 3 * np.exp(x.astype(float))).max():.1e}")

    matrix, sums = np.arange(40 * 20, dtype=np.float32).reshape(40, 20), np.zeros(20, np.float32)
    kernel = entry(column_sums, (float32[:, ::1], float32[::1]))
    report = kernel.launch(device, (3, 3), (ROWS, COLUMNS), wm.ptx.numba_arguments(matrix, sums))
    print(f"sums are right: {(sums == matrix.sum(0)).all()}; lanes whose order is open: {sum(report.order.values())}")


if __name__ == "__main__":
    main()
