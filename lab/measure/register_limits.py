"""Measure who waits for registers of `setmaxnreg`: `python -m lab.measure.register_limits --record FILE`.

Needs nvcc, the driver and a GPU of sm_90a. Each case of `order_programs/limits.cu` runs in a process of its own: some
may never end, which is a result, too. Recorded are, by case and warp, the milliseconds at which it began, ended its
`setmaxnreg`, and left; null is never. Warps 0 to 3 give or leave, 4 to 7 take; 8 to 15 are those of a second block.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from lab.gpu.driver import Driver, DriverError
from lab.gpu.nvcc import cubin

__all__ = ["CASES", "main", "source"]

CASES = ("GIVES_LATE", "BOTH_GIVE_IN_TURN", "TAKES_IN_TURN", "EXITS_AFTER_ENOUGH", "EXITS_AFTER_LESS", "EXITS",
         "EXITS_BEFORE", "OTHER_BLOCK_GIVES", "NONE_GIVES")  # fmt: skip
_PROGRAMS = Path(__file__).parent / "order_programs"
_SECONDS, _LIMIT = 2.0, 10  # that a kernel may take, of 0.2 at most; that its process may
_WORDS = 64  # times: of 16 warps, 4 each
_REGISTERS = 4  # of CUfunction_attribute


def source(case: str) -> str:
    """Return the text that is compiled for a case."""
    return f"#define CASE {case}\n" + "".join((_PROGRAMS / x).read_text() for x in ("common.cuh", "limits.cu"))


def _measured(code: bytes) -> dict[str, Any]:
    """Run a kernel once; its times are read whether it ends or not."""
    driver, cuda = Driver(), ctypes.CDLL("libcuda.so.1")
    place = ctypes.c_void_p()
    if cuda.cuMemHostAlloc(ctypes.byref(place), ctypes.c_size_t(8 * _WORDS), 3):  # portable and mapped
        raise DriverError("cuMemHostAlloc")
    words = (ctypes.c_uint64 * _WORDS).from_address(place.value or 0)
    words[:] = [0] * _WORDS
    seats, began = driver.place(np.zeros(1024, np.uint32)), driver.place(np.zeros(1, np.uint64))
    cell, registers = driver.load(code, ["cell"])["cell"], ctypes.c_int()
    cuda.cuFuncGetAttribute(ctypes.byref(registers), _REGISTERS, cell.handle)
    arguments = [(place.value or 0).to_bytes(8, "little"), seats.to_bytes(8, "little"), began.to_bytes(8, "little")]
    driver.launch(cell, [264], [256], arguments)
    fault = None
    try:
        driver.synchronise(_SECONDS)
    except DriverError as error:
        fault = str(error)
    times = [[words[4 * warp + k] for k in range(3)] for warp in range(16)]
    shown = [[round(ns / 1e6, 3) if ns else None for ns in some] for some in times]
    return {"registers": registers.value, "fault": fault, "milliseconds": shown}


def main(arguments: list[str] | None = None) -> int:
    """Measure and record; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", type=Path, metavar="FILE", help="times by case and warp, JSON")
    parser.add_argument("--cubin", type=Path, help=argparse.SUPPRESS)  # what a process of its own runs
    options = parser.parse_args(arguments)
    if options.cubin:
        print(json.dumps(_measured(options.cubin.read_bytes())), flush=True)
        os._exit(0)  # a context that a kernel still occupies cannot be closed
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            path = Path(folder) / f"{case}.cubin"
            path.write_bytes(cubin(source(case)))
            command = [sys.executable, "-m", "lab.measure.register_limits", "--cubin", str(path)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT, check=False)
                found[case] = json.loads(done.stdout) if done.returncode == 0 else {"fault": done.stderr[-300:]}
            except subprocess.TimeoutExpired:
                found[case] = {"fault": f"killed after {_LIMIT} s"}
            print(case, json.dumps(found[case]), flush=True)
            if options.record:
                options.record.write_text(json.dumps({**Driver.about(), "found": found}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
