"""Measure the asynchronous order of a GPU of sm_90a: `python -m lab.measure.order --help`.

Each program of `order_programs` is an experiment; its comment says what it does and counts. `order_cells` lists in
which forms it is compiled and run: who writes, whose fence, which signal. Most kernels are wrong on purpose, and count
how often that shows; writers store to one bank before, so that their writes wait in a queue.

Needs nvcc, the driver and a GPU of sm_90a. Cells that may fail the launch or hang have a process each, and a time
limit; the file is written after each process. With `--only` it keeps its other experiments, if they are of this GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lab.gpu.driver import Driver
from lab.gpu.nvcc import cubin
from lab.measure.order_cells import CELLS, failed, source

_AT_ONCE = 24  # cells of a process


def _build(numbers: list[int], folder: Path) -> dict[int, Path]:
    def build(number: int) -> Path:
        path = folder / f"{number}.cubin"
        path.write_bytes(cubin(source(CELLS[number])))
        return path

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(numbers, pool.map(build, numbers), strict=True))


def _parts(numbers: list[int]) -> Iterator[list[int]]:
    """Split into what one process runs: cells of one program, or one that may fail."""
    part: list[int] = []
    for number in numbers:
        cell = CELLS[number]
        if part and (
            cell.alone or CELLS[part[0]].program != cell.program or len(part) == _AT_ONCE or CELLS[part[0]].alone
        ):
            yield part
            part = []
        part.append(number)
    if part:
        yield part


def _run(part: list[int], built: dict[int, Path], folder: Path, times: int) -> dict[int, Any]:
    """Run cells in a process, and those behind one that fails in another."""
    found: dict[int, Any] = {}
    while part:
        file = folder / "part.json"
        file.write_text(json.dumps([[number, str(built[number])] for number in part]))
        command = [sys.executable, "-m", "lab.measure.order_on_gpu", str(file), str(times)]
        limit = 12 if CELLS[part[0]].alone else 150
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
            lines, last = done.stdout, done.stderr[-300:]
        except subprocess.TimeoutExpired as error:
            lines, last = (error.stdout or b"").decode(), f"killed after {limit} s"
        some = dict(json.loads(line) for line in lines.splitlines() if line.startswith("["))
        if not some:
            some = {part[0]: {"fault": last}}
        found |= some
        part = [number for number in part if number not in found]
    return found


def main(arguments: list[str] | None = None) -> int:
    """Measure and record; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="EXPERIMENT", help="their numbers (default: all)")
    parser.add_argument("--times", type=int, default=1, help="launches of each cell (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=6, help="begin nothing later (default: %(default)s)")
    parser.add_argument("--record", type=Path, metavar="FILE", help="counts by experiment and cell, JSON")
    options = parser.parse_args(arguments)
    start, found = time.monotonic(), dict[str, dict[str, Any]]()
    numbers = [i for i, cell in enumerate(CELLS) if not options.only or cell.experiment in options.only]
    version = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout.split()
    about = {
        **Driver.about(),
        "nvcc": version[version.index("release") + 2].strip(","),
        "source": f"python -m lab.measure.order --times {options.times}",
    }
    if options.only and options.record and options.record.exists():
        before = json.loads(options.record.read_text())
        if all(before[key] == value for key, value in about.items()):
            found = {key: some for key, some in before["found"].items() if key not in options.only}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = _build(numbers, folder)
        print(f"{len(numbers)} cells built in {time.monotonic() - start:.0f} s", flush=True)
        for part in _parts(numbers):
            if time.monotonic() - start > 60 * options.minutes:
                print(f"no time for {CELLS[part[0]].program} and later", flush=True)
                break
            for number, result in _run(part, built, folder, options.times).items():
                cell = CELLS[number]
                found.setdefault(cell.experiment, {})[cell.name] = {**result, "failed": failed(cell, result)}
                print(cell.experiment, cell.name, result.get("counts", result.get("fault")), flush=True)
            if options.record:
                made = options.record.with_suffix(".new")
                made.write_text(json.dumps({**about, "found": found}, indent=0))
                made.replace(options.record)
    print(f"{time.monotonic() - start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
