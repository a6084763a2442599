"""The product of `hopper_product.py` over clusters of two blocks: `python examples/hopper_cluster.py`.

The blocks of a cluster are neighbours along m, and need the same tiles of B. Each copies half of every tile and
multicasts it to both, so B is read once from global memory. `full` of a block counts bytes from both blocks, and
`empty` the warps of both that have read a stage: a copy writes to both.

The twin in CUDA C++ is `cuda/hopper_cluster.cu`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hopper as h
import hopper_product as one
from hopper_product import EMPTY, FULL, LAG, STAGES, TILE, Case, K, M, N, expected

BLOCKS = 2  # of a cluster
HALF = N // BLOCKS  # rows of B that a block copies

CASES = [Case(256, 128, 64), Case(384, 128, 320, 2), Case(200, 264, 456, 3), Case(512, 384, 1024, 4)]

__all__ = ["CASES", "call", "expected", "main"]


def cluster_product(t: Any, a: Any, b: Any, d: Any, *, k: int) -> None:
    """Multiply; the grid is tiles along m, an even number, by tiles along n."""
    first, consumes = t.tid[0] == 0, t.warpid >= 4
    row, column, steps = t.ctaid[0] * M, t.ctaid[1] * N, -(-k // K)
    with t.where(first):
        for stage in range(STAGES):
            h.barrier_init(t, t.shared + FULL + 8 * stage, 1)
            h.barrier_init(t, t.shared + EMPTY + 8 * stage, BLOCKS * h.CONSUMING_WARPS)
        t("fence.mbarrier_init.release.cluster")
    h.cluster_sync(t)  # the other block's barriers are there, too
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
        one.store(t, d, row, column, sums)
    h.cluster_sync(t)  # no block ends while the other one still copies to it or arrives at its barriers


def copy(t: Any, a: Any, b: Any, row: Any, column: Any, step: int) -> None:
    """Fill a stage of this block, and half of B's tile in both; the tiles have to be read, in both."""
    stage, turn = step % STAGES, step // STAGES
    rank, full = t.cluster_ctarank, t.shared + FULL + 8 * stage
    if turn:
        h.wait(t, t.shared + EMPTY + 8 * stage, (turn - 1) % 2)
    h.arrive_expecting(t, full, 2 * TILE)
    h.load_box(t, t.shared + one.A + stage * TILE, a, step * K, row, full)
    half = t.shared + one.B + stage * TILE + rank * (HALF * h.ROW)
    h.load_box_to_blocks(t, half, b, step * K, column + rank * HALF, full, (1 << BLOCKS) - 1)


def multiply(t: Any, sums: Any, step: int) -> Any:
    """Add the product of a stage's tiles, and free the stage before in both blocks."""
    sums = one.multiply_stage(t, sums, step)
    if step:
        with t.where(t.laneid < BLOCKS):
            h.arrive_at(t, t.shared + EMPTY + 8 * ((step - 1) % STAGES), t.laneid)
    return sums


def call(case: Case) -> h.Call:
    """Return the launch of a case."""
    made = one.call(case)
    across, down = made.grid
    return replace(
        made, kernel=cluster_product, source="hopper_cluster", twin="hopper_cluster", cluster=BLOCKS,
        grid=(-(-across // BLOCKS) * BLOCKS, down), boxes=(made.boxes[0], (HALF, K), made.boxes[2]),
    )  # fmt: skip


def main(twin: bool = True) -> None:
    """Run a case in Python and in CUDA C++."""
    h.compare(call(CASES[2]), expected(CASES[2]), twin=twin)
    print("equal")


if __name__ == "__main__":
    main()
