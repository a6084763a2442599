"""Record the results of a GPU for shifts by amounts that are out of range: `python -m lab.record.shifts --help`.

PTX clamps a shift's amount, an unsigned 32-bit integer, to the width of the value. ptxas reads an immediate amount of a
16-bit shift as a 16-bit integer; docs/specification/departures.md has the rule. Each shift is assembled with its amount
as an immediate, as a loaded register, and as a register set by `mov`. Needs ptxas and the driver.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from lab.gpu.driver import Driver, argument_bytes

__all__ = ["AMOUNTS", "LEVELS", "SHIFTS", "VALUES", "WAYS", "grouped", "text"]

SHIFTS = ("shr.s16", "shr.u16", "shr.b16", "shl.b16", "shr.s32", "shr.u32", "shl.b32", "shr.s64", "shr.u64", "shl.b64")
AMOUNTS = (
    0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 32767, 32768, 32769, 65520, 65535, 65536, 65537, 65551,
    65552, 65553, 98304, 131072, 131073, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 31) + 32768, (1 << 32) - 65536,
    (1 << 32) - 2, (1 << 32) - 1,
)  # fmt: skip
VALUES = (-32768, -32767, -12345, -2, -1, 0, 1, 2, 12345, 32767, 1 << 31, -(1 << 31), 1 << 62, -(1 << 63), 0x123456789A)
LEVELS = ("-O0", "-O1", "-O2", "-O3", "jit")
"""Levels of ptxas; "jit" is the driver's own assembler."""
WAYS = ("immediate", "loaded", "moved")
"""How a shift gets its amount."""

_KERNEL = """.visible .entry {name}(
    .param .u64 {name}_values, .param .u64 {name}_amounts, .param .u64 {name}_results
) {{
.reg .b{bits} %x, %y; .reg .b32 %i, %n; .reg .b64 %v, %a, %r, %w;
ld.param.u64 %v, [{name}_values];
ld.param.u64 %a, [{name}_amounts];
ld.param.u64 %r, [{name}_results];
mov.u32 %i, %tid.x;
mad.wide.u32 %v, %i, 8, %v;
mad.wide.u32 %r, %i, {row}, %r;
ld.global.u{bits} %x, [%v];
{body}
ret;
}}
"""


def text() -> str:
    """Return the module: a kernel for each shift and way, such as `shr_s16_immediate`.

    Thread i writes a row of `results`, uint64: value i shifted by each of the amounts.
    """
    kernels = []
    for shift in SHIFTS:
        bits = int(shift[-2:])
        for way in WAYS:
            lines = []
            for j, amount in enumerate(AMOUNTS):
                before = {"loaded": f"ld.global.u32 %n, [%a+{4 * j}];", "moved": f"mov.u32 %n, {amount};"}
                lines.append(before.get(way, ""))
                lines.append(f"{shift} %y, %x, {amount if way == 'immediate' else '%n'};")
                lines.append(f"cvt.u64.u{bits} %w, %y;" if bits < 64 else "mov.b64 %w, %y;")
                lines.append(f"st.global.u64 [%r+{8 * j}], %w;")
            name = f"{shift.replace('.', '_')}_{way}"
            kernels.append(_KERNEL.format(name=name, bits=bits, row=8 * len(AMOUNTS), body="\n".join(lines)))
    return "\n".join([".version 8.0", ".target sm_80", ".address_size 64", *kernels])


def names() -> list[str]:
    """Return the kernels of `text`."""
    return [f"{shift.replace('.', '_')}_{way}" for shift in SHIFTS for way in WAYS]


def grouped(results: dict[str, dict[str, list[list[int]]]]) -> dict[str, dict[str, list[list[int]]]]:
    """Group levels with the same results: "-O0 -O1" for both."""
    levels: dict[str, list[str]] = {}
    for level, found in results.items():
        levels.setdefault(json.dumps(found), []).append(level)
    return {" ".join(those): json.loads(found) for found, those in levels.items()}


def _machine_code(level: str, architecture: str) -> bytes | str:
    """Return what the driver loads for a level."""
    if level == "jit":
        return text()
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "shifts.ptx", Path(folder) / "shifts.cubin"
        source.write_text(text())
        subprocess.run(["ptxas", level, f"-arch={architecture}", str(source), "-o", str(made)], check=True)
        return made.read_bytes()


def main(arguments: list[str] | None = None) -> int:
    """Run every kernel at every level; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="sm_90", help="of the GPU (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="results by levels and kernel, JSON")
    options = parser.parse_args(arguments)
    driver = Driver()
    values, amounts = np.array(VALUES, np.int64), np.array(AMOUNTS, np.uint32)
    like = np.zeros((len(VALUES), len(AMOUNTS)), np.uint64)
    places = {"values": driver.place(values), "amounts": driver.place(amounts), "results": driver.place(like)}
    given = [argument_bytes(places, name) for name in places]
    results: dict[str, dict[str, list[list[int]]]] = {}
    for level in LEVELS:
        results[level] = {}
        for name, function in driver.load(_machine_code(level, options.arch), names()).items():
            driver.put(places["results"], like)
            driver.launch(function, [1], [len(VALUES)], given)
            driver.synchronise()
            results[level][name] = driver.fetch(places["results"], like).tolist()
    ptxas = subprocess.run(["ptxas", "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[-2]
    found = {**driver.about(), "ptxas": ptxas, "source": "python -m lab.record.shifts", "results": grouped(results)}
    if options.out:
        options.out.write_text(json.dumps(found))
    for shift in SHIFTS:
        name = shift.replace(".", "_")
        for level in LEVELS:
            of = {way: np.array(results[level][f"{name}_{way}"], np.uint64) for way in WAYS}
            for way in ("immediate", "moved"):
                which = [n for n, bad in zip(AMOUNTS, (of[way] != of["loaded"]).any(0), strict=True) if bad]
                print(f"{shift} {level} {way}: differs from a loaded amount for {which or 'no amount'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
