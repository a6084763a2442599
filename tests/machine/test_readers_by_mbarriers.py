"""Reads of many warps, of which an mbarrier orders some: a writer finds the ones that it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.machine import HazardError

KERNEL = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 y) {{
.reg .pred %p, %q, %w; .reg .b32 %t, %v, %x, %c; .reg .b64 %y, %o;
.shared .align 8 .b8 tile[64]; .shared .align 8 .b64 bar;
ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; shr.u32 %x, %t, 5; setp.eq.u32 %p, %t, 0;
mov.u32 %c, %ctaid.x; mad.lo.u32 %c, %c, 160, %t; mad.wide.u32 %o, %c, 4, %y;
@%p mbarrier.init.shared.b64 [bar], {count}; @%p st.shared.u32 [tile], 5; bar.sync 0;
setp.eq.u32 %w, %x, 0; @%w bra WRITER;
ld.shared.u32 %v, [tile]; st.global.u32 [%o], %v;
setp.eq.u32 %q, %x, {absent}; @!%q mbarrier.arrive.shared.b64 _, [bar];
bra END;
WRITER: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0; @!%q bra WRITER;
{before}
@%p st.shared.u32 [tile], 9;
END: ret; }}"""
BEFORE = ("", "@%p ld.shared.u32 %v, [tile];", "@%p st.shared.u32 [tile+4], 9;")


def found(absent: int, before: str, hazards: Any, blocks: int) -> str:
    """Return the kind of hazard of 5 warps, the first of which overwrites what the others have read; "" for none.

    Each block of a cluster does so in its own memory.
    """
    text = KERNEL.format(count=32 * (4 - (absent > 0)), absent=absent, before=before)
    try:
        arrays = [np.zeros(160 * blocks, np.uint32)]
        wm.ptx.load(text)["k"].launch(wm.Device("sm_90"), blocks, 160, arrays, cluster=(blocks, 1, 1), hazards=hazards)
    except HazardError as error:
        return error.hazard.kind
    return ""


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("hazards", ["error", "strict"])
@pytest.mark.parametrize("blocks", [1, 2])
def test_a_reader_that_does_not_arrive_is_found(before: str, hazards: str, blocks: int) -> None:
    assert [found(absent, before, hazards, blocks) for absent in range(5)] == ["", *["race"] * 4]
