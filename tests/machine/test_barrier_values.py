"""Barriers that count predicates, whose numbers are in registers, and what ends a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from assembler import go
from kernels import run

from warpmma.errors import KernelError, OperandError
from warpmma.kernel import HazardError


@pytest.mark.parametrize(
    ("mnemonic", "least", "expected"),
    [
        ("bar.red.popc.u32", 40, 56), ("barrier.red.popc.u32", 0, 96), ("barrier.cta.red.popc.aligned.u32", 96, 0),
        ("bar.red.and.pred", 0, 1), ("bar.red.and.pred", 1, 0), ("bar.cta.red.or.pred", 95, 1),
        ("barrier.red.or.aligned.pred", 96, 0),
    ],
)  # fmt: skip
def test_what_all_threads_bring(mnemonic: str, least: int, expected: int) -> None:
    def kernel(t: Any, out: Any) -> None:
        found = t(mnemonic, 0, t.tid[0] >= least)
        found = t("selp.b32", 1, 0, found) if mnemonic.endswith("pred") else found
        t("st.global.b32", out + t.tid[0] * 4, found)

    out = np.zeros(96, np.uint32)
    run(kernel, out, block=96)
    assert (out == expected).all()


def test_those_who_came_first_get_it_when_they_go_on() -> None:
    file, _ = go(
        """
        mov.b32 z, 0
        setp.lt.u32 p, tid, 32
        setp.lt.u32 q, lane, 3
        @p bra early
        mov.b32 y, 7
        mov.b32 y, 8
        bar.red.popc.u32 x, 1, 64, q
        bra end
        early:
        bar.red.popc.u32 x, 1, 64, q
        add.u32 z, x, 1
        end:
        add.u32 x, x, 0
        """,
        threads=64,
    )
    assert (file.read("x") == 6).all() and (file.read("z")[..., :32][0, 0] == 7).all()


def test_a_number_of_threads_is_not_a_block() -> None:
    def kernel(t: Any, out: Any) -> None:
        with t.where(t.warpid < 2):
            t("st.global.b32", out + t.tid[0] * 4, t("bar.red.popc.u32", 3, 64, t.laneid == t.warpid))

    out = np.zeros(128, np.uint32)
    run(kernel, out, block=128)
    assert (out[:64] == 2).all() and not out[64:].any()


def test_warps_name_barriers_of_their_own_at_once() -> None:
    def kernel(t: Any, x: Any) -> None:
        pair = t("shr.u32", t.warpid, 1)
        t("st.shared.b32", t.tid[0] * 4, t.tid[0])
        t("barrier.sync", pair + 1, t("mov.b32", 64))
        other = t("xor.b32", t.tid[0], 32)
        t("st.global.b32", x + t.tid[0] * 4, t("ld.shared.b32", other * 4))
        t("bar.sync", 0)

    x = np.zeros(256, np.uint32)
    run(kernel, x, block=256)
    assert x.tolist() == [i ^ 32 for i in range(256)]

    def wrong(t: Any, x: Any) -> None:
        kernel(t, x)
        t("st.shared.b32", t.tid[0] * 4, t.tid[0])
        t("barrier.sync", t("shr.u32", t.warpid, 1) + 1, 64)
        t("ld.shared.b32", t("xor.b32", t.tid[0], 64) * 4)

    with pytest.raises(HazardError, match="race"):
        run(wrong, x, block=256)


def test_what_is_no_predicate_or_number() -> None:
    with pytest.raises(OperandError, match=r"operand p of .* is b32; expected pred"):
        run(lambda t: t("bar.red.popc.u32", 0, t.tid[0]))
    with pytest.raises(OperandError, match="barrier 16; a block has barriers 0 to 15"):
        run(lambda t: t("barrier.sync", t.laneid))
    with pytest.raises(OperandError, match="takes a, b; got 1 operand"):
        run(lambda t: t("barrier.arrive", 1))


@pytest.mark.parametrize("mnemonic", ["trap", "brkpt"])
def test_traps_end_the_launch_with_their_place(mnemonic: str) -> None:
    def kernel(t: Any) -> None:
        with t.where((t.ctaid[0] == 1) & (t.laneid > 29) & (t.warpid == 1)):
            t(mnemonic)

    with pytest.raises(
        KernelError, match=rf"test_barrier_values.py:\d+: {mnemonic}: block 1, warp 1, lane 30 \(and 1 more"
    ):
        run(kernel, grid=2, block=64)


def test_hints_change_nothing() -> None:
    def kernel(t: Any) -> None:
        t("nanosleep.u32", t.tid[0])
        t("pmevent", 3)
        t("griddepcontrol.wait")
        t("fence.proxy.alias")

    run(kernel)
    with pytest.raises(OperandError, match="got 0 operands"):
        run(lambda t: t("nanosleep.u32"))
