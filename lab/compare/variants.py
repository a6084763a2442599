"""Compare operations that their mnemonics alone do not determine with the GPU: `python -m lab.compare.variants --help`.

Needs the GPU, `ptxas` on the PATH and CuPy. These are `setp` with two destinations, `mov` of vectors, and video
instructions with bytes and halves of registers. `lab.compare.operations` compares the others.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.gpu.row_jobs import different_lanes, lane_shown
from lab.gpu.runner import KernelGpu
from warpmma.hardware import every_variant, row_kernel, variant_inputs
from warpmma.operations import DTYPES
from warpmma.registers import LANES

Array = npt.NDArray[Any]

_BLOCK = 256


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--lanes", type=int, default=1 << 14, help="lanes for each of them, a multiple of 256")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    start, rows = time.monotonic(), dict(every_variant(options.target))
    gpu: Any = KernelGpu({name: partial(row_kernel, row) for name, row in rows.items()}, options.target, (8, 3))
    compared = differences = 0
    for name, row in rows.items():
        given = variant_inputs(name, row, options.lanes, options.seed)
        empty = [np.zeros((options.lanes // LANES, LANES), DTYPES[kind]) for kind in row.outputs]
        written = range(len(given), len(given) + len(empty))
        got = gpu.launch(name, options.lanes // _BLOCK, _BLOCK, (*given, *empty), written)
        expected = row(*given)
        bad = different_lanes(np.ones((1, LANES), bool), got, expected)
        compared, differences = compared + bad.size, differences + int(bad.sum())
        for place in np.argwhere(bad)[:1]:
            print(f"  {bad.sum():7d} {name}: {lane_shown(given, got, expected, place)}", flush=True)
    print(f"{gpu.device}: {len(rows)} variants, {compared} lanes, {differences} differences")
    print(f"{time.monotonic() - start:.0f} s")
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
