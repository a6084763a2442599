"""Correct kernels of unusual habits, within a warp: lanes that exit, last warps of 16 threads, halves, exchanges."""

from __future__ import annotations

from typing import Any

import numpy as np
from habits import EVERY, Habit, habit, words
from twins import Array

KERNELS: dict[str, Habit] = {}


def _first(count: int, values: Array, total: int) -> Array:
    """Of an output, the first words; the rest has not been written."""
    made = np.full(4 * total, 0xA5, np.uint8).view(np.uint32)
    made[:count] = values
    return made


# Lanes that exit


@habit(
    KERNELS, block=64, shared=256, inputs=lambda: [words(64)], size=64,
    expected=lambda x, y: _first(40, x[39::-1], 64),
)  # fmt: skip
def exit_before_barrier(t: Any, x: Any, y: Any) -> None:
    """24 threads have nothing to do, and exit; the barrier waits for the others alone."""
    with t.where(t.tid[0] >= 40):
        t("exit")
    t("st.shared.b32", t.tid[0] * 4, t("ld.global.b32", x + t.tid[0] * 4))
    t("bar.sync")
    t("st.global.b32", y + t.tid[0] * 4, t("ld.shared.b32", (39 - t.tid[0]) * 4))


@habit(
    KERNELS, block=96, shared=256, inputs=lambda: [words(64)], size=64,
    expected=lambda x, y: x.reshape(2, 32)[::-1].ravel(),
)  # fmt: skip
def last_warp_exits(t: Any, x: Any, y: Any) -> None:
    """Exit, a whole warp, before the barrier of the block."""
    with t.where(t.warpid == 2):
        t("exit")
    t("st.shared.b32", t.tid[0] * 4, t("ld.global.b32", x + t.tid[0] * 4))
    t("bar.sync")
    t("st.global.b32", y + t.tid[0] * 4, t("ld.shared.b32", (t.tid[0] ^ 32) * 4))


@habit(
    KERNELS, grid=4, block=64, shared=256, inputs=lambda: [words(192)], size=192,
    expected=lambda x, y: x.reshape(3, 64)[:, ::-1].ravel(),
)  # fmt: skip
def block_exits(t: Any, x: Any, y: Any) -> None:
    """Exit, a whole block: the grid is larger than the work."""
    at = t.ctaid[0] * 64 + t.tid[0]
    with t.where(at >= 192):
        t("exit")
    t("st.shared.b32", t.tid[0] * 4, t("ld.global.b32", x + at * 4))
    t("bar.sync")
    t("st.global.b32", y + at * 4, t("ld.shared.b32", (63 - t.tid[0]) * 4))


@habit(
    KERNELS, inputs=lambda: [words(32)], size=32, expected=lambda x, y: _first(16, x[:16].sum(dtype=np.uint32), 32),
)  # fmt: skip
def shuffle_after_exit(t: Any, x: Any, y: Any) -> None:
    """Lanes that have exited are waited for by no one, though the membermask names them."""
    value = t("ld.global.b32", x + t.laneid * 4)
    with t.where(t.laneid >= 16):
        t("exit")
    for distance in (8, 4, 2, 1):
        other, _ = t("shfl.sync.bfly.b32", value, distance, 31, EVERY)
        value = value + other
    t("st.global.b32", y + t.laneid * 4, value)


def _halvings(x: Array, y: Array) -> Array:
    return np.array([max(int(n).bit_length() - 1, 0) for n in x], np.uint32)


@habit(KERNELS, inputs=lambda: [words(32) >> np.arange(32, dtype=np.uint32)], size=32, expected=_halvings)
def exit_from_loop(t: Any, x: Any, y: Any) -> None:
    """Each lane stores and exits when it is done."""
    left = t("ld.global.b32", x + t.laneid * 4)
    halvings = t.constant(0)
    while t.any(left >= 0):  # until no lane is left
        with t.where(left <= 1):
            t("st.global.b32", y + t.laneid * 4, halvings)
            t("exit")
        left, halvings = left >> 1, halvings + 1


@habit(KERNELS, inputs=lambda: [words(32) >> np.arange(32, dtype=np.uint32)], size=32, expected=_halvings)
def loop_while_any(t: Any, x: Any, y: Any) -> None:
    """Each lane waits for the others when it is done."""
    left = t("ld.global.b32", x + t.laneid * 4)
    halvings = t.constant(0)
    while t.any(going := left > 1):
        with t.where(going):
            left = t.update(left, left >> 1)
            halvings = t.update(halvings, halvings + 1)
    t("st.global.b32", y + t.laneid * 4, halvings)


# Last warps of 16 threads


@habit(
    KERNELS, block=48, inputs=lambda: [words(48)], size=48,
    expected=lambda x, y: np.repeat(x.reshape(3, 16).sum(axis=1, dtype=np.uint32), 16),
)  # fmt: skip
def shuffle_in_half_a_warp(t: Any, x: Any, y: Any) -> None:
    """Sum 16 lanes, with the membermask of a whole warp where the last has 16."""
    value = t("ld.global.b32", x + t.tid[0] * 4)
    for distance in (8, 4, 2, 1):
        other, _ = t("shfl.sync.bfly.b32", value, distance, 31, EVERY)
        value = value + other
    t("st.global.b32", y + t.tid[0] * 4, value)


def _first_and_odd(x: Array, y: Array) -> Array:
    warps = (x[:32], x[32:])
    return np.concatenate([np.full(len(z), z[0] + np.count_nonzero(z & 1), np.uint32) for z in warps])


@habit(KERNELS, block=48, inputs=lambda: [words(48)], size=48, expected=_first_and_odd)
def votes_in_half_a_warp(t: Any, x: Any, y: Any) -> None:
    """Lane 0's value for all lanes, and how many are odd."""
    value = t("ld.global.b32", x + t.tid[0] * 4)
    first, _ = t("shfl.sync.idx.b32", value, 0, 31, EVERY)
    odd = t("vote.sync.ballot.b32", (value & 1) != 0, EVERY)
    t("st.global.b32", y + t.tid[0] * 4, first + t("popc.b32", odd))


@habit(
    KERNELS, block=48, shared=192, inputs=lambda: [words(48)], size=48,
    expected=lambda x, y: x.reshape(3, 16)[:, ::-1].ravel(),
)  # fmt: skip
def exchange_in_half_a_warp(t: Any, x: Any, y: Any) -> None:
    """Exchange through shared memory between the lanes of a warp, of which the last has 16."""
    t("st.shared.b32", t.tid[0] * 4, t("ld.global.b32", x + t.tid[0] * 4))
    t("bar.warp.sync", EVERY)
    t("st.global.b32", y + t.tid[0] * 4, t("ld.shared.b32", (t.tid[0] ^ 15) * 4))


# Halves of a warp


@habit(
    KERNELS, shared=128, inputs=lambda: [words(32)], size=32,
    expected=lambda x, y: np.roll(x.reshape(2, 16), 1, axis=1).ravel(),
)  # fmt: skip
def halves_of_a_warp(t: Any, x: Any, y: Any) -> None:
    """Two halves of a warp exchange among themselves, one after the other."""
    value = t("ld.global.b32", x + t.laneid * 4)
    for half, mask in ((0, 0x0000FFFF), (1, 0xFFFF0000)):
        with t.where((t.laneid >> 4) == half):
            t("st.shared.b32", t.laneid * 4, value)
            t("bar.warp.sync", mask)
            got = t("ld.shared.b32", (t.laneid & 16 | (t.laneid + 15) & 15) * 4)
            t("st.global.b32", y + t.laneid * 4, got)


@habit(
    KERNELS, inputs=lambda: [words(32)], size=32,
    expected=lambda x, y: np.repeat(x.reshape(2, 16).sum(axis=1, dtype=np.uint32), 16),
)  # fmt: skip
def shuffles_of_halves(t: Any, x: Any, y: Any) -> None:
    """Each half's sum, with the half's membermask, where the other is masked off."""
    value = t("ld.global.b32", x + t.laneid * 4)
    for half, mask in ((0, 0x0000FFFF), (1, 0xFFFF0000)):
        with t.where((t.laneid >> 4) == half):
            total = value
            for distance in (8, 4, 2, 1):
                other, _ = t("shfl.sync.bfly.b32", total, distance, 31, mask)
                total = total + other
            t("st.global.b32", y + t.laneid * 4, total)


@habit(
    KERNELS, shared=128, inputs=lambda: [words(32)], size=32, expected=lambda x, y: x.reshape(2, 16)[:, ::-1].ravel(),
)  # fmt: skip
def halves_by_a_register(t: Any, x: Any, y: Any) -> None:
    """Take the membermask from a register: lanes of one half have another than those of the other."""
    mask = t("shl.b32", 0xFFFF, t.laneid & 16)
    t("st.shared.b32", t.laneid * 4, t("ld.global.b32", x + t.laneid * 4))
    t("bar.warp.sync", mask)
    t("st.global.b32", y + t.laneid * 4, t("ld.shared.b32", (t.laneid ^ 15) * 4))


# Exchanges within a warp


@habit(
    KERNELS, block=64, shared=256, inputs=lambda: [words(64)], size=64,
    expected=lambda x, y: sum(x.reshape(2, 32)[:, np.arange(32) ^ d] << np.uint32(d % 3) for d in (1, 7, 31)).ravel(),
)  # fmt: skip
def exchange_and_reuse(t: Any, x: Any, y: Any) -> None:
    """Use a buffer of a warp again: a barrier before what is read, and one before it is written again."""
    value = t("ld.global.b32", x + t.tid[0] * 4)
    total = t.constant(0)
    for distance in (1, 7, 31):
        t("st.shared.b32", t.tid[0] * 4, value << distance % 3)
        t("bar.warp.sync", EVERY)
        total = total + t("ld.shared.b32", (t.tid[0] ^ distance) * 4)
        t("bar.warp.sync", EVERY)
    t("st.global.b32", y + t.tid[0] * 4, total)


@habit(
    KERNELS, block=128, shared=4 * 8 * 9 * 4, inputs=lambda: [words(128)], size=128,
    expected=lambda x, y: x.reshape(4, 4, 8).swapaxes(1, 2).ravel(),
)  # fmt: skip
def slices_of_warps(t: Any, x: Any, y: Any) -> None:
    """Each warp transposes 4 x 8 words in a slice of shared memory of its own, without a barrier of the block."""
    start = t.warpid * (8 * 9 * 4)
    t("st.shared.b32", start + (t.laneid % 8 * 9 + t.laneid // 8) * 4, t("ld.global.b32", x + t.tid[0] * 4))
    t("bar.warp.sync", EVERY)
    t("st.global.b32", y + t.tid[0] * 4, t("ld.shared.b32", start + (t.laneid // 4 * 9 + t.laneid % 4) * 4))


def _transposed_matrices(x: Array, y: Array) -> Array:
    """Of 8x8 matrices of 16 bits in fragments: a lane has columns 2 (lane % 4) and 1 more of row lane // 4."""
    matrices = x.reshape(4, 32).view(np.uint16).reshape(4, 8, 8)
    return np.ascontiguousarray(matrices[[1, 0, 3, 2]].swapaxes(1, 2)).view(np.uint32).ravel()


@habit(KERNELS, shared=512, inputs=lambda: [words(128)], size=128, expected=_transposed_matrices)
def matrices_through_shared(t: Any, x: Any, y: Any) -> None:
    """Store matrices, and load what rows of other lanes hold: in pairs they change places."""
    registers = [t("ld.global.b32", x + (i * 32 + t.laneid) * 4) for i in range(4)]
    t("stmatrix.sync.aligned.m8n8.x4.shared.b16", t.laneid * 16, *registers)
    t("bar.warp.sync", EVERY)
    for i, register in enumerate(t("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", (t.laneid ^ 8) * 16)):
        t("st.global.b32", y + (i * 32 + t.laneid) * 4, register)


# Lanes that nobody wrote


@habit(
    KERNELS, inputs=lambda: [words(20)], size=32, expected=lambda x, y: np.pad(x, (0, 12)),
)  # fmt: skip
def select_discards(t: Any, x: Any, y: Any) -> None:
    """Load under a mask, and `selp` by the same predicate: what was not loaded is not taken."""
    inside = t.laneid < 20
    with t.where(inside):
        value = t("ld.global.b32", x + t.laneid * 4)
    t("st.global.b32", y + t.laneid * 4, t("selp.b32", value, 0, inside))


@habit(
    KERNELS, inputs=lambda: [words(32)], size=32, expected=lambda x, y: np.where(np.arange(32) % 3 == 0, x + 1, x << 1),
)  # fmt: skip
def select_of_branches(t: Any, x: Any, y: Any) -> None:
    """Each branch makes a register of its own, and `selp` takes the one that a lane has."""
    value, third = t("ld.global.b32", x + t.laneid * 4), (t.laneid % 3) == 0
    with t.where(third):
        one = value + 1
    with t.where(~third):
        two = value << 1
    t("st.global.b32", y + t.laneid * 4, t("selp.b32", one, two, third))
