"""Recordings and ways to run the command that tests of the command line share."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import Array

from warpmma import execute, parse
from warpmma.cli import main
from warpmma.layouts import Operand
from warpmma.registers import LANES
from warpmma.sparsity import selectors

Files = dict[str, Any]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
ABC: tuple[Operand, ...] = ("A", "B", "C")

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
HALF = "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16"
FP8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
SP = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"


def recorded(mnemonic: str, target: str, *ids: int) -> Files:
    """Two warps of random registers, and what they yield, as an archive has them."""
    i, rng = parse(mnemonic), np.random.default_rng(1)

    def words(*registers: int) -> Array:
        return rng.integers(0, 1 << 32, (2, *registers, LANES), np.uint32)

    fields: Files = {x.lower(): words(i.layout(x).registers) for x in ABC}
    call: Callable[..., Array] = partial(execute, i, **fields, target=target)
    if i.sparse:
        fields["e"] = np.full((2, LANES), 0x4E4E9C84, np.uint32)
        fields |= {f"d{f}": call(metadata=fields["e"], selector=f) for f in selectors(i)}
    elif i.block_scale:
        fields |= {"sa": words(), "sb": words(), "ids": np.array(ids)}
        named = dict(zip(("byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b"), ids, strict=True))
        fields["d"] = call(scale_a=fields["sa"], scale_b=fields["sb"], **named)
    else:
        fields["d"] = call()
    return {f"{mnemonic}|{x}": array for x, array in fields.items()}


GOOD = recorded(F16, "sm_90") | recorded(FP8, "sm_90") | recorded(SP, "sm_90")


def saved(path: Path, files: Files, **more: Any) -> str:
    """Save an archive; None leaves a key out."""
    np.savez(path, **{key: array for key, array in (files | more).items() if array is not None})
    return str(path)


def captured(*arguments: str) -> tuple[int, str]:
    with redirect_stdout(io.StringIO()) as stdout:
        return main(["verify", *arguments]), stdout.getvalue()


def process(*arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "warpmma", "verify", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout, run.stderr


def table_of(output: str) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """Outputs and differences by instruction, and the lines below the table."""
    table, below = output.split("\n\n")
    head, rule, *lines = table.splitlines()
    assert head.split() == ["instruction", "outputs", "differences", "evidence"] and set(rule) == {"-", " "}
    cells = [line.split(maxsplit=3) for line in lines if not line.startswith("  first difference: ")]
    assert all(how.startswith(("measured (H200)", "published", "derived")) for *_, how in cells)
    counts = {name: (int(x.replace(",", "")), int(y.replace(",", ""))) for name, x, y, _ in cells}
    return counts, below.splitlines()
