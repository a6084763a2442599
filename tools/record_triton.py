"""Record what a GPU gives for the Triton kernels of `tools/triton_programs`: `python tools/record_triton.py --help`.

With `--compile` the kernels go through `warpmma.triton`, and what Triton made of them is kept: PTX and launches; it
needs Triton, and no GPU. Without it the PTX that is kept runs on an sm_90 GPU, whose driver assembles it; that needs no
Triton, so that the recordings are of these texts, whatever Triton is there (where the package is not installed,
`PYTHONPATH=src`).
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from pathlib import Path
from typing import Any

from programs.archive import RECORDED, read, write
from programs.recording import record
from triton_programs.cases import CASES
from triton_programs.kept import KEPT, keep, kept_cases, kept_texts, plain_text

TRITON = RECORDED.with_name("h200_triton.npz")


def compile_cases() -> None:
    """Run every case through `warpmma.triton`; keep texts and launches."""
    import triton
    from triton_programs.launching import launched

    made: dict[str, tuple[str, list[Any]]] = {}
    for case in CASES:
        _, addresses, launches = launched(case)
        names = {address: name for name, address in addresses.items()}
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
    print(f"{KEPT}: {KEPT.stat().st_size} bytes")


def main(arguments: list[str] | None = None) -> int:
    """Compile, or run and record; 1 if an output differs between two runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cases, with * and ?")
    parser.add_argument("--out", type=Path, default=TRITON, help="the recording (%(default)s); others stay in it")
    parser.add_argument("--compile", action="store_true", help="compile the kernels with Triton, and no more")
    options = parser.parse_args(arguments)
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
