"""The programs of `lab.measure.order`, in the simulator: what failed on an H200 is reported."""

from __future__ import annotations

import pytest

from lab.measure.order_cells import CELLS, Cell, failed
from lab.measure.order_compare import known, permitted, recorded, reported
from warpmma.cuda import nvrtc
from warpmma.machine.report.asynchronous_rules import RULES

FOUND = recorded()
NVRTC = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())


def test_every_cell_is_recorded() -> None:
    assert {(x.experiment, x.name) for x in CELLS} == {(key, name) for key, some in FOUND.items() for name in some}
    assert all("fault" not in FOUND[x.experiment][x.name] for x in CELLS if not x.alone)


@NVRTC
@pytest.mark.alike(8)
@pytest.mark.parametrize("cell", CELLS, ids=lambda x: f"{x.experiment} {x.name}")
def test_what_failed_is_reported(cell: Cell) -> None:
    times, kind = failed(cell, FOUND[cell.experiment][cell.name]), reported(cell)
    needed = {"3": "A21", "6": "A22"}.get(cell.experiment)
    if times and not kind and needed and needed not in RULES:
        pytest.xfail(f"rule {needed} is not simulated")
    if times:
        assert kind or known(cell), "failed, and is not reported"
    else:
        assert not kind or permitted(cell), f"never failed, and is reported: {kind}"
