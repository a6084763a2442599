"""Public kernels for sm_90a, CUTLASS 3's collectives first: parameters and results are stored, of their PTX a hash.

`compiled` compiles a source of `cuda/cutlass` to PTX and a host program; `described` asks that program how a product is
launched (`cuda/cutlass/printed_launch.h`), which is stored in `hopper.json`: grid, cluster, and the bytes of the
parameters with the positions of pointers, those in tensor maps too. The host program runs without a driver: tensor maps
are encoded by `warpmma.TensorMap`, whose bytes are those of the driver.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from .hopper_inputs import filled
from .hopper_kernels import KERNELS, Kernel
from .launches import Array, Case, Run, Step, Struct
from .texts import read_text

__all__ = ["LAUNCHES", "Launch", "compiled", "described", "hopper_cases", "run_of"]

_SOURCES = Path(__file__).parent / "cuda" / "cutlass"
LAUNCHES = "hopper.json"
"""The stored file: the hash of each kernel's PTX, and how each of its sizes is launched."""
_FLAGS = ("-std=c++17", "-O3", "-DNDEBUG", "-gencode", "arch=compute_90a,code=compute_90a",
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


def _printed(program: Path, size: tuple[int, ...], high: int) -> dict[str, list[list[str]]]:
    lines: dict[str, list[list[str]]] = {"map": [], "launch": [], "parameters": [], "buffer": []}
    arguments = [str(program), *map(str, size), str(high)]
    for line in subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.splitlines():
        kind, *words = line.split()
        lines[kind].append(words)
    return lines


def _map(words: list[str]) -> bytes:
    """Encode a line `map`: the arguments of `cuTensorMapEncodeTiled`."""
    from warpmma.layouts import TensorMap  # noqa: PLC0415 (a GPU's machine has no warpmma)

    kind, rank, address, *rest = map(int, words)
    lists = [rest[:rank], rest[rank : 2 * rank - 1], rest[2 * rank - 1 : 3 * rank - 1], rest[3 * rank - 1 : 4 * rank - 1]]
    return TensorMap.encode_tiled(kind, rank, address, *lists, *rest[4 * rank - 1 :]).encoded


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


def _described(program: Path, size: tuple[int, ...], high: int) -> Launch:
    lines = _printed(program, size, high)
    names = [name for _, name, *_ in lines["buffer"]]
    parameters = bytearray.fromhex(lines["parameters"][0][0])
    _with_maps(parameters, [_map(words) for words in lines["map"]])
    data, pointers = _relative(parameters, high, names)
    buffers = []
    for _, name, kind, count, *stored in lines["buffer"]:
        buffer: dict[str, Any] = {"name": name, "kind": kind, "bytes": int(count)}
        if stored:
            content, inner = _relative(bytearray.fromhex(stored[0]), high, names)
            buffer |= {"data": content.hex(), "pointers": inner}
        buffers.append(buffer)
    launch = list(map(int, lines["launch"][0]))
    return {
        "grid": launch[:3], "block": launch[3], "cluster": launch[4:7], "shared": launch[7], "maps": len(lines["map"]),
        "parameters": data, "pointers": pointers, "buffers": buffers,
    }  # fmt: skip


def described(program: Path, text: str, size: tuple[int, ...]) -> Launch:
    """Return how a kernel is launched: the same in four runs of the host program, but for padding, which becomes 0.

    Padding is what changes with the former content of the stack, or with where the host program is in memory.
    """
    first, *others = (_described(program, size, high) for high in (0x71, 0x3A, 0x71, 0x3A))
    data: list[bytearray] = [x.pop("parameters") for x in (first, *others)]
    if any(other != first for other in others):
        raise ValueError(f"{program.name}: the host program does not launch the kernel in the same way twice")
    same = bytes(row[0] if min(row) == max(row) else 0 for row in zip(*data, strict=True))
    (entry,) = re.findall(r"\.entry (\w+)", text)
    return {"entry": entry, "parameters": same.hex()} | first


def _struct(data: str, pointers: dict[str, tuple[str, int]]) -> Struct:
    parts: list[str | tuple[str, int] | np.generic | int | bytes] = []
    bytes_, done = bytes.fromhex(data), 0
    for at, (name, offset) in pointers.items():
        parts += [bytes_[done : int(at)], (name, offset)]
        done = int(at) + 8
    return Struct((*parts, bytes_[done:]))


def run_of(launch: Launch) -> Run:
    """Return a launch with its inputs, whose seeds are the numbers of the buffers."""
    arrays: dict[str, Array | Struct] = {}
    for seed, buffer in enumerate(launch["buffers"]):
        if "data" in buffer:
            arrays[buffer["name"]] = _struct(buffer["data"], buffer["pointers"])
        else:
            arrays[buffer["name"]] = filled(buffer["kind"], 70 + seed, buffer["bytes"])
    parameters = _struct(launch["parameters"], launch["pointers"])
    cluster = None if launch["cluster"] == [1, 1, 1] else tuple(launch["cluster"])
    step = Step(launch["entry"], tuple(launch["grid"]), (launch["block"],), (parameters,), launch["shared"], cluster)
    outputs = [x["name"] for x in launch["buffers"] if x["kind"] in ("out", "result")]
    return Run(arrays, (step,), tuple(outputs))


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
