"""Triton's PTX and launches of the kernels, stored in files, so that neither Triton nor a GPU is needed.

PTX is stored without its debug sections, and with file names instead of paths. Kernels of one case are one text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from lab.programs.archive import RECORDED
from lab.programs.launches import Argument, Case, Run, Step, Struct
from lab.programs.texts import keep as write_text
from lab.programs.texts import read_text

from .calls import TritonCase
from .cases import CASES
from .hopper_cases import HOPPER

__all__ = [
    "KEPT", "Kept", "joined", "keep", "kept_case", "kept_cases", "kept_texts", "plain_text", "step_of", "version",
]  # fmt: skip


@dataclass(frozen=True)
class Kept:
    """Cases, the file of their PTX and launches, a GPU's results, and the target of the arithmetic."""

    cases: tuple[TritonCase, ...]
    file: str
    recorded: Path
    target: str


KEPT: Mapping[str, Kept] = {
    "sm_80": Kept(CASES, "triton.json", RECORDED.with_name("h200_triton.npz"), "sm_90"),
    "sm_90a": Kept(HOPPER, "triton_sm90a.json", RECORDED.with_name("h200_triton_sm90a.npz"), "sm_90a"),
}
"""The sets of cases, by the target that Triton compiles most of them for."""

_NUMBERS: dict[str, Any] = {"u32": np.uint32, "u64": np.uint64, "f32": np.float32, "f64": np.float64}


@cache
def _read(file: str) -> Any:
    return json.loads(read_text(file))


def plain_text(text: str) -> str:
    """Return PTX without traces of the machine that compiled it."""
    text = re.sub(r"(\.loc\s+\d+ \d+ \d+), function_name \S+, inlined_at [\d ]+\d", r"\1", text)
    text = re.sub(r"\n\t\.section\s+\.debug_\w+\s*\{.*?\n\t\}", "", text, flags=re.DOTALL)
    return re.sub(r'(\.file\s+\d+\s+)"(?:[^"\n]*/)?([^"/\n]+)"', r'\1"\2"', text)


def joined(texts: Sequence[str]) -> str:
    """Return one text of several: files are numbered on, and what a former one declares is not repeated."""
    made, files = "", 0
    for text in dict.fromkeys(texts):
        if made:
            text = text.partition(".address_size 64\n")[2]
            declared = [line for line in text.splitlines(keepends=True) if line.startswith((".extern", ".global"))]
            for line in declared:
                text = text.replace(line, "", 1) if line in made else text
            text = re.sub(r"^(\t\.(?:loc|file)\t)(\d+)", partial(_numbered_on, files), text, flags=re.MULTILINE)
        made += text
        files += len(re.findall(r"^\t\.file\t", text, flags=re.MULTILINE))
    return made


def _numbered_on(files: int, found: re.Match[str]) -> str:
    return f"{found[1]}{int(found[2]) + files}"


def keep(made: Mapping[str, tuple[str, Sequence[Any]]], triton: str, kept: Kept) -> None:
    """Store the PTX and launches of each case."""
    found = {name: {"text": text, "steps": list(steps)} for name, (text, steps) in made.items()}
    write_text(kept.file, json.dumps({"triton": triton, "cases": found}, indent=0))


def version(kept: Kept = KEPT["sm_80"]) -> str:
    """Return the version of Triton that compiled the PTX."""
    return str(_read(kept.file)["triton"])


def kept_texts(kept: Kept = KEPT["sm_80"]) -> dict[str, str]:
    """Return the PTX of each case."""
    return {name: case["text"] for name, case in _read(kept.file)["cases"].items()}


def step_of(one: Any, names: Mapping[int, str]) -> dict[str, Any]:
    """Return a watched launch as it is stored: addresses of arrays become their names, in tensor maps too."""
    arguments: list[Any] = []
    for type_, x in one.arguments:
        if type_ == "bytes":
            data = bytes.fromhex(x)
            address = int.from_bytes(data[:8], "little")
            arguments.append(["map", names[address], data[8:].hex()])
        else:
            arguments.append(names[x] if type_ == "u64" and x in names else (type_, x))
    step = {"entry": one.entry, "grid": one.grid, "block": one.block, "shared": one.shared, "arguments": arguments}
    return step | ({"cluster": one.cluster} if one.cluster else {})


def _argument(x: Any) -> Argument:
    if isinstance(x, str):
        return x
    if x[0] == "map":  # its first word is the address of the tensor
        return Struct((x[1], bytes.fromhex(x[2])))
    number: np.generic = _NUMBERS[x[0]](x[1])
    return number


def _run(kept: Kept, case: TritonCase) -> Run:
    program = case.make()
    steps = [
        Step(
            step["entry"], tuple(step["grid"]), tuple(step["block"]), tuple(map(_argument, step["arguments"])),
            step["shared"], tuple(step["cluster"]) if "cluster" in step else None,
        )
        for step in _read(kept.file)["cases"][str(case)]["steps"]
    ]  # fmt: skip
    return Run(program.arrays, tuple(steps), program.outputs)


def kept_case(case: TritonCase, kept: Kept = KEPT["sm_80"]) -> Case:
    """Return a case as a launch of its PTX, without Triton."""
    return Case(str(case), "as Triton launches it", partial(_run, kept, case))


def kept_cases(kept: Kept = KEPT["sm_80"]) -> list[Case]:
    """Return all cases."""
    return [kept_case(case, kept) for case in kept.cases]
