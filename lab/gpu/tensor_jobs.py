"""Launches of machine code whose arguments are tensor maps, on a GPU: `python -m lab.gpu.tensor_jobs JOBS.npz --out X`.

`python -m lab.compare.hopper_twins --jobs` writes the launches. This needs NumPy, a GPU and its driver, and nothing
else of this project. Each launch is repeated; X.json gets the hash of each output, and X.npz the outputs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.gpu.driver import Driver, Function

__all__ = ["TensorJob", "digest", "read", "write"]

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


def main(arguments: list[str] | None = None) -> int:
    """Run launches; 1 if an output is not the same in all repetitions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", type=Path, help="what lab.compare.hopper_twins wrote")
    parser.add_argument("--only", default="", help="launches whose name begins so")
    parser.add_argument("--repeats", type=int, default=20, help="of each launch (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="files of results, without their suffix")
    options = parser.parse_args(arguments)
    jobs, arrays = read(options.jobs)
    driver, functions = Driver(), dict[tuple[str, str], Function]()
    found: dict[str, str] = {}
    kept: dict[str, Array] = {}
    failed = 0
    for job in (x for x in jobs if x.name.startswith(options.only)):
        if (key := (job.code, job.entry)) not in functions:
            functions[key] = driver.load(arrays[job.code].tobytes(), [job.entry])[job.entry]
        outputs = run(driver, functions[key], job, arrays, options.repeats)
        hashes = [digest(x) for x in outputs]
        found[job.name], kept[job.name] = hashes[0], outputs[0].view(np.uint8)
        other = sum(x != hashes[0] for x in hashes)
        failed += other > 0
        print(f"{job.name}: {hashes[0]}; {len(hashes)} times, {other} with other bits", flush=True)
        options.out.with_suffix(".json").write_text(json.dumps({**driver.about(), "outputs": found}, indent=1) + "\n")
        np.savez_compressed(options.out.with_suffix(".npz"), allow_pickle=False, **kept)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
