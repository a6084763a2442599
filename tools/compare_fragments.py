"""Compare every `ldmatrix` and `stmatrix` of a target with the GPU: `python tools/compare_fragments.py --help`.

Needs the GPU, `ptxas` on the PATH and CuPy; was run on an H200. A block is one warp with 1024 bytes of shared memory of
its own, filled with random bytes; its lanes point to random rows, for `stmatrix` to different ones. With
`--record FILE` a few warps of each form are kept, for tests on machines without a GPU.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from warpmma.hardware import ptx_module
from warpmma.operations import MatrixMove, matrix_moves
from warpmma.registers import LANES

Array = npt.NDArray[Any]

BYTES = 1024
CHUNK = 16 * LANES
MEMORY, REGISTERS, ADDRESSES, OUT = "memory", "registers", "addresses", "out"


def kernel(move: MatrixMove, name: str) -> str:
    """Return a kernel: memory `[warp, BYTES]`, registers `[warp, register, lane]`, addresses `[warp, lane]`, and out.

    What it puts out is registers, as they are put in, or memory.
    """
    load, letter = move.direction == "load", "d" if move.direction == "load" else "a"
    generic = ".shared" not in move.mnemonic
    operands = re.sub(r"\b([da][0-9]+)\b", r"%\1", move.syntax).replace("[p]", "[%generic]" if generic else "[%shared]")
    four, width = "{%v0, %v1, %v2, %v3}", 4 * LANES * move.registers
    fill, read, into, out = [], [], [], []
    for offset in range(0, BYTES, CHUNK):
        fill += [f"ld.global.v4.b32 {four}, [%at+{offset}];", f"st.shared.v4.b32 [%here+{offset}], {four};"]
        read += [f"ld.shared.v4.b32 {four}, [%here+{offset}];", f"st.global.v4.b32 [%at+{offset}], {four};"]
    for i in range(move.registers):
        into.append(f"ld.global.b32 %{letter}{i}, [%at+{i * 4 * LANES}];")
        out.append(f"st.global.b32 [%at+{i * 4 * LANES}], %{letter}{i};")

    def point(parameter: str, stride: int, size: int) -> list[str]:
        return [
            f"ld.param.u64 %at, [{parameter}];", f"mul.wide.u32 %offset, %warp, {stride};",
            "add.u64 %at, %at, %offset;", f"mul.wide.u32 %offset, %lane, {size};", "add.u64 %at, %at, %offset;",
        ]  # fmt: skip

    return "\n".join([
        f".visible .entry {name}({', '.join(f'.param .u64 {x}' for x in (MEMORY, REGISTERS, ADDRESSES, OUT))}) {{",
        f".shared .align 16 .b8 smem_{name}[{BYTES}];", ".reg .u64 %at, %offset, %generic;",
        f".reg .b32 %lane, %warp, %here, %shared, %v<4>, %{letter}<{move.registers}>;",
        f"mov.u32 %lane, %tid.x; mov.u32 %warp, %ctaid.x; mov.u32 %shared, smem_{name};",
        "mad.lo.u32 %here, %lane, 16, %shared;",
        *point(MEMORY, BYTES, 16), *fill, *([] if load else [*point(REGISTERS, width, 4), *into]),
        *point(ADDRESSES, 4 * LANES, 4), "ld.global.b32 %v0, [%at];", "add.u32 %shared, %shared, %v0;",
        "cvt.u64.u32 %generic, %shared;", "cvta.shared.u64 %generic, %generic;", "bar.sync 0;",
        f"{move.mnemonic} {operands};", "bar.sync 0;",
        *([*point(OUT, width, 4), *out] if load else [*point(OUT, BYTES, 16), *read]), "ret;", "}",
    ])  # fmt: skip


def ours(move: MatrixMove, memory: Array, registers: Array, addresses: Array) -> Array:
    """Do the same with NumPy."""
    bytes_ = move.rows(addresses)[..., None] + np.arange(move.row_bytes)
    warp = np.arange(len(memory)).reshape(-1, 1, 1, 1)
    if move.direction == "load":
        return move.distribute(memory[warp, bytes_])
    out = memory.copy()
    out[warp, bytes_] = move.collect(registers)
    return out


def inputs(move: MatrixMove, warps: int, rng: np.random.Generator, wild: bool) -> tuple[Array, Array, Array]:
    """Make memory, registers and addresses; wild addresses of the lanes whose addresses do not count."""
    memory = rng.integers(0, 256, (warps, BYTES), np.uint8)
    registers = rng.integers(0, 2**32, (warps, move.registers, LANES), np.uint32)
    rows = BYTES // move.row_bytes
    if move.direction == "load":
        addresses = rng.integers(0, rows, (warps, LANES))
    else:
        addresses = np.argsort(rng.random((warps, rows)), axis=-1)[:, :LANES]
    addresses = (addresses * move.row_bytes).astype(np.uint32)
    if wild:
        addresses[:, move.address_lanes :] = rng.integers(0, 2**32, (warps, LANES - move.address_lanes), np.uint32)
    return memory, registers, addresses


class Gpu:
    """The kernels, compiled once."""

    def __init__(self, moves: Sequence[MatrixMove], target: str) -> None:
        import cupy

        self._cupy = cupy
        names = {move.mnemonic: f"k{i}" for i, move in enumerate(moves)}
        kernels = [kernel(move, names[move.mnemonic]) for move in moves]
        text = ptx_module(kernels, target, max((8, 0), *(move.ptx for move in moves)))
        with tempfile.TemporaryDirectory() as folder:
            source, cubin = Path(folder) / "k.ptx", Path(folder) / "k.cubin"
            source.write_text(text)
            subprocess.run(["ptxas", f"-arch={target}", source, "-o", cubin], check=True)
            loaded = cupy.RawModule(path=str(cubin))
            self._functions = {mnemonic: loaded.get_function(name) for mnemonic, name in names.items()}

    @property
    def device(self) -> str:
        """GPU and driver."""
        name = self._cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return f"{name}, driver {subprocess.run(query, capture_output=True, text=True).stdout.split()[0]}"

    def run(self, move: MatrixMove, memory: Array, registers: Array, addresses: Array) -> Array:
        """Execute a form, a warp to a block."""
        cupy = self._cupy
        out = cupy.zeros_like(cupy.asarray(registers if move.direction == "load" else memory))
        there = [cupy.asarray(x) for x in (memory, registers, addresses)]
        self._functions[move.mnemonic]((len(memory),), (LANES,), (*there, out))
        result: Array = out.get()
        return result


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
    gpu, differences, lanes, recorded = Gpu(moves, options.target), 0, 0, {}
    for move in moves:
        given = inputs(move, options.warps, rng, options.wild)
        got, expected = gpu.run(move, *given), ours(move, *given)
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
