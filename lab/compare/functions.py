"""Compare approximate functions with the GPU on all their operands.

Needs the GPU, `ptxas` on the PATH and CuPy; was run on an H200. Every form with one 32-bit operand is compared on all
2^32 operands; 16-bit forms on all, packed ones with each element paired with a random one; forms on upper words of f64
on all of them, each with a random lower word. Divisions and `rsqrt.approx.f64` get as many operands as `--pairs` says:
any codes, and codes near each other, near subnormal numbers or near the end of the range.

With `--target` it decides whether a GPU of another target computes the same as an H200.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.gpu.row_jobs import OperationGpu, RowJob, different_lanes, lane_shown
from warpmma._progress import for_each
from warpmma.hardware import Operands, function_plan
from warpmma.operations import Operation, operation
from warpmma.operations.arithmetic import approximations, divisions
from warpmma.registers import LANES

Array = npt.NDArray[Any]

CHUNK = 1 << 22  # lanes that a thread compares at a time


def _compared(
    row: Operation, gpu: OperationGpu, total: int, operands: Operands, options: argparse.Namespace
) -> tuple[int, list[str]]:  # fmt: skip
    """Return how many of the first operands differ, and some of them; each thread computes a range of operands."""
    counts, shown, lock = [0], list[str](), Lock()

    def run(first: int) -> None:
        given = tuple(x.reshape(-1, LANES) for x in operands(first, min(CHUNK, total - first)))
        ours, got = row(*given), gpu.run(RowJob(row.mnemonic), given)
        unequal = different_lanes(np.ones((1, LANES), bool), got, ours)
        if unequal.any():
            with lock:
                counts[0] += int(unequal.sum())
                shown.extend(lane_shown(given, got, ours, place) for place in np.argwhere(unequal)[: options.examples])

    def progress(done: int, of: int) -> None:
        if sys.stderr.isatty():
            print(f"{row.mnemonic} {done / of:4.0%}", end="\r", file=sys.stderr)

    for_each(run, range(0, total, CHUNK), options.threads, progress)
    return counts[0], shown[: options.examples]


def _warps(text: str) -> int:
    """Parse a number of operands, a positive multiple of a warp."""
    number = int(text)
    if number < LANES:
        raise argparse.ArgumentTypeError(f"{number} operands are no warp; at least {LANES}")
    return number // LANES * LANES


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="mnemonics, with * and ?")
    parser.add_argument("--ieee", action="store_true", help="div, rcp and sqrt with IEEE's roundings instead")
    parser.add_argument("--pairs", type=_warps, default=1 << 30, help="operands of divisions and rsqrt.approx.f64")
    parser.add_argument("--most", type=_warps, default=1 << 32, help="operands of a form at most, for a quick look")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--examples", type=int, default=3, help="differing operands to print for each form")
    options = parser.parse_args(arguments)
    forms = divisions.FORMS if options.ieee else approximations.FORMS
    names = [name for form in forms for name in form.mnemonics if fnmatch.fnmatch(name, options.only)]
    rows = [row for row in map(operation, names) if options.target in row.targets]
    if not rows:
        print(f"no such function of {options.target} is like {options.only}")
        return 2
    if options.threads < 1:
        parser.error("--threads is positive")
    gpu = OperationGpu([RowJob(row.mnemonic) for row in rows], options.target)
    print(gpu.device, flush=True)
    compared = differences = 0
    start = time.monotonic()
    for row in rows:
        total, operands = function_plan(row, options.pairs)
        total, began = min(total, options.most), time.monotonic()
        bad, shown = _compared(row, gpu, total, operands, options)
        print(f"{row.mnemonic:24} {total:13,} {bad:13,} differ {time.monotonic() - began:6.1f} s", flush=True)
        for text in shown:
            print(f"  {text}", flush=True)
        compared, differences = compared + total, differences + bad
    print(f"{len(rows)} forms, {compared:,} operands, {differences:,} differences; {time.monotonic() - start:.0f} s")
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
