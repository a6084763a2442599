"""Compare what a GPU did with what the simulator reports of the same programs: `python -m lab.measure.order.compare`.

A cell that failed on the GPU has to be reported at the default level. One that did not fail is right, or breaks rules
that PTX states; the table says which. Each cell runs for two trials of one block or cluster.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import warpmma as wm
from lab.measure.order.cells import CELLS, Cell, failed, source
from warpmma.errors import WarpmmaError
from warpmma.machine import HazardError

__all__ = ["RECORDED", "reported"]

RECORDED = Path(__file__).parents[3] / "tests" / "data" / "h200_order.json"
_TRIALS = 2


def reported(cell: Cell, trials: int = _TRIALS, **options: Any) -> str:
    """Return the kind of hazard that a launch of one block or cluster reports, or "" for none."""
    kernels = wm.cuda.load(source(cell), arch="sm_90a", name=f"{cell.program}.cu")
    device = wm.Device("sm_90a")
    words = [device.array(np.zeros(1 << 20, np.uint32)) for _ in range(2)]
    args = [*words, device.array(np.zeros(16, np.uint64)), np.int32(trials), np.uint32(1)]
    kernels["prepare"].launch(device, 4, 256, args, hazards="off")
    wide = {"cluster": cell.cluster} if cell.cluster else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernels["cell"].launch(
                device, cell.cluster or 1, cell.threads, args, shared=cell.shared, **{**wide, **options}
            )
    except HazardError as error:
        return str(error.hazard.kind)
    except WarpmmaError as error:
        return type(error).__name__
    return ""


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each cell; 1 if one that failed is not reported."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recorded", type=Path, default=RECORDED, metavar="FILE")
    parser.add_argument("--only", nargs="+", metavar="EXPERIMENT", help="their numbers (default: all)")
    options = parser.parse_args(arguments)
    found, missed = json.loads(options.recorded.read_text())["found"], 0
    for cell in CELLS:
        result = found.get(cell.experiment, {}).get(cell.name)
        if result is None or (options.only and cell.experiment not in options.only):
            continue
        times, kind, strict = failed(cell, result), reported(cell), reported(cell, hazards="strict")
        wrong = bool(times) and not kind
        missed += wrong
        says = "MISSED" if wrong else "same" if bool(times) == bool(kind) else "by rule"
        print(f"{says:8}{cell.experiment:3}{cell.name}: failed {times}, {kind or '-'}, {strict or '-'}", flush=True)
    print(f"{missed} missed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
