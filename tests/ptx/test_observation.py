"""Order by observation (`happens_before`, rule 7): bytes, scopes and reads, byte by byte; fences before a barrier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from poison_cases import HEAD

from warpmma import Device
from warpmma.machine import HazardError
from warpmma.machine.memory import shadow_memory
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
st.global.u32 [%rd7+128], 7; {fence} st.relaxed.gpu.global.u32 [%rd7], 1; bra END;
WAIT: {early} @%p3 bra MEET;
SPIN: ld.relaxed.gpu.global.u32 %r9, [%rd7]; setp.eq.u32 %p4, %r9, 0; @%p4 bra SPIN;
MEET: bar.sync 0; setp.ne.u32 %p4, %r1, 37; @%p4 bra END;
{late} ld.global.u32 %r9, [%rd7+128]; st.global.u32 [%rd7+64], %r9;
END:"""
"""Thread 0 of block 0 polls; after a barrier, thread 37 reads what block 1 has written."""


@pytest.mark.parametrize(
    ("fence", "early", "late", "ordered"),
    [
        ("membar.gl;", "", "membar.gl;", True),
        ("membar.gl;", "", "fence.acq_rel.gpu;", False),
        ("membar.gl;", "", "", False),
        ("membar.gl;", "membar.gl;", "", False),
        ("fence.acq_rel.gpu;", "", "membar.gl;", False),
    ],
)
def test_only_an_sc_fence_acquires_what_another_thread_has_found(
    fence: str, early: str, late: str, ordered: bool
) -> None:
    x, y = np.zeros(32, np.uint32), np.zeros(64, np.uint32)
    kernel = load(f"{HEAD}{POLLED.format(fence=fence, early=early, late=late)}\n ret;\n}}\n")["k"]
    if ordered:
        kernel.launch(Device("sm_80"), 2, 64, [x, y])
        assert y[16] == 7
    else:
        with pytest.raises(HazardError, match="race"):
            kernel.launch(Device("sm_80"), 2, 64, [x, y])


TWO_FLAGS = """ld.param.u64 %rd7, [y]; mov.u32 %r8, %ctaid.x; setp.eq.u32 %p2, %r8, 0; setp.ne.u32 %p3, %r1, 0;
@%p2 bra WAIT; @%p3 bra END;
st.global.u32 [%rd7+64], 7; {order}.gpu.global.u32 [%rd7], 1;
st.global.u32 [%rd7+96], 8; {order}.gpu.global.u32 [%rd7+32], 1; bra END;
WAIT: @%p3 bra MEET;
{reads}
MEET: {barrier} setp.ne.u32 %p4, %r1, {thread}; @%p4 bra END;
{then}
END:"""
"""Block 1 publishes two words with a flag for each; thread 0 of block 0 reads, and a thread acts after a barrier."""

FIRST = "P1: {read}.gpu.global.u32 %r9, [%rd7]; setp.eq.u32 %p4, %r9, 0; @%p4 bra P1;\n"
SECOND = "P2: {read}.gpu.global.u32 %r9, [%rd7+32]; setp.eq.u32 %p4, %r9, 0; @%p4 bra P2;\n"
FENCE, RESET, PLAIN = (
    "fence.acq_rel.gpu;",
    "st.global.u32 [%rd7], 0;",
    "ld.global.u32 %r9, [%rd7]; st.global.u32 [%rd7+160], %r9;",
)
USE = [
    "ld.global.u32 %r9, [%rd7+64]; st.global.u32 [%rd7+160], %r9;",
    "ld.global.u32 %r9, [%rd7+96]; st.global.u32 [%rd7+160], %r9;",
]


def found(order: str, reads: str, then: str, thread: int, *, barrier: str = "bar.sync 0;") -> str:
    """Return the kinds of hazards that are reported by some seeds."""
    body = TWO_FLAGS.format(order=order, reads=reads, then=then, thread=thread, barrier=barrier)
    kernel, kinds = load(f"{HEAD}{body}\n ret;\n}}\n")["k"], set()
    for seed in range(3):
        try:
            kernel.launch(Device("sm_80"), 2, 64, [np.zeros(32, np.uint32), np.zeros(64, np.uint32)], seed=seed)
            kinds.add("")
        except HazardError as error:
            kinds.add(error.hazard.kind)
    return " ".join(sorted(kinds))


@pytest.mark.parametrize("thread", [0, 5, 37])
def test_flags_order_the_data_of_each_for_all_threads_behind_a_barrier(thread: int) -> None:
    acquires, relaxed = ((FIRST + SECOND).format(read=x) for x in ("ld.acquire", "ld.relaxed"))
    for use in USE:
        assert found("st.release", acquires, use, thread) == ""
        assert found("st.release", relaxed + FENCE, use, thread) == ""
        assert found("st.release", relaxed, use, thread) == "race"
        assert found("st.relaxed", acquires, use, thread) == "race"
        assert found("st.release", "", use, thread) == "race"
    assert found("st.release", FIRST.format(read="ld.acquire"), USE[1], thread) == "race"


@pytest.mark.parametrize("then", [RESET, PLAIN])
@pytest.mark.parametrize("few", [1, 16])
def test_every_observation_of_a_thread_and_of_those_behind_a_barrier_counts(
    then: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow_memory, "_FEW_NOTES", few)
    first, second = (x.format(read="ld.relaxed") for x in (FIRST, SECOND))
    for reads, thread in [(first, 0), (first + second, 0), (first, 5), (first, 37), (first + second, 37)]:
        assert found("st.relaxed", reads, then, thread) == ""
    for reads, thread in [("", 0), ("", 37), (second, 0), (second, 37)]:
        assert found("st.relaxed", reads, then, thread) == "race"
    for thread in (5, 37):
        assert found("st.relaxed", first, then, thread, barrier="") == "race"


REUSED = """ld.param.u64 %rd7, [y]; mov.u32 %r8, %ctaid.x; setp.eq.u32 %p2, %r8, 0; setp.ne.u32 %p3, %r1, 0;
@%p3 bra END; @%p2 bra WAIT;
st.relaxed.gpu.global.u32 [%rd7], 1;
ACK: ld.relaxed.gpu.global.u32 %r9, [%rd7+32]; setp.eq.u32 %p4, %r9, 0; @%p4 bra ACK;
st.relaxed.gpu.global.u32 [%rd7], 2; st.relaxed.gpu.global.u32 [%rd7+64], 1; bra END;
WAIT: ld.relaxed.gpu.global.u32 %r9, [%rd7]; setp.eq.u32 %p4, %r9, 0; @%p4 bra WAIT;
st.relaxed.gpu.global.u32 [%rd7+32], 1;
DONE: ld.relaxed.gpu.global.u32 %r9, [%rd7+64]; setp.eq.u32 %p4, %r9, 0; @%p4 bra DONE;
{again} st.global.u32 [%rd7], 0;
END:"""
"""The flag is written again after it was observed."""


@pytest.mark.parametrize(("again", "clean"), [("", False), ("ld.relaxed.gpu.global.u32 %r9, [%rd7];", True)])
def test_an_observation_is_of_one_write(again: str, clean: bool) -> None:
    kernel = load(f"{HEAD}{REUSED.format(again=again)}\n ret;\n}}\n")["k"]
    if clean:
        kernel.launch(Device("sm_80"), 2, 32, [np.zeros(32, np.uint32), np.zeros(64, np.uint32)])
    else:
        with pytest.raises(HazardError, match="race"):
            kernel.launch(Device("sm_80"), 2, 32, [np.zeros(32, np.uint32), np.zeros(64, np.uint32)])


def test_observations_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that reads a flag a thousand times is noted once."""
    most, note = [0], shadow_memory.Grains.note_observed

    def counted(self: Any, *given: Any) -> None:
        note(self, *given)
        most[0] = max(most[0], len(self._observed))

    monkeypatch.setattr(shadow_memory, "_MOST_NOTES", 8)
    monkeypatch.setattr(shadow_memory.Grains, "note_observed", counted)
    again = "mov.u32 %r10, 0; AGAIN: ld.relaxed.gpu.global.u32 %r9, [%rd7]; add.u32 %r10, %r10, 1;\n"
    again += "setp.lt.u32 %p5, %r10, 1000; @%p5 bra AGAIN;\n"
    assert found("st.relaxed", FIRST.format(read="ld.relaxed") + again, RESET, 37) == ""
    assert 0 < most[0] <= 8


LAST_BLOCK = """ld.param.u64 %rd7, [y]; mov.u32 %r8, %ctaid.x; setp.ne.u32 %p3, %r1, 0; @%p3 bra END;
mul.wide.u32 %rd8, %r8, 4; add.s64 %rd9, %rd7, %rd8; add.u32 %r9, %r8, 1;
st.volatile.global.u32 [%rd9+64], %r9; membar.gl; atom.global.add.u32 %r10, [%rd7], 1;
setp.ne.u32 %p4, %r10, 2; @%p4 bra END;
membar.gl; ld.volatile.global.u32 %r11, [%rd7+64]; ld.volatile.global.u32 %r12, [%rd7+68];
ld.volatile.global.u32 %r13, [%rd7+72]; add.u32 %r11, %r11, %r12; add.u32 %r11, %r11, %r13;
st.global.u32 [%rd7+160], %r11; st.global.u32 [%rd7], 0;
END:"""
"""The last of three blocks to count adds what all have written, and resets the counter."""


@pytest.mark.parametrize("seed", range(8))
def test_the_last_turn_of_atomics_at_once_is_the_last_writer(seed: int) -> None:
    x, y = np.zeros(32, np.uint32), np.zeros(64, np.uint32)
    load(f"{HEAD}{LAST_BLOCK}\n ret;\n}}\n")["k"].launch(Device("sm_80"), 3, 32, [x, y], seed=seed)
    assert y[40] == 6 and y[0] == 0
