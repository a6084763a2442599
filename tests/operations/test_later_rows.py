"""Rows of integers, carries, comparisons, choices and video instructions: an H200's registers."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from lab.gpu.lane_archives import recorded_lanes
from lab.gpu.row_jobs import compared_lanes, different_lanes, lane_shown, row_simulated
from warpmma.operations import operation, operations, with_selectors
from warpmma.operations.arithmetic import comparisons
from warpmma.operations.measurements import OPERATIONS

DATA = Path(__file__).parents[1] / "data"


def test_recorded_registers_of_an_h200() -> None:
    names = set()
    for mnemonic, values, given, got in recorded_lanes(DATA / "h200_operations_more.npz"):
        row = operation(mnemonic, "sm_90a")
        expected = row_simulated(row, given, values)
        bad = different_lanes(compared_lanes(row, given, values), got, expected)
        assert not bad.any(), f"{mnemonic}: {lane_shown(given, got, expected, np.argwhere(bad)[0])}"
        names.add(mnemonic)
    with np.load(DATA / "h200_operations_bits.npz") as archive:
        others = {name.partition(" ")[0] for name in archive.files}
    others |= {mnemonic for mnemonic, *_ in recorded_lanes(DATA / "h200_operations_arithmetic.npz")}
    others |= set(chain.from_iterable(form.mnemonics for form in comparisons.FORMS))
    every = {x.mnemonic for x in operations("sm_90a") if OPERATIONS in x.evidence.compared}
    assert len(names) == 5102 and names <= every and every - names <= others


@pytest.mark.parametrize(
    ("mnemonic", "given", "got"),
    [
        ("vadd.u32.u32.u32", (0x15AC9911, 0x59E4F41D, 0xFFFFFFF8), 0x59E4FFF8),
        ("vadd.s32.u32.u32.sat", (0x15AC9911, 0x59E4F41D, 0xFFFFFFF8), 0x0000FFF8),
        ("vsub.u32.s32.s32", (0xFFFFC000, 0x05BCCC7F, 0xFFFFFFFF), 0xFA43FFFF),
        ("vmin.s32.s32.s32", (0xF48FF74A, 0xFFFFFFF9, 0xC47FE0A1), 0xFFFFE0A1),
        ("vmax.u32.u32.s32.sat", (0xFFFFC000, 0x05BCCC7F, 0xFFFFFFFF), 0x0000FFFF),
        ("vshl.s32.u32.u32.sat.clamp", (0x15AC9911, 0x59E4F41D, 0xFFFFFFF8), 0x7FFFFFF8),
        ("vshr.u32.s32.u32.clamp", (0xF7B7B000, 0x00000002, 0x00000400), 0xFFFF0400),
        ("vset.s32.s32.gt", (0x00000012, 0xFFFFFC01, 0x4D98AB4B), 0x0000AB4B),
    ],
)
def test_an_h200_puts_upper_halves_into_upper_halves(mnemonic: str, given: tuple[int, ...], got: int) -> None:
    row = with_selectors(mnemonic, ("h1", "b3", "", ""))
    (d,) = row(*(np.full(32, x, np.uint32) for x in given))
    assert set(d.tolist()) == {got}
