"""Compare every `ldmatrix` and `stmatrix` of a target with the GPU: `python -m lab.compare.fragments --help`.

Needs the GPU, `ptxas` on the PATH and CuPy; was run on an H200. A block is one warp with 1024 bytes of shared memory,
filled with random bytes; its lanes address random rows, for `stmatrix` different ones. `--record FILE` stores a few
warps of each form, for tests on machines without a GPU.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.gpu.move_kernels import MoveGpu
from warpmma.hardware import MOVED_BYTES, move_inputs, move_simulated
from warpmma.operations import matrix_moves
from warpmma.registers import LANES

Array = npt.NDArray[Any]

MEMORY, REGISTERS, ADDRESSES, OUT = "memory", "registers", "addresses", "out"


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--warps", type=int, default=1 << 15, help="warps for each form")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wild", action="store_true", help="addresses that do not count are no addresses at all")
    parser.add_argument("--record", type=Path, metavar="FILE", help="record some warps of each form here")
    parser.add_argument("--keep", type=int, default=4, help="warps to record")
    options = parser.parse_args(arguments)
    rng, moves = np.random.default_rng(options.seed), matrix_moves(options.target)
    gpu, differences, lanes, recorded = MoveGpu(moves, options.target, MOVED_BYTES), 0, 0, {}
    for move in moves:
        given = move_inputs(move, options.warps, rng, options.wild)
        got, expected = gpu.run(move, *given), move_simulated(move, *given)
        unequal = got != expected
        count = int(unequal.sum())
        print(f"{count:8d} of {unequal.size} registers or bytes differ: {move.mnemonic}", flush=True)
        for place in np.argwhere(unequal)[:1].tolist():
            print(f"  at {place}: gpu {int(got[tuple(place)]):#x}, ours {int(expected[tuple(place)]):#x}")
        differences, lanes = differences + count, lanes + options.warps * LANES
        if ".shared." in move.mnemonic:
            names = (MEMORY, REGISTERS, ADDRESSES, OUT)
            keep = {MEMORY, ADDRESSES, OUT} if move.direction == "load" else set(names)
            for name, x in zip(names, (*given, got), strict=True):
                if name in keep:
                    recorded[f"{move.mnemonic}|{name}"] = x[: options.keep]
    wild = ", wild addresses" if options.wild else ""
    print(f"{gpu.device}: {len(moves)} forms, {lanes} lanes, {differences} differences{wild}")
    if options.record:
        np.savez_compressed(options.record, device=np.array(gpu.device), **recorded)  # type: ignore[arg-type]
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
