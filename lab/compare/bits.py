"""Compare the rows of `bits`, `collectives` and `movmatrix` with the GPU, on operands made for them.

`warpmma compare` gives all rows similar inputs; these need more: positions and lengths near the width, membermasks that
split a warp into several groups, repeated values, every segment and clamp of `shfl`. Lanes without a group are
inactive, and lanes whose results are undefined are not compared. `--record FILE` stores some warps of each: a table for
each row and immediate, with inputs `a0`.., outputs `d0`.. and `compared`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.gpu.row_jobs import OperationGpu, RowJob, different_lanes, lane_shown
from warpmma.operations import Operation, operation
from warpmma.operations.arithmetic import integers
from warpmma.operations.warp import collectives
from warpmma.registers import LANES

Array = npt.NDArray[Any]

_CORNERS = (0, 1, 2, 0x7F, 0x80, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF)
_CORNERS_64 = (*_CORNERS, 0x100000000, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFF00000000, 0xFFFFFFFFFFFFFFFF)


def values(kind: str, warps: int, rng: np.random.Generator) -> Array:
    """Make registers: random, with few bits, or corner cases; many, few or one value per warp."""
    shape = (warps, LANES)
    if kind == "pred":
        return rng.random(shape) < rng.choice([0.0, 0.03, 0.5, 0.97, 1.0], (warps, 1))
    width = int(kind[1:])
    dtype = np.dtype(f"uint{width}")
    made = rng.integers(0, 2**width, shape, dtype)
    made = np.where(rng.random(shape) < 0.3, made & rng.integers(0, 2**width, shape, dtype), made)
    corners = np.array(_CORNERS_64, np.uint64).astype(dtype)
    made = np.where(rng.random(shape) < 0.3, rng.choice(corners, shape), made)
    # In half of the warps the lanes share 1, 2, ... values.
    few = rng.integers(1, rng.choice([2, 3, 33], warps))[:, None]
    repeated = np.take_along_axis(made, rng.integers(0, few, shape), axis=1)
    return np.where(rng.random((warps, 1)) < 0.5, repeated, made)


def amounts(warps: int, rng: np.random.Generator) -> Array:
    """Shift counts, positions, lengths: above 64, up to 255, and with higher bits set."""
    shape = (warps, LANES)
    small = rng.integers(0, rng.choice([34, 70, 256], shape), dtype=np.uint32)
    return np.where(rng.random(shape) < 0.2, rng.integers(0, 2**32, shape, np.uint32), small)


def segments(warps: int, rng: np.random.Generator) -> Array:
    """Operand c of `shfl`: every clamp and segment mask; those of CUDA's widths; and bits that are ignored."""
    shape = (warps, LANES)
    width = 1 << rng.integers(0, 6, shape)
    usual = (32 - width) << 8 | np.where(rng.random(shape) < 0.5, 0x1F, 0)
    c = np.where(rng.random(shape) < 0.3, usual, rng.integers(0, 2**13, shape)).astype(np.uint32)
    uniform = np.where(rng.random((warps, 1)) < 0.5, c[:, :1], c)
    return np.where(rng.random(shape) < 0.2, rng.integers(0, 2**32, shape, np.uint32), uniform)


def membermasks(warps: int, rng: np.random.Generator, groups: int = 4) -> Array:
    """Full masks, or masks of up to `groups` groups of lanes; lanes without a group have 0."""
    scattered = rng.integers(0, rng.integers(1, groups + 1, (warps, 1)), (warps, LANES))
    runs = np.sort(scattered, axis=1)
    group = np.where(rng.random((warps, 1)) < 0.5, scattered, runs)
    group = np.where(rng.random((warps, 1)) < 0.4, 0, group)
    same = group[:, :, None] == group[:, None, :]
    mask = np.bitwise_or.reduce(np.where(same, np.uint32(1) << np.arange(LANES, dtype=np.uint32), np.uint32(0)), axis=2)
    absent = (group == 0) & (rng.random((warps, 1)) < 0.3) & (mask != 0xFFFFFFFF)
    return np.where(absent, np.uint32(0), mask)


def inputs(row: Operation, warps: int, rng: np.random.Generator, groups: int) -> tuple[Array, ...]:
    """Operands of a row, except immediates."""
    made = [values(kind, warps, rng) for kind in row.inputs if kind != "imm"]
    name = row.mnemonic.split(".")[0]
    for i in {"shl": (1,), "shr": (1,), "shf": (2,), "bfe": (1, 2), "bfi": (2, 3), "shfl": (1,)}.get(name, ()):
        made[i] = amounts(warps, rng)
    if name == "shfl":
        made[2] = segments(warps, rng)
    if row.membermask:
        made[-1] = membermasks(warps, rng, groups)
    return tuple(np.ascontiguousarray(x) for x in made)


def taking_part(row: Operation, given: tuple[Array, ...], warps: int) -> Array:
    """Lanes that execute: if there is a membermask, those with one that is not 0."""
    if row.membermask:
        return np.asarray(given[-1] != 0)
    return np.ones((warps, LANES), bool)


def ours(row: Operation, given: tuple[Array, ...], immediates: tuple[int, ...], active: Array) -> tuple[Any, Array]:
    """Return outputs, and which lanes to compare."""
    arrays, numbers = iter(given), iter(immediates)
    operands = [next(numbers) if kind == "imm" else next(arrays) for kind in row.inputs]
    who = active if row.lanes else None
    return row(*operands, active=who, undefined="zero"), active & ~row.undefined_lanes(*operands, active=who)


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--lanes", type=int, default=5 << 18, help="lanes for each row, over all its immediates")
    parser.add_argument("--groups", type=int, default=4, help="at most so many groups in a warp")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="what a mnemonic begins with")
    parser.add_argument("--record", type=Path, metavar="FILE", help="record some warps of each row here")
    parser.add_argument("--keep", type=int, default=2, help="warps to record for each row")
    options = parser.parse_args(arguments)
    names = [m for form in (*integers.FORMS, *collectives.FORMS) for m in form.mnemonics]
    rows = [operation(m) for m in (*names, "movmatrix.sync.aligned.m8n8.trans.b16")]
    rows = [r for r in rows if options.target in r.targets and r.mnemonic.startswith(options.only)]
    jobs = [
        (row, RowJob(row.mnemonic, x)) for row in rows for x in (zip(range(256)) if "imm" in row.inputs else [()])
    ]  # fmt: skip
    gpu, recorded = OperationGpu([job for _, job in jobs], options.target), dict[str, Array]()
    totals = {row.mnemonic: [0, 0] for row in rows}
    rng = np.random.default_rng(options.seed)
    for row, job in jobs:
        part = 256 if "imm" in row.inputs else 1
        warps = -(-options.lanes // part // 256) * 8
        given = inputs(row, warps, rng, options.groups)
        active = taking_part(row, given, warps)
        job = job._replace(lanes=warps * LANES)
        got, (expected, compared) = gpu.run(job, given), ours(row, given, job.immediates, active)
        unequal = different_lanes(compared, got, expected)
        total = totals[row.mnemonic]
        total[0], total[1] = total[0] + int(compared.sum()), total[1] + int(unequal.sum())
        for place in np.argwhere(unequal)[:1].tolist():
            print(f"  {job}: {lane_shown(given, got, expected, place)}", flush=True)
        if options.record and (not job.immediates or job.immediates[0] % 16 == job.immediates[0] // 16):
            arrays = {**{f"a{i}": x for i, x in enumerate(given)}, **{f"d{i}": x for i, x in enumerate(got)}}
            arrays["compared"] = compared
            table = np.empty((options.keep, LANES), [(key, x.dtype) for key, x in arrays.items()])
            for key, x in arrays.items():
                table[key] = x[: options.keep]
            recorded[str(job)] = table
    for mnemonic, (compared_lanes, differences) in totals.items():
        print(f"{differences:8d} of {compared_lanes:8d} lanes differ: {mnemonic}")
    lanes, wrong = (sum(x[i] for x in totals.values()) for i in (0, 1))
    least = min(x[0] for x in totals.values())
    print(f"{gpu.device}: {len(rows)} rows, {lanes} lanes (at least {least} each), {wrong} differences")
    if options.record:
        np.savez_compressed(options.record, device=np.array(gpu.device), **recorded)  # type: ignore[arg-type]
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
