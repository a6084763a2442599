"""Memory that functions allocate on a thread's stack: `alloca`, `stacksave`, `stackrestore`."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import outcome

import warpmma as wm
from warpmma.errors import LimitError, OperandError, PtxError
from warpmma.machine import HazardError

HEAD = """.version 8.0
.target sm_80
.address_size 64
.func (.param .u32 r) sum(.param .u32 n) {
    .reg .pred %p; .reg .b32 %n, %i, %s, %v; .reg .b64 %size, %at, %to; .local .align 8 .b8 own[8];
    ld.param.u32 %n, [n]; mul.wide.u32 %size, %n, 4; alloca.u64 %at, %size, 16; mov.u32 %i, 0; mov.u64 %to, %at;
    st.local.u32 [own+4], %n;
FILL: setp.ge.u32 %p, %i, %n; @%p bra FILLED; st.local.u32 [%to], %i; add.u32 %i, %i, 1; add.u64 %to, %to, 4; bra FILL;
FILLED: mov.u32 %s, 0; setp.eq.u32 %p, %n, 0; @%p bra DONE;
    { .param .u32 a; .param .u32 b; sub.u32 %v, %n, 1; st.param.u32 [a], %v; call (b), sum, (a);
      ld.param.u32 %s, [b]; }
ADD: sub.u64 %to, %to, 4; ld.local.u32 %v, [%to]; add.u32 %s, %s, %v; setp.ne.u64 %p, %to, %at; @%p bra ADD;
DONE: ld.local.u32 %v, [own+4]; mad.lo.u32 %s, %v, 1000, %s; st.param.u32 [r], %s; ret;
}
.visible .entry k(.param .u64 y) {
    .reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .local .align 4 .b8 l[20];
    ld.param.u64 %d1, [y]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
"""


def launched(body: str) -> list[int]:
    y = np.zeros(32, np.uint32)
    wm.ptx.load(HEAD + body + "\nst.global.u32 [%d1], %r3; ret; }")["k"].launch(wm.Device("sm_80"), 1, 32, [y])
    return y.tolist()


def test_each_call_has_its_own_as_large_as_it_asks_for() -> None:
    """The sums of 0 to n - 1, for all up to n, and 1000 times each n."""
    body = """and.b32 %r2, %r1, 7; st.local.u32 [l+16], 77;
    { .param .u32 a; .param .u32 b; st.param.u32 [a], %r2; call (b), sum, (a); ld.param.u32 %r3, [b]; }
    ld.local.u32 %r4, [l+16]; setp.ne.u32 %p1, %r4, 77; @%p1 trap;"""
    expected = [sum(sum(range(m)) + 1000 * m for m in range(n + 1)) for n in range(8)]
    assert launched(body) == expected * 4


def test_what_is_let_go_is_given_again() -> None:
    body = """stacksave.u64 %d3; alloca.u64 %d4, 24; stackrestore.u64 %d3; alloca.u32 %r4, 64, 32;
    @!%p1 stacksave.u64 %d5; cvt.u32.u64 %r5, %d4; and.b32 %r6, %r4, 31;
    st.local.u32 [%r4+60], %r1; ld.local.u32 %r3, [%r4+60]; add.u32 %r3, %r3, %r6; sub.u64 %d6, %d5, %d4;
    setp.gt.u64 %p2, %d6, 112; @%p2 trap;"""
    assert launched("setp.gt.u32 %p1, 1, 2;" + body) == list(range(32))


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("stacksave.u64 %d3; add.u64 %d3, %d3, 16; stackrestore.u64 %d3; mov.u32 %r3, 0;", "stack: .* not ended there"),
        ("alloca.u64 %d3, 16; ld.local.u32 %r3, [%d3+16];", "stack"),
        ("stacksave.u64 %d4; alloca.u64 %d3, 16; stackrestore.u64 %d4; st.local.u32 [%d3], 1;", "stack"),
    ],
)
def test_what_is_nobodys(body: str, match: str) -> None:
    with pytest.raises(HazardError, match=match):
        launched(body)


def test_there_is_no_more_than_a_thread_has() -> None:
    with pytest.raises(LimitError, match="frames take"):
        launched("mov.u64 %d3, 0x7fffffffffff; alloca.u64 %d4, %d3, 16; mov.u32 %r3, 0;")
    with pytest.raises(PtxError, match="a1 is 12; expected 1, 2, 4, 8"):
        launched("alloca.u64 %d4, 16, 12; mov.u32 %r3, 0;")


def test_a_kernel_in_python_has_no_stack() -> None:
    with pytest.raises(OperandError, match="have no stack"):
        outcome(lambda t: t("stacksave.u64"))
