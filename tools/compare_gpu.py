"""Compare every instruction of a GPU's target with the GPU: `python tools/compare_gpu.py --help`.

Needs the GPU, `ptxas` on the PATH and CuPy; was run on an H200. With `--undefined FILE`, what the GPU makes of metadata
that PTX leaves undefined is recorded as well, in the format of `warpmma.hardware`.
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
from warpmma.arithmetic.recipes import recipe
from warpmma.execution import Undefined
from warpmma.hardware import execute_fields, ptx_kernel, ptx_module
from warpmma.isa import Instruction
from warpmma.layouts import Operand
from warpmma.scaling import byte_ids, pack_scales, thread_ids
from warpmma.sparsity import UNDEFINED_MEASURED, legal_codes, pack_metadata, selectors, unpack_metadata

Array = npt.NDArray[Any]


Job = tuple[Instruction, int, tuple[int, int, int, int]]


def jobs(instruction: Instruction) -> list[Job]:
    """Every selector of a sparse instruction; the first and the last ids of a block-scaled one."""
    ids = [(0, 0, 0, 0)]
    if instruction.block_scale:
        last = byte_ids(instruction)[-1]
        ids.append((last, thread_ids("A")[-1], last, thread_ids("B")[-1]))
    return [(instruction, s, i) for s in (selectors(instruction) if instruction.sparse else (0,)) for i in ids]


def inputs(instruction: Instruction, target: str, style: str, warps: int, rng: np.random.Generator) -> dict[str, Array]:
    """Make registers of a batch of warps; on the diagonal of D the rows and columns belong together."""
    k, s = instruction.layout("A").shape[-1], instruction.scales_per_row
    names: tuple[Operand, ...] = ("A", "B", "C")
    shapes = {name: instruction.layout(name).shape for name in names}
    matrices = {n: np.empty((warps, *shape), instruction.format(n).code_dtype) for n, shape in shapes.items()}
    scales = {"A": np.empty((warps, instruction.m, s), np.uint8), "B": np.empty((warps, s, instruction.n), np.uint8)}
    rows, n = instruction.m, instruction.n
    for index in np.ndindex(warps, *shapes["A"][:-2]):
        codes = operands(recipe(instruction, target), k, rows, style, rng, s)
        wide = np.repeat(codes["b"], 2, axis=0) if instruction.sparse else codes["b"]
        matrices["A"][index] = codes["a"].T
        matrices["B"][index] = wide[:, :n]
        matrices["C"][index] = codes["c"][:, None]
        if s:
            scales["A"][index], scales["B"][index] = codes["scale_a"].T, codes["scale_b"][:, :n]
    given = {name.lower(): wm.load(instruction, name, x) for name, x in matrices.items()}
    for name, scale in scales.items() if s else ():  # for every choice of ids the same
        words = rng.integers(0, 2**32, (warps, 32), dtype=np.uint32)
        for _, _, ids in jobs(instruction):
            byte, thread = ids[:2] if name == "A" else ids[2:]
            words = pack_scales(scale, instruction, name, byte_id=byte, thread_id=thread, into=words)  # type: ignore[arg-type]
        given[f"s{name.lower()}"] = words
    return given


def metadata(instruction: Instruction, target: str, warps: int, rng: np.random.Generator, undefined: bool) -> Array:
    """Make metadata words that are legal for every selector at once, or uniformly random ones."""
    words = rng.integers(0, 2**32, (warps, 32), dtype=np.uint32)
    if not undefined:
        codes = np.array(sorted(legal_codes(instruction, target)), np.uint8)
        for selector in selectors(instruction):
            shape = unpack_metadata(words, instruction, selector=selector).shape[:-1]
            nibbles = rng.choice(codes, shape)
            indices = np.stack([nibbles & 3, nibbles >> 2], axis=-1)
            words = pack_metadata(indices, instruction, selector=selector, into=words)
    return words


class Gpu:
    """The kernels of all instructions, compiled once."""

    def __init__(self, jobs: list[Job], target: str) -> None:
        import cupy

        self._cupy = cupy
        names = {job: f"k{i}" for i, job in enumerate(jobs)}
        text = ptx_module(
            (ptx_kernel(i, name, selector=s, ids=ids) for (i, s, ids), name in names.items()), target,
            max(*(i.ptx for i, _, _ in jobs), (8, 8)),
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            source, cubin = Path(folder) / "k.ptx", Path(folder) / "k.cubin"
            source.write_text(text)
            subprocess.run(["ptxas", f"-arch={target}", source, "-o", cubin], check=True)
            self._module = cupy.RawModule(path=str(cubin))
            self._functions = {job: self._module.get_function(name) for job, name in names.items()}

    def run(self, job: Job, given: dict[str, Array]) -> Array:
        """Execute an instruction on registers, a warp to a block."""
        cupy = self._cupy
        layout = job[0].layout("D")
        warps = len(given["a"])
        d = cupy.full((warps, layout.registers, 32), 0xDEADBEEF, layout.packing.dtype)
        there = {name: cupy.asarray(x, order="C") for name, x in given.items()}
        words = [there[name] for name in ("e", "sa", "sb") if name in there]
        self._functions[job]((warps,), (32,), (there["a"], there["b"], there["c"], d, *words))
        result: Array = d.get()
        return result


def ours(job: Job, given: dict[str, Array], target: str, undefined: bool) -> Array:
    """Execute a job with warpmma."""
    instruction, selector, ids = job
    wanted: Undefined = "hardware" if undefined else "error"
    return execute_fields(instruction, given, target, selector=selector, ids=ids, undefined=wanted)


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
    gpu = Gpu([job for i in wm.instructions(target) for job in jobs(i)], target)
    texts = {"target": target, "device": options.device, "undefined": "hardware"}
    recorded: dict[str, Array] = {name: np.array(text) for name, text in texts.items()}
    outputs = differences = 0
    for instruction in wm.instructions(target):
        compared = different = 0
        packing = instruction.packing("D")
        for undefined in (False, True) if instruction.sparse and target in UNDEFINED_MEASURED else (False,):
            for style in styles(recipe(instruction, target)):
                given = inputs(instruction, target, style, options.warps, rng)
                # Both spellings are one machine instruction, so one of them is enough to keep.
                keep = undefined and instruction.sparsity == "sp" and style in ("middle", "bits", "special")
                if instruction.sparse:
                    given["e"] = metadata(instruction, target, options.warps, rng, undefined)
                for job in jobs(instruction):
                    got, expected = gpu.run(job, given), ours(job, given, target, undefined)
                    unequal = packing.unpack(got) != packing.unpack(expected)
                    compared += unequal.size
                    different += int(unequal.sum())
                    if unequal.any():
                        warp, register, lane = (int(x) for x in np.argwhere(unequal)[0][:3])
                        place = f"warp {warp} register {register} lane {lane}"
                        values = f"gpu {got[warp, register, lane]:#x}, ours {expected[warp, register, lane]:#x}"
                        where = f"{style} undefined={undefined} selector {job[1]} ids {job[2]}"
                        print(f"  {where}: {unequal.sum()}; {place}: {values}")
                    if keep:
                        _append(recorded, f"{instruction}|d{job[1]}", got[:1])
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
