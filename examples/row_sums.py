"""PTX that nvcc made of `cuda/row_sums.cu`, on simulated blocks: the same bits as on a GPU, and what a GPU lets pass.

    nvcc -ptx -arch=sm_80 -lineinfo row_sums.cu

`without_barrier` is the same text with its `bar.sync` cut out: the sums may be read before they are written, and the
hazard names the line of the CUDA source.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import warpmma as wm
from warpmma.machine import HazardError, Launch

Array = npt.NDArray[Any]
TEXT = (Path(__file__).parent / "row_sums.ptx").read_text()
THREADS = 128


def launch(text: str, x: Array) -> tuple[Array, Launch]:
    """Sum the rows of a matrix, f32 `[row, column]`, with a text's kernel; return the sums and the report."""
    device = wm.Device("sm_90")
    sums = device.empty(len(x), np.float32)
    report = wm.ptx.load(text, "row_sums.ptx")["row_sums"].launch(
        device, len(x), THREADS, [device.array(x), sums, x.shape[1]]
    )
    return sums.numpy(), report


def expected(x: Array) -> Array:
    """Return the sums as the kernel adds them."""
    rows, columns = x.shape
    padded = np.zeros((rows, -(-columns // THREADS), THREADS), np.float32)
    padded.reshape(rows, -1)[:, :columns] = x
    sums = np.zeros((rows, THREADS), np.float32)
    for turn in range(padded.shape[1]):
        sums += padded[:, turn]
    of_lanes: Array = sums.reshape(rows, 4, 32)
    for step in (16, 8, 4, 2, 1):
        of_lanes = of_lanes + of_lanes[..., np.arange(32) ^ step]
    of_warps = of_lanes[..., 0]
    return np.asarray((of_warps[:, 0] + of_warps[:, 1]) + (of_warps[:, 2] + of_warps[:, 3]))


def without_barrier() -> str:
    """Return the text with its barrier cut out."""
    return TEXT.replace("bar.sync \t0;", "")


def main() -> None:
    """Sum rows, compare, show what it cost, and what is found without the barrier."""
    x = np.random.default_rng(1).standard_normal((6, 1000)).astype(np.float32)
    sums, report = launch(TEXT, x)
    assert np.array_equal(sums.view(np.uint32), expected(x).view(np.uint32))
    print(report.text())
    try:
        launch(without_barrier(), x)
    except HazardError as error:
        print(f"without its barrier: {error}")


if __name__ == "__main__":
    main()
