"""Operations as statements of PTX, and what ptxas refuses of them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab.gpu.row_kernels import row_statement
from warpmma.hardware import ptx_module
from warpmma.operations import Operation, packing, unpacking

HEAD = (".address_size 64", ".visible .entry k() {")
REGISTERS = " ".join(
    f".reg .{kind} %{letter}{i}_{kind};" for kind in ("b16", "b32", "b64", "pred", "b8") for letter in "ad"
    for i in range(5)
)  # fmt: skip
VECTORS = [row(type_, count) for row in (packing, unpacking) for type_, count in
           (("b16", 2), ("b32", 2), ("b32", 4), ("b64", 2), ("b64", 4))]  # fmt: skip


def statement(row: Operation) -> str:
    """An operation on registers of its classes; of what PTX wants in `.b8`, on those."""
    text = row_statement(row, [7] * row.inputs.count("imm"))
    bytes_ = {f"a{i}" for i, type_ in enumerate(row.types) if type_ == "b8"}
    bytes_ |= {f"d{i}" for i in range(4) if row in VECTORS and row.mnemonic[-2:] == f"{8 * row.vectors[0]}"}
    words = row.mnemonic.split(".")
    if "e2m1x2" in words:
        bytes_.add("d0" if words.index("e2m1x2") == len(words) - 2 else "a0")
    kinds = {f"a{i}": kind for i, kind in enumerate(row.inputs)} | {f"d{i}": k for i, k in enumerate(row.outputs)}
    return re.sub(r"%([ad]\d)", lambda m: f"%{m[1]}_{'b8' if m[1] in bytes_ else kinds[m[1]]}", text)


def refused(statements: Sequence[str], target: str, version: str = "9.0") -> dict[int, str]:
    """What ptxas refuses for a target, with what it says."""
    found: dict[int, str] = {}
    arch = target if target not in ("sm_70", "sm_72") else "sm_75"
    while True:
        there = [i for i in range(len(statements)) if i not in found]
        lines = [f".version {version}", f".target {target}", *HEAD, REGISTERS, *(statements[i] for i in there)]
        command = ["ptxas", f"-arch={arch}", "-O0", "/dev/stdin", "-o", "/dev/null"]
        done = subprocess.run(command, input="\n".join([*lines, "ret;", "}", ""]), capture_output=True, text=True)
        if done.returncode == 0:
            return found
        errors = re.findall(r"line (\d+); error\s*: (.*)", done.stderr)
        assert errors, done.stderr[:500]
        found |= {there[int(line) - 6]: text for line, text in errors}


def assembled(kernels: list[str], folder: Path) -> str:
    """What ptxas has to say of kernels for sm_90a."""
    source = folder / "k.ptx"
    source.write_text(ptx_module(kernels, "sm_90a", (8, 3)))
    command = ["ptxas", "-arch=sm_90a", "-O0", str(source), "-o", str(folder / "k.cubin")]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def verdict(text: str, target: str = "sm_90") -> str:
    """What ptxas has against a text; nothing if it takes it."""
    command = ["ptxas", f"-arch={target}", "-O0", "/dev/stdin", "-o", "/dev/null"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr or f"ptxas ended with {done.returncode}"
