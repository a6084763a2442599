"""Run cells on the GPU in this process: `python -m lab.measure.order_on_gpu FILE TIMES` prints a line of JSON for each.

FILE is JSON: numbers of cells in `CELLS`, and the paths of their machine code. Each runs TIMES times.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np

from lab.gpu.driver import Driver, DriverError, Function
from lab.measure.order_cells import CELLS, Cell

_INPUT, _OUTPUT = 1 << 22, 5280 * 48 << 10  # bytes


def _counted(driver: Driver, cell: Cell, code: bytes, places: dict[str, int], times: int) -> list[int]:
    names = ["prepare", "cell", *(["check"] if cell.program == "exits" and "LOAD" not in cell.name.split("=") else [])]
    functions = driver.load(code, names)
    like = np.zeros(16, np.uint64)
    driver.put(places["counts"], like)
    pointers = [places[name].to_bytes(8, "little") for name in ("in", "out", "counts")]

    def launch(function: Function, blocks: int, threads: int, seed: int, **options: int | None) -> None:
        numbers = [np.int32(cell.trials).tobytes(), np.uint32(seed).tobytes()]
        driver.launch(function, [blocks], [threads], [*pointers, *numbers], **options)  # type: ignore[arg-type]

    for number in range(cell.launches * times):
        launch(functions["prepare"], 264, 256, 0)
        launch(functions["cell"], cell.blocks, cell.threads, number + 1, shared=cell.shared, cluster=cell.cluster)
        if "check" in functions:
            launch(functions["check"], cell.blocks, 256, number + 1)
    driver.synchronise(6 if cell.alone else 40)
    return [int(x) for x in driver.fetch(places["counts"], like)]


def main(arguments: list[str]) -> int:
    """Run them; 1 after a fault, which ends the process because the context is lost."""
    wanted, times = json.loads(Path(arguments[0]).read_text()), int(arguments[1])
    driver = Driver()
    sizes = {"in": _INPUT, "out": _OUTPUT, "counts": 128}
    places = {name: driver.place(np.zeros(size, np.uint8)) for name, size in sizes.items()}
    for number, path in wanted:
        cell = CELLS[number]
        more = 1 if cell.alone else times
        found: dict[str, object] = {"trials": cell.blocks * cell.trials * cell.launches * more}
        found["thread_trials"] = cell.blocks * cell.trials * cell.launches * more * cell.checkers
        try:
            values = _counted(driver, cell, Path(path).read_bytes(), places, more)
            found["counts"] = dict(zip(cell.counts, values, strict=False))
        except DriverError as error:
            found["fault"] = str(error)
        print(json.dumps([number, found]), flush=True)
        if "fault" in found:
            os._exit(1)  # a context that a kernel still occupies cannot be closed
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
