"""Mistakes in products of several tiles, two at once, and in kernels on the simulated machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from arrays import Array

import warpmma as wm

from .written_out import F16, Given, a16, f16, plant

# Products of several tiles


def product(given: Given, tiles: Callable[[int], Any], restart: bool = False) -> Array:
    """16 x 8 tiles of D; `tiles` gives the k-tile of A and that of B in each iteration."""
    d: Array = given["c"].copy()
    for row in range(0, d.shape[0], 16):
        for column in range(0, d.shape[1], 8):
            tile = d[row : row + 16, column : column + 8]
            for step in range(given["a"].shape[1] // 16):
                chosen = tiles(step)
                if chosen is None:
                    continue
                ka, kb = (16 * x for x in chosen)
                a, b = given["a"][row : row + 16, ka : ka + 16], given["b"][kb : kb + 16, column : column + 8]
                tile = wm.mma(F16, a, b, tile if not restart or not step else None, target="sm_90")
            d[row : row + 16, column : column + 8] = tile
    return d


@plant(F16, "k-tile 3 of 4 was left out", shape=(32, 16, 64))
def loop_ends_early(given: Given) -> Array:
    return product(given, lambda step: (step, step) if step < 3 else None)


@plant(F16, "A was one k-tile late, the first used twice", shape=(32, 16, 64))
def a_prefetched_too_late(given: Given) -> Array:
    return product(given, lambda step: (max(step - 1, 0), step))


@plant(F16, "every k-tile of B was the first", shape=(16, 8, 48))
def pointer_of_b_stays(given: Given) -> Array:
    return product(given, lambda step: (step, 0))


@plant(F16, "accumulators were set back to 0 at every k-tile", shape=(32, 8, 32))
def accumulators_declared_inside_the_loop(given: Given) -> Array:
    return product(given, lambda step: (step, step), restart=True)


@plant(F16, "k-tiles of A and B were overwritten before use: 1, 1, 3, 3", shape=(16, 16, 64))
def one_buffer_of_two(given: Given) -> Array:
    return product(given, lambda step: (step | 1, step | 1))


@plant(F16, "columns of tiles i and i ^ 1 of D were exchanged", shape=(16, 32, 16))
def tiles_stored_elsewhere(given: Given) -> Array:
    d = product(given, lambda step: (step, step))
    return np.hstack([d[:, 8:16], d[:, :8], d[:, 24:], d[:, 16:24]])


@plant(F16, "chunks of 16 bytes of the whole A were exchanged by row % 8", shape=(16, 8, 64))
def swizzled_once(given: Given) -> Array:
    """Written to shared memory with a swizzle, and read without."""
    a = given["a"].copy()
    for row in range(16):
        for chunk in range(8):
            there = chunk ^ row % 8
            a[row, 8 * there : 8 * there + 8] = given["a"][row, 8 * chunk : 8 * chunk + 8]
    return product({**given, "a": a}, lambda step: (step, step))


# Two at once


@plant(F16, "registers 1 and 2 of A were swapped and C was 0")
def two_mistakes(given: Given) -> Array:
    cleared = {**given, "c": np.zeros_like(given["c"])}
    return f16(cleared, a=lambda g, t, i: a16(g, t, (i & 1) | (i & 2) << 1 | (i & 4) >> 1))


# Kernels on the simulated machine


def machine(given: Given, load_a: Callable[[Any, Any], Any], load_b: Callable[[Any, Any], Any], b: Array) -> Array:
    """A warp that brings A and B to shared memory, loads fragments with ldmatrix, and stores D."""

    def kernel(t: Any, a: Any, b: Any, cc: Any, d: Any) -> None:
        lane = t.tid[0]
        for place, source, words in ((0, a, 128), (512, b, 64)):
            for first in range(0, words, 32):
                t("st.shared.b32", place + (first + lane) * 4, t("ld.global.b32", source + (first + lane) * 4))
        t("bar.sync")
        group, thread = lane // 4, lane % 4
        at = [(group * 8 + thread * 2) * 4, ((group + 8) * 8 + thread * 2) * 4]
        acc = [x for offset in at for x in t("ld.global.v2.f32", cc + offset)]
        results = t(F16, load_a(t, lane), load_b(t, 512), acc)
        for offset, pair in zip(at, (results[:2], results[2:]), strict=True):
            t("st.global.v2.f32", d + offset, *pair)

    out = np.zeros((16, 8), np.float32)
    arrays = [np.ascontiguousarray(given["a"]), np.ascontiguousarray(b), given["c"].copy(), out]
    wm.kernel.launch(kernel, 1, 32, arrays, target="sm_90", shared=1024)
    return out


def rows_of_a(t: Any, lane: Any) -> Any:
    """Rows of 16 elements: lanes 0-15 name those of the left half, lanes 16-31 those of the right half."""
    return t("ldmatrix.sync.aligned.m8n8.x4.shared.b16", lane % 16 * 32 + lane // 16 * 16)


@plant(F16, "registers 1 and 2 of A were swapped")
def ldmatrix_of_other_quarters(given: Given) -> Array:
    def load_a(t: Any, lane: Any) -> Any:
        row, half = lane % 8 + lane // 16 * 8, lane // 8 % 2  # lane % 16, lane // 16
        return t("ldmatrix.sync.aligned.m8n8.x4.shared.b16", row * 32 + half * 16)

    def load_b(t: Any, base: int) -> Any:
        return t("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", base + t.tid[0] % 16 * 16)

    return machine(given, load_a, load_b, given["b"])


@plant(F16, "the 8 x 8 matrices of B were transposed, as by ldmatrix")
def ldmatrix_without_trans(given: Given) -> Array:
    def load_b(t: Any, base: int) -> Any:
        return t("ldmatrix.sync.aligned.m8n8.x2.shared.b16", base + t.tid[0] % 16 * 16)  # .trans

    return machine(given, rows_of_a, load_b, given["b"])
