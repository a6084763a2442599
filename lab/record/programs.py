"""Record the results of a GPU for the PTX programs of `lab/programs`: `python -m lab.record.programs --help`.

Needs an sm_80 GPU or newer and its driver, which assembles the stored PTX; the recordings are of an H200. `--compile`
recompiles the programs and needs nvcc instead. `--cutlass FOLDER` is for those of CUTLASS, whose PTX is not stored:
`--compile` writes it there (`pip install nvidia-cutlass`), and recording reads it from there. The examples define the
inputs of their PTX twins. If the package is not installed, `PYTHONPATH=src` finds it.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import tempfile
from pathlib import Path

from lab.programs.archive import RECORDED, read, write
from lab.programs.cases import CASES
from lab.programs.cutlass_cases import CUTLASS, LAUNCHES, cutlass_cases, described, headers, text_hash
from lab.programs.cutlass_cases import compiled as compiled_cutlass
from lab.programs.recording import record
from lab.programs.texts import SOURCES, TARGETS, compiled, keep, kept_path, read_text


def compile_cutlass(names: list[str], folder: Path) -> None:
    """Write the PTX of CUTLASS's programs to a folder; store their hashes and launches."""
    include = headers()
    if include is None:
        raise SystemExit("no headers of CUTLASS: pip install nvidia-cutlass")
    folder.mkdir(parents=True, exist_ok=True)
    launches = json.loads(read_text(LAUNCHES)) if kept_path(LAUNCHES).exists() else {}
    for name in names:
        with tempfile.TemporaryDirectory() as place:
            text, program = compiled_cutlass(name, include, Path(place))
            how = [described(program, text, size) for size in CUTLASS[name][2]]
        (folder / f"{name}.ptx").write_text(text)
        launches[name] = {"sha256": text_hash(text), "launches": how}
        print(f"{name}: {len(text)} characters", flush=True)
    keep(LAUNCHES, json.dumps(launches, indent=1) + "\n")


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
            keep(f"{name}.ptx", compiled(SOURCES[name], target=TARGETS.get(name, "sm_80")))
            path = kept_path(f"{name}.ptx")
            print(f"{path}: {path.stat().st_size} bytes", flush=True)
        return 0
    folder = options.cutlass
    texts = {name: (folder / f"{name}.ptx").read_text() if folder else read_text(f"{name}.ptx") for name in names}
    cases = [case for case in (cutlass_cases() if folder else CASES) if case.program in texts]
    before = next((path for path in (options.out, RECORDED) if path.exists()), None)
    found, failed = record(cases, texts, read(before) if before else None)
    write(options.out, found)
    print(f"{options.out}: {options.out.stat().st_size} bytes, {len(cases)} cases, {failed} not repeatable")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
