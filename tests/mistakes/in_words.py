"""Mistakes in metadata and scales, and in the four small products of Volta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from arrays import Array

import warpmma as wm

from .written_out import (
    MXF4,
    MXF8,
    NARROW,
    NVF4,
    NVF4_UE8M0,
    QUAD,
    QUAD_COL,
    SPARSE,
    SPARSE_S8,
    SPARSE_TF32,
    Given,
    a8,
    gather,
    plant,
    u,
)

# Four small products at once


def quad(given: Given, executed: str, row: Callable[[int], int]) -> Array:
    words = {}
    for name in "ab":
        matrices = u(given[name]) if name == "a" else u(given[name]).swapaxes(1, 2)  # runs of k
        words[name] = np.zeros((2, 32), np.uint32)
        for lane in range(32):
            q, r = lane // 4 % 4, row(lane) if name == "a" else lane % 4 + 4 * (lane // 16)
            for i in range(4):
                words[name][i // 2, lane] |= np.uint32(matrices[q, r, i]) << np.uint32(16 * (i % 2))
    d = wm.execute(executed, words["a"], words["b"], wm.load(QUAD, "C", given["c"]), target="sm_70")
    return wm.store(QUAD, "D", d)


@plant(QUAD, "lanes 16-31 of A had what belongs to lanes 0-15", target="sm_70")
def upper_lanes_forgotten(given: Given) -> Array:
    return quad(given, QUAD, lambda lane: lane % 4)  # lane % 4 + 4 * (lane // 16)


@plant(QUAD, "A was .col, not .row", target="sm_70")
def qualifier_of_the_other_layout(given: Given) -> Array:
    return quad(given, QUAD_COL, lambda lane: lane % 4 + 4 * (lane // 16))


# Metadata


def sparse(instruction: str, given: Given, words: Array, selector: int = 0, **fragments: Array) -> Array:
    a, b = (fragments.get(x, wm.load(instruction, x, given[x.lower()])) for x in ("A", "B"))
    d = wm.execute(
        instruction, a, b, wm.load(instruction, "C", given["c"]), target="sm_90", metadata=words, selector=selector
    )  # fmt: skip
    return wm.store(instruction, "D", d)


@plant(SPARSE, "rows of the metadata were shifted by 1: row i was row i + 1")
def metadata_a_row_too_far(given: Given) -> Array:
    words, low, high = given["metadata"], np.uint32(0xFFFF), np.uint32(16)
    shifted = words.copy()
    for lane in range(32):  # row g in the low halves of group g, row g + 8 in the high ones
        ahead = words[(lane + 4) % 32]
        shifted[lane] = ahead if lane < 28 else (ahead >> high | (ahead & low) << high)
    return sparse(SPARSE, given, shifted)


@plant(SPARSE, "the sparsity selector was 1")
def selector_of_the_other_tile(given: Given) -> Array:
    return sparse(SPARSE, given, given["metadata"], selector=1)


@plant(SPARSE, "rows 0-7 and 8-15 of the metadata were exchanged")
def metadata_halves(given: Given) -> Array:
    words = given["metadata"]
    return sparse(SPARSE, given, np.array([(int(w) >> 16 | int(w) << 16) & 0xFFFF_FFFF for w in words], np.uint32))


@plant(SPARSE_TF32, "lanes t and t ^ 1 of the metadata were swapped")
def metadata_of_the_neighbour(given: Given) -> Array:
    return sparse(SPARSE_TF32, given, np.array([given["metadata"][lane ^ 1] for lane in range(32)]))


@plant(SPARSE_S8, "registers 1 and 2 of B were swapped")
def sparse_b_in_another_order(given: Given) -> Array:
    order = (0, 2, 1, 3)
    b = gather(u(given["b"]), lambda g, t, i: (t * 4 + i % 4 + 16 * order[i // 4], g), 16, 8)
    return sparse(SPARSE_S8, given, given["metadata"], B=b)


# Block scales and narrow elements


def scaled(instruction: str, given: Given, executed: str = "", **more: Any) -> Array:
    fragments = [wm.load(instruction, x, given[x.lower()]) for x in ("A", "B", "C")]
    words = {"scale_a": given["scale_a"], "scale_b": given["scale_b"]}
    d = wm.execute(executed or instruction, *fragments, target="sm_120a", **(words | more))
    return wm.store(instruction, "D", d)


@plant(MXF8, "the scale of row i of A lay in lane i", target="sm_120a")
def scales_lane_by_lane(given: Given) -> Array:
    words = given["scale_a"].copy()
    for row in range(16):
        scale = int(given["scale_a"][4 * (row % 8) + row // 8]) & 0xFF
        words[row] = int(words[row]) & 0xFFFF_FF00 | scale  # words[4 * (row % 8) + row // 8]
    return scaled(MXF8, given, scale_a=words)


@plant(MXF8, "the byte-id of B was 2", target="sm_120a")
def byte_of_another_tile(given: Given) -> Array:
    return scaled(MXF8, given, byte_id_b=2)


@plant(MXF4, "blocks 0 and 1 of the scales of B were exchanged", target="sm_120a")
def blocks_of_scales_exchanged(given: Given) -> Array:
    words = [int(w) & 0xFFFF_0000 | (int(w) & 0xFF) << 8 | int(w) >> 8 & 0xFF for w in given["scale_b"]]
    return scaled(MXF4, given, scale_b=np.array(words, np.uint32))


@plant(NVF4, "the thread-id of A was 1", target="sm_120a")
def lanes_of_another_tile(given: Given) -> Array:
    return scaled(NVF4, given, thread_id_a=1)


@plant(NVF4, "the type of the scales was ue8m0, not ue4m3", target="sm_120a")
def the_other_type_of_scales(given: Given) -> Array:
    return scaled(NVF4, given, NVF4_UE8M0)


@plant(NARROW, "the elements of A lay 2 bits too far right in their bytes", target="sm_120a")
def codes_not_shifted(given: Given) -> Array:
    a = gather(u(given["a"]), a8, 16, 8)  # each code << 2
    d = wm.execute(NARROW, a, wm.load(NARROW, "B", given["b"]), wm.load(NARROW, "C", given["c"]), target="sm_120a")
    return wm.store(NARROW, "D", d)
