"""Correct kernels of unusual habits with `cp.async`: tails of zeros, rings of buffers, empty groups, no barrier."""

from __future__ import annotations

from typing import Any

import numpy as np
from habits import EVERY, Habit, habit, words
from twins import Array

KERNELS: dict[str, Habit] = {}

CA, CG = "cp.async.ca.shared.global", "cp.async.cg.shared.global"
COMMIT, WAIT, WAIT_ALL = "cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all"


# What is copied


@habit(
    KERNELS, block=64, shared=1024, inputs=lambda: [words(150)], size=256, expected=lambda x, y: np.pad(x, (0, 106)),
)  # fmt: skip
def zeros_beyond_the_end(t: Any, x: Any, y: Any) -> None:
    """Pieces of 16 bytes: whole, the one at the end in part, those beyond it none at all, wherever they point."""
    at = t.tid[0] * 16
    left = t("max.s32", t("min.s32", 600 - at, 16), 0)
    t(CG, at, x + at, 16, left)
    t(COMMIT)
    t(WAIT, 0)
    t("st.global.v4.b32", y + at, t("ld.shared.v4.b32", at))


@habit(
    KERNELS, shared=512, inputs=lambda: [words(128)], size=128,
    expected=lambda x, y: np.where(np.arange(128) // 4 % 3 == 0, 0, x),
)  # fmt: skip
def zeros_here_and_there(t: Any, x: Any, y: Any) -> None:
    """Every third piece copies nothing, from an address that is none."""
    none = t.laneid % 3 == 0
    at = t.laneid * 16
    source = x + at
    with t.where(none):
        source = t.update(source, t.constant(16, "b64"))
    t(CG, at, source, 16, t("selp.b32", 0, 16, none))
    t(WAIT_ALL)
    t("st.global.v4.b32", y + at, t("ld.shared.v4.b32", at))


@habit(
    KERNELS, block=64, shared=512, inputs=lambda: [words(128)], size=64,
    expected=lambda x, y: (x[0::2] ^ x[1::2]),
)  # fmt: skip
def own_copies(t: Any, x: Any, y: Any) -> None:
    """Read what the thread copied itself: it waits, and needs no barrier."""
    at = t.tid[0] * 8
    t(CA, at, x + at, 4)
    t(CA, at + 4, x + at + 4, 4)
    t(WAIT_ALL)
    low, high = t("ld.shared.v2.b32", at)
    t("st.global.b32", y + t.tid[0] * 4, low ^ high)


@habit(
    KERNELS, block=64, shared=1024, inputs=lambda: [words(256)], size=256,
    expected=lambda x, y: x.reshape(2, 32, 4)[:, ::-1].ravel(),
)  # fmt: skip
def copies_of_a_warp(t: Any, x: Any, y: Any) -> None:
    """Lanes read what others of their warp copied: each waits, and then a barrier of the warp."""
    at = t.tid[0] * 16
    t(CG, at, x + at, 16)
    t(COMMIT)
    t(WAIT, 0)
    t("bar.warp.sync", EVERY)
    t("st.global.v4.b32", y + at, t("ld.shared.v4.b32", (t.tid[0] ^ 31) * 16))


@habit(
    KERNELS, block=64, shared=256, inputs=lambda: [words(64)], size=64,
    expected=lambda x, y: np.concatenate([x[31::-1], x[32:]]),
)  # fmt: skip
def copies_of_one_warp(t: Any, x: Any, y: Any) -> None:
    """16 lanes copy, commit and wait for the block; the others have no group at all."""
    with t.where(t.tid[0] < 16):
        t(CG, t.tid[0] * 16, x + t.tid[0] * 16, 16)
        t(COMMIT)
        t(WAIT, 0)
    t("bar.sync")
    place = t.tid[0]
    with t.where(t.warpid == 0):
        place = t.update(place, 31 - t.laneid)
    t("st.global.b32", y + t.tid[0] * 4, t("ld.shared.b32", place * 4))


# Sources


@habit(
    KERNELS, shared=512, inputs=lambda: [words(128)],
    expected=lambda x: np.tile(x.reshape(32, 4)[:, :1] + 1, 4).ravel(),
)  # fmt: skip
def source_is_written_after_the_wait(t: Any, x: Any) -> None:
    """Write again where the thread copied from, when the copy has come."""
    at = t.laneid * 16
    t(CG, at, x + at, 16)
    t(COMMIT)
    t(WAIT, 0)
    one = t("ld.shared.b32", at) + 1
    t("st.global.v4.b32", x + at, one, one, one, one)


@habit(
    KERNELS, shared=512, inputs=lambda: [words(128)], size=32, expected=lambda x, y: x[0::4] + x[3::4],
)  # fmt: skip
def source_is_read_meanwhile(t: Any, x: Any, y: Any) -> None:
    """Read, where it comes from, what is under way, and write its neighbours in shared memory."""
    at = t.laneid * 16
    t("cp.async.ca.shared.global", at, x + at, 8)
    t("st.shared.b64", at + 8, t("ld.global.b64", x + at + 8))
    t(WAIT_ALL)
    first, _, _, last = t("ld.shared.v4.b32", at)
    t("st.global.b32", y + t.laneid * 4, first + last)


# Rings of buffers


def _sums(x: Array, y: Array) -> Array:
    """Of 6 tiles of 64 pieces, each thread's first words, and those of its neighbour."""
    tiles = x.reshape(6, 64, 4)
    made: Array = (tiles[:, np.arange(64) ^ 63, 0] + tiles[:, :, 1]).sum(axis=0, dtype=np.uint32)
    return made


def _ring(t: Any, x: Any, y: Any, buffers: int, ahead: int) -> None:
    """Go through 6 tiles with some buffers, of which some are filled ahead; empty groups at the tail."""
    thread, tiles = t.tid[0], 6

    def fetch(tile: int) -> None:
        if tile < tiles:
            t(CG, tile % buffers * 1024 + thread * 16, x + tile * 1024 + thread * 16, 16)
        t(COMMIT)  # an empty group at the tail

    for tile in range(ahead):
        fetch(tile)
    total = t.constant(0)
    for tile in range(tiles):
        fetch(tile + ahead)
        t(WAIT, ahead)
        t("bar.sync")
        start = tile % buffers * 1024
        other = t("ld.shared.b32", start + (thread ^ 63) * 16)
        total = total + other + t("ld.shared.b32", start + thread * 16 + 4)
        if buffers < ahead + 2:
            t("bar.sync")  # the next tile goes where somebody may still read
    t("st.global.b32", y + thread * 4, total)


@habit(KERNELS, block=64, shared=2048, inputs=lambda: [words(1536)], size=64, expected=_sums)
def two_buffers(t: Any, x: Any, y: Any) -> None:
    """One is filled while the other is read; two barriers for each tile."""
    _ring(t, x, y, 2, 1)


@habit(KERNELS, block=64, shared=3072, inputs=lambda: [words(1536)], size=64, expected=_sums)
def three_buffers(t: Any, x: Any, y: Any) -> None:
    """With a third, one barrier for each tile is enough."""
    _ring(t, x, y, 3, 1)


@habit(KERNELS, block=64, shared=4096, inputs=lambda: [words(1536)], size=64, expected=_sums)
def four_buffers(t: Any, x: Any, y: Any) -> None:
    """Two tiles are under way while one is read."""
    _ring(t, x, y, 4, 2)


@habit(
    KERNELS, shared=1024, inputs=lambda: [words(512)], size=32,
    expected=lambda x, y: x.reshape(4, 32, 4)[:, :, 0].sum(axis=0, dtype=np.uint32),
)  # fmt: skip
def buffers_of_own_lanes(t: Any, x: Any, y: Any) -> None:
    """Copy, wait and read for one's own lane alone: its place is free when it has read it."""
    at, total = t.laneid * 16, t.constant(0)
    t(CG, at, x + at, 16)
    t(COMMIT)
    for tile in range(4):
        if tile < 3:
            t(CG, at + (tile + 1) % 2 * 512, x + at + (tile + 1) * 512, 16)
        t(COMMIT)
        t(WAIT, 1)
        total = total + t("ld.shared.b32", at + tile % 2 * 512)
    t("st.global.b32", y + t.laneid * 4, total)
