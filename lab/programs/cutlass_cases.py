"""CUTLASS's `device::Gemm` for sm_80, of the PyPI package nvidia-cutlass: only a hash of its PTX is stored.

`compiled` compiles `cuda/cutlass/gemm.cu` to PTX and a host program; `described` asks that program how a product is
launched, which is stored as `cutlass.json`: the grid, and the bytes of the parameters with the positions of pointers.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .launches import Array, Case, Run, Step, Struct, words
from .texts import read_text

__all__ = ["CUTLASS", "LAUNCHES", "compiled", "cutlass_cases", "described", "headers", "text_hash"]

_SOURCE = Path(__file__).parent / "cuda" / "cutlass" / "gemm.cu"
LAUNCHES = "cutlass.json"
"""The stored file: the hash of each program's PTX, and how each product is launched."""
_FLAGS = (
    "-std=c++17",
    "-O3",
    "-gencode",
    "arch=compute_80,code=compute_80",
    "--expt-relaxed-constexpr",
    "-w",
    "--keep",
)
_POINTERS = ("a", "b", "c", "d", "e", "workspace")

# Name: CASE in the source, the types of A, B, C and D, m x n x k, and into how many parts k is cut.
CUTLASS: dict[str, tuple[int, tuple[str, str, str], tuple[tuple[int, int, int, int], ...]]] = {
    "cutlass_f16": (0, ("f16", "f16", "f16"), ((128, 64, 64, 1), (136, 264, 200, 1), (256, 512, 512, 1))),
    "cutlass_s8": (1, ("s8", "s8", "s8"), ((64, 64, 64, 1), (144, 160, 208, 1), (256, 256, 1024, 1))),
    "cutlass_tf32": (2, ("f32", "f32", "f32"), ((32, 32, 32, 1), (100, 72, 148, 1), (192, 128, 512, 1))),
    "cutlass_f64": (3, ("f64", "f64", "f64"), ((16, 16, 16, 1), (71, 65, 53, 1), (128, 192, 256, 1))),
    "cutlass_sparse": (4, ("f16", "f16", "f32"), ((128, 64, 64, 1), (160, 136, 192, 1), (256, 256, 768, 1))),
    "cutlass_splitk": (5, ("f16", "f16", "f32"), ((64, 64, 128, 2), (72, 136, 400, 3), (128, 192, 1024, 6))),
}  # fmt: skip


def headers() -> Path | None:
    """Return the folder of CUTLASS's headers in the installed package; None if it is missing."""
    spec = find_spec("cutlass_library")
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    return next((path for place in places if (path := Path(place) / "source" / "include").is_dir()), None)


def compiled(name: str, include: Path, folder: Path) -> tuple[str, Path]:
    """Compile a program; return its PTX and the host program."""
    program = folder / name
    command = [
        "nvcc",
        *_FLAGS,
        f"-DCASE={CUTLASS[name][0]}",
        f"-I{include}",
        f"--keep-dir={folder}",
        "-o",
        str(program),
    ]
    subprocess.run([*command, str(_SOURCE)], cwd=folder, check=True, capture_output=True)
    return next(folder.glob("gemm*.ptx")).read_text(), program


def text_hash(text: str) -> str:
    """Return a hash of a text without the number that nvcc derives from the folder and puts into local names."""
    return hashlib.sha256(re.sub(r"(_INTERNAL_|_N__)[0-9a-f]{8}_", r"\1", text).encode()).hexdigest()


def described(program: Path, text: str, size: tuple[int, int, int, int]) -> dict[str, Any]:
    """Return how a product is launched: entry, grid, block, shared memory, bytes in hexadecimal, pointers by place."""
    found = []
    for high in (0x71, 0x3A):  # addresses that occur nowhere else in the parameters
        addresses = [high << 40 | i << 32 for i in range(len(_POINTERS))]
        arguments = [str(program), *map(str, size), *map(str, addresses)]
        launch, parameters = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.splitlines()
        places = np.frombuffer(bytes.fromhex(parameters), "<u8").tolist()
        pointers = {8 * i: _POINTERS[addresses.index(word)] for i, word in enumerate(places) if word in addresses}
        blank = bytearray.fromhex(parameters)
        for place in pointers:
            blank[place : place + 8] = bytes(8)
        found.append((pointers, blank.hex()))
    if found[0] != found[1]:
        raise ValueError(f"{program.name}: parameters are not bytes and addresses")
    x, y, z, block, shared = map(int, launch.split())
    (entry,) = re.findall(r"\.entry (\w+)", text)
    return {"entry": entry, "grid": [x, y, z], "block": block, "shared": shared, "parameters": found[0][1],
            "pointers": {str(place): name for place, name in found[0][0].items()}}  # fmt: skip


def _operand(kind: str, seed: int, count: int) -> Array:
    word = words(seed, count)
    if kind == "s8":
        return word.astype(np.int8) // np.int8(3)
    fractions = 1 + (word >> np.uint64(12)).astype(np.float64) * 2.0**-52
    signed = np.where(word & np.uint64(0x200), -fractions, fractions)
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind]
    made: Array = np.ldexp(signed, -6 + (word & np.uint64(0x1FF)).astype(np.int32) % 8).astype(dtype)
    return made


def _product(name: str, place: int) -> Run:
    number, (of_a, of_b, of_d), sizes = CUTLASS[name]
    m, n, k, slices = sizes[place]
    how = json.loads(read_text(LAUNCHES))[name]["launches"][place]
    sparse = number == 4
    arrays = {"a": _operand(of_a, 50, m * k >> sparse), "b": _operand(of_b, 51, k * n), "c": _operand(of_d, 52, m * n)}
    arrays["d"] = np.full_like(arrays["c"], 0)
    arrays["d"].view(np.uint8).fill(0xFF)
    if sparse:  # any order of legal nibbles will do
        pairs = np.array([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110], np.uint8)
        nibbles = pairs[words(53, m * k // 4) % np.uint64(6)]
        arrays["e"] = nibbles[::2] | nibbles[1::2] << 4
    arrays["workspace"] = np.zeros(how["grid"][0] * how["grid"][1] * 8, np.int32)
    parts: list[str | bytes] = []
    parameters, done = bytes.fromhex(how["parameters"]), 0
    for at, pointer in how["pointers"].items():
        parts += [parameters[done : int(at)], pointer if pointer in arrays else bytes(8)]
        done = int(at) + 8
    struct = Struct((*parts, parameters[done:]))
    step = Step(how["entry"], tuple(how["grid"]), (how["block"],), (struct,), how["shared"])
    return Run(arrays, (step,), ("d", "workspace") if slices > 1 else ("d",))


@cache
def cutlass_cases() -> tuple[Case, ...]:
    """Return the cases, whose launches are stored."""
    made: list[Case] = []
    for name, (_, _, sizes) in CUTLASS.items():
        for place, size in enumerate(sizes):
            make: Callable[[], Run] = partial(_product, name, place)
            made.append(Case(name, "x".join(map(str, size)), make))
    return tuple(made)
