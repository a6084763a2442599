"""A pipeline of tensor copies with four stages: one thread loads tiles ahead, and all threads sum them.

Stage s has two mbarriers: `full` counts the bytes of a tile, `empty` the threads that have read it. The twin in CUDA
C++ is `cuda/copy_pipeline.cu`; both take the tensor map as an argument, and both run here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import warpmma as wm

TILES, ROWS, COLUMNS, STAGES, THREADS = 11, 16, 32, 4, 128
BYTES = ROWS * COLUMNS * 4
FULL, EMPTY = STAGES * BYTES, STAGES * BYTES + 8 * STAGES
LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
WAIT, ARRIVE = "mbarrier.try_wait.parity.shared::cta.b64", "mbarrier.arrive.shared::cta.b64"


def pipeline(t: Any, box: Any, y: Any) -> None:
    """Sum tiles, element by element: thread i has elements i, i + 128, ..."""
    first = t.tid[0] == 0
    with t.where(first):
        for stage in range(STAGES):
            t("mbarrier.init.shared::cta.b64", FULL + 8 * stage, 1)
            t("mbarrier.init.shared::cta.b64", EMPTY + 8 * stage, THREADS)
        t("fence.mbarrier_init.release.cluster")
    t("bar.sync")
    sums = [t.constant(0, "b32")] * (BYTES // 4 // THREADS)
    for step in range(TILES + STAGES - 1):
        if step < TILES:
            stage, turn = step % STAGES, step // STAGES
            with t.where(first):
                if turn:
                    assert t(WAIT, EMPTY + 8 * stage, turn + 1 & 1).bits.any()
                t("mbarrier.arrive.expect_tx.shared::cta.b64", FULL + 8 * stage, BYTES)
                t(LOAD, stage * BYTES, box, [0, step * ROWS], FULL + 8 * stage)
        if (tile := step - STAGES + 1) >= 0:
            stage, turn = tile % STAGES, tile // STAGES
            assert t(WAIT, FULL + 8 * stage, turn & 1).bits.all()
            for i, held in enumerate(sums):
                value = t("ld.shared.b32", t.tid[0] * 4 + stage * BYTES + 4 * THREADS * i)
                sums[i] = t("add.f32", held, value)
            t(ARRIVE, EMPTY + 8 * stage)
    for i, held in enumerate(sums):
        t("st.global.b32", y + t.tid[0] * 4 + 4 * THREADS * i, held)


def expected(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Sum the tiles in their order; what lies below the tensor is 0."""
    padded = np.zeros((TILES * ROWS, COLUMNS), np.float32)
    padded[: len(x)] = x[:, :COLUMNS]
    sums: np.ndarray[Any, Any] = np.add.accumulate(padded.reshape(TILES, ROWS, COLUMNS), dtype=np.float32)
    return np.asarray(sums[-1])


def main(twin: bool = True) -> None:
    """Run both."""
    x = np.random.default_rng(1).standard_normal((TILES * ROWS - 5, 64), np.float32)
    device = wm.Device("sm_90a")
    box = wm.TensorMap(device.array(x), (ROWS, COLUMNS))
    y = device.empty((ROWS, COLUMNS), np.float32)
    wm.kernel.launch(pipeline, 1, THREADS, [box, y], shared=EMPTY + 8 * STAGES)
    np.testing.assert_array_equal(y.numpy(), expected(x))
    if twin:
        z = device.empty((ROWS, COLUMNS), np.float32)
        module = wm.cuda.load(Path(__file__).parent / "cuda" / "copy_pipeline.cu", arch="sm_90a")
        module["copy_pipeline"].launch(device, 1, THREADS, [box, z])
        np.testing.assert_array_equal(z.numpy(), y.numpy())
    print("equal")


if __name__ == "__main__":
    main()
