"""Launches of machine code whose arguments are tensor maps: written where the simulator is, run where a GPU is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.gpu.driver import Driver, Function

__all__ = ["TensorJob", "digest", "read", "run", "write"]

Array = npt.NDArray[Any]
_ADDRESS = 8  # bytes of a tensor map that have the tensor's address


@dataclass(frozen=True, kw_only=True)
class TensorJob:
    """A launch: arrays and machine code by their hash, tensor maps and other arguments in hexadecimal digits.

    Attributes
    ----------
    name, code, entry : str
    grid, block, shared
        Of the launch.
    inputs : sequence of str
    output : (shape, dtype)
        The last tensor.
    maps : sequence of str
        128 bytes of each tensor; its address is filled in.
    numbers : sequence of str
        What follows the maps.
    """

    name: str
    code: str
    entry: str
    grid: Sequence[int]
    block: int
    shared: int
    inputs: Sequence[str]
    output: tuple[Sequence[int], str]
    maps: Sequence[str]
    numbers: Sequence[str]


def digest(x: Array | bytes) -> str:
    """Return a hash."""
    return hashlib.sha256(x if isinstance(x, bytes) else x.tobytes()).hexdigest()[:20]


def write(path: Path, jobs: Sequence[TensorJob], arrays: Sequence[Array]) -> None:
    """Write launches, and the arrays (code is one of bytes) that they name."""
    index = np.frombuffer(json.dumps([asdict(x) for x in jobs]).encode(), np.uint8)
    kept: dict[str, Any] = {digest(x): x.view(np.uint8) for x in arrays}
    np.savez_compressed(path, index=index, **kept)


def read(path: Path) -> tuple[list[TensorJob], Any]:
    """Return launches, and arrays by their hash."""
    archive = np.load(path)
    return [TensorJob(**x) for x in json.loads(archive["index"].tobytes())], archive


def run(driver: Driver, function: Function, job: TensorJob, arrays: Any, repeats: int) -> list[Array]:
    """Return the outputs of a launch and its repetitions; bytes that it does not write are 0xFF."""
    shape, dtype = job.output
    empty = np.full(int(np.prod(shape)) * np.dtype(dtype).itemsize, 0xFF, np.uint8)
    placed = [driver.place(arrays[x]) for x in job.inputs] + [driver.place(empty)]
    maps = [
        address.to_bytes(_ADDRESS, "little") + bytes.fromhex(x)[_ADDRESS:]
        for address, x in zip(placed, job.maps, strict=True)
    ]
    arguments, found = [*maps, *map(bytes.fromhex, job.numbers)], []
    for _ in range(repeats):
        driver.put(placed[-1], empty)
        driver.launch(function, job.grid, [job.block], arguments, job.shared)
        driver.synchronise(20)
        found.append(driver.fetch(placed[-1], empty).view(dtype).reshape(shape))
    for address in placed:
        driver.free(address)
    return found
