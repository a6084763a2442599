"""Record lanes of every operation around `mma`: `python -m lab.record.lanes --help`.

Needs the GPU, `ptxas` on the PATH and CuPy. `warpmma compare` compares more; the archives are for tests on machines
without a GPU (`recorded_lanes` reads them): `h200_operations_arithmetic.npz`, `h200_operations_more.npz`, and with
`--modules arithmetic.divisions --lanes 512` `h200_quotients.npz`. Of `div`, `rcp` and `sqrt` in IEEE 754's roundings,
all pairs of zeros, subnormal numbers, limits, infinities and NaN come first. Differences from the rows are printed.

Immediates take the values 0 to 255. If a row has a membermask, half of the warps get a partial one, and the lanes that
it does not name skip the instruction.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, cast

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
from warpmma.formats import FloatFormat, floating
from warpmma.operations import Operation, operation, operations
from warpmma.operations.arithmetic import divisions
from warpmma.registers import LANES

Array = npt.NDArray[Any]

_DRAWN = 256  # lanes, at least: operands are drawn for so many
_DIVISIONS = frozenset(mnemonic for form in divisions.FORMS for mnemonic in form.mnemonics)


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


def inputs(job: RowJob) -> tuple[Array, ...]:
    """Return the operands to record."""
    lanes = -(-job.lanes // _DRAWN) * _DRAWN
    drawn = tuple(x[: job.lanes // LANES] for x in operation_inputs(job.mnemonic, lanes, job.seed))
    if job.mnemonic not in _DIVISIONS:
        return drawn
    return tuple(np.concatenate(x) for x in zip(special_operands(operation(job.mnemonic)), drawn, strict=True))


def main(arguments: list[str] | None = None) -> int:
    """Record; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT.npz")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--lanes", type=int, default=64, help="lanes of each operation and choice of immediates")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="mnemonics, with * and ?")
    parser.add_argument("--modules", default="", help="modules of rows, such as arithmetic.floats,warp.collectives")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.lanes < LANES or options.lanes % LANES:
        parser.error(f"--lanes is a multiple of {LANES}")
    modules = [import_module(f"warpmma.operations.{n}") for n in options.modules.split(",") if n]
    wanted = {mnemonic for module in modules for form in module.FORMS for mnemonic in form.mnemonics}
    rows = [r for r in operations(options.target) if fnmatch.fnmatch(r.mnemonic, options.only)]
    rows = [r for r in rows if not wanted or r.mnemonic in wanted]
    if not rows:
        print("no such operation")
        return 2
    jobs = [
        RowJob(row.mnemonic, x, options.lanes, options.seed) for row in sorted(rows, key=signature)
        for x in row_immediates(row)
    ]  # fmt: skip
    gpu, recorder, number, differences = OperationGpu(jobs, options.target), LaneRecorder(), 0, 0
    for job in jobs:
        row, given = operation(job.mnemonic), inputs(job)
        got, expected = gpu.run(job, given), row_simulated(row, given, job.immediates)
        lanes = compared_lanes(row, given, job.immediates)
        bad = different_lanes(lanes, got, expected)
        for place in np.argwhere(bad)[:1]:
            print(f"  {bad.sum():7d} {job}: {lane_shown(given, got, expected, place)}", flush=True)
        number += int(np.broadcast_to(lanes, bad.shape).sum())
        differences += int(bad.sum())
        recorder.add(job, given, got)
    recorder.save(options.out, gpu.device)
    print(f"{gpu.device}: {len(rows)} operations, {number} lanes, {differences} differences")
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
