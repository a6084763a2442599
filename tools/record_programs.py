"""Record what a GPU gives for the PTX programs of `tools/programs`: `python tools/record_programs.py --help`.

Needs an sm_80 GPU or newer and its driver, which assembles the texts as they are kept; the recordings are of an H200.
With `--compile` it needs nvcc instead: it makes the texts again. `--cutlass FOLDER` is for those of CUTLASS, whose
PTX is not kept: `--compile` writes it there (`pip install nvidia-cutlass`), and recording takes it from there. What the
twins of the examples are given, the examples say: they have to be on the path (`PYTHONPATH=examples`; where the package
is not installed, `PYTHONPATH=examples:src`).
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cuda_driver import Driver, argument_bytes, printed
from programs.archive import RECORDED, Recording, kept, read, write
from programs.cases import CASES
from programs.cutlass_cases import CUTLASS, LAUNCHES, cutlass_cases, described, headers
from programs.cutlass_cases import compiled as compiled_cutlass
from programs.launches import Array, Case, Run
from programs.texts import SOURCES, TARGETS, compiled, keep, kept_text, read_text


def run(driver: Driver, functions: dict[str, Any], made: Run) -> tuple[dict[str, Array], list[str]]:
    """Run a case; return its outputs and the lines that it printed."""
    addresses = {name: driver.place(array) for name, array in made.arrays.items()}
    lines: list[str] = []
    with printed(lines):
        for step in made.steps:
            arguments = [argument_bytes(addresses, x) for x in step.arguments]
            driver.launch(functions[step.entry], step.grid, step.block, arguments, step.shared)
        driver.synchronise()
    outputs = {name: driver.fetch(addresses[name], made.arrays[name]) for name in made.outputs}
    for address in addresses.values():
        driver.free(address)
    return outputs, sorted(lines)


def record(cases: list[Case], texts: dict[str, str], before: Recording | None) -> tuple[Recording, int]:
    """Run all cases twice; return what came, beside what was recorded before, and how many are not repeatable."""
    driver = Driver()
    about: dict[str, Any] = driver.about()
    about["texts"] = dict(before.about["texts"]) if before else {}
    outputs, lines = (dict(before.outputs), dict(before.printed)) if before else ({}, {})
    print(about["gpu"], about["driver"], flush=True)
    failed = 0
    for program, text in texts.items():
        start = time.monotonic()
        own = [case for case in cases if case.program == program]
        names = {step.entry for case in own for step in case.make().steps}
        functions = driver.load(text, sorted(names))
        about["texts"][program] = hashlib.sha256(text.encode()).hexdigest()
        for case in own:
            made = case.make()
            got, shown = run(driver, functions, made)
            again, also = run(driver, functions, made)
            same = shown == also and all(got[name].tobytes() == again[name].tobytes() for name in got)
            failed += not same
            if not same:
                print(f"{case}: NOT REPEATABLE", flush=True)
            outputs[str(case)] = {name: kept(x) for name, x in got.items()}
            if case.prints:
                lines[str(case)] = tuple(shown)
        print(f"{program}: {len(own)} cases, {time.monotonic() - start:.1f} s", flush=True)
    return Recording(about, outputs, lines), failed


def compile_cutlass(names: list[str], folder: Path) -> None:
    """Write the texts of CUTLASS's programs to a folder; keep their hashes and how they are launched."""
    include = headers()
    if include is None:
        raise SystemExit("no headers of CUTLASS: pip install nvidia-cutlass")
    folder.mkdir(parents=True, exist_ok=True)
    launches = json.loads(LAUNCHES.read_text()) if LAUNCHES.exists() else {}
    for name in names:
        with tempfile.TemporaryDirectory() as place:
            text, program = compiled_cutlass(name, include, Path(place))
            how = [described(program, text, size) for size in CUTLASS[name][2]]
        (folder / f"{name}.ptx").write_text(text)
        launches[name] = {"sha256": hashlib.sha256(text.encode()).hexdigest(), "launches": how}
        print(f"{name}: {len(text)} characters", flush=True)
    LAUNCHES.write_text(json.dumps(launches, indent=1) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Compile, or run and record; 1 if an output differs between two runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", metavar="PATTERN", help="programs, with * and ?")
    parser.add_argument("--out", type=Path, default=RECORDED, help="the recording (%(default)s); others stay in it")
    parser.add_argument("--compile", action="store_true", help="make the texts again with nvcc, and no more")
    parser.add_argument("--cutlass", type=Path, metavar="FOLDER", help="programs of CUTLASS; where their texts are")
    options = parser.parse_args(arguments)
    names = [name for name in (CUTLASS if options.cutlass else SOURCES) if fnmatch.fnmatch(name, options.only)]
    if not names:
        print("no such program")
        return 2
    if options.compile and options.cutlass:
        compile_cutlass(names, options.cutlass)
        return 0
    if options.compile:
        for name in names:
            keep(name, compiled(SOURCES[name], target=TARGETS.get(name, "sm_80")))
            print(f"{kept_text(name)}: {kept_text(name).stat().st_size} bytes", flush=True)
        return 0
    folder = options.cutlass
    texts = {name: (folder / f"{name}.ptx").read_text() if folder else read_text(name) for name in names}
    cases = [case for case in (cutlass_cases() if folder else CASES) if case.program in texts]
    before = next((path for path in (options.out, RECORDED) if path.exists()), None)
    found, failed = record(cases, texts, read(before) if before else None)
    write(options.out, found)
    print(f"{options.out}: {options.out.stat().st_size} bytes, {len(cases)} cases, {failed} not repeatable")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
