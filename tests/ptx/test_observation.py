"""Order by observation (`happens_before`, rule 7): bytes, scopes and reads, byte by byte; fences before a barrier."""

from __future__ import annotations

import numpy as np
import pytest
from poison_cases import HEAD

from warpmma import Device
from warpmma.machine import HazardError
from warpmma.machine.order import happens_before
from warpmma.ptx import load

TWO_BLOCKS = """ld.param.u64 %rd7, [y]; mov.u32 %r8, %ctaid.x; setp.eq.u32 %p2, %r8, 0; setp.ne.u32 %p3, %r1, 0;
mov.u16 %h1, 1; mov.b64 %rd10, 1; @%p3 bra END; @%p2 bra WAIT;
{writes}
bra END;
WAIT: {reads} @%p4 bra WAIT;
{stores}
END:"""
"""Block 1 writes; block 0 reads until `%p4` is false, and stores."""

ADD, ADD64 = "red.relaxed.gpu.global.add.u32 [%rd7], 1;", "red.relaxed.gpu.global.add.u64 [%rd7], %rd10;"
ZERO, STORE = "setp.eq.u32 %p4, %r9, 0;", "st.global.u32 [%rd7], 0;"
HALF = "st.relaxed.gpu.global.u16 [%rd7], %h1; red.relaxed.gpu.global.add.u32 [%rd7+32], 1;"
FLAG = f"ld.relaxed.gpu.global.u32 %r9, [%rd7+32]; {ZERO}"


def reported(writes: str, reads: str, stores: str) -> str:
    """Return the kind of hazard that is reported, and the instruction; "" for none."""
    body = TWO_BLOCKS.format(writes=writes, reads=reads, stores=stores)
    x, y = np.zeros(32, np.uint32), np.zeros(64, np.uint32)
    try:
        load(f"{HEAD}{body}\n ret;\n}}\n")["k"].launch(Device("sm_80"), 2, 32, [x, y])
    except HazardError as error:
        return f"{error.hazard.kind} {error.hazard.site.mnemonic}"
    return ""


@pytest.mark.parametrize(
    ("writes", "reads", "stores", "expected"),
    [
        (ADD, f"ld.relaxed.gpu.global.u32 %r9, [%rd7]; {ZERO}", STORE, ""),
        (ADD, f"ld.volatile.global.u32 %r9, [%rd7]; {ZERO}", STORE, ""),
        (ADD, f"ld.relaxed.cta.global.u32 %r9, [%rd7]; {ZERO}", STORE, "race ld.relaxed.cta.global.u32"),
        (HALF, FLAG, "st.global.u16 [%rd7], 7;", "race st.global.u16"),
        (HALF, FLAG, "ld.relaxed.gpu.global.u16 %h2, [%rd7]; st.global.u16 [%rd7], 7;", ""),
        (HALF, FLAG, "ld.relaxed.gpu.global.u16 %h2, [%rd7+2]; st.global.u16 [%rd7], 7;", "race st.global.u16"),
        (HALF, FLAG, "st.relaxed.gpu.global.u16 [%rd7+2], %h1; st.global.u16 [%rd7], 7;", "race st.global.u16"),
        (ADD64, "ld.relaxed.gpu.global.u64 %rd8, [%rd7]; setp.eq.u64 %p4, %rd8, 0;", "st.global.u32 [%rd7+4], 9;", ""),
        (ADD64, "ld.relaxed.gpu.global.u64 %rd8, [%rd7]; setp.eq.u64 %p4, %rd8, 0;", "st.global.u64 [%rd7], %rd8;", ""),
    ],
)
def test_a_write_is_observed_where_all_its_bytes_are_read(writes: str, reads: str, stores: str, expected: str) -> None:
    assert reported(writes, reads, stores) == expected


def test_observation_outlives_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """After four million events times are all alike: nothing ordered is reported."""
    monkeypatch.setattr(happens_before, "LAST_TIME", 2)
    assert reported(ADD, f"ld.relaxed.gpu.global.u32 %r9, [%rd7]; {ZERO}", STORE) == ""
    assert reported(ADD64, "ld.relaxed.gpu.global.u64 %rd8, [%rd7]; setp.eq.u64 %p4, %rd8, 0;", STORE) == ""


PUBLISHED = """ld.param.u64 %rd7, [y]; mov.u32 %r8, %ctaid.x; setp.eq.u32 %p2, %r8, 0; setp.ne.u32 %p3, %r1, 0;
mul.wide.u32 %rd8, %r1, 4; add.u64 %rd9, %rd7, %rd8; @%p2 bra WAIT;
st.global.u32 [%rd9+128], %r1; {fence} bar.sync 0;
@!%p3 red.relaxed.gpu.global.add.u32 [%rd7], 1; bra END;
WAIT: @%p3 bra END;
SPIN: ld.relaxed.gpu.global.u32 %r9, [%rd7]; setp.eq.u32 %p4, %r9, 0; @%p4 bra SPIN;
fence.acq_rel.gpu; ld.global.u32 %r9, [%rd7+148]; st.global.u32 [%rd7+64], %r9;
END:"""
"""Each thread of block 1 writes, one tells block 0 after a barrier, which reads what another thread has written."""


@pytest.mark.parametrize(("fence", "ordered"), [("membar.gl;", True), ("fence.acq_rel.gpu;", False), ("", False)])
def test_only_sc_fences_before_a_barrier_are_published_by_another_thread(fence: str, ordered: bool) -> None:
    x, y = np.zeros(32, np.uint32), np.zeros(64, np.uint32)
    kernel = load(f"{HEAD}{PUBLISHED.format(fence=fence)}\n ret;\n}}\n")["k"]
    if ordered:
        kernel.launch(Device("sm_80"), 2, 32, [x, y])
        assert y[16] == 5
    else:
        with pytest.raises(HazardError, match="race"):
            kernel.launch(Device("sm_80"), 2, 32, [x, y])


POLLED = """ld.param.u64 %rd7, [y]; mov.u32 %r8, %ctaid.x; setp.eq.u32 %p2, %r8, 0; setp.ne.u32 %p3, %r1, 0;
@%p2 bra WAIT; @%p3 bra END;
st.global.u32 [%rd7+128], 7; membar.gl; st.relaxed.gpu.global.u32 [%rd7], 1; bra END;
WAIT: {early} @%p3 bra MEET;
SPIN: ld.relaxed.gpu.global.u32 %r9, [%rd7]; setp.eq.u32 %p4, %r9, 0; @%p4 bra SPIN;
MEET: bar.sync 0; setp.ne.u32 %p4, %r1, 37; @%p4 bra END;
{late} ld.global.u32 %r9, [%rd7+128]; st.global.u32 [%rd7+64], %r9;
END:"""
"""Thread 0 of block 0 polls; after a barrier, thread 37 reads what block 1 has written."""


@pytest.mark.parametrize(
    ("early", "late", "ordered"),
    [("", "membar.gl;", True), ("", "fence.acq_rel.gpu;", False), ("", "", False), ("membar.gl;", "", False)],
)
def test_only_an_sc_fence_acquires_what_another_thread_has_found(early: str, late: str, ordered: bool) -> None:
    x, y = np.zeros(32, np.uint32), np.zeros(64, np.uint32)
    kernel = load(f"{HEAD}{POLLED.format(early=early, late=late)}\n ret;\n}}\n")["k"]
    if ordered:
        kernel.launch(Device("sm_80"), 2, 64, [x, y])
        assert y[16] == 7
    else:
        with pytest.raises(HazardError, match="race"):
            kernel.launch(Device("sm_80"), 2, 64, [x, y])
