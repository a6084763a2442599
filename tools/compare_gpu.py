"""Compare every instruction of a GPU's target with the GPU: `python tools/compare_gpu.py --help`.

Needs the GPU, `ptxas` on the PATH and CuPy; was run on an H200. With `--undefined FILE`, what the GPU makes of metadata
that PTX leaves undefined is recorded as well, in the format of `warpmma.hardware.recordings`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from generators import operands, styles

import warpmma as wm
from warpmma.hardware.ptx import kernel, module
from warpmma.instructions import Instruction
from warpmma.sparsity import legal_codes, pack_metadata, selectors, unpack_metadata
from warpmma.targets import recipe

Array = npt.NDArray[Any]


def inputs(instruction: Instruction, target: str, style: str, warps: int, rng: np.random.Generator) -> dict[str, Array]:
    """Make registers of a batch of warps; on the diagonal of D the rows and columns belong together."""
    k = instruction.layout("A").shape[-1]
    matrices = {name: np.empty((warps, *instruction.layout(name).shape), instruction.format(name).code_dtype)
                for name in ("A", "B", "C")}  # fmt: skip
    rows, n = instruction.m, instruction.n
    for index in np.ndindex(warps, *instruction.layout("A").shape[:-2]):
        codes = operands(recipe(instruction, target), k, rows, style, rng)
        wide = np.repeat(codes["b"], 2, axis=0) if instruction.sparse else codes["b"]
        matrices["A"][index] = codes["a"].T
        matrices["B"][index] = wide[:, :n]
        matrices["C"][index] = codes["c"][:, None]
    return {name.lower(): wm.load(instruction, name, x) for name, x in matrices.items()}  # type: ignore[arg-type]


def metadata(instruction: Instruction, warps: int, rng: np.random.Generator, undefined: bool) -> Array:
    """Metadata words that are legal for every selector at once, or uniformly random."""
    words = rng.integers(0, 2**32, (warps, 32), dtype=np.uint32)
    if not undefined:
        codes = np.array(sorted(legal_codes(instruction)), np.uint8)
        for selector in selectors(instruction):
            shape = unpack_metadata(words, instruction, selector=selector).shape[:-1]
            nibbles = rng.choice(codes, shape)
            indices = np.stack([nibbles & 3, nibbles >> 2], axis=-1)
            words = pack_metadata(indices, instruction, selector=selector, into=words)
    return words


class Gpu:
    """The kernels of all instructions, compiled once."""

    def __init__(self, jobs: list[tuple[Instruction, int]], target: str) -> None:
        import cupy

        self._cupy = cupy
        self._names = {job: f"k{i}" for i, job in enumerate(jobs)}
        text = module((kernel(i, name, selector=s) for (i, s), name in self._names.items()), target)
        with tempfile.TemporaryDirectory() as folder:
            source, cubin = Path(folder) / "k.ptx", Path(folder) / "k.cubin"
            source.write_text(text)
            subprocess.run(["ptxas", f"-arch={target}", source, "-o", cubin], check=True)
            self._module = cupy.RawModule(path=str(cubin))
            self._functions = {job: self._module.get_function(name) for job, name in self._names.items()}

    def run(self, instruction: Instruction, selector: int, given: dict[str, Array]) -> Array:
        """Execute an instruction on registers, a warp to a block."""
        cupy = self._cupy
        layout = instruction.layout("D")
        warps = len(given["a"])
        d = cupy.full((warps, layout.registers, 32), 0xDEADBEEF, layout.packing.dtype)
        arguments = [cupy.asarray(given[x], order="C") for x in "abc"] + [d]
        if instruction.sparse:
            arguments.append(cupy.asarray(given["e"], order="C"))
        self._functions[instruction, selector]((warps,), (32,), tuple(arguments))
        result: Array = d.get()
        return result


def main() -> int:
    """Run the comparison; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--warps", type=int, default=64, help="warps for each instruction and style")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--undefined", type=Path, metavar="FILE", help="record undefined metadata here")
    parser.add_argument("--device", default="", help="GPU, driver and toolkit, to be put into the recording")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    jobs = [(i, s) for i in wm.instructions(options.target) for s in (selectors(i) if i.sparse else (0,))]
    gpu = Gpu(jobs, options.target)
    recorded: dict[str, Array] = {"target": np.array(options.target), "device": np.array(options.device)}
    outputs = differences = 0
    for instruction in dict.fromkeys(i for i, _ in jobs):
        compared = different = 0
        for undefined in (False, True) if instruction.sparse else (False,):
            for style in styles(recipe(instruction, options.target)):
                given = inputs(instruction, options.target, style, options.warps, rng)
                # Both spellings are one machine instruction, so one of them is enough to keep.
                keep = undefined and instruction.sparsity == "sp" and style in ("middle", "bits", "special")
                if instruction.sparse:
                    given["e"] = metadata(instruction, options.warps, rng, undefined)
                for selector in selectors(instruction) if instruction.sparse else (0,):
                    got = gpu.run(instruction, selector, given)
                    extra: dict[str, Any] = {}
                    if instruction.sparse:
                        extra = {"metadata": given["e"], "selector": selector}
                        extra["undefined"] = "hardware" if undefined else "error"
                    ours = wm.execute(instruction, *(given[x] for x in "abc"), target=options.target, **extra)
                    packing = instruction.packing("D")
                    unequal = packing.unpack(got) != packing.unpack(ours)
                    compared += unequal.size
                    different += int(unequal.sum())
                    if unequal.any():
                        warp, register, lane = (int(x) for x in np.argwhere(unequal)[0][:3])
                        place = f"warp {warp} register {register} lane {lane}"
                        values = f"gpu {got[warp, register, lane]:#x}, ours {ours[warp, register, lane]:#x}"
                        where = f"{style} undefined={undefined} selector {selector}"
                        print(f"  {where}: {unequal.sum()}; {place}: {values}")
                    if keep:
                        _append(recorded, f"{instruction}|d{selector}", got[:1])
                if keep:
                    for name, registers in given.items():
                        _append(recorded, f"{instruction}|{name}", registers[:1])
        print(f"{different:8d} of {compared:9d} differ: {instruction}", flush=True)
        outputs, differences = outputs + compared, differences + different
    print(f"{len(jobs)} instructions and selectors, {outputs} outputs, {differences} differences")
    if options.undefined:
        np.savez_compressed(options.undefined, **recorded)  # type: ignore[arg-type]
    return int(differences > 0)


def _append(arrays: dict[str, Array], key: str, value: Array) -> None:
    arrays[key] = np.concatenate([arrays[key], value]) if key in arrays else value


if __name__ == "__main__":
    sys.exit(main())
