"""Correct kernels of unusual habits in shared memory: padding, bytes, words of vectors, one's own places."""

from __future__ import annotations

from typing import Any

import numpy as np
from habits import EVERY, Habit, habit, words
from twins import Array

from warpmma.machine import Swizzle

KERNELS: dict[str, Habit] = {}


@habit(
    KERNELS, shared=512, inputs=lambda: [words(96)], size=32,
    expected=lambda x, y: x.reshape(32, 3)[::-1].sum(axis=1, dtype=np.uint32),
)  # fmt: skip
def vectors_over_padding(t: Any, x: Any, y: Any) -> None:
    """Rows of 12 bytes lie 16 apart, and are read as 16: nobody wrote the fourth word, and nobody uses it."""
    for i in range(3):
        t("st.shared.b32", t.laneid * 16 + i * 4, t("ld.global.b32", x + (t.laneid * 3 + i) * 4))
    t("bar.warp.sync", EVERY)
    a, b, c, _ = t("ld.shared.v4.b32", (31 - t.laneid) * 16)
    t("st.global.b32", y + t.laneid * 4, a + b + c)


@habit(
    KERNELS, shared=1024, inputs=lambda: [words(64)], size=32, expected=lambda x, y: x[:32] ^ x[32:],
)  # fmt: skip
def pairs_over_padding(t: Any, x: Any, y: Any) -> None:
    """Of each 8 bytes that are loaded as one, the upper 4 are padding."""
    for i in range(2):
        t("st.shared.b32", t.laneid * 16 + i * 8, t("ld.global.b32", x + (t.laneid + 32 * i) * 4))
    low, _ = t("ld.shared.v2.b32", t.laneid * 16)
    high, _ = t("ld.shared.v2.b32", t.laneid * 16 + 8)
    t("st.global.b32", y + t.laneid * 4, low ^ high)


@habit(
    KERNELS, block=64, shared=64, inputs=lambda: [words(64)], size=64,
    expected=lambda x, y: (x & 0xFF)[::-1],
)  # fmt: skip
def neighbouring_bytes(t: Any, x: Any, y: Any) -> None:
    """Lanes and warps write bytes of the same word, each its own."""
    place = t.laneid * 2 + t.warpid
    t("st.shared.b8", place, t("ld.global.b32", x + place * 4))
    t("bar.sync")
    t("st.global.b32", y + t.tid[0] * 4, t("cvt.u32.u8", t("ld.shared.u8", 63 - t.tid[0])))


@habit(
    KERNELS, block=64, shared=1024, inputs=lambda: [words(256)], size=64,
    expected=lambda x, y: (x.reshape(64, 4) * np.arange(1, 5, dtype=np.uint32)).sum(axis=1, dtype=np.uint32),
)  # fmt: skip
def vectors_and_words(t: Any, x: Any, y: Any) -> None:
    """Store 16 bytes at once and read one's own part in words, with no barrier."""
    t("st.shared.v4.b32", t.tid[0] * 16, t("ld.global.v4.b32", x + t.tid[0] * 16))
    total = t.constant(0)
    for i in range(4):
        total = total + t("ld.shared.b32", t.tid[0] * 16 + i * 4) * (i + 1)
    t("st.global.b32", y + t.tid[0] * 4, total)


@habit(
    KERNELS, block=64, shared=256, inputs=lambda: [words(64)], size=64,
    expected=lambda x, y: x * np.uint32(2) + np.uint32(3),
)  # fmt: skip
def own_word_again_and_again(t: Any, x: Any, y: Any) -> None:
    """Read one's word and write it, more than once, with no barrier."""
    at = t.tid[0] * 4
    t("st.shared.b32", at, t("ld.global.b32", x + at))
    t("st.shared.b32", at, t("ld.shared.b32", at) * 2)
    for _ in range(3):
        t("st.shared.b32", at, t("ld.shared.b32", at) + 1)
    t("st.global.b32", y + at, t("ld.shared.b32", at))


@habit(
    KERNELS, grid=3, block=64, shared=256, inputs=lambda: [words(150)], size=150,
    expected=lambda x, y: np.concatenate([part[::-1] for part in (x[:64], x[64:128], x[128:])]),
)  # fmt: skip
def output_in_parts(t: Any, x: Any, y: Any) -> None:
    """Each block writes its part of the output, the last one less; and reads again what it wrote."""
    start = t.ctaid[0] * 64
    many = t("min.u32", 150 - start, 64)
    with t.where(t.tid[0] < many):
        t("st.shared.b32", t.tid[0] * 4, t("ld.global.b32", x + (start + t.tid[0]) * 4))
    t("bar.sync")
    with t.where(t.tid[0] < many):
        at = y + (start + t.tid[0]) * 4
        t("st.global.b32", at, ~t("ld.shared.b32", (many - 1 - t.tid[0]) * 4))
        t("st.global.b32", at, ~t("ld.global.b32", at))


# Transposes


@habit(
    KERNELS, block=128, shared=33 * 32 * 4, inputs=lambda: [words(1024)], size=1024,
    expected=lambda x, y: x.reshape(32, 32).T.ravel(),
)  # fmt: skip
def transpose_padded(t: Any, x: Any, y: Any) -> None:
    """Rows of 32 words lie 33 apart, and nobody touches the last."""
    row, column = t.tid[0] // 32, t.tid[0] % 32
    for r in range(0, 32, 4):
        t("st.shared.b32", ((row + r) * 33 + column) * 4, t("ld.global.b32", x + ((row + r) * 32 + column) * 4))
    t("bar.sync")
    for r in range(0, 32, 4):
        t("st.global.b32", y + ((row + r) * 32 + column) * 4, t("ld.shared.b32", (column * 33 + row + r) * 4))


@habit(
    KERNELS, block=128, shared=32 * 32 * 4, inputs=lambda: [words(1024)], size=1024,
    expected=lambda x, y: x.reshape(32, 32).T.ravel(),
)  # fmt: skip
def transpose_swizzled(t: Any, x: Any, y: Any) -> None:
    """Words change places within their row, by the row."""
    swizzle = Swizzle(5, 2, 5)
    row, column = t.tid[0] // 32, t.tid[0] % 32
    for r in range(0, 32, 4):
        value = t("ld.global.b32", x + ((row + r) * 32 + column) * 4)
        t("st.shared.b32", swizzle(((row + r) * 32 + column) * 4), value)
    t("bar.sync")
    for r in range(0, 32, 4):
        value = t("ld.shared.b32", swizzle((column * 32 + row + r) * 4))
        t("st.global.b32", y + ((row + r) * 32 + column) * 4, value)


# The same memory, for other things


def _twice(x: Array, y: Array) -> Array:
    halves = x.astype(np.uint16)
    made: Array = (x[::-1] + halves[np.arange(64) ^ 33]).astype(np.uint32)
    return made


@habit(KERNELS, block=64, shared=256, inputs=lambda: [words(64)], size=64, expected=_twice)
def memory_for_other_types(t: Any, x: Any, y: Any) -> None:
    """Words, and behind a barrier halfwords in the same place."""
    value = t("ld.global.b32", x + t.tid[0] * 4)
    t("st.shared.b32", t.tid[0] * 4, value)
    t("bar.sync")
    other = t("ld.shared.b32", (63 - t.tid[0]) * 4)
    t("bar.sync")
    t("st.shared.b16", t.tid[0] * 2, value)
    t("bar.sync")
    half = t("cvt.u32.u16", t("ld.shared.u16", (t.tid[0] ^ 33) * 2))
    t("st.global.b32", y + t.tid[0] * 4, other + half)


@habit(
    KERNELS, grid=2, block=64, shared=128, inputs=lambda: [words(128)], size=128,
    expected=lambda x, y: x.reshape(2, 2, 32)[..., ::-1].ravel(),
)  # fmt: skip
def warps_in_turns(t: Any, x: Any, y: Any) -> None:
    """Take turns in the one buffer of all warps: a barrier of the block between them, and of the warp within."""
    at = (t.ctaid[0] * 64 + t.tid[0]) * 4
    value = t("ld.global.b32", x + at)
    for turn in range(2):
        with t.where(t.warpid == turn):
            t("st.shared.b32", t.laneid * 4, value)
            t("bar.warp.sync", EVERY)
            t("st.global.b32", y + at, t("ld.shared.b32", (31 - t.laneid) * 4))
        t("bar.sync")
