"""Record and compare public kernels for sm_90a: `python -m lab.record.hopper FOLDER --help`.

Their PTX is not stored; it is in FOLDER:

* `--compile` writes it there, and stores how each kernel is launched. It needs nvcc 13.0 and the headers of the
  package nvidia-cutlass; `--include` names more folders of headers.
* `--record` runs every kernel on an sm_90 GPU, each in a process of its own, twice, and stores hashes of the outputs.
  It takes `NAME.cubin` rather than `NAME.ptx` where both are there.
* `--same FILE` compares with the recording of another GPU, and notes that GPU in ours if all its bytes are the same.
* by default the kernels run in the simulator, with hazards as errors but those that are argued in docs/programs.md,
  and are compared with the recording.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import resource
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from lab.programs.archive import Recording, difference, read, write
from lab.programs.cutlass_cases import headers, text_hash
from lab.programs.hopper_cases import LAUNCHES, Launch, compiled, described, hopper_cases
from lab.programs.hopper_kernels import HOPPER_RECORDED, KERNELS, REPORTED
from lab.programs.recording import record, record_apart
from lab.programs.texts import keep, kept_path, read_text


def _compile_one(name: str, includes: list[Path]) -> tuple[str, list[Launch], str]:
    """Return a kernel's PTX, how it is launched, and what went wrong."""
    with tempfile.TemporaryDirectory() as place:
        try:
            text, program = compiled(name, includes, Path(place))
            return text, [described(program, text, size) for size in KERNELS[name].sizes], ""
        except subprocess.CalledProcessError as error:
            return "", [], f"{error}\n{(error.stderr or error.stdout or b'')[:2000]!r}"
        except ValueError as error:
            return "", [], str(error)


def compile_all(names: list[str], folder: Path, more: list[Path], jobs: int) -> int:
    """Write the PTX of kernels to a folder; store its hash, and how they are launched. Return how many fail."""
    package = headers()
    if package is None:
        raise SystemExit("no headers of CUTLASS: pip install nvidia-cutlass")
    examples = package.parent / "examples"
    includes = [package, package.parent / "tools" / "util" / "include", examples, examples / "common", *more]
    folder.mkdir(parents=True, exist_ok=True)
    launches = json.loads(read_text(LAUNCHES)) if kept_path(LAUNCHES).exists() else {}
    failed = 0
    with ThreadPoolExecutor(jobs) as pool:
        slowest_first = sorted(names, key=lambda name: KERNELS[name].source, reverse=True)
        made = {pool.submit(_compile_one, name, includes): name for name in slowest_first}
        for done in as_completed(made):
            name, (text, how, wrong) = made[done], done.result()
            failed += bool(wrong)
            print(f"{name}: {wrong or f'{len(text)} characters'}", flush=True)
            if not wrong:
                (folder / f"{name}.ptx").write_text(text)
                launches[name] = {"sha256": text_hash(text), "launches": how}
                keep(LAUNCHES, json.dumps({x: launches[x] for x in KERNELS if x in launches}) + "\n")
    return failed


def record_one(name: str, folder: Path, out: Path) -> int:
    """Run a kernel on this machine's GPU; write a recording of it alone."""
    code = folder / f"{name}.cubin"
    codes = {name: code.read_bytes()} if code.exists() else {}
    cases = [case for case in hopper_cases() if case.program == name]
    found, failed = record(cases, {name: (folder / f"{name}.ptx").read_text()}, None, codes)
    write(out, found)
    return failed


def record_all(names: list[str], folder: Path, out: Path, jobs: int) -> int:
    """Run kernels, each in a process of its own; merge what they write. Return how many fail."""
    command = "lab.record.hopper", str(folder), "--record-one"
    return record_apart({name: (*command, name) for name in names}, out, jobs)


def same(path: Path, other: Path) -> int:
    """Note in a recording that another GPU wrote the same bytes; return how many of its outputs differ."""
    ours, theirs = read(path), read(other)
    if not theirs.about["texts"].items() <= ours.about["texts"].items():
        print("recordings of different PTX")
        return 1
    differ = [
        f"{case}: {name}"
        for case, outputs in theirs.outputs.items()
        for name, (digest, _) in outputs.items()
        if ours.outputs[case][name][0] != digest
    ]
    print("\n".join(differ) or f"the outputs of {len(theirs.outputs)} launches are the same")
    if not differ:
        card = {"gpu": theirs.about["gpu"], "driver": theirs.about["driver"], "launches": len(theirs.outputs)}
        others = [x for x in ours.about.get("same", []) if x["gpu"] != card["gpu"]]
        write(path, Recording({**ours.about, "same": [*others, card]}, ours.outputs, ours.printed))
    return len(differ)


def compare(names: list[str], folder: Path, path: Path) -> int:
    """Simulate kernels with hazards as errors, and print a row for each launch; return how many differ."""
    from lab.programs.simulating import simulate
    from warpmma import WarpmmaError, ptx
    from warpmma.machine import HazardWarning

    recording = read(path) if path.exists() else None
    failed = 0
    for name in names:
        module = ptx.load((folder / f"{name}.ptx").read_text(), f"{name}.ptx")
        for case in (case for case in hopper_cases() if case.program == name):
            kind = REPORTED.get(str(case), "")
            start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
            try:
                with warnings.catch_warnings(action="ignore", category=HazardWarning):
                    hazards = {kind: "warn"} if kind else "error"
                    outputs, _, reports = simulate(module, case.make(), target="sm_90a", hazards=hazards)
            except WarpmmaError as error:
                failed += 1
                print(f"{case}: {type(error).__name__}: {error}", flush=True)
                continue
            seconds = resource.getrusage(resource.RUSAGE_SELF).ru_utime - start
            stored = recording.outputs.get(str(case)) if recording else None
            told = "; ".join({x.kind for report in reports for x in report.hazards}) or "no report"
            found = {x: difference(array, stored[x]) for x, array in outputs.items()} if stored else {}
            wrong = "; ".join(f"{x}: {how}" for x, how in found.items() if how)
            verdict = wrong or ("equal" if stored else "no recording")
            failed += verdict != "equal" or told != (kind or "no report")
            print(f"{case}: {verdict}, {told}, {seconds:.1f} s", flush=True)
    return failed


def main(arguments: list[str] | None = None) -> int:
    """Compile, record or compare; 1 if something fails or differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the PTX is")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="kernels, with * and ?")
    parser.add_argument("--compile", action="store_true", help="make the PTX with nvcc")
    parser.add_argument("--include", type=Path, action="append", default=[], help="a folder of headers, for --compile")
    parser.add_argument("--missing", action="store_true", help="with --compile, those that are not in FOLDER")
    parser.add_argument("--jobs", type=int, default=1, help="compilers, or kernels on the GPU, at once")
    parser.add_argument("--record", action="store_true", help="run on this machine's GPU")
    parser.add_argument("--record-one", metavar="NAME", help="the same, one kernel in this process")
    parser.add_argument("--out", type=Path, default=HOPPER_RECORDED, help="the recording (%(default)s)")
    parser.add_argument("--same", type=Path, metavar="FILE", help="another GPU's recording")
    options = parser.parse_args(arguments)
    if options.same:
        return int(same(options.out, options.same) > 0)
    if options.record_one:
        return int(record_one(options.record_one, options.folder, options.out) > 0)
    names = [name for name in KERNELS if fnmatch.fnmatch(name, options.only)]
    if options.missing:
        names = [name for name in names if not (options.folder / f"{name}.ptx").exists()]
    if not options.compile:
        names = [name for name in names if (options.folder / f"{name}.ptx").exists()]
    if not names:
        print("no such kernel")
        return 2
    if options.compile:
        return int(compile_all(names, options.folder, options.include, options.jobs) > 0)
    if options.record:
        return int(record_all(names, options.folder, options.out, options.jobs) > 0)
    return int(compare(names, options.folder, options.out) > 0)


if __name__ == "__main__":
    sys.exit(main())
