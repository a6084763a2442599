"""A CUDA kernel with a race, and the report: `cuda/block_sum.cu` sums its last warp without a barrier.

On a GPU the kernel gives the right sums for years, until a compiler or a GPU orders lanes in another way. Here the race
is found in the first launch, whatever the sums are. Needs `pip install 'warpmma[cuda]'`, and no GPU.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import warpmma as wm
from warpmma.machine import HazardError, Launch

Array = npt.NDArray[Any]
SOURCE = Path(__file__).parent / "cuda" / "block_sum.cu"


def launch(x: Array, *options: str) -> tuple[Array, Launch]:
    """Sum a vector by blocks of 256 elements; return the sums and the report."""
    device = wm.Device("sm_90")
    blocks = -(-len(x) // 256)
    sums = device.empty(blocks, np.float32)
    module = wm.cuda.load(SOURCE, options=options)
    report = module["block_sum"].launch(device, blocks, 256, [device.array(x), sums, len(x)])
    return sums.numpy(), report


def main() -> None:
    """Launch the kernel as it is, and with a barrier of the warp."""
    x = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    try:
        launch(x)
    except HazardError as error:
        print(f"As it is:\n  {error}\n")
    sums, report = launch(x, "-DSYNCWARP")
    print(f"With __syncwarp(), {len(report.hazards)} hazards, and the sums:\n  {sums}")


if __name__ == "__main__":
    main()
