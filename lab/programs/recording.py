"""Runs of programs on a GPU, each twice."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lab.gpu.driver import Driver, argument_bytes, printed

from .archive import Recording, kept, read, write
from .launches import Array, Case, Run, contents

__all__ = ["record", "record_apart", "run"]

_SECONDS = 60  # that a process may take on a GPU


def run(driver: Driver, functions: dict[str, Any], made: Run) -> tuple[dict[str, Array], list[str]]:
    """Run a case; return its outputs and the lines that it printed."""
    addresses: dict[str, int] = {}
    for name, array in made.arrays.items():
        addresses[name] = driver.place(contents(array, addresses.__getitem__))
    lines: list[str] = []
    with printed(lines):
        for step in made.steps:
            arguments = [argument_bytes(addresses, x) for x in step.arguments]
            driver.launch(functions[step.entry], step.grid, step.block, arguments, step.shared, step.cluster)
        driver.synchronise()
    outputs = {name: driver.fetch(addresses[name], made.arrays[name]) for name in made.outputs}
    for address in addresses.values():
        driver.free(address)
    return outputs, sorted(lines)


def _apart(command: Sequence[str]) -> tuple[Recording | None, int]:
    """Record in a process of its own, which may hang or fault; return the recording and the exit status."""
    with tempfile.TemporaryDirectory() as place:
        one = Path(place) / "one.npz"
        try:
            python = [sys.executable, "-m", *command, "--out", str(one)]
            code = subprocess.run(python, timeout=_SECONDS, check=False).returncode
        except subprocess.TimeoutExpired:
            code = -1
        return read(one) if one.exists() else None, code


def record_apart(commands: Mapping[str, Sequence[str]], out: Path, jobs: int) -> int:
    """Record in several processes, a module and its arguments each; merge what they write to `--out` as it comes.

    `commands` are by the name of what each records. Returns how many fail.
    """
    before = read(out) if out.exists() else Recording({}, {}, {})
    about, outputs, lines = dict(before.about), dict(before.outputs), dict(before.printed)
    texts, failed = dict(about.get("texts", {})), 0
    with ThreadPoolExecutor(jobs) as pool:
        for name, (found, code) in zip(commands, pool.map(_apart, commands.values()), strict=True):
            failed += code != 0 or found is None
            if found is None:
                print(f"{name}: NOT RECORDED ({code})", flush=True)
                continue
            texts |= found.about["texts"]
            about |= found.about
            outputs |= found.outputs
            lines |= found.printed
            write(out, Recording(about | {"texts": texts}, outputs, lines))
    return failed


def record(
    cases: list[Case], texts: dict[str, str], before: Recording | None, codes: Mapping[str, bytes] | None = None
) -> tuple[Recording, int]:
    """Run all cases twice; return the results, merged into the old recording, and how many are not repeatable.

    `codes` has machine code for some of the texts, so that the driver need not assemble them.
    """
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
        functions = driver.load((codes or {}).get(program, text), sorted(names))
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
