"""Kernels that almost have a hazard. Their results are not checked."""

from __future__ import annotations

from typing import Any

import pytest
from hazard_kernels.case import COMMIT, COPY, EVERY, LDSM, LDSM1, MMA, SP, WAIT, WAIT_ALL, Kernel, X, run, words

from warpmma.kernel.launching import Output


def read_after_write_and_barrier(t: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])
    t("bar.sync")
    t("ld.shared.b32", (63 - t.tid[0]) * 4)
    t("bar.sync")
    t("st.shared.b32", t.tid[0] * 4, 0)


def own_warp(t: Any) -> None:
    """A warp may read what it wrote, and write it anew, if its lanes meet in between."""
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])
    t("bar.warp.sync", EVERY)
    t("ld.shared.b32", (t.tid[0] ^ 31) * 4)
    t("bar.warp.sync", EVERY)
    t("st.shared.b32", t.tid[0] * 4, 1)


def all_read(t: Any) -> None:
    with t.where(t.tid[0] < 4):
        t("st.shared.b32", t.tid[0] * 4, t.tid[0])
    t("bar.sync")
    t("ld.shared.b32", (t.tid[0] & 3) * 4)
    t("ld.shared.v4.b32", t.tid[0] * 0)


def neighbours(t: Any) -> None:
    """Bytes of the same word, of different warps."""
    t("st.shared.b8", t.laneid * 2 + t.warpid, t.tid[0])
    t("ld.shared.b8", t.laneid * 2 + t.warpid)


def same_value(t: Any) -> None:
    with t.where(t.warpid == 0):
        t("st.shared.b32", (t.laneid & 7) * 4, 5)


def own_block(t: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, t.ctaid[0])
    with t.where(t.ctaid[0] != 3):
        t("bar.sync")
        t("ld.shared.b32", (t.tid[0] ^ 32) * 4)


def copy_after_barrier(t: Any, x: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, 0)
    t("bar.sync")
    t("ld.shared.b32", (t.tid[0] ^ 32) * 4)
    t("bar.sync")
    with t.where(t.tid[0] < 16):
        t(COPY, t.tid[0] * 16, x + t.tid[0] * 16, 16)
    t(WAIT_ALL)
    t("bar.sync")
    t("ld.shared.b32", (t.tid[0] ^ 32) * 4)


def double_buffer(t: Any, x: Any) -> None:
    def stage(k: int) -> None:
        t(COPY, t.tid[0] * 16 + k % 2 * 1024, x, 16)
        t(COMMIT)

    stage(0)
    for k in range(4):
        if k < 3:
            stage(k + 1)
        else:
            t(COMMIT)  # empty
        t(WAIT, 1)
        t("bar.sync")
        t(LDSM, (t.laneid + (1 - t.warpid) * 32) * 16 + k % 2 * 1024)
        t("bar.sync")


def empty_groups(t: Any, x: Any) -> None:
    t(COMMIT)
    t(COPY, t.tid[0] * 16, x, 16)
    t(COMMIT)
    t(COMMIT)
    t(COMMIT)
    t(WAIT, 2)
    t("ld.shared.b32", t.tid[0] * 16)


def groups_of_lanes(t: Any, x: Any) -> None:
    """Lanes below 16 commit a group more; for them the first is complete."""
    t(COPY, t.tid[0] * 16, x, 16)
    t(COMMIT)
    with t.where(t.laneid < 16):
        t(COMMIT)
    t(WAIT, 1)
    with t.where(t.laneid < 16):
        t("ld.shared.b32", t.tid[0] * 16)
    t(WAIT_ALL)


def not_committed_but_all(t: Any, x: Any) -> None:
    t(COPY, t.tid[0] * 16, x, 16)
    t(WAIT_ALL)
    t("ld.shared.b32", t.tid[0] * 16)


def beside_a_copy(t: Any, x: Any) -> None:
    t("cp.async.ca.shared.global", t.tid[0] * 8, x, 4)
    t("st.shared.b32", t.tid[0] * 8 + 4, 1)
    t("ld.shared.b32", t.tid[0] * 8 + 4)
    t(WAIT_ALL)


def shorter_source(t: Any, x: Any) -> None:
    """Of 16 bytes 0 to 15 are read, and of none the address does not count."""
    last = x + 1008
    t(COPY, t.laneid * 16 + t.warpid * 512, last + (t.laneid & 1) * 4096, 16, (1 - (t.laneid & 1)) * (t.laneid >> 1))
    t(WAIT_ALL)


def unwritten_elsewhere(t: Any, y: Any) -> None:
    t("st.global.b32", y + t.tid[0] * 8, 1)
    t("ld.global.b32", y + t.tid[0] * 8)


def unneeded_rows(t: Any) -> None:
    """`x1` wants addresses of 8 lanes; those of others may be anything, poison too."""
    with t.where(t.laneid < 8):
        t("st.shared.v4.b32", (t.laneid + t.warpid * 8) * 16, 0, 0, 0, 0)
        at = (t.laneid + t.warpid * 8) * 16
    t(LDSM1, at)
    t(LDSM1, (t.laneid + t.warpid * 8) * t.update(t.constant(5), t.constant(16)))


def shuffled_by_leaders(t: Any) -> None:
    """Who leads has a value, and the others get it: aggregated atomics are written so."""
    with t.where((t.laneid & 15) == 3):
        x = t.laneid + 1
    value, inside = t("shfl.sync.idx.b32", x, 3, 0x100F, EVERY)
    t("st.shared.b32", t.tid[0] * 4, value)
    with t.where(inside):
        t("shfl.sync.up.b32", x, 1, 0, EVERY)


def padding(t: Any) -> None:
    """8 bytes of each row count."""
    t("st.shared.b64", (t.laneid + t.warpid * 32) * 16, 1)
    t("ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64", (t.laneid + t.warpid * 32) * 16)


def masked_but_defined(t: Any) -> None:
    with t.where(t.laneid < 5):
        x = t.laneid + 1
        x + 1
    x = t.update(t.constant(3), t.constant(4))
    with t.where(t.laneid < 9):
        y = t.update(x, t.laneid)
    t("st.shared.b32", t.tid[0] * 4, y)


def masked_then_all(t: Any) -> None:
    p = t.laneid < 5
    with t.where(p):
        x = t.laneid + 1
    with t.where(~p):
        x = t.update(x, t.laneid + 2)
    t("st.shared.b32", t.tid[0] * 4, x)


def last_bytes(t: Any, x: Any) -> None:
    t("st.shared.b8", 4095 - t.tid[0], 0)
    t("st.shared.v4.b32", t.tid[0] * 16, 0, 0, 0, 0)
    t("ld.global.b8", x + (1023 - t.tid[0]))
    t("ld.global.v4.b32", x + t.tid[0] * 16)


def masked_off_addresses(t: Any, x: Any) -> None:
    with t.where(t.tid[0] < 2):
        t("ld.global.b32", x + t.tid[0] * 1020)
        t("st.shared.b32", t.tid[0] * 4092, 0)


def whole_warps(t: Any) -> None:
    zero = [t.constant(0)] * 4
    with t.where(t.warpid == 1):
        t(MMA, zero, zero[:2], zero)
        t("st.shared.v4.b32", t.laneid * 16, zero)
        t(LDSM, t.laneid * 16)
        t("shfl.sync.idx.b32", t.laneid, 0, 31, EVERY)


def no_warp(t: Any) -> None:
    zero = [t.constant(0)] * 4
    with t.where(t.warpid == 9):
        t(MMA, zero, zero[:2], zero)
        t("bar.sync")


def sparse_of_one_warp(t: Any) -> None:
    """Warps that do not take part may hold metadata that is none."""
    zero = [t.constant(0)] * 4
    with t.where(t.warpid == 1):
        t(SP, zero, zero, zero, t.update(t.constant(0), t.constant(0xEEEEEEEE)), 0)


def members(t: Any) -> None:
    with t.where(t.laneid < 16):
        t("shfl.sync.bfly.b32", t.laneid, 8, 31, 0xFFFF)
        t("bar.warp.sync", 0xFFFF)
        t("redux.sync.add.u32", t.laneid, 0xFFFF)


def barrier_in_blocks(t: Any) -> None:
    with t.where(t.ctaid[0] < 2):
        t("bar.sync")
        t("bar.sync", 0)


NEARLY: list[tuple[Kernel, dict[str, Any]]] = [
    (read_after_write_and_barrier, {}), (own_warp, {}), (all_read, {}), (neighbours, {}), (same_value, {}),
    (own_block, {"grid": 4}), (copy_after_barrier, {"args": X}), (double_buffer, {"args": X}),
    (empty_groups, {"args": X}), (groups_of_lanes, {"args": X}), (not_committed_but_all, {"args": X}),
    (beside_a_copy, {"args": X}), (shorter_source, {"args": X}), (unwritten_elsewhere, {"args": (Output(words()),)}),
    (unneeded_rows, {}), (padding, {"target": "sm_100a"}), (masked_but_defined, {}), (masked_then_all, {}),
    (last_bytes, {"args": X, "shared": 4096, "block": 32}), (masked_off_addresses, {"args": X}), (whole_warps, {}),
    (no_warp, {}), (sparse_of_one_warp, {}), (members, {}), (barrier_in_blocks, {"grid": 4}),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "options"), NEARLY, ids=lambda x: getattr(x, "__name__", ""))
def test_not_found(kernel: Kernel, options: dict[str, Any]) -> None:
    assert run(kernel, *options.get("args", ()), **{k: x for k, x in options.items() if k != "args"}).hazards == []
