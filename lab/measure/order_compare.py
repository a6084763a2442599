"""Compare what a GPU did with what the simulator reports of the same programs: `python -m lab.measure.order_compare`.

A cell that failed on the GPU has to be reported at the default level, or stands in `_KNOWN`. One that did not fail is
silent, or stands in `_PERMITTED` with the rule that it breaks. Each cell runs for two trials of one block or cluster.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import warpmma as wm
from lab.measure.order_cells import CELLS, Cell, failed, source
from warpmma.errors import WarpmmaError
from warpmma.machine import HazardError

__all__ = ["RECORDED", "known", "permitted", "recorded", "reported"]

_DATA = Path(__file__).parents[2] / "tests" / "data"
RECORDED = (_DATA / "h200_order.json", _DATA / "h100_order.json")
"""Experiments 3, 4 and the products of 6 ran on an H100, the others on an H200."""
_TRIALS = 2
_Rows = tuple[tuple[str, Mapping[str, str | int], str], ...]
_PERMITTED: _Rows = (
    ("5", {"STRESS": "NO_STRESS"}, "fails under stress alone"),
    ("5", {"WRITER": "CP_ASYNC_UNWAITED"}, "a fence is no wait for cp.async"),
    *(("5", {"READER": f"WGMMA_{x}", "FENCE": f"SELF_{how}"}, f"no barrier between the warps that write and read {x}")
      for x in "AB" for how in ("FENCE", "NONE", "WRONG_SPACE")),
    ("6", {"CONFLICTS": 0}, "fails under stress alone"),
    ("6", {"SIGNAL": "ISSUER_DELAY"}, "time orders nothing"),
    *(("12", {"WAITING": x}, "the scope of the wait") for x in ('".acquire.cta"', '".relaxed.cluster"')),
    *(("12", {"ARRIVAL": x, "STRESS": "NO_STRESS"}, "the scope of the arrival") for x in (
        '".release.cta"', '".relaxed.cluster"')),
    ("13", {"SIGNAL": "ARRIVE", "STRESS": 0}, "fails under stress alone"),
    ("13", {"SIGNAL": "PRODUCT_ARRIVE", "STRESS": 0}, "so many wavefronts failed in other cells (A22)"),
    ("2", {"READER": "BULK_STORE", "OVERWRITE": "COPY", "WAITED": 0}, "PTX does not order copies"),
    ("1", {}, "no barrier between the warps that write and read B"),
    ("10", {}, "PTX asks for the same in all warps and lanes"),
    ("9", {"CASE": "LOAD_THERE_CTA"}, "the address is not of .shared::cta"),
)  # fmt: skip
_KNOWN: _Rows = (
    ("3", {"BEFORE": "WAIT_READ"}, "ptxas moves the stores before wait_group.read; PTX orders them"),
    ("6", {"SIGNAL": "PRODUCT_ARRIVE"}, "a product that is waited for counts as a use (A22)"),
    ("13", {"SIGNAL": "PRODUCT_ARRIVE", "STRESS": 1}, "loads of other warps are not looked at (A22)"),
    ("9", {"CASE": "SHARED_TO_SHARED", "CLUSTER": 0}, "a launch without clusters is not told from one of one block"),
)


def recorded(paths: Iterable[Path] = RECORDED) -> dict[str, dict[str, Any]]:
    """Return what recordings have, by experiment and cell."""
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        for experiment, cells in json.loads(path.read_text())["found"].items():
            found.setdefault(experiment, {}).update(cells)
    return found


def reported(cell: Cell, trials: int = _TRIALS, **options: Any) -> str:
    """Return the kind of hazard that a launch of one block or cluster reports, or "" for none."""
    kernels = wm.cuda.load(source(cell), arch="sm_90a", name=f"{cell.program}.cu")
    device = wm.Device("sm_90a")
    words = [device.array(np.zeros(1 << 20, np.uint32)) for _ in range(2)]
    args = [*words, device.array(np.zeros(16, np.uint64)), np.int32(trials), np.uint32(1)]
    kernels["prepare"].launch(device, 4, 256, args, hazards="off")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernels["cell"].launch(
                device, cell.cluster or 1, cell.threads, args, shared=cell.shared, cluster=cell.cluster, **options
            )
    except HazardError as error:
        return str(error.hazard.kind)
    except WarpmmaError as error:
        return type(error).__name__
    return ""


def _stands_in(rows: _Rows, cell: Cell) -> str:
    """Return why, or "" if it does not."""
    chosen = dict(cell.choices).items()
    return next((why for key, choices, why in rows if key == cell.experiment and choices.items() <= chosen), "")


def permitted(cell: Cell) -> str:
    """Return why a cell that never failed may be reported."""
    return _stands_in(_PERMITTED, cell)


def known(cell: Cell) -> str:
    """Return why a cell that failed is not reported."""
    return _stands_in(_KNOWN, cell)


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each cell; 1 if a report and what failed do not agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recorded", type=Path, nargs="+", default=RECORDED, metavar="FILE")
    parser.add_argument("--only", nargs="+", metavar="EXPERIMENT", help="their numbers (default: all)")
    options = parser.parse_args(arguments)
    found, missed = recorded(options.recorded), 0
    for cell in CELLS:
        result = found.get(cell.experiment, {}).get(cell.name)
        if result is None or (options.only and cell.experiment not in options.only):
            continue
        times, kind = failed(cell, result), reported(cell)
        why = ""
        if bool(times) != bool(kind):
            why = known(cell) if times else permitted(cell)
            missed += not why
        verdict = "same" if bool(times) == bool(kind) else "known" if why else "WRONG"
        says = f"failed {times} times, {kind or 'not reported'}{f': {why}' * bool(why)}"
        print(f"{verdict:6}{cell.experiment:3}{cell.name}: {says}", flush=True)
    print(f"{missed} are wrong")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
