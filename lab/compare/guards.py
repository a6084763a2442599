"""Find instructions whose guard ptxas drops: `python -m lab.compare.guards --help`.

Executes every form of `programs.forms` on this machine's GPU under a guard that is true in half of the lanes. If the
registers of the other lanes change, ptxas expanded the form to several instructions and guarded only some of them.
Needs only the driver, which assembles.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from lab.gpu.driver import Driver, argument_bytes
from lab.programs.forms import Form, forms
from lab.programs.launches import words

_PART, _SLOTS, _LANES = 200, 32, 32
_TYPES = {"h": ("b16", 2), "r": ("b32", 4), "d": ("b64", 8)}


def kernel(form: Form, name: str) -> str:
    """Return a kernel that loads registers, executes the form in odd lanes, and stores its results."""
    lines = [f".visible .entry {name}(.param .u64 {name}_x, .param .u64 {name}_y) {{",
             ".reg .b16 %h<30>; .reg .b32 %r<30>; .reg .b64 %d<30>; .reg .pred %p<30>; .reg .b64 %x, %y, %at;",
             f"ld.param.u64 %x, [{name}_x];", f"ld.param.u64 %y, [{name}_y];", "mov.u32 %r29, %laneid;",
             f"mul.wide.u32 %at, %r29, {8 * _SLOTS};", "add.u64 %x, %x, %at;", "add.u64 %y, %y, %at;",
             "and.b32 %r28, %r29, 1;", "setp.ne.u32 %p29, %r28, 0;"]  # fmt: skip
    slot = 0

    def load(kind: str) -> str:
        nonlocal slot
        slot += 1
        if kind == "p":
            lines.append(f"ld.global.b32 %r27, [%x+{8 * slot}]; setp.lt.s32 %p{slot}, %r27, 0;")
        else:
            lines.append(f"ld.global.{_TYPES[kind][0]} %{kind}{slot}, [%x+{8 * slot}];")
        return f"%{kind}{slot}"

    results = [load(kind) for kind in form.results]
    operands = []
    for letter in form.operands:
        kind = {"!": "p", "/": form.results[0]}.get(letter, letter if letter in "hrdp" else "r")
        operands.append("90" if letter == "n" else "!" * (letter == "!") + load(kind))
    separator = "|" if form.paired else ", "
    lines.append(f"@%p29 {form.mnemonic} {separator.join(results)}, {', '.join(operands)};")
    for i, (kind, result) in enumerate(zip(form.results, results, strict=True), 1):
        if kind == "p":  # as it was given
            lines.append(f"selp.b32 %r27, -1, 0, {result}; st.global.b32 [%y+{8 * i}], %r27;")
        else:
            lines.append(f"st.global.{_TYPES[kind][0]} [%y+{8 * i}], {result};")
    return "\n".join([*lines, "ret;", "}"])


def lost(driver: Driver, part: list[Form], target: str) -> list[str]:
    """Return mnemonics of forms that changed a register in a lane whose guard is false."""
    names = [f"k{i}" for i in range(len(part))]
    head = f".version 9.0\n.target {target}\n.address_size 64\n"
    functions = driver.load(head + "\n".join(map(kernel, part, names)), names)
    found = []
    x = words(11, _LANES, _SLOTS)
    for form, name in zip(part, names, strict=True):
        addresses = {"x": driver.place(x), "y": driver.place(np.zeros_like(x))}
        driver.launch(functions[name], (1,), (_LANES,), [argument_bytes(addresses, a) for a in ("x", "y")])
        driver.synchronise(10)
        y = driver.fetch(addresses["y"], x)
        for address in addresses.values():
            driver.free(address)
        for i, kind in enumerate(form.results, 1):
            before, after = x[::2, i], y[::2, i]
            if kind == "p":
                kept = np.array_equal(before.astype(np.uint32) >> 31, after.astype(np.uint32) >> 31)
            else:
                dtype = f"u{_TYPES[kind][1]}"
                kept = np.array_equal(before.astype(dtype), after.astype(dtype))
            if not kept:
                found.append(form.mnemonic)
                break
    return found


def main(arguments: list[str] | None = None) -> int:
    """Try every form; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--out", type=Path, metavar="FILE", help="a list of mnemonics, JSON")
    options = parser.parse_args(arguments)
    driver = Driver()
    every = [form for family in forms(options.target) for form in family]
    found = [x for i in range(0, len(every), _PART) for x in lost(driver, every[i : i + _PART], options.target)]
    print(f"{driver.about()['gpu']}: of {len(every)} forms {len(found)} lose their guard")
    print(" ".join(found))
    if options.out:
        options.out.write_text(json.dumps(found, indent=0) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
