"""An H200's results for shuffles that PTX leaves undefined (`python -m lab.measure.shuffles`)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import warpmma as wm
from lab.measure.shuffles import kernels
from warpmma.machine import HazardError, HazardWarning

FOUND = json.loads((Path(__file__).parents[1] / "data/h200_shuffles.json").read_text())


@pytest.mark.parametrize("name", kernels())
def test_lanes_with_undefined_results(name: str) -> None:
    module, y = wm.ptx.load(kernels()[name]), np.full((32, 2), 0xFFFF, np.uint32)
    module[name].launch(wm.Device("sm_90"), 1, 32, [y], hazards="off")
    value, predicate = FOUND[name]["value"], FOUND[name]["predicate"]
    who = [i for i in range(32) if i < 16 or name.startswith(("halves", "unnamed"))]  # the others never wrote it
    assert y[who, 0].tolist() == [value[i] for i in who]
    assert y[who, 1].tolist() == [predicate[i] for i in who]


@pytest.mark.parametrize("name", ["branched_idx", "unnamed_up"])
def test_they_are_hazards(name: str) -> None:
    module, device = wm.ptx.load(kernels()[name]), wm.Device("sm_90")
    with pytest.raises(HazardError, match="divergent"):
        module[name].launch(device, 1, 32, [np.zeros((32, 2), np.uint32)])
    y = np.zeros((32, 2), np.uint32)
    with pytest.warns(HazardWarning) as caught:
        module[name].launch(device, 1, 32, [y], hazards={"divergent": "warn", "poison": "warn", "unwritten": "warn"})
    assert any("divergent" in str(x.message) for x in caught)
    assert y[:16, 0].tolist() == FOUND[name]["value"][:16]
