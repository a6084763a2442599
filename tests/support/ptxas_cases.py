"""Operations as statements of PTX, and what ptxas refuses of them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

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
    kinds = {name: x.declared for x in row.signature for name in x.names}
    names = {name: "7" if kind == "imm" else f"%{name}_{kind}" for name, kind in kinds.items()}
    return row.statement(names.__getitem__)


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
