"""Descriptors that an H200 faults on: those whose access begins beyond the block's memory, and no others."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lab.record import descriptor_faults as tool

DATA = Path(__file__).parents[1] / "data" / "h200_descriptor_faults.npz"


def test_descriptors_fault_as_on_an_h200() -> None:
    with np.load(DATA) as archive:
        cases, faults, about = (archive[x] for x in ("cases", "faults", "about"))
    assert "H200" in str(about) and cases.tolist() == [list(x) for x in tool.cases()]
    assert [tool.faults(tool.Case(*x)) for x in cases.tolist()] == faults.tolist()
    assert len(faults) == 300 and 40 < np.count_nonzero(~faults) < 100


def test_an_access_may_end_beyond_the_memory() -> None:
    """Its first line counts: seven more lines are read behind the end of the memory."""
    assert not tool.faults(tool.Case(1024, 2048 - 16, 0, 0)) and tool.faults(tool.Case(1024, 2048, 0, 0))
