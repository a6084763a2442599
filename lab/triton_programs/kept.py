"""Triton's PTX and launches of the kernels, stored in one file, so that neither Triton nor a GPU is needed.

PTX is stored without its debug sections, and with file names instead of paths.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from lab.programs.launches import Case, Run, Step
from lab.programs.texts import keep as write_text
from lab.programs.texts import read_text

from .calls import TritonCase
from .cases import CASES

__all__ = ["KEPT", "keep", "kept_case", "kept_cases", "kept_texts", "plain_text", "version"]

KEPT = "triton.json"
_NUMBERS: dict[str, Any] = {"u32": np.uint32, "u64": np.uint64, "f32": np.float32, "f64": np.float64}


@cache
def _read() -> Any:
    return json.loads(read_text(KEPT))


def plain_text(text: str) -> str:
    """Return PTX without traces of the machine that compiled it."""
    text = re.sub(r"(\.loc\s+\d+ \d+ \d+), function_name \S+, inlined_at [\d ]+\d", r"\1", text)
    text = re.sub(r"\n\t\.section\s+\.debug_\w+\s*\{.*?\n\t\}", "", text, flags=re.DOTALL)
    return re.sub(r'(\.file\s+\d+\s+)"(?:[^"\n]*/)?([^"/\n]+)"', r'\1"\2"', text)


def keep(made: Mapping[str, tuple[str, Sequence[Any]]], triton: str) -> None:
    """Store the PTX and launches of each case."""
    found = {name: {"text": text, "steps": list(steps)} for name, (text, steps) in made.items()}
    write_text(KEPT, json.dumps({"triton": triton, "cases": found}, indent=0))


def version() -> str:
    """Return the version of Triton that compiled the PTX."""
    return str(_read()["triton"])


def kept_texts() -> dict[str, str]:
    """Return the PTX of each case."""
    return {name: case["text"] for name, case in _read()["cases"].items()}


def _run(case: TritonCase) -> Run:
    program = case.make()
    steps = [
        Step(
            step["entry"], tuple(step["grid"]), tuple(step["block"]),
            tuple(x if isinstance(x, str) else _NUMBERS[x[0]](x[1]) for x in step["arguments"]), step["shared"],
        )
        for step in _read()["cases"][str(case)]["steps"]
    ]  # fmt: skip
    return Run(program.arrays, tuple(steps), program.outputs)


def kept_case(case: TritonCase) -> Case:
    """Return a case as a launch of its PTX, without Triton."""
    return Case(str(case), "as Triton launches it", partial(_run, case))


def kept_cases() -> list[Case]:
    """Return all cases."""
    return [kept_case(case) for case in CASES]
