"""Measure the errors of the approximate functions over all inputs: `python -m lab.accuracy.functions --help`.

Worst errors, bias, breaks of monotonicity, exact results: from the package's own rules, which are an H200's, bit for
bit.
Results go to `build/function_errors.jsonl`, a line per octave, as they are computed; after Ctrl-C the next run
continues there. When all are complete, `docs/functions/errors.json` is written, the source of the tables and figures of
`docs/functions.md`: `--tables` prints the tables, `--figures` draws the figures.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from lab.accuracy.jobs import Job, digest, done, jobs, line, summary
from lab.accuracy.tables import tables, written

ROOT = Path(__file__).parents[2]
PARTS = ROOT / "build" / "function_errors.jsonl"
FOLDER = ROOT / "docs" / "functions"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; see `--help`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--fresh", action="store_true", help="measure again what was measured")
    parser.add_argument("--parts", type=Path, default=PARTS, help="results of octaves")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of errors.json and of the figures")
    parser.add_argument("--tables", action="store_true", help="print the tables of errors.json, and measure nothing")
    parser.add_argument("--figures", action="store_true", help="draw the figures, and measure nothing else")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs is positive")
    if options.tables:
        print("\n\n".join(tables(json.loads((options.out / "errors.json").read_text())).values()))
        return 0
    if options.figures:
        from lab.accuracy.figures import draw

        print(*draw(options.out), sep="\n")
        return 0
    if options.fresh:
        options.parts.unlink(missing_ok=True)
    return _measure(options.jobs, options.parts, options.out)


def _measure(processes: int, parts: Path, out: Path) -> int:
    results = _read(parts)
    wanted = list(jobs())
    left = [job for job in wanted if job not in results]
    start = time.perf_counter()
    parts.parent.mkdir(parents=True, exist_ok=True)
    try:
        with parts.open("a") as file, closing(_results(left, processes)) as made:
            for number, (job, result) in enumerate(made, 1):
                results[job] = result
                print(line(job, result), file=file, flush=True)
                seconds = time.perf_counter() - start
                text = f"{len(wanted) - len(left) + number:,} of {len(wanted):,}, {seconds:.0f} s"
                more = seconds / number * (len(left) - number)
                print(f"\r{text}, {more:.0f} s to go: {job.kind} {job.name}      ", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(f"\nstopped; {parts} keeps what was done", file=sys.stderr)
        return 130
    print(file=sys.stderr)
    whole = summary({job: results[job] for job in wanted})
    out.mkdir(parents=True, exist_ok=True)
    (out / "errors.json").write_text(written(whole))
    exceptions = sum(form.get("exceptions", 0) for form in whole["forms"].values())
    print("\n\n".join(tables(whole).values()))
    print(f"\n{exceptions} exceptions to what repeats")
    return int(exceptions > 0)


def _read(parts: Path) -> dict[Job, Any]:
    """Return results of earlier runs with the same tables; ignore an incomplete line."""
    results: dict[Job, Any] = {}
    for text in parts.read_text().splitlines() if parts.exists() else ():
        try:
            tables_digest, *job, result = json.loads(text)
        except json.JSONDecodeError:
            continue
        if tables_digest == digest():
            results[Job(*job)] = result
    return results


def _results(left: list[Job], processes: int) -> Generator[tuple[Job, Any]]:
    if processes == 1:
        yield from ((job, done(job)) for job in left)
        return
    pool = ProcessPoolExecutor(
        processes, get_context("spawn"), initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
    )
    try:
        yield from zip(left, pool.map(done, left), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    sys.exit(main())
