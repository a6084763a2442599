"""Solve the tables of the special-function unit from what a GPU computes: `python -m lab.solve.functions --help`.

    python -m lab.solve.functions FOLDER --record     # needs an sm_90 GPU, ptxas on the PATH, CuPy
    python -m lab.solve.functions FOLDER --simulate   # results of our own rules instead
    python -m lab.solve.functions FOLDER              # continue with FOLDER

All need SciPy (the extra `tools`). FOLDER receives the results of every position of every table (`NAME.npz`, 5 MB), the
solutions of each segment (`segments.jsonl`), and in the end `report.txt` and `tables.json` with the common parameters
and rows of all segments. It can be stopped and continued.

Only the tables' names and sizes and the squarer are used as given. V of a segment is A + B x + D q(x), in units of
2^-41; each result bounds V by two integers.

1. Linear programs give the least and the greatest B and D of all real A, B, D that satisfy every result. They start
   with few results, and those that a solution violates are added until there are none.
2. For every pair of integers B and D within these bounds, the least and the greatest integer A that satisfy all results
   are computed exactly.
3. D = 2 C2 and B = C1 2^s1 in units of 2^-p: the largest powers of two that divide all segments' give p and s1.
   A = C0 2^s0 + K: s0 is the largest with a K that all segments share. With few rows, s0 and s1 could be coincidences;
   they are then 15 and 0, and C0 2^s0 + K is compared.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.solve.positions import POINT, VIEWS, Codes, FunctionGpu, Run, View, inputs, save_archive, simulated
from warpmma.arithmetic import interpolators

Int = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]

SLACK = 0.05  # how far beyond the linear programs' bounds integers are tried: far more than these can be off
MOST_PAIRS = 10_000
FEW = 4  # rows


@dataclass(frozen=True, kw_only=True)
class Segment:
    """The solutions of a segment.

    Attributes
    ----------
    table : str
    segment : int
    bounds : tuple of float
        The least and the greatest real B, then D.
    triples : tuple of (int, int, int, int)
        Integers B and D, and the least and the greatest A with them.
    """

    table: str
    segment: int
    bounds: tuple[float, ...]
    triples: tuple[tuple[int, int, int, int], ...]


def bounds(least: Int, greatest: Int, x: Int, q: Int) -> list[float] | None:
    """Return the least and the greatest B and D, or None where no A, B, D satisfy all results (step 1)."""
    scale = np.array([1.0, 2.0 ** int(x[-1]).bit_length(), 2.0**15])
    matrix = np.stack([np.ones(len(x)), x / scale[1], q / scale[2]], axis=1)
    ends = [0, len(x) // 2, len(x) - 1]
    middle = (least[ends] + greatest[ends]) / 2
    a, b, d = (round(v) for v in np.linalg.solve(matrix[ends], middle) / scale)
    near = a + b * x + d * q  # the remainder is small, and exact in float64
    unit = float(np.median(greatest - least + 1))
    low, high = (least - near) / unit, (greatest - near) / unit
    rows = np.unique(np.linspace(0, len(x) - 1, 256).astype(np.int64))
    found = []
    for which, offset in ((1, b), (2, d)):
        for sign in (1.0, -1.0):
            cost = sign * np.eye(3)[which]
            solution, rows = _extreme(cost, matrix, low, high, rows)
            if solution is None:
                return None
            found.append(offset + float(solution[which]) * unit / float(scale[which]))
    return found


def _extreme(cost: Float, matrix: Float, low: Float, high: Float, rows: Int) -> tuple[Float | None, Int]:
    """Solve a linear program over few rows, adding those that the solution violates; return it and the rows."""
    from scipy.optimize import linprog  # imported here, so that --help and the like do not need it

    while True:
        part = matrix[rows]
        limits = np.concatenate([high[rows], -low[rows]])
        answer = linprog(cost, A_ub=np.concatenate([part, -part]), b_ub=limits, bounds=[(None, None)] * 3)
        if answer.status == 2:
            return None, rows
        if answer.status != 0:
            raise RuntimeError(f"the linear program was not solved: {answer.message}")
        value = matrix @ answer.x
        over = np.maximum(value - high, low - value)
        blocks = np.array_split(over, 64)
        starts = np.cumsum([0, *(len(block) for block in blocks[:-1])])
        worst = np.array([start + int(block.argmax()) for start, block in zip(starts, blocks, strict=True)])
        added = np.setdiff1d(worst[over[worst] > 1e-7], rows)
        if not len(added):
            return answer.x, rows
        rows = np.union1d(rows, added)


def integers(least: Int, greatest: Int, x: Int, q: Int, found: Sequence[float]) -> Iterator[tuple[int, int, int, int]]:
    """Yield every B and D within bounds that satisfy all results, with the least and the greatest A (step 2)."""
    b0, b1, d0, d1 = found
    bs = range(int(np.ceil(b0 - SLACK)), int(np.floor(b1 + SLACK)) + 1)
    ds = range(int(np.ceil(d0 - SLACK)), int(np.floor(d1 + SLACK)) + 1)
    if len(bs) * len(ds) > MOST_PAIRS:
        raise RuntimeError(f"the results leave {len(bs)} x {len(ds)} pairs")
    for b in bs:
        for d in ds:
            rest = b * x + d * q
            low, high = int((least - rest).max()), int((greatest - rest).min())
            if low <= high:
                yield b, d, low, high


def solve_segment(table: str, segment: int, seen: Sequence[tuple[View, Codes]]) -> Segment:
    """Solve a segment from its results, through one view or several."""
    parts = []
    for view, results in seen:
        told = slice(view.first_told if segment == 0 else 0, None)
        try:
            brackets = view.bracket(results[told])
        except ValueError as error:
            print(f"segment {segment}: {error}", file=sys.stderr)
            return Segment(table=table, segment=segment, bounds=(), triples=())
        parts.append((*brackets, *(values[told] for values in inputs(view.interpolator.bits))))
    least, greatest, x, q = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(x, kind="stable")
    least, greatest, x, q = least[order], greatest[order], x[order], q[order]
    found = bounds(least, greatest, x, q)
    triples = () if found is None else tuple(integers(least, greatest, x, q, found))
    return Segment(table=table, segment=segment, bounds=tuple(found or ()), triples=triples)


def record(folder: Path, run: Run, device: str, views: Sequence[View]) -> None:
    """Write the results of every position, view by view; keep existing ones."""
    for view in views:
        path = folder / f"{view.name}.npz"
        if path.exists():
            continue
        start = time.monotonic()
        results = run(view.function, view.operands()).astype(np.int64).reshape(view.segments, -1)
        steps = np.diff(results, axis=1)
        kind = next(t for t in (np.int8, np.int16, np.int64) if np.array_equal(steps.astype(t), steps))
        save_archive(path, {"device": np.array(device), "first": results[:, 0], "steps": steps.astype(kind)})
        print(f"{view.name}: {results.size} results, {time.monotonic() - start:.1f} s", flush=True)


def recorded(folder: Path, view: View) -> tuple[str, Codes]:
    """Read device and `[segment, x]` results of a view."""
    with np.load(folder / f"{view.name}.npz", allow_pickle=False) as archive:
        first, steps = archive["first"], archive["steps"]
        results = np.cumsum(np.concatenate([first[:, None], steps], axis=1, dtype=np.int64), axis=1)
        return str(archive["device"]), results.astype(np.uint32)


def solved(folder: Path) -> dict[tuple[str, int], Segment]:
    """Read the solved segments; ignore an incomplete line."""
    path, found = folder / "segments.jsonl", {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            fields: dict[str, Any] = json.loads(line)
        except json.JSONDecodeError:
            continue
        triples = tuple((int(b), int(d), int(low), int(high)) for b, d, low, high in fields["triples"])
        segment = Segment(**fields | {"bounds": tuple(fields["bounds"]), "triples": triples})
        found[segment.table, segment.segment] = segment
    return found


def solve(folder: Path, tables: Sequence[str], processes: int) -> tuple[dict[str, list[Segment]], set[str]]:
    """Solve the remaining segments, writing each one when it is solved; return all, and the devices."""
    done, devices = solved(folder), set()
    start = time.monotonic()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool, (folder / "segments.jsonl").open("a") as file:
        file.write("\n")  # after an incomplete line
        for table in tables:
            seen = [(view, *recorded(folder, view)) for view in VIEWS if view.table == table]
            devices |= {device for _, device, _ in seen}
            missing = [i for i in range(seen[0][0].segments) if (table, i) not in done]
            jobs = [
                pool.submit(solve_segment, table, i, [(view, results[i]) for view, _, results in seen]) for i in missing
            ]
            try:
                for job in as_completed(jobs):
                    segment = job.result()
                    done[table, segment.segment] = segment
                    file.write(json.dumps(asdict(segment)) + "\n")
                    file.flush()
            except BaseException:  # stopped: finish the running jobs and leave the rest
                pool.shutdown(cancel_futures=True)
                raise
            print(f"{table}: {len(missing)} segments solved, {time.monotonic() - start:.0f} s", flush=True)
    segments = {table: [done[table, i] for i in range(len(interpolators()[table].rows))] for table in tables}
    return segments, devices


@dataclass(frozen=True, kw_only=True)
class Table:
    """The parameters that all segments of a table share, and their rows (step 3).

    Attributes
    ----------
    point : int
    shifts : (int, int)
    constants : list of (int, int)
        Intervals of K that all segments can have, in units of 2^-point.
    rows : list of list of (int, int, int)
        C0, C1, C2 of each segment that satisfy all results with the least K.
    """

    point: int
    shifts: tuple[int, int]
    constants: list[tuple[int, int]]
    rows: list[list[tuple[int, int, int]]]


def share(segments: Sequence[Segment]) -> Table:
    """Find the parameters that all segments share."""
    left = [list(segment.triples) for segment in segments]
    q_power, left = _largest_power(left, 1)
    x_power, left = _largest_power(left, 0)
    if not q_power:
        raise ValueError("coefficients of q(x) that are odd in units of 2^-41")
    lowest = min(q_power - 1, x_power)
    point, s1 = POINT - lowest, x_power - lowest
    constants: list[tuple[int, int]] = []
    if len(segments) > FEW:
        s0 = next(s for s in range(POINT, -1, -1) if (constants := shared_constants(left, s, lowest)))
    else:
        s0, s1 = 15, 0
        constants = shared_constants(left, s0, lowest)
    step, rows = 1 << s0, []
    for triples in left:
        k = constants[0][0] if constants else 0
        rows.append([
            (c0, b >> lowest + s1, d >> lowest + 1)
            for b, d, low, high in triples
            for c0 in range(-(-(_up(low, lowest) - k) // step), ((high >> lowest) - k) // step + 1)
        ])  # fmt: skip
    return Table(point=point, shifts=(s0, s1), constants=constants, rows=rows)


def _up(value: int, power: int) -> int:
    return -(-value >> power)


def _largest_power(left: list[list[Any]], which: int) -> tuple[int, list[list[Any]]]:
    """Return the largest power of two that divides a coefficient of every segment, and the triples that it divides."""
    for power in range(POINT, -1, -1):
        kept = [[t for t in triples if t[which] % (1 << power) == 0] for triples in left]
        if all(kept):
            return power, kept
    raise ValueError("a segment without any triple")


def shared_constants(left: Sequence[Sequence[tuple[int, ...]]], s0: int, lowest: int) -> list[tuple[int, int]]:
    """Return the intervals of K, below 2^s0, that every segment can have, in units of 2^(lowest - 41)."""
    step, shared = 1 << s0, [(0, (1 << s0) - 1)]
    for triples in left:
        each = []
        for *_, low, high in triples:
            first, last = _up(low, lowest), high >> lowest
            if last - first >= step - 1:
                each = [(0, step - 1)]
                break
            if first <= last:
                k, width = first % step, last - first
                each += [(k, min(k + width, step - 1)), *([(0, k + width - step)] if k + width >= step else [])]
        shared = sorted({(max(a, c), min(b, d)) for a, b in shared for c, d in each if max(a, c) <= min(b, d)})
    return shared


def compared(name: str, segments: Sequence[Segment], table: Table) -> Iterator[str]:
    """Describe the solutions of a table, and whether interpolation.json is one: the last line says "unique"."""
    ours = interpolators()[name]
    pairs = max(len(segment.triples) for segment in segments)
    spans = [high - low + 1 for segment in segments for *_, low, high in segment.triples]
    few = " (s0 and s1 taken: of so few rows they are not told)" if len(segments) <= FEW else ""
    ks = ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in table.constants) or "none"
    c0s = max(len(rows) for rows in table.rows)
    yield f"{name}: {len(segments)} segments; p {table.point}, shifts {list(table.shifts)}{few}; K {ks}"
    yield (
        f"  a segment leaves at most {pairs} pair(s) of C1 and C2, in units of 2^-41; {min(spans)} to {max(spans)} "
        f"C0 2^s0 + K, in the same; with the least K at most {c0s} C0"
    )
    left = [
        any((b, d) == (t[0], t[1]) and t[2] <= a <= t[3] for t in segment.triples)
        for segment, (a, b, d) in zip(segments, ours.scaled_rows(POINT).tolist(), strict=True)
    ]
    told = f"p {ours.point}, shifts {list(ours.shifts)}, K {ours.constant}"
    yield f"  interpolation.json ({told}): {sum(left)} of its {len(left)} rows are left"
    if not all(left) or pairs > 1 or c0s != 1 or len(table.constants) != 1:
        yield "  NOT determined, or not ours"
        return
    first, last = table.constants[0]
    grid = "" if table.shifts == ours.shifts else "; ours are written with other shifts, for the same sum"
    if _terms(table.rows, table.point, table.shifts) != _terms([[row] for row in ours.rows], ours.point, ours.shifts):
        yield "  NOT ours: C0 2^s0 and K are divided otherwise"
    elif first == last:
        yield f"  unique: these are the only integers{grid}"
    else:
        yield f"  unique but for K: with each of its {last - first + 1}, every position gives the same result{grid}"


def _terms(rows: Sequence[Sequence[tuple[int, int, int]]], point: int, shifts: tuple[int, int]) -> list[list[int]]:
    """Return rows without K, in units of 2^-41."""
    return [[(c0 << shifts[0]) << POINT - point, (c1 << shifts[1]) << POINT - point, c2 << POINT - point]
            for ((c0, c1, c2), *_) in rows]  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Record or simulate, solve, compare; 1 if a table differs from ours."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="recordings and what is solved")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--record", action="store_true", help="record what FOLDER lacks from this machine's GPU")
    source.add_argument("--simulate", action="store_true", help="take what FOLDER lacks from the law itself")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--tables", nargs="+", choices=list(interpolators()), default=list(interpolators()))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    views = [view for view in VIEWS if view.table in options.tables]
    if importlib.util.find_spec("scipy") is None:
        parser.error("linear programs are solved by SciPy, which is not installed (the extra `tools`)")
    if options.processes < 1:
        parser.error("--processes is positive")
    absent = [view.name for view in views if not (folder / f"{view.name}.npz").exists()]
    if absent and not (options.record or options.simulate):
        parser.error(f"{folder} has no results of {', '.join(absent)}: --record or --simulate makes them")
    folder.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that child processes end with this one
    if options.record:
        gpu = FunctionGpu(options.target)
        record(folder, gpu, gpu.device, views)
    elif options.simulate:
        record(folder, simulated, "simulated", views)
    segments, devices = solve(folder, options.tables, options.processes)
    return report(folder, segments, devices)


def report(folder: Path, segments: Mapping[str, Sequence[Segment]], devices: set[str]) -> int:
    """Write the results."""
    lines, tables, wrong = [f"solved from results of: {', '.join(sorted(devices))}"], {}, 0
    for name, solutions in segments.items():
        empty = [segment.segment for segment in solutions if not segment.triples]
        try:
            table = share(solutions)
        except ValueError as error:
            lines += [f"{name}: {error}; no integers satisfy all results of segments {empty}"]
            wrong += 1
            continue
        found = list(compared(name, solutions, table))
        wrong += "unique" not in found[-1]
        lines += found
        tables[name] = asdict(table)
    (folder / "tables.json").write_text(json.dumps(tables) + "\n")
    (folder / "report.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
