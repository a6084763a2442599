"""Which `.sync` instructions at two places converge on an H200 (`python -m lab.measure.meetings`), and here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from lab.measure.meetings import kernels
from warpmma.machine import HazardError

FOUND = json.loads((Path(__file__).parents[1] / "data/h200_meetings.json").read_text())["outputs"]
MEET = [name for name, found in FOUND.items() if found["O0"] == found["O3"] and "words" in found["O0"]]
APART = [name for name, found in FOUND.items() if "hangs" in found["O3"]]
# One place alone, or another mask, or lanes that exit: nobody meets there.
UNJOINED = ("other_arm_exits", "other_masks", "masks_at_one_place")


def _launch(name: str, **options: Any) -> tuple[wm.machine.Launch, list[list[int]]]:
    y = np.full((32, 2), 0xFFFFFFFF, np.uint32)
    report = wm.ptx.load(kernels()[name])[name].launch(wm.Device("sm_90"), 1, 32, [y], **options)
    return report, y.T.tolist()


def test_every_kernel_is_recorded_and_either_converges_or_hangs() -> None:
    assert sorted(FOUND) == sorted(kernels()) == sorted(MEET + APART)
    assert len(MEET) == 18 and len(APART) == 10


@pytest.mark.parametrize("name", MEET)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_lanes_that_converge_give_the_bits_of_an_h200(name: str, seed: int) -> None:
    hazards: Any = {"divergent": "warn"} if name == "masks_at_one_place" else "error"
    if name == "masks_at_one_place":
        with pytest.warns(wm.machine.HazardWarning, match="another mask|undefined"):
            report, words = _launch(name, hazards=hazards, seed=seed)
    else:
        report, words = _launch(name, hazards=hazards, seed=seed)
    assert words == FOUND[name]["O3"]["words"]
    joined = name not in (*UNJOINED, "function")
    assert bool(report.joined) == joined
    if joined:
        assert all(a.line < b.line and a.mnemonic == b.mnemonic for a, b in report.joined)
        assert all(warps >= 1 for warps in report.joined.values())


@pytest.mark.parametrize("name", APART)
def test_lanes_that_hang_on_an_h200_are_divergent_and_both_places_are_named(name: str) -> None:
    with pytest.raises(HazardError) as caught:
        _launch(name)
    hazard = caught.value.hazard
    assert hazard.kind == "divergent" and hazard.count == 16
    assert hazard.other is not None and hazard.other != hazard.site
    text = str(hazard)
    assert hazard.site.place in text and hazard.other.place in text and hazard.other.mnemonic in text
