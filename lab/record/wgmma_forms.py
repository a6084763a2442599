"""Record which forms of `wgmma.mma_async` ptxas takes: `python -m lab.record.wgmma_forms --help`.

Every pair of types, dense and sparse, n a multiple of 4, A in registers and in memory, 0 to 5 immediates; and single
statements that are near legal ones. Needs `ptxas` on the PATH, and no GPU. Tests compare the table with the recording.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

__all__ = ["statement", "taken"]

TYPES = {
    **dict.fromkeys(("f16.f16.f16", "f32.f16.f16", "f32.bf16.bf16", "f16.bf16.bf16", "f32.f16.bf16"), 16),
    **dict.fromkeys(("f32.tf32.tf32", "f16.tf32.tf32"), 8),
    **{f"{d}.{a}.{b}": 32 for d, a, b in product(("f16", "f32"), ("e4m3", "e5m2"), ("e4m3", "e5m2"))},
    **{f"{s}s32.{a}.{b}": 32 for s, a, b in product(("", "satfinite."), ("s8", "u8"), ("s8", "u8"))},
    "s32.s4.s4": 64, "s32.b1.b1.and.popc": 256, "s32.b1.b1.xor.popc": 256, "satfinite.s32.b1.b1.and.popc": 256,
}  # fmt: skip
"""Types with the k of a dense instruction; some do not exist."""

_IMMEDIATES = ("1", "1", "0", "0", "0")
_F16 = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, "
_SP = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0, %f1, %f2, %f3}, "
_SP8 = "wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e4m3 {%f0, %f1, %f2, %f3}, "
_S8 = "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%r0, %r1, %r2, %r3}, "
SINGLE = (
    _F16 + "%rd0, %rd1, %p0, 1, 1, 0, 0;",
    _F16 + "%rd0, %rd1, !%p0, -1, 1, 1, 0;",
    _F16 + "%rd0, %rd1, 0, -1, -1, 0, 1;",
    _F16 + "%rd0, %rd1, 2, 1, 1, 0, 0;",
    _F16 + "%rd0, %rd1, %r9, 1, 1, 0, 0;",
    _F16 + "%rd0, %rd1, %p0, 0, 1, 0, 0;",
    _F16 + "%rd0, %rd1, %p0, 2, 1, 0, 0;",
    _F16 + "%rd0, %rd1, %p0, 1, 1, 2, 0;",
    _F16 + "%rd0, %rd1, %p0, 1, 1, -1, 0;",
    _F16 + "%r9, %rd1, %p0, 1, 1, 0, 0;",
    _F16 + "{%r9, %r9, %r9}, %rd1, %p0, 1, 1, 0;",
    _F16 + "{%f9, %f9, %f9, %f9}, %rd1, %p0, 1, 1, 0;",
    _F16 + "%rd0, {%r9, %r9, %r9, %r9}, %p0, 1, 1, 0;",
    _SP + "%rd0, %rd1, %r9, 0, %p0, 1, 1, 0, 0;",
    _SP + "%rd0, %rd1, %r9, 1, %p0, 1, 1, 0, 0;",
    _SP + "%rd0, %rd1, %r9, 2, %p0, 1, 1, 0, 0;",
    _SP + "%rd0, %rd1, 5, 0, %p0, 1, 1, 0, 0;",
    _SP + "%rd0, %rd1, %r9, %r8, %p0, 1, 1, 0, 0;",
    _SP + "%rd0, %rd1, %p0, 1, 1, 0, 0;",
    _SP8 + "%rd0, %rd1, %r9, 0, %p0, 1, 1;",
    _SP8 + "%rd0, %rd1, %r9, 1, %p0, 1, 1;",
    _S8 + "%rd0, %rd1, %p0;",
    _S8.replace("m64n8", "m64n40") + "%rd0, %rd1, %p0;",
    _S8.replace("s32.s8.s8", "s32.s8.s8.satfinite") + "%rd0, %rd1, %p0;",
    _SP.replace(".sp.sync.aligned", ".sync.aligned.sp") + "%rd0, %rd1, %r9, 0, %p0, 1, 1, 0, 0;",
    _SP.replace(".sp.", ".sp::ordered_metadata.") + "%rd0, %rd1, %r9, 0, %p0, 1, 1, 0, 0;",
    _SP.replace("m64n8k32", "m64n8k16") + "%rd0, %rd1, %r9, 0, %p0, 1, 1, 0, 0;",
    _F16.replace("m64n8k16", "m128n8k16") + "%rd0, %rd1, %p0, 1, 1, 0, 0;",
    _F16.replace(".f32.f16.f16", ".satfinite.f32.f16.f16") + "%rd0, %rd1, %p0, 1, 1, 0, 0;",
    _F16.replace("{%f0", "{%r0") + "%rd0, %rd1, %p0, 1, 1, 0, 0;",
)  # fmt: skip
"""Statements that ptxas takes or not."""


def statement(types: str, n: int, k: int, *, sparse: bool, registers: bool, immediates: int) -> str:
    """Write one statement."""
    kind = types.removeprefix("satfinite.").split(".")[0]
    bank, per_register = ("f", 2) if kind == "f32" else ("r", 4 if kind == "f16" else 2)
    d = ", ".join(f"%{bank}{i}" for i in range(max(1, n // per_register)))
    a = "{%r0, %r1, %r2, %r3}" if registers else "%rd0"
    of_sparse = "%r4, 0, " * sparse
    after = "".join(f", {x}" for x in _IMMEDIATES[:immediates])
    name = f"wgmma.mma_async{'.sp' * sparse}.sync.aligned.m64n{n}k{k << sparse}.{types}"
    return f"{name} {{{d}}}, {a}, %rd1, {of_sparse}%p0{after};"


def taken(statements: list[str], version: str = "9.0") -> list[bool]:
    """Return which statements ptxas takes: a last one that it cannot read keeps it from compiling the others."""
    text = [f".version {version}", ".target sm_90a", ".address_size 64", ".entry kernel() {"]
    text.append(".reg .b32 %r<160>; .reg .f32 %f<160>; .reg .b64 %rd<2>; .reg .pred %p<1>;")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "forms.ptx"
        source.write_text("\n".join([*text, *statements, "unreadable;", "}", ""]))
        command = ["ptxas", "-arch=sm_90a", str(source), "-o", str(source.with_suffix(".cubin"))]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    refused = {int(line) - 6 for line in re.findall(r"line (\d+); (?:error|fatal)", said)}
    if len(statements) not in refused:
        raise RuntimeError(f"ptxas did not read to the end: {said[:500]}")
    return [line not in refused for line in range(len(statements))]


def forms() -> Mapping[str, list[int]]:
    """Return the legal n of each form, named by its types, A and number of immediates."""
    asked = {
        (types, sparse, registers, immediates, n): statement(
            types, n, k, sparse=sparse, registers=registers, immediates=immediates
        )
        for (types, k), sparse, registers, immediates, n in product(
            TYPES.items(), (False, True), (False, True), range(6), range(4, 269, 4)
        )
    }
    found: dict[str, list[int]] = {}
    for (types, sparse, registers, immediates, n), good in zip(asked, taken([*asked.values()]), strict=True):
        if good:
            where = "registers" if registers else "memory"
            found.setdefault(f"{'sp ' * sparse}{types} {where} {immediates}", []).append(n)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Record; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="JSON")
    options = parser.parse_args(arguments)
    said = subprocess.run(["ptxas", "--version"], capture_output=True, text=True, check=True).stdout
    found: dict[str, Any] = {"ptxas": re.findall(r"V([\d.]+)", said)[0], "legal n": forms()}
    found["single"] = dict(zip(SINGLE, taken([*SINGLE]), strict=True))
    options.out.write_text(json.dumps(found, indent=0).replace(",\n", ", ") + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
