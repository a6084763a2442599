"""Compare random PTX programs on a GPU and on the simulator: `python -m lab.compare.programs --help`.

`--gpu` runs them on this machine's GPU, through its driver only; `--simulate` runs them on the simulator; with both,
all outputs are compared. `--record` stores the GPU's results: a hash of each program's output, and for every tenth
program hashes of each word over all threads and of each thread. Programs that crash ptxas or do not end are skipped and
listed. Without `--gpu`, the simulator is compared with the recording.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from lab.gpu.driver import Driver
from lab.programs.launches import Array
from lab.programs.on_gpu import run_on_gpu
from lab.programs.random_archive import RANDOM, digests, find, read_random, write_random
from lab.programs.random_programs import COUNT, launch, module, texts_hash

_KEPT = 200


def simulated(number: int) -> Array | str:
    """Run a program on the simulator; return its output or the error."""
    from lab.programs.simulating import simulate
    from warpmma import ptx

    try:
        outputs, _, reports = simulate(ptx.load(module([number])), launch(number))
        if any(report.hazards for report in reports):
            return f"hazards: {reports[0].hazards[0]}"
        return outputs["output"]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main(arguments: list[str] | None = None) -> int:
    """Run, record and compare; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--programs", type=int, nargs=2, default=(0, COUNT), metavar=("FIRST", "END"))
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth of them")
    parser.add_argument("--without", type=int, nargs="*", default=(), metavar="N", help="programs to leave out")
    parser.add_argument("--record", type=Path, metavar="FILE", help="what the GPU gave")
    parser.add_argument(
        "--keep", type=Path, metavar="FILE", help="whole outputs of programs that differ, the first 200"
    )
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    options = parser.parse_args(arguments)
    first, end = options.programs
    numbers = [n for n in range(first, end, options.every) if n not in options.without]
    outputs: dict[int, Array] | None = None
    if options.gpu:
        start = time.monotonic()
        outputs, left = run_on_gpu(numbers, options.workers)
        for number, why in sorted(left.items()):
            print(f"program {number} is left out: {why}", flush=True)
        numbers, about = sorted(outputs), Driver.about()
        print(f"{about['gpu']}: {len(outputs)} programs, {time.monotonic() - start:.0f} s", flush=True)
        if options.record:
            write_random(options.record, about | {"texts": texts_hash()}, outputs)
            print(f"{options.record}: {options.record.stat().st_size} bytes", flush=True)
    if not options.simulate:
        return 0
    recorded = None if outputs is not None else read_random(RANDOM)
    start, failed = time.monotonic(), 0
    different: dict[str, Array] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        for number, found in zip(numbers, pool.map(simulated, numbers, chunksize=8), strict=True):
            if isinstance(found, str):
                why = found
            elif outputs is not None:
                places = np.argwhere(found != outputs[number])
                if len(places) and len(different) < _KEPT:
                    different[str(number)] = outputs[number]
                why = (
                    "" if not len(places) else f"{len(places)} words differ, first thread and word {places[0].tolist()}"
                )
            else:
                assert recorded is not None
                why = find(recorded, number, digests(found))
            failed += bool(why)
            if why:
                print(f"program {number}: {why.splitlines()[0][:300]}", flush=True)
    if options.keep:
        np.savez_compressed(options.keep, allow_pickle=False, **different)
    print(f"{len(numbers)} programs, {failed} differ or fail, {time.monotonic() - start:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
