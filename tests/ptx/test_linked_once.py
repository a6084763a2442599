"""An entry is linked once for all devices of a target, unless a variable that it reaches lies elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import warpmma as wm
from warpmma.ptx import PtxModule

TEXT = """.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 unused = 5;
{}
.visible .entry k(.param .u64 y) {{
.reg .b64 %y; .reg .b32 %v;
ld.param.u64 %y, [y]; {} st.global.u32 [%y], %v; ret; }}
"""
PLAIN = TEXT.format("", "mov.u32 %v, 7;")
GLOBAL = TEXT.format(".global .align 4 .u32 g = 7;", "ld.global.u32 %v, [g];")
CONST = TEXT.format(".const .align 4 .u32 g = 7;", "ld.const.u32 %v, [g];")


def launched(module: PtxModule, device: wm.Device) -> int:
    """The word that the entry writes."""
    y = np.zeros(1, np.uint32)
    module["k"].launch(device, 1, 1, [y])
    return int(y[0])


def devices() -> list[wm.Device]:
    """Three of one target; the memory of the last one is in use."""
    made = [wm.Device("sm_80") for _ in range(3)]
    made[2].array(np.zeros(999, np.uint32))
    return made


@pytest.mark.parametrize(("text", "alike"), [(PLAIN, (1, 1)), (GLOBAL, (1, 0)), (CONST, (1, 1))])
def test_devices_share_a_program_where_variables_lie_alike(text: str, alike: tuple[int, int]) -> None:
    module = wm.ptx.load(text)
    there = devices()
    assert [launched(module, x) for x in there] == [7, 7, 7]
    first, *others = (module.linked("k", x, "ptxas").program for x in there)
    assert tuple(x is first for x in others) == alike


def test_each_device_has_variables_of_its_own() -> None:
    module, (one, two, _) = wm.ptx.load(CONST), devices()
    assert launched(module, one) == 7
    module.variable("g", one).set(np.array([1, 0, 0, 0], np.uint8))
    assert (launched(module, one), launched(module, two)) == (1, 7)


def test_other_targets_have_another_program() -> None:
    module = wm.ptx.load(PLAIN)
    one, two = wm.Device("sm_80"), wm.Device("sm_90")
    assert launched(module, one) == launched(module, two) == 7
    assert module.linked("k", one, "ptxas") is not module.linked("k", two, "ptxas")
