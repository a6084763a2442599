"""A warp-specialised product in f16 with `wgmma`, for Hopper: `python examples/hopper_product.py`.

D = A B^T with sums in f32; A is [m, k], B is [n, k] and D is [m, n], of any size whose rows are multiples of 16 bytes:
what tensor copies read beyond a matrix is 0, and they write nothing there. A block computes 128 x 128 elements with
three warpgroups. One thread of the first copies tiles of 64 along k into a ring of four stages; the others multiply, 64
rows each. Stage s has two mbarriers: `full` counts the bytes of its tiles, `empty` the warps that have read them. Sums
go through shared memory (`stmatrix`, a proxy fence) to a tensor copy.

The twin in CUDA C++ is `cuda/hopper_product.cu`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import hopper as h
import numpy as np
from twins import Array, halves

import warpmma as wm

M, N, K, STAGES = 128, 128, 64, 4
ROWS = M // h.CONSUMERS  # of a consumer
PANEL = 64  # columns of D that one copy stores
TILE = M * h.ROW  # bytes of a tile of A, and of B
A, B, D = 0, STAGES * TILE, 2 * STAGES * TILE
FULL = D + M * N * 2  # mbarriers of each stage
EMPTY = FULL + 8 * STAGES
SHARED = EMPTY + 8 * STAGES
LAG = STAGES - 2  # steps by which the copies are ahead: a stage is free one step after it was multiplied
WGMMA = "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"


@dataclass(frozen=True)
class Case:
    """A product, m by k times k by n; `seed` makes its inputs."""

    m: int
    n: int
    k: int
    seed: int = 1

    @property
    def name(self) -> str:
        """As it is called in recordings and tests."""
        return f"{self.m}x{self.n}x{self.k} {self.seed}"


CASES = [Case(128, 128, 64), Case(256, 128, 320, 2), Case(200, 264, 456, 3), Case(512, 384, 1024, 4)]


def product(t: Any, a: Any, b: Any, d: Any, *, k: int) -> None:
    """Multiply; the grid is tiles along m by tiles along n."""
    first, consumes = t.tid[0] == 0, t.warpid >= 4
    row, column, steps = t.ctaid[0] * M, t.ctaid[1] * N, -(-k // K)
    with t.where(first):
        for stage in range(STAGES):
            h.barrier_init(t, FULL + 8 * stage, 1)
            h.barrier_init(t, EMPTY + 8 * stage, h.CONSUMING_WARPS)
        t("fence.mbarrier_init.release.cluster")
    t("bar.sync")
    h.limit_registers(t)
    sums: Any = [0] * 64
    for step in range(steps + LAG):
        if step < steps:
            with t.where(first):
                copy(t, a, b, row, column, step)
        if step >= LAG:
            with t.where(consumes):
                sums = multiply(t, sums, step - LAG)
    with t.where(consumes):
        t("wgmma.wait_group.sync.aligned", 0)
        store(t, d, row, column, sums)


def copy(t: Any, a: Any, b: Any, row: Any, column: Any, step: int) -> None:
    """Fill a stage; its tiles have to be read."""
    stage, turn = step % STAGES, step // STAGES
    if turn:
        h.wait(t, EMPTY + 8 * stage, (turn - 1) % 2)
    h.arrive_expecting(t, FULL + 8 * stage, 2 * TILE)
    h.load_box(t, A + stage * TILE, a, step * K, row, FULL + 8 * stage)
    h.load_box(t, B + stage * TILE, b, step * K, column, FULL + 8 * stage)


def multiply(t: Any, sums: Any, step: int) -> Any:
    """Add the product of a stage's tiles, and free the stage before."""
    sums = multiply_stage(t, sums, step)
    if step:
        with t.where(t.laneid == 0):
            h.arrive(t, EMPTY + 8 * ((step - 1) % STAGES))
    return sums


def multiply_stage(t: Any, sums: Any, step: int) -> Any:
    """Add the product of a stage's tiles, and wait until those of the stage before have been read."""
    stage, turn = step % STAGES, step // STAGES
    of_a = t.shared + A + stage * TILE + (t.warpid // 4 - 1) * (ROWS * h.ROW)
    of_b = t.shared + B + stage * TILE
    h.wait(t, t.shared + FULL + 8 * stage, turn % 2)
    t("wgmma.fence.sync.aligned")
    for i in range(0, h.ROW, 32):
        first = step == i == 0
        sums = t(WGMMA, sums, h.descriptor(t, of_a + i), h.descriptor(t, of_b + i), int(not first), 1, 1, 0, 0)
    t("wgmma.commit_group.sync.aligned")
    t("wgmma.wait_group.sync.aligned", 1)
    return sums


def store(t: Any, d: Any, row: Any, column: Any, sums: Any) -> None:
    """Round sums to f16 and store them."""
    consumer, size = t.warpid // 4 - 1, ROWS * h.ROW
    panels = [t.shared + D + consumer * (ROWS * N * 2) + p * size for p in range(N // PANEL)]
    h.store_matrices(t, panels, sums)
    t("fence.proxy.async.shared::cta")
    h.consumers_sync(t)
    with t.where(t.tid[0] % h.WARPGROUP == 0):
        for p, panel in enumerate(panels):
            h.store_box(t, d, column + p * PANEL, row + consumer * ROWS, panel)
        h.store_wait(t)


def call(case: Case) -> h.Call:
    """Return the launch of a case."""
    a, b = halves(case.seed, case.m, case.k), halves(case.seed + 1000, case.n, case.k)
    return h.Call(
        kernel=product, source="hopper_product", twin="hopper_product", grid=(-(-case.m // M), -(-case.n // N)),
        shared=SHARED, arrays=(a, b, np.empty((case.m, case.n), np.float16)),
        boxes=((M, K), (N, K), (ROWS, PANEL)), numbers={"k": case.k},
    )  # fmt: skip


def expected(case: Case) -> Array:
    """Return the product by `matmul` with the same instruction: sums in f32, rounded once at the end."""
    a, b, _ = call(case).arrays
    sums = wm.matmul(a, b.T, instruction=WGMMA, target=h.TARGET)
    with np.errstate(over="ignore"):
        return np.asarray(sums.astype(np.float16))


def main(twin: bool = True) -> None:
    """Run a case in Python and in CUDA C++."""
    h.compare(call(CASES[2]), expected(CASES[2]), twin=twin)
    print("equal")


if __name__ == "__main__":
    main()
