"""Recorded registers and published rows: 0 differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from warpmma.arithmetic import compute
from warpmma.hardware import open_recording, shipped
from warpmma.instructions import Instruction, instructions, parse
from warpmma.targets import recipe

H200 = Path(__file__).parent / "data" / "h200_sm90a.npz"
ROWS = Path(__file__).parents[2] / "shared" / "rows" / "published_rows.npz"
RECORDED = open_recording(H200)


def test_the_recordings_have_every_instruction() -> None:
    assert set(RECORDED.fields) == set(shipped().fields) == set(instructions("sm_90a"))


@pytest.mark.parametrize("target", ["sm_90", "sm_90a"])
def test_h200(target: str) -> None:
    rows = list(RECORDED.replay(target))
    assert {str(row.instruction): row.first for row in rows if row.differences} == {}
    assert {row.evidence.kind for row in rows} == {"measured"}


def test_the_shipped_recording() -> None:
    rows = list(shipped().replay())
    assert len(rows) == len(instructions("sm_90a")) and not any(row.differences for row in rows)


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_120"])
def test_other_targets_differ(target: str) -> None:
    """The replay can fail: other generations give other bits for the same registers."""
    differing = {row.instruction.a_type for row in RECORDED.replay(target) if row.differences}
    assert differing >= ({"e4m3", "e5m2"} if target == "sm_120" else {"f16", "bf16", "tf32"})


def _published() -> list[tuple[str, Instruction]]:
    if not ROWS.exists():
        return []
    with np.load(ROWS, allow_pickle=False) as archive:
        names = [key.split("|") for key in archive.files if key.endswith("|d")]
    return [(target, parse(mnemonic)) for target, mnemonic, _ in names if mnemonic.startswith("mma")]


@pytest.mark.skipif(not ROWS.exists(), reason="the published rows are not here")
def test_published_rows_are_of_six_targets() -> None:
    assert {target for target, _ in _published()} == {"sm_70", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100"}


@pytest.mark.parametrize(("target", "instruction"), _published(), ids=str)
def test_published_rows(target: str, instruction: Instruction) -> None:
    with np.load(ROWS, allow_pickle=False) as archive:
        a, b, c, d = (archive[f"{target}|{instruction}|{x}"] for x in "abcd")
    assert len(d) == 2500
    assert np.array_equal(compute(recipe(instruction, target), a.T, b.T, c), d)
