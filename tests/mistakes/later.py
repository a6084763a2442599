"""Mistakes that were written after the table of mistakes was complete: it is not fitted to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from arrays import Array

import warpmma as wm

from .in_products import product
from .in_words import scaled, sparse
from .written_out import (
    BF16,
    F16,
    HALF,
    MXF4,
    MXF8,
    NVF4,
    QUAD,
    SPARSE,
    TF32,
    Given,
    a8,
    a16,
    a32,
    b8,
    b16,
    c,
    f16,
    gather,
    plant,
    run,
    s8,
    u,
)

F16_K8 = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
S8_K16 = "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32"
S8_M8 = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
U4_M8 = "mma.sync.aligned.m8n8k32.row.col.s32.u4.u4.s32"
B1_M8 = "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc"
E5M2 = "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32"
E4M3_A = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"
F64_K16 = "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"
F64_K4 = "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64"
TF32_K4 = "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32"
SPARSE_BF16 = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
SPARSE_S4 = "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.s32.s4.s4.s32"
UNORDERED = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SPARSE_FP8 = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32"


def a16_k8(g: int, t: int, i: int) -> tuple[int, int]:
    return g + 8 * (i // 2), t * 2 + i % 2


def b16_k8(g: int, t: int, i: int) -> tuple[int, int]:
    return t * 2 + i, g


@plant(F16_K8, "registers 0 and 1 of A were swapped")
def rows_counted_from_eight(given: Given) -> Array:
    return run(F16_K8, given, lambda g, t, i: (g + 8 * (1 - i // 2), t * 2 + i % 2), b16_k8, counts=(4, 2, 4), bits=16)


@plant(F16_K8, "register 0 of A held what belongs in register 1")
def lower_rows_twice(given: Given) -> Array:
    return run(F16_K8, given, lambda g, t, i: (g + 8, t * 2 + i % 2), b16_k8, counts=(4, 2, 4), bits=16)


@plant(F16, "groupID and threadID_in_group of B were lane % 8 and lane / 8")
def b_cut_the_wrong_way(given: Given) -> Array:
    return f16(given, b=lambda g, t, i: b16((4 * g + t) % 8, (4 * g + t) // 8, i))


@plant(F16, "C was loaded by col = threadID_in_group + (i & 0x1) * 4")
def accumulators_interleaved(given: Given) -> Array:
    return f16(given, load=lambda g, t, i: (g + 8 * (i // 2), t + 4 * (i % 2)))


@plant(HALF, "the two halves of each register of C were swapped")
def halves_of_accumulators(given: Given) -> Array:
    return f16(given, instruction=HALF, load=lambda g, t, i: c(g, t, i ^ 1))


@plant(S8_K16, "registers 0 and 1 of A were swapped")
def s8_rows_swapped(given: Given) -> Array:
    return run(
        S8_K16, given, lambda g, t, i: (g + 8 * (1 - i // 4), t * 4 + i % 4), lambda g, t, i: (t * 4 + i, g),
        counts=(8, 4, 4), bits=8,
    )  # fmt: skip


@plant(S8_M8, "lanes t and t ^ 16 of B were swapped", target="sm_75")
def half_warps_of_b(given: Given) -> Array:
    return run(
        S8_M8, given, lambda g, t, i: (g, t * 4 + i), lambda g, t, i: (t * 4 + i, g ^ 4), counts=(4, 4, 2), bits=8,
        store=lambda g, t, i: (g, 2 * t + i), load=lambda g, t, i: (g, 2 * t + i), target="sm_75",
    )  # fmt: skip


@plant(U4_M8, "the elements of each register of A were in reverse order", target="sm_75")
def nibbles_from_the_top(given: Given) -> Array:
    return run(
        U4_M8, given, lambda g, t, i: (g, t * 8 + 7 - i), lambda g, t, i: (t * 8 + i, g), counts=(8, 8, 2), bits=4,
        store=lambda g, t, i: (g, 2 * t + i), load=lambda g, t, i: (g, 2 * t + i), target="sm_75",
    )  # fmt: skip


@plant(B1_M8, "the bytes of each register of B were in reverse order", target="sm_75")
def bits_in_bytes_of_a_big_endian(given: Given) -> Array:
    return run(
        B1_M8, given, lambda g, t, i: (g, t * 32 + i), lambda g, t, i: (t * 32 + (i ^ 24), g), counts=(32, 32, 2),
        bits=1,
        store=lambda g, t, i: (g, 2 * t + i), load=lambda g, t, i: (g, 2 * t + i), target="sm_75",
    )  # fmt: skip


@plant(E5M2, "the type of A was e4m3, not e5m2")
def e5m2_as_e4m3(given: Given) -> Array:
    return s8(given, instruction=E5M2, executed=E4M3_A)


@plant(F64_K16, "A was loaded by row = groupID + (i >> 2) * 8, col = threadID_in_group + (i & 0x3) * 4")
def f64_registers_by_rows(given: Given) -> Array:
    return run(
        F64_K16, given, lambda g, t, i: (g + 8 * (i // 4), t + 4 * (i % 4)), lambda g, t, i: (t + 4 * i, g),
        counts=(8, 4, 4), bits=64,
    )  # fmt: skip


@plant(F64_K4, "registers 1 and 2 of C were swapped")
def f64_accumulators(given: Given) -> Array:
    return run(
        F64_K4, given, lambda g, t, i: (g + 8 * i, t), lambda g, t, i: (t, g), counts=(2, 1, 4), bits=64,
        load=lambda g, t, i: (g + 8 * (i % 2), 2 * t + i // 2),
    )  # fmt: skip


@plant(TF32_K4, "groupID and threadID_in_group of B were lane % 8 and lane / 8")
def tf32_b_cut(given: Given) -> Array:
    return run(
        TF32_K4, given, lambda g, t, i: (g + 8 * i, t), lambda g, t, i: ((4 * g + t) // 8, (4 * g + t) % 8),
        counts=(2, 1, 4), bits=32,
    )  # fmt: skip


@plant(TF32, "B was loaded by row = i + threadID_in_group * 2")
def tf32_b_in_pairs(given: Given) -> Array:
    return run(TF32, given, a32, lambda g, t, i: (2 * t + i, g), counts=(4, 2, 4), bits=32)


@plant(BF16, "groupID and threadID_in_group of B were lane / 8 and lane % 8")
def stride_of_the_wrong_dimension(given: Given) -> Array:
    """B is 16 x 8 by columns in memory, k runs: a column begins every 16 elements, and not every 8."""
    memory = given["b"].T.reshape(-1)
    at = np.array([[memory[(8 * n + k) % 128] for n in range(8)] for k in range(16)])
    return f16({**given, "b": at}, instruction=BF16)


@plant(SPARSE_BF16, "the sparsity selector was 3")
def selector_three(given: Given) -> Array:
    return sparse(SPARSE_BF16, given, given["metadata"], selector=3)


@plant(SPARSE_S4, "registers 2 and 3 of A were swapped")
def stored_elements_of_a(given: Given) -> Array:
    a = wm.load(SPARSE_S4, "A", given["a"])[[0, 1, 3, 2]]
    return sparse(SPARSE_S4, given, given["metadata"], A=a)


@plant(UNORDERED, "the two indices in each nibble of the metadata were swapped")
def indices_high_first(given: Given) -> Array:
    words, two, low = given["metadata"], np.uint32(2), np.uint32(0x3333_3333)
    return sparse(UNORDERED, given, (words & low) << two | words >> two & low)


@plant(SPARSE, "rows 8-15 of the metadata were those of 0-7")
def metadata_of_eight_rows(given: Given) -> Array:
    low = given["metadata"] & np.uint32(0xFFFF)
    return sparse(SPARSE, given, low | low << np.uint32(16))


@plant(SPARSE_FP8, "k 0-31 and 32-63 of B were exchanged")
def sparse_k_halves(given: Given) -> Array:
    b = gather(u(given["b"]), lambda g, t, i: (t * 4 + i % 4 + 16 * ((i // 4 + 2) % 4), g), 16, 8)
    return sparse(SPARSE_FP8, given, given["metadata"], B=b)


@plant(MXF8, "columns of the scales of B were shifted by 1: column i was column i + 1, round the end", target="sm_120a")
def scales_a_column_too_far(given: Given) -> Array:
    return scaled(MXF8, given, scale_b=np.array([given["scale_b"][(lane + 4) % 32] for lane in range(32)]))


@plant(MXF8, "the scales of A were all 1", target="sm_120a")
def scales_forgotten(given: Given) -> Array:
    return scaled(MXF8, given, scale_a=np.full(32, 0x7F7F_7F7F, np.uint32))


@plant(MXF4, "the two nibbles of each byte of A were swapped", target="sm_120a")
def fp4_high_first(given: Given) -> Array:
    a = wm.load(MXF4, "A", given["a"])
    swapped = (a & np.uint32(0x0F0F_0F0F)) << np.uint32(4) | a >> np.uint32(4) & np.uint32(0x0F0F_0F0F)
    d = wm.execute(
        MXF4, swapped, wm.load(MXF4, "B", given["b"]), wm.load(MXF4, "C", given["c"]), target="sm_120a",
        scale_a=given["scale_a"], scale_b=given["scale_b"],
    )  # fmt: skip
    return wm.store(MXF4, "D", d)


@plant(NVF4, "blocks of the scales of A were in reverse order", target="sm_120a")
def blocks_from_the_other_end(given: Given) -> Array:
    return scaled(NVF4, given, scale_a=given["scale_a"].byteswap())


@plant(MXF8, "rows 8-15 of the scales of A were those of 0-7", target="sm_120a")
def scales_of_eight_rows(given: Given) -> Array:
    words = given["scale_a"].copy()
    for lane in range(32):
        words[lane] = given["scale_a"][lane & ~1]  # lane
    return scaled(MXF8, given, scale_a=words)


@plant(F16, "B was one k-tile early, the last used twice", shape=(32, 16, 64))
def b_prefetched_too_early(given: Given) -> Array:
    return product(given, lambda step: (step, min(step + 1, 3)))


@plant(F16, "rows of tiles 1 of A were those of 0", shape=(32, 8, 32))
def pointer_of_a_without_its_rows(given: Given) -> Array:
    return product({**given, "a": np.vstack([given["a"][:16]] * 2)}, lambda step: (step, step))


@plant(F16, "the whole D was transposed", shape=(32, 32, 16))
def result_stored_transposed(given: Given) -> Array:
    return np.ascontiguousarray(product(given, lambda step: (step, step)).T)


@plant(F16, "k-tile 0 of 3 was left out", shape=(16, 16, 48))
def loop_begins_at_one(given: Given) -> Array:
    return product(given, lambda step: (step, step) if step else None)


@plant(F16, "the whole A, by rows in memory, was read 1 element too far", shape=(32, 8, 32))
def pointer_off_by_one_element(given: Given) -> Array:
    memory = np.append(given["a"].reshape(-1)[1:], np.float16(0))
    return product({**given, "a": memory.reshape(32, 32)}, lambda step: (step, step))


@plant(F16, "the whole B was transposed", shape=(16, 32, 32))
def whole_b_transposed(given: Given) -> Array:
    return product({**given, "b": np.ascontiguousarray(given["b"].T)}, lambda step: (step, step))


@plant(QUAD, "lanes t and t ^ 4 of B were swapped", target="sm_70")
def quads_of_b(given: Given) -> Array:
    a, b, cc = (wm.load(QUAD, x, given[x.lower()]) for x in ("A", "B", "C"))
    d = wm.execute(QUAD, a, b[:, np.arange(32) ^ 4], cc, target="sm_70")
    return wm.store(QUAD, "D", d)


@plant(F16, "groups of lanes of B were in reverse order")
def rows_of_ldmatrix_from_below(given: Given) -> Array:
    return f16(given, b=lambda g, t, i: b16(7 - g, t, i))


@plant(BF16, "A, by rows in memory, was read with a stride of 8, not 16")
def half_the_stride(given: Given) -> Array:
    memory = u(given["a"]).reshape(-1)
    a = np.array([[memory[8 * row + k] for k in range(16)] for row in range(16)], np.uint16)
    return f16({**given, "a": a}, instruction=BF16)


@plant(F16, "rows 0-7 and 8-15 of A were exchanged and columns i and i ^ 1 of C were exchanged")
def two_pairs_of_registers(given: Given) -> Array:
    return f16(given, a=lambda g, t, i: a16(g, t, i ^ 2), load=lambda g, t, i: c(g, t, i ^ 1))


@plant(S8, "the bytes of each register of A were in reverse order and C was 0")
def bytes_and_no_accumulators(given: Given) -> Array:
    cleared: dict[str, Any] = {**given, "c": np.zeros_like(given["c"])}
    return s8(cleared, a=lambda g, t, i: a8(g, t, i ^ 3), b=b8)
