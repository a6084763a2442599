"""Compare counted wavefronts of shared memory with the GPU's counters: `python -m lab.compare.banks --help`.

Needs an sm_90 GPU, `nvcc`, and Nsight Compute's `ncu` with permission to read counters; was run on an H200. A launch is
one warp that accesses shared memory once. All kinds of access take their addresses from one table, in units of the
bytes that a lane accesses. `--record FILE` stores the table and the counts, for tests on machines without a GPU; other
kinds in FILE are kept if its table is the same.

If lanes of a `cp.async` write the same word, a race, they take a wavefront each, more than are counted. Copies of 16
bytes (`.cg`) take another path, which these counters do not see.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from warpmma.machine import wavefronts

Array = npt.NDArray[Any]

LANES = np.arange(32)
BYTES = 1 << 15
ELEMENTS = BYTES // 16
METRICS = (
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_misc.sum",  # one per warp, whatever it does
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
)


@dataclass(frozen=True)
class Kind:
    """A kind of access: bytes per lane, how many lanes supply addresses, and what the kernel executes."""

    size: int
    body: str
    lanes: int = 32

    @property
    def masks(self) -> bool:
        """Whether lanes may be inactive."""
        return "matrix" not in self.body


def _load(size: int, name: str, letter: str = "r", registers: int = 1) -> Kind:
    values = ", ".join(f"%{i}" for i in range(registers))
    values = f"{{{values}}}" if registers > 1 else values
    outputs = ", ".join(f'"={letter}"(v[{i}])' for i in range(registers))
    return Kind(size, f'asm volatile("ld.shared.{name} {values}, [%{registers}];" : {outputs} : "r"(at));')


def _store(size: int, name: str, letter: str = "r", registers: int = 1) -> Kind:
    values = ", ".join(f"%{i + 1}" for i in range(registers))
    values = f"{{{values}}}" if registers > 1 else values
    inputs = ", ".join(f'"{letter}"(v[{i}])' for i in range(registers))
    return Kind(size, f'asm volatile("st.shared.{name} [%0], {values};" :: "r"(at), {inputs} : "memory");')


def _matrices(load: bool, count: int, trans: str) -> Kind:
    name = f"{'ldmatrix' if load else 'stmatrix'}.sync.aligned.m8n8.x{count}{trans}.shared.b16"
    values = ", ".join(f"%{i if load else i + 1}" for i in range(count))
    registers = ", ".join(f'"{"=" if load else ""}r"(v[{i}])' for i in range(count))
    if load:
        return Kind(16, f'asm volatile("{name} {{{values}}}, [%{count}];" : {registers} : "r"(at));', 8 * count)
    return Kind(16, f'asm volatile("{name} [%0], {{{values}}};" :: "r"(at), {registers} : "memory");', 8 * count)


def _copy(size: int) -> Kind:
    return Kind(size, f'asm volatile("cp.async.ca.shared.global [%0], [%1], {size};\\n\\tcp.async.wait_all;" '
                f':: "r"(at), "l"((char*)out + lane * {size}) : "memory");')  # fmt: skip


KINDS = {
    "ld 8": _load(8, "v2.b32", registers=2),
    "ld 16": _load(16, "v4.b32", registers=4),
    "st 8": _store(8, "v2.b32", registers=2),
    "st 16": _store(16, "v4.b32", registers=4),
    "ld 4": _load(4, "b32"),
    "st 4": _store(4, "b32"),
    "ldmatrix x4": _matrices(True, 4, ""),
    "stmatrix x4": _matrices(False, 4, ""),
    "cp.async 8": _copy(8),
    "cp.async 4": _copy(4),
    "ld 2": _load(2, "b16", "h"),
    "st 2": _store(2, "b16", "h"),
    "ld 1": _load(1, "u8"),
    "st 1": _store(1, "u8"),
    "ldmatrix x2": _matrices(True, 2, ""),
    "stmatrix x2": _matrices(False, 2, ""),
    "ldmatrix x1": _matrices(True, 1, ""),
    "stmatrix x1": _matrices(False, 1, ""),
    "ldmatrix x4 trans": _matrices(True, 4, ".trans"),
    "stmatrix x4 trans": _matrices(False, 4, ".trans"),
    "ldmatrix x2 trans": _matrices(True, 2, ".trans"),
    "stmatrix x1 trans": _matrices(False, 1, ".trans"),
}


def patterns(seed: int = 1) -> Array:
    """Return elements `[pattern, 32]`, -1 where a lane is inactive."""
    rng = np.random.default_rng(seed)
    rows = [LANES * stride for stride in (*range(34), 36, 40, 48, 63, 64, 65, 66, 68, 96, 128, 132)]
    rows += [LANES & ~drop for drop in range(1, 32)]  # lanes that differ in some bits of their number share an element
    rows += [(LANES & ~drop) * 8 for drop in (1, 2, 3, 4, 5, 6, 8, 9, 16, 17, 24)]
    rows += [rng.integers(0, most, 32) for most in (2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 256, 2048) for _ in range(3)]
    rows += [rng.permutation(32) for _ in range(4)]
    rows += [LANES % 16 * 2 + LANES // 16, LANES % 8 * 4 + LANES // 8, LANES % 2 * 16 + LANES // 2,
             LANES ^ LANES >> 2, 31 - LANES, LANES % 4 * 8 + LANES // 4]  # fmt: skip
    # Pairs that share an element, in one half of a warp, or differently in each half or quarter.
    for _ in range(30):
        chosen = rng.choice([0, 1, 2, 3, 4, 8], 4)
        if rng.integers(2):
            chosen = chosen[[0, 0, 2, 2]]
        shared = LANES & ~chosen[LANES // 8]
        rows.append(rng.permutation(rng.choice([32, 64, 2048]))[:32][shared] if rng.integers(2) else shared)
    masks = [
        LANES % 2 == 1, LANES % 2 == 0, LANES < 16, LANES >= 16, LANES < 8, LANES % 16 < 8, LANES // 8 == 1, LANES == 5,
        LANES // 8 % 3 == 0, LANES % 4 < 2, LANES % 4 == 3, LANES % 4 % 3 == 0, LANES % 8 < 4, LANES % 8 == 0,
        LANES == 31, LANES % 16 == 0, LANES < 17, LANES > 0, LANES % 3 > 0,
    ]  # fmt: skip
    rows += [np.where(mask, LANES, -1) for mask in masks]
    rows += [np.where(mask, LANES * 9 % 32, -1) for mask in masks[:6]]
    for _ in range(40):
        shared = LANES & ~int(rng.choice([0, 1, 2, 3, 4, 8, 16]))
        element = rng.permutation(rng.choice([32, 32, 64, 2048]))[:32][shared] if rng.integers(3) else shared
        rows.append(np.where(rng.random(32) < rng.choice([0.2, 0.5, 0.8, 0.95]), element, -1))
    table = np.array(rows)
    return np.where(table < 0, -1, table % ELEMENTS).astype(np.int16)


def addresses(table: Array, kind: Kind) -> Array:
    """Return what the kind's lanes access, -1 where one is inactive."""
    table = table.astype(np.int64)
    if not kind.masks:
        return np.where(kind.lanes > LANES, np.maximum(table, 0) * kind.size, -1)
    return np.where(table < 0, -1, table * kind.size)


def source() -> str:
    """Return a program: given a kind's index, and a file of addresses, it launches one warp for each 32 of them."""
    kernels, launches = [], []
    for index, kind in enumerate(KINDS.values()):
        letter = "unsigned short" if '"h"' in kind.body or '"=h"' in kind.body else "unsigned"
        kernels.append(
            f"__global__ void access{index}(const Row row, unsigned* out) {{\n"
            f"  __shared__ __align__(1024) char memory[{BYTES}];\n"
            "  const int lane = threadIdx.x, offset = row.at[lane];\n"
            f"  {letter} v[4] = {{({letter})lane, 1, 2, 3}};\n"
            "  const unsigned at = (unsigned)__cvta_generic_to_shared(memory) + (offset < 0 ? 0 : offset);\n"
            + (f"  if (offset >= 0) {kind.body}\n" if kind.masks else f"  {kind.body}\n")
            + "  out[lane] = v[0] ^ v[1] ^ v[2] ^ v[3];\n}"
        )
        launches.append(f"    case {index}: access{index}<<<1, 32>>>(row, out); break;")
    return "\n".join([
        "#include <cstdio>", "#include <cstdlib>", "struct Row { int at[32]; };", *kernels,
        "int main(int, char** given) {", "  unsigned* out;", "  if (cudaMalloc(&out, 4096) != cudaSuccess) return 1;",
        '  FILE* file = fopen(given[2], "rb");', "  Row row;", "  if (!file) return 2;",
        "  while (fread(&row, sizeof row, 1, file) == 1) {", "    switch (atoi(given[1])) {", *launches, "    }",
        "  }", "  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 3;", "}", "",
    ])  # fmt: skip


def measure(program: Path, kind: str, address: Array) -> Array:
    """Return the GPU's wavefronts and conflicts, `[pattern, 2]`."""
    table = program.with_name("addresses.bin")
    table.write_bytes(address.astype(np.int32).tobytes())
    command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
               "--cache-control", "none", "--metrics", ",".join(METRICS),
               str(program), str(list(KINDS).index(kind)), str(table)]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in result.stdout.splitlines() if line.startswith('"')]
    if result.returncode or len(lines) != len(address) + 2:  # names, units, launches
        raise SystemExit(f"ncu failed, {len(lines)} lines:\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}")
    rows = list(csv.DictReader([lines[0], *lines[2:]]))
    counts = np.array([[float(row[metric].replace(",", "")) for metric in METRICS] for row in rows]).astype(np.int64)
    return np.stack([counts[:, 0] - counts[:, 1], counts[:, 2]], axis=-1)


def about() -> list[str]:
    """GPU, driver and profiler."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu, driver = subprocess.run(query, check=True, capture_output=True, text=True).stdout.splitlines()[0].split(", ")
    ncu = subprocess.run(["ncu", "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    return [gpu, f"driver {driver}", f"ncu {ncu.strip()}"]


def record(file: Path, table: Array, counts: dict[str, Array]) -> None:
    """Store counts; those of patterns that were not measured are -1."""
    if file.exists():
        old = np.load(file)
        if np.array_equal(old["elements"], table):
            counts = dict(zip(old["kinds"].tolist(), old["counts"], strict=True)) | counts
    kinds = [name for name in KINDS if name in counts]
    np.savez_compressed(
        file, elements=table, kinds=np.array(kinds), counts=np.stack([counts[name] for name in kinds]).astype(np.int16),
        sizes=np.array([KINDS[name].size for name in kinds]), lanes=np.array([KINDS[name].lanes for name in kinds]),
        about=np.array(about()),
    )  # fmt: skip


def main() -> int:
    """Run the comparison; the exit status says whether all counts agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS), metavar="KIND")
    parser.add_argument("--every", type=int, default=1, help="take every n-th pattern")
    parser.add_argument("--seed", type=int, default=1, help="of the random patterns")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no further kind after so long")
    parser.add_argument("--source", action="store_true", help="print the CUDA program and stop")
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep patterns and counts")
    arguments = parser.parse_args()
    if arguments.source:
        print(source())
        return 0
    table = patterns(arguments.seed)
    taken = np.arange(0, len(table), arguments.every)
    start, counts, different = time.monotonic(), {}, 0
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "banks.cu").write_text(source())
        program = Path(folder) / "banks"
        subprocess.run(["nvcc", "-arch=sm_90", "-o", str(program), f"{program}.cu"], check=True)
        for name in arguments.kinds:
            if time.monotonic() - start > arguments.seconds:
                print(f"{name}: no time left")
                continue
            address = addresses(table[taken], KINDS[name])
            counts[name] = np.full((len(table), 2), -1)
            counts[name][taken] = found = measure(program, name, address)
            phases, waves = wavefronts(address, KINDS[name].size, load=name.startswith("ld "))
            wrong = np.flatnonzero((found != np.stack([waves, waves - phases], axis=-1)).any(axis=-1))
            different += len(wrong)
            print(f"{name}: {len(wrong)} of {len(taken)} differ; {time.monotonic() - start:.0f} s", flush=True)
            for i in wrong[:3]:
                print(f"  {table[taken[i]].tolist()}: {found[i].tolist()}, not {[waves[i], waves[i] - phases[i]]}")
            if arguments.record:  # as it goes
                record(arguments.record, table, counts)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
