"""Public kernels for sm_90a, CUTLASS 3's collectives first: parameters and results are stored, of their PTX a hash.

`compiled` compiles a source of `cuda/cutlass` to PTX and a host program; `described` asks that program how a product is
launched (`cuda/cutlass/printed_launch.h`), which is stored in `hopper.json`: grid, cluster, and the bytes of the
parameters with the positions of pointers, those in tensor maps too. The host program runs without a driver: tensor maps
are encoded by `warpmma.TensorMap`, whose bytes are those of the driver; on a machine without warpmma, by the driver.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .driver_maps import driver_map
from .hopper_inputs import filled
from .hopper_kernels import KERNELS, Kernel
from .launches import Argument, Array, Case, Run, Step, Struct
from .texts import read_text

__all__ = ["LAUNCHES", "Launch", "compiled", "described", "hopper_cases", "run_of"]

_SOURCES = Path(__file__).parent / "cuda" / "cutlass"
LAUNCHES = "hopper.json"
"""The stored file: the hash of each kernel's PTX, and how each of its sizes is launched."""
_FLAGS = ("-O3", "-DNDEBUG", "-gencode", "arch=compute_90a,code=compute_90a",
          "--expt-relaxed-constexpr", "-w", "--keep")  # fmt: skip
_MARK = 0x4D41505F4D41505F
_MAP = 128

Launch = dict[str, Any]


def compiled(name: str, includes: list[Path], folder: Path) -> tuple[str, Path]:
    """Compile a kernel; return its PTX and the host program."""
    kernel, program = KERNELS[name], folder / name
    command = [
        "nvcc",
        *_FLAGS,
        *kernel.flags,
        f"-DCASE={kernel.case}",
        *(f"-I{include}" for include in includes),
        f"--keep-dir={folder}",
        "-o",
        str(program),
        str(_SOURCES / kernel.source),
    ]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return next(folder.glob(f"{Path(kernel.source).stem}*.ptx")).read_text(), program


def _sizes(text: str) -> dict[str, list[int]]:
    """Return the bytes of each parameter of each entry of a PTX text."""
    found = {}
    for entry, parameters in re.findall(r"\.entry (\w+)\(([^)]*)\)", text):
        lines = re.findall(r"\.param (?:\.align \d+ )?\.[a-z](\d+) (?:\.ptr[ .\w]*? )?\w+(?:\[(\d+)\])?", parameters)
        found[entry] = [int(bits) // 8 * int(count or 1) for bits, count in lines]
    return found


def _printed(program: Path, sizes: dict[str, list[int]], size: tuple[int, ...], high: int) -> list[list[str]]:
    parameters = " ".join(f"{entry}:{','.join(map(str, own))}" for entry, own in sizes.items())
    arguments = [str(program), *map(str, size), str(high)]
    run = subprocess.run(
        arguments, check=True, capture_output=True, text=True, env=os.environ | {"PARAMETERS": parameters}
    )
    return [line.split() for line in run.stdout.splitlines()]


def _map(words: list[str]) -> bytes:
    """Encode a line `map`: the arguments of `cuTensorMapEncodeTiled`."""
    kind, rank, address, *rest = map(int, words)
    ends = [rank, 2 * rank - 1, 3 * rank - 1, 4 * rank - 1]
    dims, strides, box, steps = (rest[a:b] for a, b in zip([0, *ends], ends, strict=False))
    if find_spec("warpmma") is None:  # on a GPU's machine
        return driver_map(kind, address, dims, strides, box, steps, rest[ends[-1] :])
    from warpmma.layouts import TensorMap

    return TensorMap.encode_tiled(kind, rank, address, dims, strides, box, steps, *rest[ends[-1] :]).encoded


def _with_maps(blank: bytearray, maps: list[bytes]) -> None:
    """Put tensor maps where their numbers stand between marks."""
    for place in range(0, len(blank) - 23, 8):
        first, number, last = struct.unpack_from("<QQQ", blank, place)
        if first == last == _MARK:
            blank[place : place + _MAP] = maps[number]


def _relative(data: bytearray, high: int, names: list[str]) -> tuple[bytearray, dict[str, tuple[str, int]]]:
    """Take the addresses out of data; return it, and each address by its place."""
    pointers = {}
    for place in range(0, len(data) - 7, 8):
        (word,) = struct.unpack_from("<Q", data, place)
        if word >> 40 == high and (word >> 32 & 0xFF) < len(names):
            pointers[str(place)] = (names[word >> 32 & 0xFF], word & 0xFFFFFFFF)
            data[place : place + 8] = bytes(8)
    return data, pointers


def _described(lines: list[list[str]], high: int, entry: str) -> tuple[Launch, list[bytearray]]:
    """Return what a host program printed, and apart from it the bytes of all parameters."""
    names = [words[2] for words in lines if words[0] == "buffer"]
    maps = [_map(words[1:]) for words in lines if words[0] == "map"]
    steps: list[dict[str, Any]] = []
    buffers = []
    data = []
    for kind, *words in lines:
        if kind == "launch":
            grid = list(map(int, words[:8]))
            steps.append({
                "entry": words[8] if len(words) > 8 else entry, "grid": grid[:3], "block": grid[3],
                "cluster": grid[4:7], "shared": grid[7], "pointers": [],
            })  # fmt: skip
        elif kind == "parameters":
            parameter = bytearray.fromhex(words[0])
            _with_maps(parameter, maps)
            content, pointers = _relative(parameter, high, names)
            steps[-1]["pointers"].append(pointers)
            data.append(content)
        elif kind == "buffer":
            buffer: dict[str, Any] = {"name": words[1], "kind": words[2], "bytes": int(words[3])}
            if len(words) > 4:
                content, pointers = _relative(bytearray.fromhex(words[4]), high, names)
                buffer |= {"data": content.hex(), "pointers": pointers}
            buffers.append(buffer)
    return {"steps": steps, "buffers": buffers, "maps": len(maps)}, data


def described(program: Path, text: str, size: tuple[int, ...]) -> Launch:
    """Return how a kernel is launched: the same in four runs of the host program, but for padding, which becomes 0.

    Padding is what changes with the former content of the stack, or with where the host program is in memory.
    """
    sizes = _sizes(text)
    entry = next(iter(sizes)) if len(sizes) == 1 else ""
    runs = [_described(_printed(program, sizes, size, high), high, entry) for high in (0x71, 0x3A, 0x71, 0x3A)]
    launch = runs[0][0]
    if not launch["steps"] or any(other != launch for other, _ in runs):
        raise ValueError(f"{program.name}: the host program does not launch the kernel, twice in the same way")
    same = [
        bytes(row[0] if min(row) == max(row) else 0 for row in zip(*parameter, strict=True)).hex()
        for parameter in zip(*(data for _, data in runs), strict=True)
    ]
    for step in launch["steps"]:
        step["parameters"], same = same[: len(step["pointers"])], same[len(step["pointers"]) :]
    return launch


def _struct(data: str, pointers: dict[str, tuple[str, int]]) -> Struct:
    parts: list[str | tuple[str, int] | np.generic | int | bytes] = []
    bytes_, done = bytes.fromhex(data), 0
    for at, (name, offset) in pointers.items():
        parts += [bytes_[done : int(at)], (name, offset)]
        done = int(at) + 8
    return Struct((*parts, bytes_[done:]))


def _argument(data: str, pointers: dict[str, tuple[str, int]]) -> Argument:
    """Return a parameter: what has 4 or 8 bytes is a number or an address, everything else a struct."""
    if len(data) not in (8, 16) or pointers:
        name, offset = pointers.get("0", ("", 0))
        return name if len(data) == 16 and name and not offset else _struct(data, pointers)
    value = int.from_bytes(bytes.fromhex(data), "little")
    return np.uint32(value) if len(data) == 8 else np.uint64(value)


def run_of(launch: Launch) -> Run:
    """Return a launch with its inputs, whose seeds are the numbers of the buffers."""
    arrays: dict[str, Array | Struct] = {}
    for seed, buffer in enumerate(launch["buffers"]):
        if "data" in buffer:
            arrays[buffer["name"]] = _struct(buffer["data"], buffer["pointers"])
        else:
            arrays[buffer["name"]] = filled(buffer["kind"], 70 + seed, buffer["bytes"])
    steps = []
    for how in launch["steps"]:
        arguments = tuple(map(_argument, how["parameters"], how["pointers"]))
        cluster = None if how["cluster"] == [1, 1, 1] else tuple(how["cluster"])
        steps.append(Step(how["entry"], tuple(how["grid"]), (how["block"],), arguments, how["shared"], cluster))
    outputs = [x["name"] for x in launch["buffers"] if x["kind"] in ("out", "result")]
    return Run(arrays, tuple(steps), tuple(outputs))


@cache
def _launches() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(read_text(LAUNCHES))
    return found


def _stored(name: str, place: int) -> Run:
    return run_of(_launches()[name]["launches"][place])


@cache
def hopper_cases() -> tuple[Case, ...]:
    """Return the cases, whose launches are stored."""
    made: list[Case] = []
    for name in _launches():
        kernel: Kernel = KERNELS[name]
        for place, size in enumerate(kernel.sizes):
            make: Callable[[], Run] = partial(_stored, name, place)
            made.append(Case(name, "x".join(map(str, size)), make))
    return tuple(made)
