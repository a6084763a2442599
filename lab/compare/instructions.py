"""Compare every instruction of a GPU's target with the GPU: `python -m lab.compare.instructions --help`.

Needs the GPU, `ptxas` on the PATH and CuPy; was run on an H200. `--undefined FILE` also records what the GPU computes
for metadata that PTX leaves undefined, in the format of `warpmma.hardware.archives`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import warpmma as wm
from lab.generators import instruction_inputs, metadata_words, styles
from lab.gpu.instruction_jobs import InstructionGpu, mma_jobs, mma_simulated
from warpmma.arithmetic import recipe
from warpmma.sparsity import UNDEFINED_MEASURED

Array = npt.NDArray[Any]


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--warps", type=int, default=64, help="warps for each instruction and style")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--undefined", type=Path, metavar="FILE", help="record undefined metadata here")
    parser.add_argument("--device", default="", help="GPU, driver and toolkit, to be put into the recording")
    options = parser.parse_args(arguments)
    target, rng = options.target, np.random.default_rng(options.seed)
    gpu = InstructionGpu([job for i in wm.instructions(target) for job in mma_jobs(i)], target)
    texts = {"target": target, "device": options.device, "undefined": "hardware"}
    recorded: dict[str, Array] = {name: np.array(text) for name, text in texts.items()}
    outputs = differences = 0
    for instruction in wm.instructions(target):
        compared = different = 0
        packing = instruction.packing("D")
        for undefined in (False, True) if instruction.sparse and target in UNDEFINED_MEASURED else (False,):
            for style in styles(recipe(instruction, target)):
                given = instruction_inputs(instruction, target, style, options.warps, rng)
                # Both spellings are one machine instruction, so recording one is enough.
                keep = undefined and instruction.sparsity == "sp" and style in ("middle", "bits", "special")
                if instruction.sparse:
                    given["e"] = metadata_words(instruction, target, options.warps, rng, undefined=undefined)
                for job in mma_jobs(instruction):
                    got, expected = gpu.run(job, given), mma_simulated(job, given, target, undefined=undefined)
                    unequal = packing.unpack(got) != packing.unpack(expected)
                    compared += unequal.size
                    different += int(unequal.sum())
                    if unequal.any():
                        warp, register, lane = (int(x) for x in np.argwhere(unequal)[0][:3])
                        place = f"warp {warp} register {register} lane {lane}"
                        values = f"gpu {got[warp, register, lane]:#x}, ours {expected[warp, register, lane]:#x}"
                        where = f"{style} undefined={undefined} selector {job.selector} ids {job.ids}"
                        print(f"  {where}: {unequal.sum()}; {place}: {values}")
                    if keep:
                        _append(recorded, f"{instruction}|d{job.selector}", got[:1])
                if keep:
                    for name, registers in given.items():
                        _append(recorded, f"{instruction}|{name}", registers[:1])
        print(f"{different:8d} of {compared:9d} differ: {instruction}", flush=True)
        outputs, differences = outputs + compared, differences + different
    print(f"{len(wm.instructions(target))} instructions, {outputs} outputs, {differences} differences")
    if options.undefined:
        np.savez_compressed(options.undefined, **recorded)  # type: ignore[arg-type]
    return int(differences > 0)


def _append(arrays: dict[str, Array], key: str, value: Array) -> None:
    arrays[key] = np.concatenate([arrays[key], value]) if key in arrays else value


if __name__ == "__main__":
    sys.exit(main())
