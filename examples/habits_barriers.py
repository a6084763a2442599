"""Correct kernels of unusual habits, between warps: barriers at different lines, named ones, the same value twice."""

from __future__ import annotations

from typing import Any

import numpy as np
from habits import EVERY, Habit, habit, words
from twins import Array

KERNELS: dict[str, Habit] = {}


def _swapped(x: Array, y: Array) -> Array:
    """Of blocks of two warps, each warp's words in the place of the other's."""
    return x.reshape(-1, 2, 32)[:, ::-1].ravel()


# Barriers at different lines


@habit(KERNELS, block=64, shared=256, inputs=lambda: [words(64)], size=64, expected=_swapped)
def barriers_at_two_lines(t: Any, x: Any, y: Any) -> None:
    """Each warp comes to the barrier at a line of its own."""
    value = t("ld.global.b32", x + t.tid[0] * 4)
    with t.where(t.warpid == 0):
        t("st.shared.b32", t.laneid * 4, value)
        t("bar.sync", 0)
    with t.where(t.warpid == 1):
        t("st.shared.b32", t.laneid * 4 + 128, value)
        t("bar.sync", 0)
    t("st.global.b32", y + t.tid[0] * 4, t("ld.shared.b32", (t.tid[0] ^ 32) * 4))


@habit(
    KERNELS, block=64, shared=256, inputs=lambda: [words(64)], size=64, expected=lambda x, y: _swapped(x + 1, y),
)  # fmt: skip
def work_after_barriers_at_two_lines(t: Any, x: Any, y: Any) -> None:
    """Behind its line of the barrier each warp has work of its own, and they meet again at one line."""
    value = t("ld.global.b32", x + t.tid[0] * 4)
    t("st.shared.b32", t.tid[0] * 4, value)
    with t.where(t.warpid == 0):
        t("bar.sync")
        value = t.update(value, value + 1)
    with t.where(t.warpid == 1):
        t("bar.sync")
        value = t.update(value, t("ld.shared.b32", t.tid[0] * 4) + 1)
    t("st.shared.b32", t.tid[0] * 4, value)
    t("bar.sync")
    t("st.global.b32", y + t.tid[0] * 4, t("ld.shared.b32", (t.tid[0] ^ 32) * 4))


# Named barriers


@habit(KERNELS, block=128, shared=512, inputs=lambda: [words(128)], size=128, expected=_swapped)
def barriers_of_pairs(t: Any, x: Any, y: Any) -> None:
    """Of four warps each pair has a barrier of its own."""
    value, swapped = t("ld.global.b32", x + t.tid[0] * 4), (t.tid[0] ^ 32) * 4
    with t.where(t.warpid < 2):
        t("st.shared.b32", t.tid[0] * 4, value)
        t("bar.sync", 1, 64)
        t("st.global.b32", y + t.tid[0] * 4, t("ld.shared.b32", swapped))
    with t.where(t.warpid >= 2):
        t("st.shared.b32", t.tid[0] * 4, value)
        t("bar.sync", 2, 64)
        t("st.global.b32", y + t.tid[0] * 4, t("ld.shared.b32", swapped))


@habit(
    KERNELS, block=64, shared=128, inputs=lambda: [words(96)], size=96,
    expected=lambda x, y: x.reshape(3, 32)[:, ::-1].ravel(),
)  # fmt: skip
def producer_and_consumer(t: Any, x: Any, y: Any) -> None:
    """Warp 0 fills a buffer, arrives at barrier 1, and waits at barrier 2 before it fills it again; warp 1 empties it.

    Neither end of it is a barrier that all wait at.
    """
    for step in range(3):
        with t.where(t.warpid == 0):
            if step:
                t("bar.sync", 2, 64)
            value = t("ld.global.b32", x + (step * 32 + t.laneid) * 4)
            t("st.shared.b32", t.laneid * 4, value)
            t("bar.arrive", 1, 64)
        with t.where(t.warpid == 1):
            t("bar.sync", 1, 64)
            t("st.global.b32", y + (step * 32 + t.laneid) * 4, t("ld.shared.b32", (31 - t.laneid) * 4))
            if step < 2:
                t("bar.arrive", 2, 64)


@habit(
    KERNELS, block=96, shared=256, inputs=lambda: [words(32)], size=64, expected=lambda x, y: np.tile(x[::-1], 2),
)  # fmt: skip
def one_producer_two_consumers(t: Any, x: Any, y: Any) -> None:
    """Meet at a barrier for 96 threads: 32 arrive, 64 wait."""
    with t.where(t.warpid == 0):
        t("st.shared.b32", t.laneid * 4, t("ld.global.b32", x + t.laneid * 4))
        t("bar.arrive", 3, 96)
    with t.where(t.warpid > 0):
        t("bar.sync", 3, 96)
        t("st.global.b32", y + (t.tid[0] - 32) * 4, t("ld.shared.b32", (31 - t.laneid) * 4))


# The same value, by many


def _remainders(x: Array) -> Array:
    """Which of the remainders 0, 1 and 2 there are."""
    return np.isin(np.arange(8), np.unique(x % 5)[:3]).astype(np.uint32)


@habit(
    KERNELS, block=64, shared=32, inputs=lambda: [words(64)], size=8, expected=lambda x, y: _remainders(x),
)  # fmt: skip
def flags_in_shared(t: Any, x: Any, y: Any) -> None:
    """Every thread marks its remainder, if it is less than 3: the same word, the same value."""
    remainder = t("ld.global.b32", x + t.tid[0] * 4) % 5
    with t.where(t.tid[0] < 8):
        t("st.shared.b32", t.tid[0] * 4, 0)
    t("bar.sync")
    with t.where(remainder < 3):
        t("st.shared.b32", remainder * 4, 1)
    t("bar.sync")
    with t.where(t.tid[0] < 8):
        t("st.global.b32", y + t.tid[0] * 4, t("ld.shared.b32", t.tid[0] * 4))


@habit(
    KERNELS, grid=3, block=64, inputs=lambda: [words(192), np.zeros(8, np.uint32)],
    expected=lambda x, y: _remainders(x),
)  # fmt: skip
def flags_in_global(t: Any, x: Any, y: Any) -> None:
    """Every thread of every block marks its remainder, if it is less than 3: the same word, the same value."""
    remainder = t("ld.global.b32", x + (t.ctaid[0] * 64 + t.tid[0]) * 4) % 5
    with t.where(remainder < 3):
        t("st.global.b32", y + remainder * 4, 1)


# Global memory


@habit(
    KERNELS, grid=2, block=64, inputs=lambda: [words(128), np.zeros(128, np.uint32)], size=128,
    expected=lambda x, scratch, y: x.reshape(2, 64)[:, ::-1].ravel(),
)  # fmt: skip
def exchange_in_global(t: Any, x: Any, scratch: Any, y: Any) -> None:
    """Exchange within a block through global memory; `bar.sync` orders that, too."""
    start = t.ctaid[0] * 64
    t("st.global.b32", scratch + (start + t.tid[0]) * 4, t("ld.global.b32", x + (start + t.tid[0]) * 4))
    t("bar.sync")
    t("st.global.b32", y + (start + t.tid[0]) * 4, t("ld.global.b32", scratch + (start + 63 - t.tid[0]) * 4))


@habit(
    KERNELS, block=64, inputs=lambda: [words(64), np.zeros(64, np.uint32)], size=64,
    expected=lambda x, scratch, y: x.reshape(2, 32)[:, ::-1].ravel(),
)  # fmt: skip
def warps_exchange_in_global(t: Any, x: Any, scratch: Any, y: Any) -> None:
    """Exchange within a warp through global memory, with a barrier of the warp."""
    t("st.global.b32", scratch + t.tid[0] * 4, t("ld.global.b32", x + t.tid[0] * 4))
    t("bar.warp.sync", EVERY)
    t("st.global.b32", y + t.tid[0] * 4, t("ld.global.b32", scratch + (t.tid[0] ^ 31) * 4))


@habit(
    KERNELS, grid=2, block=64, inputs=lambda: [words(192)], expected=lambda x: x * np.uint32(3) + np.uint32(1),
)  # fmt: skip
def update_in_place(t: Any, x: Any) -> None:
    """Load a word and store it, which nobody else touches."""
    at = t.ctaid[0] * 64 + t.tid[0]
    for _ in range(2):
        with t.where(at < 192):
            t("st.global.b32", x + at * 4, t("ld.global.b32", x + at * 4) * 3 + 1)
        at = at + 128


@habit(
    KERNELS, grid=2, block=64, inputs=lambda: [words(1), words(128, 2)], size=128,
    expected=lambda scale, x, y: x * scale[0],
)  # fmt: skip
def broadcast(t: Any, scale: Any, x: Any, y: Any) -> None:
    """All threads of all blocks read one word."""
    at = (t.ctaid[0] * 64 + t.tid[0]) * 4
    t("st.global.b32", y + at, t("ld.global.b32", x + at) * t("ld.global.nc.b32", scale))


def _running(x: Array, y: Array) -> Array:
    padded = np.pad(x, 1)
    made: Array = padded[:-2] + padded[1:-1] + padded[2:]
    return made


@habit(KERNELS, grid=3, block=64, inputs=lambda: [words(500)], size=500, expected=_running)
def strides_of_the_grid(t: Any, x: Any, y: Any) -> None:
    """Go in strides of the grid, with a tail; blocks read each other's edges, which nobody writes."""
    start = t.ctaid[0] * 64 + t.tid[0]
    for first in range(0, 500, 192):
        at = start + first
        total = t.constant(0)
        for neighbour in (-1, 0, 1):
            place = at + neighbour  # before the first, it is more than all
            with t.where(place < 500):
                total = t.update(total, total + t("ld.global.b32", x + place * 4))
        with t.where(at < 500):
            t("st.global.b32", y + at * 4, total)


@habit(
    KERNELS, grid=4, block=32, inputs=lambda: [words(32)], size=4 * 32, dtype=np.uint8,
    expected=lambda x, y: (x >> (8 * np.arange(4, dtype=np.uint32))[:, None]).astype(np.uint8).T.ravel(),
)  # fmt: skip
def bytes_of_blocks(t: Any, x: Any, y: Any) -> None:
    """Each block writes one byte of every word."""
    byte = t("ld.global.b32", x + t.laneid * 4) >> (t.ctaid[0] * 8) & 0xFF
    t("st.global.b8", y + t.laneid * 4 + t.ctaid[0], byte)
