"""Copies that several lanes of a warp execute run once for each lane, as on an H200."""

from __future__ import annotations

import json

import pytest

from lab.measure.copies_of_lanes import LANES, RECORDED, simulated
from warpmma.cuda import nvrtc

pytestmark = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())


@pytest.mark.parametrize("lanes", LANES)
def test_what_the_gpu_did(lanes: int) -> None:
    wanted = json.loads(RECORDED.read_text())["ran"][str(lanes)]
    assert simulated(lanes, hazards="error" if lanes == 1 else "off") == wanted  # loads to one place are reported
