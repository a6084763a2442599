"""Runs of programs on a GPU, each twice."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Any

from lab.gpu.driver import Driver, argument_bytes, printed

from .archive import Recording, kept
from .launches import Array, Case, Run, contents

__all__ = ["record", "run"]


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
