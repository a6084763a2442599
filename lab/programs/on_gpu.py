"""Random programs on a GPU: modules are assembled and run concurrently, each in its own process.

A program that does not end, or that faults, ends its process: it is skipped and listed, and a new process continues
after it.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from .launches import Array, Run
from .random_programs import launch, module, target_of

__all__ = ["run_on_gpu"]

_PART = 25  # programs of a module
_SECONDS = 5  # that a program may take
_LEVELS = (3, 1)  # of optimisation


def _assembled(numbers: Sequence[int], level: int, folder: Path) -> Path:
    """Return machine code for sm_90, or the text if there is no ptxas: a driver assembles one text at a time."""
    name = f"{numbers[0]}_{len(numbers)}_{level}"
    source, code = folder / f"{name}.ptx", folder / f"{name}.cubin"
    source.write_text(module(numbers))
    if (ptxas := shutil.which("ptxas")) is None:
        return source
    arch = "sm_90a" if target_of(numbers[0]) == "sm_90a" else "sm_90"
    subprocess.run(
        [ptxas, f"-arch={arch}", f"-O{level}", str(source), "-o", str(code)], check=True, capture_output=True
    )
    return code


def _run(code: Path, numbers: Sequence[int], out: Path) -> None:
    """Run programs of a module, in a separate process, until one fails; store the results of the others."""
    from lab.gpu.driver import Driver, DriverError, argument_bytes

    driver = Driver()
    made: dict[str, Array] = {}
    text = code.read_bytes()
    functions = driver.load(text if code.suffix == ".cubin" else text.decode(), [f"p{number}" for number in numbers])
    for number in numbers:
        run: Run = launch(number)
        step = run.steps[0]
        addresses = {name: driver.place(array) for name, array in run.arrays.items()}
        given = [argument_bytes(addresses, x) for x in step.arguments]
        driver.launch(functions[f"p{number}"], step.grid, step.block, given)
        try:
            driver.synchronise(_SECONDS)
        except DriverError as error:
            np.savez(out, allow_pickle=False, why=np.array(str(error)), **made)
            os._exit(1)  # a hanging kernel also keeps the interpreter from exiting
        made[str(number)] = driver.fetch(addresses["output"], run.arrays["output"])
        for address in addresses.values():
            driver.free(address)
    np.savez(out, allow_pickle=False, why=np.array(""), **made)


def _of_module(numbers: list[int], level: int, folder: Path) -> tuple[dict[int, Array], dict[int, str]]:
    """Return the outputs of a module's programs, and why others were skipped."""
    try:
        code = _assembled(numbers, level, folder)
    except subprocess.CalledProcessError as error:
        if len(numbers) == 1:
            return {}, {numbers[0]: f"ptxas ends with {error.returncode}"}
        middle = len(numbers) // 2
        halves = [_of_module(half, level, folder) for half in (numbers[:middle], numbers[middle:])]
        return halves[0][0] | halves[1][0], halves[0][1] | halves[1][1]
    made: dict[int, Array] = {}
    left: dict[int, str] = {}
    todo = numbers
    while todo:
        out = folder / f"{numbers[0]}_{todo[0]}_{level}.npz"
        process = multiprocessing.get_context("spawn").Process(target=_run, args=(code, todo, out))
        process.start()
        process.join()
        if not out.exists():
            raise RuntimeError(f"programs {todo[0]} to {todo[-1]}: their process ended with {process.exitcode}")
        with np.load(out) as archive:
            made |= {int(name): archive[name] for name in archive.files if name != "why"}
            why = str(archive["why"])
        todo = [number for number in todo if number not in made]
        if why:
            left[todo.pop(0)] = why
    return made, left


def run_on_gpu(numbers: list[int], workers: int) -> tuple[dict[int, Array], dict[int, str]]:
    """Run programs on the GPU; return the outputs of each, and why others were skipped.

    Each is assembled twice, at `-O3` and at `-O1`, which fuse alike. A program with different words at the two has no
    answer to compare with.
    """
    parts: list[list[int]] = []
    for target in sorted({target_of(number) for number in numbers}):
        own = [number for number in numbers if target_of(number) == target]
        parts += [own[i : i + _PART] for i in range(0, len(own), _PART)]
    made: dict[int, dict[int, Array]] = {level: {} for level in _LEVELS}
    left: dict[int, str] = {}
    jobs = [(part, level) for part in parts for level in _LEVELS]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        done = pool.map(lambda job: _of_module(job[0], job[1], Path(folder)), jobs)
        for (_, level), found in zip(jobs, done, strict=True):
            made[level] |= found[0]
            left |= found[1]
    first, second = (made[level] for level in _LEVELS)
    both = {number: output for number, output in first.items() if number in second and number not in left}
    left |= {n: "-O1 and -O3 of ptxas give different words" for n in both if not np.array_equal(both[n], second[n])}
    return {number: output for number, output in both.items() if number not in left}, left
