"""What an arrival at another block's mbarrier says: an H200's counts, and reports (`lab.measure.remote_releases`)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import warpmma as wm
from lab.measure.remote_releases import CASES, THREADS, text
from warpmma.kernel import HazardError

FOUND = json.loads((Path(__file__).parents[1] / "data/h200_remote_releases.json").read_text())["found"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_ring_over_two_blocks(case: tuple[str, str]) -> None:
    order, used = case
    x = np.arange(16, dtype=np.uint32)[:, None] * 1000 + np.arange(THREADS, dtype=np.uint32)
    y = np.zeros((4, THREADS), np.uint32)
    entry, device = wm.ptx.load(text(case, 4))["k"], wm.Device("sm_90")
    assert FOUND[f"{order or 'no arrival'}, used {used}"][0] == (0 if order else "c")  # an error, without arrivals
    if order and used == "after":  # a load in flight at the signal (A22), though the way to another block is long
        with pytest.raises(HazardError, match=r"proxy: .*the load may still be in flight"):
            entry.launch(device, 4, THREADS, [x, y], cluster=2)
        return
    if order.startswith(".release"):
        entry.launch(device, 4, THREADS, [x, y], cluster=2)
        assert not y.any()
        return
    with pytest.raises(HazardError, match=r"race: .*rule A7" if order else "pending: .*may still write it"):
        entry.launch(device, 4, THREADS, [x, y], cluster=2)
