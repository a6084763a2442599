"""A warp-specialised product of e4m3 with sums in f32, for Hopper: `python examples/hopper_fp8.py`.

D = A B^T; A is [m, k], B is [n, k], both e4m3, and D is [m, n] in f32. Warpgroups and stages are those of
`hopper_product.py`; tiles are 128 along k. The tensor cores' own sums of fp8 keep 13 bits of fraction, so `wgmma` sums
one tile alone, and that is added to sums in f32: see docs/howto/choose_fp8_accumulation.md.

The twin in CUDA C++ is `cuda/hopper_fp8.cu`.
"""

from __future__ import annotations

from typing import Any

import hopper as h
import numpy as np
from hopper_product import ROWS, STAGES, TILE, A, B, Case, D, M, N
from twins import Array, words

import warpmma as wm

K = 128
PANEL = 32  # columns of D that one copy stores
FULL = D + M * N * 4
EMPTY = FULL + 8 * STAGES
SHARED = EMPTY + 8 * STAGES
LAG = STAGES - 1  # steps by which the copies are ahead
WGMMA = "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3"

CASES = [Case(128, 128, 128), Case(256, 128, 640, 2), Case(200, 264, 464, 3), Case(512, 384, 1024, 4)]


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
    sums = [t.constant(0)] * 64
    for step in range(steps + LAG):
        if step < steps:
            with t.where(first):
                copy(t, a, b, row, column, step)
        if step >= LAG:
            with t.where(consumes):
                sums = multiply(t, sums, step - LAG)
    with t.where(consumes):
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
    """Add the product of a stage's tiles, and free the stage."""
    stage, turn = step % STAGES, step // STAGES
    of_a, of_b = A + stage * TILE + (t.warpid // 4 - 1) * (ROWS * h.ROW), t.constant(B + stage * TILE)
    products: Any = [0] * 64
    h.wait(t, FULL + 8 * stage, turn % 2)
    t("wgmma.fence.sync.aligned")
    for i in range(0, h.ROW, 32):
        products = t(WGMMA, products, h.descriptor(t, of_a + i), h.descriptor(t, of_b + i), int(i > 0), 1, 1)
    t("wgmma.commit_group.sync.aligned")
    t("wgmma.wait_group.sync.aligned", 0)
    with t.where(t.laneid == 0):
        h.arrive(t, EMPTY + 8 * stage)
    return [t("add.rn.f32", x, y) for x, y in zip(sums, products, strict=True)]


def store(t: Any, d: Any, row: Any, column: Any, sums: Any) -> None:
    """Store sums: of its rows lane / 4 and 8 below, a lane has two neighbouring columns of every eight."""
    consumer, size = t.warpid // 4 - 1, ROWS * h.ROW
    panels = [D + consumer * (ROWS * N * 4) + p * size for p in range(N // PANEL)]
    at = (t.tid[0] % h.WARPGROUP // 32 * 16 + t.laneid // 4) * h.ROW + t.laneid % 4 * 8
    for i in range(0, len(sums), 2):
        group, below = i // 4, i // 2 % 2 * 8
        place = panels[group * 8 // PANEL] + h.SWIZZLE(at + below * h.ROW + group % 4 * 32)
        t("st.shared.v2.b32", place, sums[i], sums[i + 1])
    t("fence.proxy.async.shared::cta")
    h.consumers_sync(t)
    with t.where(t.tid[0] % h.WARPGROUP == 0):
        for p, panel in enumerate(panels):
            h.store_box(t, d, column + p * PANEL, row + consumer * ROWS, panel)
        h.store_wait(t)


def call(case: Case) -> h.Call:
    """Return the launch of a case; k is a multiple of 16."""
    a, b = codes_of_e4m3(case.seed, case.m, case.k), codes_of_e4m3(case.seed + 1000, case.n, case.k)
    return h.Call(
        kernel=product, source="hopper_fp8", twin="hopper_fp8", grid=(-(-case.m // M), -(-case.n // N)),
        shared=SHARED, arrays=(a, b, np.empty((case.m, case.n), np.float32)),
        boxes=((M, K), (N, K), (ROWS, PANEL)), numbers={"k": case.k},
    )  # fmt: skip


def codes_of_e4m3(seed: int, *shape: int) -> Array:
    """Codes of either sign with magnitudes from 2^-6 to 15: enough that sums lose bits on the way."""
    word = words(seed, *shape)
    sign, exponent = (word & np.uint64(1)) << np.uint64(7), np.uint64(1) + (word >> np.uint64(32)) % np.uint64(10)
    made: Array = (sign | exponent << np.uint64(3) | word >> np.uint64(1) & np.uint64(7)).astype(np.uint8)
    return made


def expected(case: Case) -> Array:
    """Return the product by `matmul` with the same instruction, promoted to f32 after every tile."""
    a, b, _ = call(case).arrays
    return np.asarray(wm.matmul(a, b.T, instruction=WGMMA, target=h.TARGET, promote_every=K))


def main(twin: bool = True) -> None:
    """Run a case in Python and in CUDA C++."""
    h.compare(call(CASES[2]), expected(CASES[2]), twin=twin)
    print("equal")


if __name__ == "__main__":
    main()
