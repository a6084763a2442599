"""Kernels that everybody has written once: sums, scans, stencils and products, correct to the last barrier."""

from __future__ import annotations

from typing import Any

import numpy as np
from habits import EVERY, Habit, habit, words
from twins import Array

KERNELS: dict[str, Habit] = {}


@habit(
    KERNELS, grid=2, block=128, shared=512, inputs=lambda: [words(256)], size=2,
    expected=lambda x, y: x.reshape(2, 128).sum(axis=1, dtype=np.uint32),
)  # fmt: skip
def sum_by_tree(t: Any, x: Any, y: Any) -> None:
    """Sum a block: half of the threads at each level, with a barrier between."""
    at = t.tid[0] * 4
    t("st.shared.b32", at, t("ld.global.b32", x + t.ctaid[0] * 512 + at))
    for distance in (64, 32, 16, 8, 4, 2, 1):
        t("bar.sync")
        with t.where(t.tid[0] < distance):
            t("st.shared.b32", at, t("ld.shared.b32", at) + t("ld.shared.b32", at + distance * 4))
    with t.where(t.tid[0] == 0):
        t("st.global.b32", y + t.ctaid[0] * 4, t("ld.shared.b32", 0))


@habit(
    KERNELS, grid=2, block=128, shared=16, inputs=lambda: [words(256)], size=2,
    expected=lambda x, y: x.reshape(2, 128).sum(axis=1, dtype=np.uint32),
)  # fmt: skip
def sum_by_shuffles(t: Any, x: Any, y: Any) -> None:
    """Sum a block: each warp by `shfl`, and the warps' sums through shared memory."""
    value = t("ld.global.b32", x + (t.ctaid[0] * 128 + t.tid[0]) * 4)
    for distance in (16, 8, 4, 2, 1):
        other, _ = t("shfl.sync.down.b32", value, distance, 31, EVERY)
        value = value + other
    with t.where(t.laneid == 0):
        t("st.shared.b32", t.warpid * 4, value)
    t("bar.sync")
    with t.where(t.tid[0] == 0):
        a, b, c, d = t("ld.shared.v4.b32", 0)
        t("st.global.b32", y + t.ctaid[0] * 4, a + b + c + d)


@habit(
    KERNELS, block=128, shared=1024, inputs=lambda: [words(128)], size=128,
    expected=lambda x, y: np.cumsum(x, dtype=np.uint32),
)  # fmt: skip
def scan_in_two_buffers(t: Any, x: Any, y: Any) -> None:
    """Make running sums of a block, from one buffer to the other and back, a barrier a step."""
    value = t("ld.global.b32", x + t.tid[0] * 4)
    for step, distance in enumerate((1, 2, 4, 8, 16, 32, 64)):
        buffer = step % 2 * 512
        t("st.shared.b32", buffer + t.tid[0] * 4, value)
        t("bar.sync")
        with t.where(t.tid[0] >= distance):
            value = t.update(value, value + t("ld.shared.b32", buffer + (t.tid[0] - distance) * 4))
    t("st.global.b32", y + t.tid[0] * 4, value)


@habit(
    KERNELS, block=128, shared=16, inputs=lambda: [words(128)], size=128,
    expected=lambda x, y: np.cumsum(x, dtype=np.uint32),
)  # fmt: skip
def scan_by_shuffles(t: Any, x: Any, y: Any) -> None:
    """Make running sums of a block: within each warp by `shfl`, then what the warps before it have."""
    value = t("ld.global.b32", x + t.tid[0] * 4)
    for distance in (1, 2, 4, 8, 16):
        other, inside = t("shfl.sync.up.b32", value, distance, 0, EVERY)
        with t.where(inside):
            value = t.update(value, value + other)
    with t.where(t.laneid == 31):
        t("st.shared.b32", t.warpid * 4, value)
    t("bar.sync")
    for warp in range(3):
        with t.where(t.warpid > warp):
            value = t.update(value, value + t("ld.shared.b32", warp * 4))
    t("st.global.b32", y + t.tid[0] * 4, value)


def _stencil(x: Array, y: Array) -> Array:
    for _ in range(3):
        x = x + np.roll(x, 1) * np.uint32(3) + np.roll(x, -1)
    return x


@habit(KERNELS, block=64, shared=256, inputs=lambda: [words(64)], size=64, expected=_stencil)
def stencil(t: Any, x: Any, y: Any) -> None:
    """Three steps in place: all have read before anybody writes, and have written before anybody reads."""
    at = t.tid[0] * 4
    t("st.shared.b32", at, t("ld.global.b32", x + at))
    for _ in range(3):
        t("bar.sync")
        left, right = (t("ld.shared.b32", (t.tid[0] + i & 63) * 4) for i in (63, 1))
        value = t("ld.shared.b32", at) + left * 3 + right
        t("bar.sync")
        t("st.shared.b32", at, value)
    t("st.global.b32", y + at, t("ld.shared.b32", at))


def _product(a: Array, b: Array, y: Array) -> Array:
    return (a.reshape(16, 64) @ b.reshape(64, 8)).ravel()


@habit(
    KERNELS, block=128, shared=3072, inputs=lambda: [words(1024), words(512, 2)], size=128, expected=_product,
)  # fmt: skip
def product_in_tiles(t: Any, a: Any, b: Any, y: Any) -> None:
    """Multiply integers, 16 x 64 by 64 x 8, in tiles of 16 along k, in two buffers of `cp.async`."""
    thread = t.tid[0]
    row, column = thread // 8, thread % 8

    def fetch(tile: int) -> None:
        to = tile % 2 * 1536 + thread * 16
        with t.where(thread < 64):
            t("cp.async.cg.shared.global", to, a + (thread // 4 * 64 + thread % 4 * 4 + tile * 16) * 4, 16)
        with t.where((thread >= 64) & (thread < 96)):
            t("cp.async.cg.shared.global", to, b + (thread - 64) * 16 + tile * 512, 16)
        t("cp.async.commit_group")

    fetch(0)
    total = t.constant(0)
    for tile in range(4):
        t("cp.async.wait_group", 0)
        t("bar.sync")
        if tile < 3:
            fetch(tile + 1)
        start = tile % 2 * 1536
        for k in range(16):
            x = t("ld.shared.b32", start + (row * 16 + k) * 4)
            total = t("mad.lo.u32", x, t("ld.shared.b32", start + 1024 + (k * 8 + column) * 4), total)
    t("st.global.b32", y + thread * 4, total)
