"""Record what launches with tensor maps leave on a GPU: `python -m lab.record.twin_outputs JOBS.npz --out X`.

`python -m lab.compare.hopper_twins --jobs` writes the launches. This needs NumPy, a GPU and its driver, and nothing
else of this project. Each launch is repeated; X.json gets the hash of each output, and X.npz the outputs.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.gpu.driver import Driver, Function
from lab.gpu.tensor_jobs import digest, read, run

__all__: list[str] = []

Array = npt.NDArray[Any]


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
