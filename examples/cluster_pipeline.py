"""A pipeline over a cluster: each of two blocks loads half of every tile for both, by multicast, and weighs the tiles.

Stage s of a block has two mbarriers: `full` counts the bytes of a tile, which come from both blocks, and `empty` the
threads of both blocks that have read their copy of it. The twin in CUDA C++ is `cuda/cluster_pipeline.cu`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import warpmma as wm

TILES, ROWS, COLUMNS, STAGES, THREADS, CLUSTER = 11, 16, 32, 4, 128, 2
BYTES = ROWS * COLUMNS * 4
HALF = BYTES // CLUSTER
FULL, EMPTY = STAGES * BYTES, STAGES * BYTES + 8 * STAGES
LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
WAIT = "mbarrier.try_wait.parity.shared::cta.b64"
ARRIVE = "mbarrier.arrive.release.cluster.shared::cluster.b64"


def meet(t: Any) -> None:
    """Wait for all threads of the cluster."""
    t("barrier.cluster.arrive.aligned")
    t("barrier.cluster.wait.aligned")


def pipeline(t: Any, box: Any, weights: Any, y: Any) -> None:
    """Sum weighted tiles, element by element: thread i of each block has elements i, i + 128, ..."""
    first, rank = t.tid[0] == 0, t.cluster_ctarank
    full, empty = t.shared + FULL, t.shared + EMPTY
    with t.where(first):
        for stage in range(STAGES):
            t("mbarrier.init.shared::cta.b64", full + 8 * stage, 1)
            t("mbarrier.init.shared::cta.b64", empty + 8 * stage, CLUSTER * THREADS)
        t("fence.mbarrier_init.release.cluster")
    meet(t)
    sums = [t.constant(0, "b32")] * (BYTES // 4 // THREADS)
    for step in range(TILES + STAGES - 1):
        if step < TILES:
            stage, turn = step % STAGES, step // STAGES
            with t.where(first):
                if turn:
                    assert t(WAIT, empty + 8 * stage, turn + 1 & 1).bits.any()
                t("mbarrier.arrive.expect_tx.shared::cta.b64", full + 8 * stage, BYTES)
                half = t.shared + stage * BYTES + rank * HALF
                place = [t.constant(0), rank * (ROWS // CLUSTER) + step * ROWS]
                t(LOAD, half, box, place, full + 8 * stage, t.register(np.uint16((1 << CLUSTER) - 1), np.uint16))
        if (tile := step - STAGES + 1) >= 0:
            stage, turn = tile % STAGES, tile // STAGES
            assert t(WAIT, full + 8 * stage, turn & 1).bits.all()
            weight = t("ld.global.b32", weights + (t.ctaid[0] * TILES + tile) * 4)
            for i, held in enumerate(sums):
                value = t("ld.shared.b32", t.shared + t.tid[0] * 4 + stage * BYTES + 4 * THREADS * i)
                sums[i] = t("fma.rn.f32", value, weight, held)
            for other in range(CLUSTER):
                t(ARRIVE, t("mapa.shared::cluster.u32", empty + 8 * stage, other))
    for i, held in enumerate(sums):
        t("st.global.b32", y + t.ctaid[0] * BYTES + t.tid[0] * 4 + 4 * THREADS * i, held)
    meet(t)


def expected(x: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Sum the tiles in their order, each with one rounding; what lies below the tensor is 0."""
    padded = np.zeros((TILES * ROWS, COLUMNS), np.float32)
    padded[: len(x)] = x[:, :COLUMNS]
    tiles, sums = padded.reshape(TILES, ROWS, COLUMNS), np.zeros((len(weights), ROWS, COLUMNS), np.float32)
    for n, tile in enumerate(
        tiles
    ):  # the product of two f32 is exact in f64, and so is rounding to f32 of its sum here
        sums = (tile.astype(np.longdouble) * weights[:, n, None, None] + sums).astype(np.float32)
    return sums


def main(twin: bool = True) -> None:
    """Run both."""
    random = np.random.default_rng(1)
    x = random.standard_normal((TILES * ROWS - 5, 64), np.float32)
    w = random.integers(-8, 9, (2 * CLUSTER, TILES)).astype(np.float32)
    device = wm.Device("sm_90a")
    box, weights = wm.TensorMap(device.array(x), (ROWS // CLUSTER, COLUMNS)), device.array(w)
    y = device.empty((len(w), ROWS, COLUMNS), np.float32)
    shared = EMPTY + 8 * STAGES
    wm.kernel.launch(pipeline, len(w), THREADS, [box, weights, y], shared=shared, cluster=CLUSTER)
    np.testing.assert_array_equal(y.numpy(), expected(x, w))
    if twin:
        z = device.empty(y.shape, np.float32)
        module = wm.cuda.load(Path(__file__).parent / "cuda" / "cluster_pipeline.cu", arch="sm_90a")
        module["cluster_pipeline"].launch(device, len(w), THREADS, [box, weights, z])
        np.testing.assert_array_equal(z.numpy(), y.numpy())
    print("equal")


if __name__ == "__main__":
    main()
