"""Record the results of a GPU for the Triton kernels of `lab/triton_programs`: `python -m lab.record.triton --help`.

`--compile` runs the kernels through `warpmma.triton`, and stores Triton's PTX and launches; it needs Triton, but no
GPU. Otherwise the stored PTX runs on an sm_90 GPU, whose driver assembles it; that needs no Triton, so the recordings
do not depend on its version (if the package is not installed, `PYTHONPATH=src`). `--table` runs the PTX on the
simulator instead, and prints the table of docs/triton_kernels.md.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from pathlib import Path
from typing import Any

from lab.programs.archive import RECORDED, kept, read, write
from lab.programs.recording import record
from lab.programs.simulating import simulate
from lab.programs.texts import kept_path
from lab.triton_programs.cases import CASES
from lab.triton_programs.kept import KEPT, keep, kept_cases, kept_texts, plain_text
from warpmma import ptx

TRITON = RECORDED.with_name("h200_triton.npz")


def compile_cases() -> None:
    """Run every case through `warpmma.triton`; store PTX and launches."""
    import triton

    from lab.triton_programs.launching import launched

    made: dict[str, tuple[str, list[Any]]] = {}
    for case in CASES:
        _, addresses, launches = launched(case)
        names: dict[Any, str] = {address: name for name, address in addresses.items()}
        (text,) = {one.text for one in launches}
        steps = [
            {
                "entry": one.entry, "grid": one.grid, "block": one.block, "shared": one.shared,
                "arguments": [names.get(x, (type_, x)) if type_ == "u64" else (type_, x) for type_, x in one.arguments],
            }
            for one in launches
        ]  # fmt: skip
        made[str(case)] = plain_text(text), steps
        print(f"{case}: {len(text)} characters, {len(steps)} launches", flush=True)
    keep(made, triton.__version__)
    print(f"{kept_path(KEPT)}: {kept_path(KEPT).stat().st_size} bytes")


def table() -> int:
    """Simulate the stored launches, compare with the recording, and print a table; return how many differ."""
    expected = read(TRITON).outputs
    print("| kernel | instructions | seconds | output | bits |\n| --- | ---: | ---: | ---: | --- |")
    failed = 0
    for case in kept_cases():
        module, run = ptx.load(kept_texts()[case.program], f"{case.program}.ptx"), case.make()
        simulate(module, run, threads=1)  # so that one-time preparation is not timed
        start = time.process_time()
        outputs, _, reports = simulate(module, run, threads=1)
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
    parser.add_argument("--out", type=Path, default=TRITON, help="the recording (%(default)s); others stay in it")
    parser.add_argument("--compile", action="store_true", help="compile the kernels with Triton, and no more")
    parser.add_argument("--table", action="store_true", help="simulate, compare and print the table, and no more")
    options = parser.parse_args(arguments)
    if options.table:
        return int(table() > 0)
    if options.compile:
        compile_cases()
        return 0
    cases = [case for case in kept_cases() if fnmatch.fnmatch(case.program, options.only)]
    if not cases:
        print("no such case")
        return 2
    texts = {case.program: kept_texts()[case.program] for case in cases}
    before = read(options.out) if options.out.exists() else None
    found, failed = record(cases, texts, before)
    write(options.out, found)
    print(f"{options.out}: {options.out.stat().st_size} bytes, {len(cases)} cases, {failed} not repeatable")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
