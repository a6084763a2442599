"""Faults planted in CUDA C++ are reported with their line; the corrected programs have no reports."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from lab.programs.texts import SOURCES, read_text
from warpmma import ptx
from warpmma.machine import HazardError

FAULTS: dict[str, tuple[str, int, int, tuple[Any, ...]]] = {
    # kind, grid, block, arrays (an int: so many words of 0) and numbers
    "no_barrier": ("race", 1, 64, (64, 64)),
    "one_barrier": ("race", 1, 128, (np.arange(384, dtype=np.float32), np.zeros(128, np.float32), np.int32(3))),
    "far_shared": ("bounds", 1, 64, (np.zeros(64, np.float32), np.zeros(64, np.float32))),
    "far_global": ("bounds", 1, 32, (np.zeros(100, np.float32), np.zeros(100, np.float32), np.int32(100))),
    "far_local": ("stack", 1, 32, (32, 32, np.int32(2))),
    "no_syncwarp": ("race", 1, 32, (32, 32)),
    "no_fence": ("race", 2, 64, (64, 1, 64)),
    "plain_flag": ("race", 2, 32, (1, 1, 1)),
    "no_wait": ("pending", 1, 32, (np.zeros(128, np.float32), np.zeros(128, np.float32))),
    "half_barrier": ("barrier", 1, 64, (64, 64)),
    "unwritten": ("unwritten", 1, 64, (64, 64)),
    "same_word": ("race", 2, 32, (2,)),
}


@cache
def module() -> Any:
    return ptx.load(read_text("faults.ptx"))


def marked(name: str) -> set[int]:
    """Lines of the source that a report of a kernel must name."""
    lines = SOURCES["faults"].read_text().splitlines()
    return {i for i, line in enumerate(lines, 1) if re.search(rf"// fault {name}$", line)}


def run(name: str, mended: bool, **options: Any) -> Any:
    _, grid, block, given = FAULTS[name]
    device = wm.Device("sm_90")
    arguments = [
        x if isinstance(x, np.generic) else device.array(np.zeros(x, np.int32) if isinstance(x, int) else x)
        for x in given
    ]
    return module()[name].launch(device, grid, block, [*arguments, np.int32(mended)], **options)


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_reported_with_the_line_of_the_source(name: str) -> None:
    with pytest.raises(HazardError) as caught:
        run(name, mended=False)
    hazard = caught.value.hazard
    assert hazard.kind == FAULTS[name][0]
    assert hazard.site.file.endswith("faults.cu")
    found = {site.line for site in (hazard.site, hazard.other) if site not in (None, hazard.decided)}
    assert found <= marked(name), f"{hazard} and {hazard.other}"
    assert f"faults.cu:{hazard.site.line}" in str(caught.value)


@pytest.mark.parametrize("name", FAULTS)
def test_mended_kernel_has_no_hazard(name: str) -> None:
    assert not run(name, mended=True).hazards
