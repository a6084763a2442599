"""Compare every operation around `mma` with the GPU, lane by lane: `python -m lab.compare.operations --help`.

Needs the GPU, `ptxas` on the PATH and CuPy; was run on an H200. Each row of `warpmma.operations.operations()`
determines its PTX kernel: its `syntax` gives the statement, its types the loads and stores, with a thread per lane.
`--record FILE` stores some lanes of every operation, for tests on machines without a GPU (`recorded_lanes` reads them).

Immediates take the values 0 to 255. If a row has a membermask, half of the warps get a partial one, and the lanes that
it does not name skip the instruction.
"""

from __future__ import annotations

import argparse
import fnmatch
import itertools
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.generators import operation_inputs, signature
from lab.gpu.lane_archives import LaneRecorder
from lab.gpu.row_jobs import (
    OperationGpu,
    RowJob,
    compared_lanes,
    different_lanes,
    lane_shown,
    row_immediates,
    row_simulated,
)
from warpmma.operations import operation, operations

Array = npt.NDArray[Any]


def _ours(job: RowJob) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    given = operation_inputs(job.mnemonic, job.lanes, job.seed)
    return given, row_simulated(operation(job.mnemonic), given, job.immediates)


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--lanes", type=int, default=1 << 20, help="lanes for each operation, over all its immediates")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="mnemonics, with * and ?")
    parser.add_argument("--modules", default="", help="modules of rows, such as arithmetic.floats,warp.collectives")
    parser.add_argument("--record", type=Path, metavar="FILE", help="record some lanes of each operation here")
    parser.add_argument("--keep", type=int, default=64, help="lanes to record for each operation")
    parser.add_argument("--examples", type=int, default=1, help="differing lanes to print for each operation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=16)
    options = parser.parse_args(arguments)
    modules = [import_module(f"warpmma.operations.{n}") for n in options.modules.split(",") if n]
    wanted = {mnemonic for module in modules for form in module.FORMS for mnemonic in form.mnemonics}
    rows = [r for r in operations(options.target) if fnmatch.fnmatch(r.mnemonic, options.only)]
    rows = [r for r in rows if not wanted or r.mnemonic in wanted]
    if not rows:
        print("no such operation")
        return 2
    jobs = []
    for row in sorted(rows, key=signature):
        values = row_immediates(row)
        # Enough lanes remain after those that are skipped or undefined.
        lanes = -(-options.lanes * (2 if row.membermask else 1) // len(values) // 256) * 256
        jobs += [RowJob(row.mnemonic, x, lanes, options.seed) for x in values]
    start = time.monotonic()
    totals: dict[str, list[int]] = {}
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        # A few at a time: the results of all would not fit into memory.
        waiting, pending = iter(jobs), []
        pending = [(job, pool.submit(_ours, job)) for job in itertools.islice(waiting, 3 * options.workers)]
        gpu, recorder = OperationGpu(jobs, options.target), LaneRecorder(options.keep)
        print(f"{len(rows)} operations, {len(jobs)} kernels built after {time.monotonic() - start:.0f} s", flush=True)
        while pending:
            job, future = pending.pop(0)
            given, expected = future.result()
            for job_next in itertools.islice(waiting, 1):
                pending.append((job_next, pool.submit(_ours, job_next)))
            row, got = operation(job.mnemonic), gpu.run(job, given)
            lanes = compared_lanes(row, given, job.immediates)
            bad = different_lanes(lanes, got, expected)
            total = totals.setdefault(row.mnemonic, [0, 0])
            total[0] += int(np.broadcast_to(lanes, bad.shape).sum())
            total[1] += int(bad.sum())
            for place in np.argwhere(bad)[: options.examples]:
                print(f"  {bad.sum():7d} {job}: {lane_shown(given, got, expected, place)}", flush=True)
            recorder.add(job, given, got)
    number, differences = (sum(x[i] for x in totals.values()) for i in (0, 1))
    least = min(x[0] for x in totals.values())
    if options.record:
        recorder.save(options.record, gpu.device)
    print(f"{gpu.device}: {len(totals)} operations, {number} lanes (at least {least} each), {differences} differences")
    print(f"{sum(x[1] > 0 for x in totals.values())} operations differ; {time.monotonic() - start:.0f} s")
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
