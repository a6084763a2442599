"""Record every `ldmatrix` and `stmatrix` of a GPU: `python -m lab.record.fragments --help`.

Needs the GPU and its driver, with `pip install 'warpmma[gpu]'`. The kernels and operands are those of `warpmma
compare`, which compares more: a block is one warp with 1024 bytes of shared memory. The archive is for tests on
machines without a GPU: a few warps of each form with `.shared`. Differences from the simulator are printed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from warpmma.gpu import gpu as first_gpu
from warpmma.hardware import AnyGpu, Room, device_of, move_inputs, move_launched, move_simulated, target_of
from warpmma.operations import matrix_moves

MEMORY, REGISTERS, ADDRESSES, OUT = "memory", "registers", "addresses", "out"


def main(arguments: list[str] | None = None) -> int:
    """Record; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT.npz")
    parser.add_argument("--warps", type=int, default=4, help="warps of each form")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    gpu: AnyGpu = first_gpu()
    about, rng, recorded, differences = device_of(gpu), np.random.default_rng(options.seed), {}, 0
    moves = [move for move in matrix_moves(target_of(gpu.capability)) if ".shared." in move.mnemonic]
    with Room(gpu, about["target"]) as room:
        for move in moves:
            given = move_inputs(move, options.warps, rng, wild=False)
            got, expected = move_launched(room, move, *given), move_simulated(move, *given)
            count = int((got != expected).sum())
            if count:
                print(f"{count:8d} of {got.size} registers or bytes differ: {move.mnemonic}", flush=True)
            differences += count
            for name, x in zip((MEMORY, REGISTERS, ADDRESSES, OUT), (*given, got), strict=True):
                if name != REGISTERS or move.direction == "store":
                    recorded[f"{move.mnemonic}|{name}"] = x
    device = f"{about['gpu']}, driver {about['driver']}"
    print(f"{device}: {len(moves)} forms, {differences} differences")
    np.savez_compressed(options.out, device=np.array(device), **recorded)  # type: ignore[arg-type]
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
