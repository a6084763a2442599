"""An H200's results for shifts by amounts that are out of range (`python -m lab.record.shifts`)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import warpmma as wm
from lab.record.shifts import AMOUNTS, LEVELS, SHIFTS, VALUES, WAYS, text

FOUND = json.loads((Path(__file__).parents[1] / "data/h200_shifts.json").read_text())
Results = npt.NDArray[np.uint64]


@cache
def module() -> wm.ptx.PtxModule:
    return wm.ptx.load(text())


def simulated(name: str, amounts: tuple[int, ...] = AMOUNTS) -> Results:
    results = np.zeros((len(VALUES), len(AMOUNTS)), np.uint64)
    arguments = [np.array(VALUES, np.int64), np.array(amounts, np.uint32), results]
    module()[name].launch(wm.Device("sm_90"), 1, len(VALUES), arguments)
    return results


def recorded(name: str) -> Results:
    """What came at every level of ptxas, and of the driver's assembler."""
    ((levels, found),) = FOUND["results"].items()
    assert levels.split() == list(LEVELS)
    return np.array(found[name], np.uint64)


@pytest.mark.parametrize("shift", SHIFTS)
def test_amounts_are_clamped_as_ptx_says(shift: str) -> None:
    name = shift.replace(".", "_")
    for way in WAYS[1:]:
        np.testing.assert_array_equal(simulated(f"{name}_{way}"), recorded(f"{name}_{way}"))
    np.testing.assert_array_equal(simulated(f"{name}_immediate"), simulated(f"{name}_loaded"))


@pytest.mark.parametrize("shift", SHIFTS)
def test_ptxas_takes_immediate_amounts_of_16_bit_shifts_for_16_bits(shift: str) -> None:
    """docs/specification/departures.md 4: 65537 shifts by 1, 2^31 not at all. Here they are what PTX says."""
    name = shift.replace(".", "_")
    departed = (recorded(f"{name}_immediate") != simulated(f"{name}_immediate")).any(0)
    cut = tuple(n & 0xFFFF for n in AMOUNTS) if shift.endswith("16") else AMOUNTS
    np.testing.assert_array_equal(recorded(f"{name}_immediate"), simulated(f"{name}_loaded", cut))
    few = 15 if "s" in shift[-3:] else 16  # from here on the result is all sign, or nothing
    expected = [min(n, few) != min(low, few) for n, low in zip(AMOUNTS, cut, strict=True)]
    assert departed.tolist() == expected and any(expected) == shift.endswith("16")
