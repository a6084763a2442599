"""Who waits for registers of `setmaxnreg`: the programs of `lab.measure.register_limits`, here and on an H200."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import warpmma as wm
from lab.measure.register_limits import CASES, source
from warpmma.cuda import compilers, nvrtc
from warpmma.machine import HazardError

FOUND = json.loads((Path(__file__).parents[1] / "data" / "h200_register_limits.json").read_text())["found"]
PROCESSOR = 'asm volatile("mov.u32 %0, %%smid;" : "=r"(processor));'
DELAY = "  while (now() < ns) __nanosleep(1000);\n"


def reported(case: str) -> tuple[int, int, int] | None:
    """Return the block, the first warp and the threads that wait for ever; None if they do not.

    Time stands still here, and blocks have a multiprocessor each: so none waits for a time, and all have one.
    """
    text = source(case)
    assert PROCESSOR in text and DELAY in text
    kernel = wm.cuda.load(text.replace(PROCESSOR, "processor = 0;").replace(DELAY, ""), arch="sm_90a")["cell"]
    device = wm.Device("sm_90a")
    places = [device.array(np.zeros(*x)) for x in ((64, np.uint64), (1024, np.uint32), (1, np.uint64))]
    try:
        kernel.launch(device, 2 if case == "OTHER_BLOCK_GIVES" else 1, 256, places)
    except HazardError as error:
        assert error.hazard.kind == "deadlock" and "setmaxnreg.inc" in error.hazard.site.mnemonic
        block, warp = error.hazard.block, error.hazard.warp
        assert block is not None and warp is not None
        return block, warp, error.hazard.count
    return None


def test_every_case_is_recorded() -> None:
    assert set(CASES) == set(FOUND) and all(x["registers"] == 128 for x in FOUND.values())


@pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()) and not compilers.find_nvcc(), reason="no compiler of CUDA C++")
@pytest.mark.parametrize("case", CASES)
def test_the_same_warps_wait_for_ever(case: str) -> None:
    """Warps that began and never left; the report has those that wait at the first line, of one warpgroup."""
    waited = [i for i, (began, _, left) in enumerate(FOUND[case]["milliseconds"]) if began and not left]
    assert bool(waited) == bool(FOUND[case]["fault"])
    alike = [i for i in waited if i // 4 == waited[0] // 4]
    assert reported(case) == ((*divmod(waited[0], 8), 32 * len(alike)) if waited else None)


def test_each_of_four_warps_takes_what_one_warp_gave() -> None:
    """One quarter of a multiprocessor: 4 x 64 registers would be enough for two of the warps, if they had one pool."""
    times = FOUND["BOTH_GIVE_IN_TURN"]["milliseconds"]
    assert all(abs(times[4 + k][1] - times[k][1]) < 1 for k in range(4))
    assert all(taken is None for _, taken, _ in FOUND["EXITS_AFTER_LESS"]["milliseconds"][4:8])
