"""Record the results of a GPU for the Triton kernels of `lab/triton_programs`: `python -m lab.record.triton --help`.

`--ptx sm_90a` takes the kernels that Triton compiles for a Hopper GPU, otherwise those for sm_80.

`--compile` runs the kernels through `warpmma.triton`, and stores Triton's PTX and launches; it needs Triton, but no
GPU. Otherwise the stored PTX runs on an sm_90 GPU, whose driver assembles it; that needs no Triton, so the recordings
do not depend on its version (if the package is not installed, `PYTHONPATH=src`). `--table` runs the PTX on the
simulator instead, hazards on, and prints the table of docs/triton_kernels.md.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.programs.archive import kept, read, write
from lab.programs.launches import Case
from lab.programs.recording import record, record_apart
from lab.programs.texts import kept_path
from lab.triton_programs.kept import KEPT, Kept, joined, keep, kept_cases, kept_texts, plain_text, step_of


def compile_cases(one_set: Kept) -> None:
    """Run every case through `warpmma.triton`; store PTX and launches."""
    import triton

    from lab.triton_programs.launching import launched

    made: dict[str, tuple[str, list[Any]]] = {}
    for case in one_set.cases:
        _, addresses, launches = launched(case, one_set.target)
        names = {address: name for name, address in addresses.items()}
        text = joined([plain_text(one.text) for one in launches])
        made[str(case)] = text, [step_of(one, names) for one in launches]
        print(f"{case}: {len(text)} characters, {len(launches)} launches", flush=True)
    keep(made, triton.__version__, one_set)
    path = kept_path(one_set.file)
    print(f"{path}: {path.stat().st_size} bytes")


def table(one_set: Kept, cases: Sequence[Case]) -> int:
    """Simulate the stored launches, compare with the recording, and print a table; return how many differ."""
    from lab.programs.simulating import simulate
    from warpmma import ptx

    expected = read(one_set.recorded).outputs
    print("| kernel | instructions | seconds | output | bits |\n| --- | ---: | ---: | ---: | --- |")
    failed = 0
    for case in cases:
        module, run = ptx.load(kept_texts(one_set)[case.program], f"{case.program}.ptx"), case.make()
        simulate(module, run, one_set.target, threads=1)  # so that one-time preparation is not timed
        start = time.process_time()
        outputs, _, reports = simulate(module, run, one_set.target, threads=1)
        seconds = time.process_time() - start
        same = all(kept(x)[0] == expected[str(case)][name][0] for name, x in outputs.items())
        failed += not same
        instructions = sum(sum(report.costs.instructions.values()) for report in reports)
        size = sum(x.nbytes for x in outputs.values())
        print(
            f"| {case.program} | {instructions:,} | {seconds:.2f} | {size:,} | {'all' if same else 'NOT'} |", flush=True
        )
    return failed


def main(arguments: list[str] | None = None) -> int:
    """Compile, or run and record; 1 if an output differs between two runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cases, with * and ?")
    parser.add_argument("--ptx", choices=KEPT, default="sm_80", help="the target of Triton (%(default)s)")
    parser.add_argument("--out", type=Path, help="the recording (in tests/data); others stay in it")
    parser.add_argument("--jobs", type=int, default=0, help="processes at once, one for each case (default: no others)")
    parser.add_argument("--compile", action="store_true", help="compile the kernels with Triton, and no more")
    parser.add_argument("--table", action="store_true", help="simulate, compare and print the table, and no more")
    options = parser.parse_args(arguments)
    one_set = KEPT[options.ptx]
    if options.compile:
        compile_cases(one_set)
        return 0
    cases = [case for case in kept_cases(one_set) if fnmatch.fnmatch(case.program, options.only)]
    if not cases:
        print("no such case")
        return 2
    if options.table:
        return int(table(one_set, cases) > 0)
    out = options.out or one_set.recorded
    if options.jobs:
        command = "lab.record.triton", "--ptx", options.ptx, "--only"
        return int(record_apart({x.program: (*command, x.program) for x in cases}, out, options.jobs) > 0)
    texts = {case.program: kept_texts(one_set)[case.program] for case in cases}
    found, failed = record(cases, texts, read(out) if out.exists() else None)
    write(out, found)
    print(f"{out}: {out.stat().st_size} bytes, {len(cases)} cases, {failed} not repeatable")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
