"""Compare `div`, `rcp` and `sqrt` with the GPU where it is hardest: `python -m lab.compare.quotients --help`.

Needs the GPU, `ptxas` on the PATH and CuPy. For each row: all pairs of zeros, subnormal numbers, limits, infinities and
NaN; and operands of `lab.generators`. `--record FILE` stores the former, and some of the latter, for tests on machines
without a GPU (`recorded_lanes` reads them).
`python -m lab.compare.operations --modules arithmetic.divisions` tries more of the latter.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from lab.generators import operation_inputs
from lab.gpu.lane_archives import LaneRecorder
from lab.gpu.row_jobs import OperationGpu, RowJob, different_lanes, lane_shown, row_simulated
from warpmma.formats import FloatFormat, floating
from warpmma.operations import Operation, operation
from warpmma.operations.arithmetic import divisions
from warpmma.registers import LANES

Array = npt.NDArray[Any]


def special_codes(fmt: FloatFormat) -> Array:
    """Zeros, subnormal numbers, the least normal numbers, numbers near 1, the largest ones, infinities, NaN."""
    bits = fmt.fraction_bits
    least, one, infinity = 1 << bits, fmt.bias << bits, cast(int, fmt.inf_code)
    codes = [0, 1, 2, 3, least // 2, least // 2 + 1, least - 2, least - 1, least, least + 1, least + 2]
    codes += [2 * least - 1, 2 * least, 2 * least + 1]
    codes += [one + x for x in (-least, 1 - least, -2, -1, 0, 1, 2, least // 2, least - 1, least, least + 1)]
    codes += [one + 2 * least + 3]
    codes += [infinity + x for x in (-2 * least - 1, -2 * least, 1 - 2 * least, -least - 1, -least, 1 - least, -2, -1)]
    codes += [infinity + x for x in (0, 1, 0x1234, least // 2 - 1, least // 2, least // 2 + 0x1234)]
    return np.array([code | sign for sign in (0, fmt.sign_bit) for code in codes], fmt.code_dtype)


def special_operands(row: Operation) -> tuple[Array, ...]:
    """Make registers `[warp, lane]` of all special codes, or all pairs; the first ones fill up the last warp."""
    codes = special_codes(floating(row.types[0]))
    pairs = [np.repeat(codes, len(codes)), np.tile(codes, len(codes))] if len(row.inputs) == 2 else [codes]
    return tuple(np.resize(x, (-(-len(x) // LANES), LANES)) for x in pairs)


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--lanes", type=int, default=1 << 20, help="lanes for each row, besides special operands")
    parser.add_argument("--record", type=Path, metavar="FILE", help="record special operands and some of the others")
    parser.add_argument("--keep", type=int, default=512, help="of the others, lanes to record for each row")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.lanes < LANES or options.lanes % LANES:
        parser.error(f"--lanes is a multiple of {LANES}")
    names = [mnemonic for form in divisions.FORMS for mnemonic in form.mnemonics]
    jobs = [RowJob(mnemonic, (), options.lanes, options.seed) for mnemonic in names]
    gpu, recorder, number, differences = OperationGpu(jobs, options.target), LaneRecorder(sys.maxsize), 0, 0
    for job in jobs:
        row = operation(job.mnemonic, options.target)
        special, others = special_operands(row), operation_inputs(job.mnemonic, job.lanes, job.seed)
        given = tuple(np.concatenate(each) for each in zip(special, others, strict=True))
        got, expected = gpu.run(job, given), row_simulated(row, given)
        bad = different_lanes(np.ones((1, LANES), bool), got, expected)
        for place in np.argwhere(bad)[:1]:
            print(f"  {bad.sum():7d} {job}: {lane_shown(given, got, expected, place)}", flush=True)
        number, differences = number + bad.size, differences + int(bad.sum())
        kept = len(special[0]) + options.keep // LANES
        recorder.add(job, [x[:kept] for x in given], [x[:kept] for x in got])
    if options.record:
        recorder.save(options.record, gpu.device)
    print(f"{gpu.device}: {len(jobs)} rows, {number} lanes, {differences} differences")
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
