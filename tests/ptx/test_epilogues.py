"""Epilogues as CUTLASS writes them: all lanes of a warp store one box; warpgroups meet at one barrier in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.machine import HazardError

STORE = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 y) {{
.reg .b32 %t, %a; .reg .b64 %y, %o; .reg .pred %p;
.shared .align 128 .b8 tile[512];
ld.param.u64 %y, [y]; mov.u32 %t, %tid.x;
mov.u32 %a, tile; mad.lo.u32 %a, %t, 16, %a;
st.shared.v4.u32 [%a], {{{value}, {value}, 7, 7}};
fence.proxy.async.shared::cta; bar.sync 0;
setp.ge.u32 %p, %t, {lanes}; @%p bra END;
mov.u32 %a, tile; {place}
cp.async.bulk.global.shared::cta.bulk_group [%y], [%a], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END: ret; }}"""


def stored(lanes: int, place: str = "", value: str = "3", hazards: Any = "error") -> tuple[Any, Any]:
    device, y = wm.Device("sm_90"), np.zeros(128, np.uint32)
    kernel = wm.ptx.load(STORE.format(lanes=lanes, place=place, value=value))["k"]
    return kernel.launch(device, 1, 32, [y], hazards=hazards), y


@pytest.mark.parametrize("lanes", [1, 2, 32])
def test_lanes_that_store_the_same_bytes_are_counted(lanes: int) -> None:
    report, y = stored(lanes)
    assert (y[:64].reshape(-1, 4) == (3, 3, 7, 7)).all()
    assert report.counts.get("same value", 0) == lanes - 1


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("and.b32 %t, %t, 1; mad.lo.u32 %a, %t, 256, %a;", "%t"),  # other sources, other bytes
        ("mad.wide.u32 %y, %t, 16, %y;", "3"),  # places overlap
    ],
)
def test_lanes_that_store_other_bytes_or_elsewhere_race(place: str, value: str) -> None:
    with pytest.raises(HazardError, match="another lane of the warp copies to it") as error:
        stored(16, place, value)
    assert error.value.hazard.kind == "race"


TURNS = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 y) {{
.reg .b32 %t, %g, %v; .reg .b64 %y; .reg .pred %p, %q;
.shared .align 8 .b64 turn;
ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; shr.u32 %g, %t, 6;
setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared::cta.b64 [turn], 64;
bar.sync 0;
setp.eq.u32 %p, %g, 1; @!%p bra MEET;
{wait}
MEET: bar.sync 1, 64;
mad.wide.u32 %y, %t, 4, %y; st.global.u32 [%y], %t;
bar.sync 1, 64;
@!%p mbarrier.arrive.{release}.shared::cta.b64 _, [turn];
ret; }}"""
WAIT = "W: mbarrier.try_wait.parity.shared::cta.b64 %q, [turn], 0; @!%q bra W;"


def test_groups_that_an_mbarrier_orders_may_use_one_barrier() -> None:
    y = np.zeros(128, np.uint32)
    kernel = wm.ptx.load(TURNS.format(wait=WAIT, release="release.cta"))["k"]
    for seed in (0, 1, 2):
        kernel.launch(wm.Device("sm_90"), 1, 128, [y], seed=seed)
    assert (y == np.arange(128)).all()
    kernel.launch(wm.Device("sm_90"), 1, 128, [y], hazards="off")  # where the order of mbarriers is not known


@pytest.mark.parametrize(("wait", "release"), [("", "release.cta"), (WAIT, "relaxed.cta")])
def test_groups_that_nothing_orders_may_not(wait: str, release: str) -> None:
    kernel = wm.ptx.load(TURNS.format(wait=wait, release=release))["k"]
    with pytest.raises(HazardError) as error:
        kernel.launch(wm.Device("sm_90"), 1, 128, [np.zeros(128, np.uint32)])
    assert error.value.hazard.kind == "barrier"
