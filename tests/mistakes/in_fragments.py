"""Mistakes in fragments and accumulators, of all types."""

from __future__ import annotations

import numpy as np
from arrays import Array

from .written_out import (
    AND,
    BF16,
    BF16_K8,
    E4M3,
    E4M3_E5M2,
    F16,
    F64,
    F64_K8,
    HALF,
    S4,
    S8,
    TF32,
    U8_S8,
    XOR,
    Given,
    Where,
    a1,
    a4,
    a16,
    a32,
    b1,
    b4,
    b8,
    b16,
    b32,
    c,
    f16,
    plant,
    run,
    s8,
    u,
)

# Registers, halves, rows and k of f16 and bf16


@plant(F16, "registers 1 and 2 of A were swapped")
def rows_and_k_of_a_mixed_up(given: Given) -> Array:
    return f16(given, a=lambda g, t, i: (g + 8 * (i // 4), t * 2 + i % 2 + 8 * (i // 2 % 2)))


@plant(F16, "registers 0 and 1 of B were swapped")
def b_counts_k_from_the_upper_half(given: Given) -> Array:
    return f16(given, b=lambda g, t, i: (t * 2 + i % 2 + 8 * (1 - i // 2), g))


@plant(BF16, "the two halves of each register of A were swapped")
def big_endian_halves(given: Given) -> Array:
    return f16(given, instruction=BF16, a=lambda g, t, i: a16(g, t, i ^ 1))


@plant(BF16, "B, by rows in memory, was read as by columns")
def b_not_transposed(given: Given) -> Array:
    memory = {**given, "b": given["b"].reshape(8, 16)}  # row-major k x n, addressed as n x k
    return f16(memory, instruction=BF16, b=lambda g, t, i: b16(g, t, i)[::-1])


@plant(F16, "A was transposed")
def a_addressed_by_columns(given: Given) -> Array:
    return f16(given, a=lambda g, t, i: a16(g, t, i)[::-1])


@plant(BF16, "groupID and threadID_in_group of A were lane % 8 and lane / 8")
def lane_cut_the_wrong_way(given: Given) -> Array:
    def a(g: int, t: int, i: int) -> tuple[int, int]:
        lane = 4 * g + t
        return a16(lane % 8, lane // 8, i)  # a16(lane // 4, lane % 4, i)

    return f16(given, instruction=BF16, a=a)


@plant(F16, "registers 1, 3 of A held what belongs in 0, 2")
def eight_rows_forgotten(given: Given) -> Array:
    return f16(given, a=lambda g, t, i: (g, a16(g, t, i)[1]))


@plant(F16, "registers 2, 3 of A held what belongs in 0, 1")
def eight_columns_forgotten(given: Given) -> Array:
    return f16(given, a=lambda g, t, i: (a16(g, t, i)[0], t * 2 + i % 2))


@plant(F16, "rows of A were shifted by 1: row i was row i + 1, 0 beyond the end")
def rows_off_by_one(given: Given) -> Array:
    padded = {**given, "a": np.vstack([given["a"], np.zeros((1, 16), np.float16)])}
    return f16(padded, a=lambda g, t, i: (a16(g, t, i)[0] + 1, a16(g, t, i)[1]))


@plant(F16, "k of A were shifted by 1: k i was k i - 1, 0 beyond the end")
def columns_off_by_one(given: Given) -> Array:
    padded = {**given, "a": np.hstack([np.zeros((16, 1), np.float16), given["a"]])}
    return f16(padded, a=a16)


@plant(BF16_K8, "(columns i and i ^ 1 of B were exchanged)")
def neighbouring_columns(given: Given) -> Array:
    return run(
        BF16_K8, given, lambda g, t, i: (g + 8 * (i // 2), t * 2 + i % 2), lambda g, t, i: (t * 2 + i, g ^ 1),
        counts=(4, 2, 4), bits=16,
    )  # fmt: skip


@plant(F16, "lanes t and t ^ 1 of A were swapped")
def threads_of_a_pair(given: Given) -> Array:
    return f16(given, a=lambda g, t, i: a16(g, t ^ 1, i))


@plant(F16, "lane t of B had what belongs to lane t - 1")
def lanes_shuffled_up(given: Given) -> Array:
    return f16(given, b=lambda g, t, i: b16((4 * g + t - 1) % 32 // 4, (t - 1) % 4, i))


@plant(F16, "all operands were lane % 8 and lane / 8")
def one_wrong_formula_for_all(given: Given) -> Array:
    def cut(where: Where) -> Where:
        return lambda g, t, i: where((4 * g + t) % 8, (4 * g + t) // 8, i)

    return f16(given, a=cut(a16), b=cut(b16), load=cut(c), store=cut(c))


# Accumulators and results


@plant(BF16, "C was 0")
def accumulators_cleared(given: Given) -> Array:
    return f16({**given, "c": np.zeros_like(given["c"])}, instruction=BF16)


@plant(F16, "registers 1 and 2 of D were swapped")
def results_stored_in_columns(given: Given) -> Array:
    return f16(given, store=lambda g, t, i: (g + 8 * (i % 2), t * 2 + i // 2))


@plant(HALF, "(rows 0-7 and 8-15 of D were exchanged)")
def halves_of_rows_stored(given: Given) -> Array:
    return run(
        HALF, given, a16, b16, counts=(8, 4, 4), bits=16, store=lambda g, t, i: (g + 8 * (1 - i // 2), t * 2 + i % 2)
    )  # fmt: skip


@plant(F16, "registers of C were in the order 1, 2, 3, 0")
def accumulators_rotated(given: Given) -> Array:
    return f16(given, load=lambda g, t, i: c(g, t, (i + 1) % 4))


@plant(F16, "C, by rows in memory, was read as by columns")
def c_in_another_order(given: Given) -> Array:
    flat = given["c"].reshape(-1)
    return f16({**given, "c": flat.reshape(8, 16).T.copy()})


@plant(F16, "registers 2, 3 of D were 0")
def lower_rows_never_stored(given: Given) -> Array:
    d = f16(given)
    d[8:] = 0
    return d


@plant(F16, "D was stored by col = threadID_in_group + (i & 0x1) * 4")
def columns_interleaved(given: Given) -> Array:
    return f16(given, store=lambda g, t, i: (g + 8 * (i // 2), t + 4 * (i % 2)))


# tf32


@plant(TF32, "registers 1 and 2 of A were swapped")
def tf32_rows_second(given: Given) -> Array:
    return run(
        TF32, given, lambda g, t, i: (g + 8 * (i // 2), t + 4 * (i % 2)), b32, counts=(4, 2, 4), bits=32
    )  # fmt: skip


@plant(TF32, "A was loaded by col = (i >> 1) + threadID_in_group * 2")
def tf32_pairs_as_of_f16(given: Given) -> Array:
    return run(TF32, given, lambda g, t, i: (g + 8 * (i % 2), 2 * t + i // 2), b32, counts=(4, 2, 4), bits=32)


@plant(TF32, "A was rounded (cvt.rna.tf32.f32)")
def tf32_rounded(given: Given) -> Array:
    a = u(given["a"]) + np.uint32(0x1000) & np.uint32(0xFFFF_E000)
    return run(TF32, {**given, "a": a}, a32, b32, counts=(4, 2, 4), bits=32)


# 8 bits


@plant(S8, "the bytes of each register of B were in reverse order")
def bytes_of_a_word_reversed(given: Given) -> Array:
    return s8(given, b=lambda g, t, i: b8(g, t, i ^ 3))


@plant(S8, "the type of A was u8, not s8")
def unsigned_bytes(given: Given) -> Array:
    return s8(given, executed=U8_S8)


@plant(S8, "A was loaded by col = (i & 0x3) + (i >> 3) * 4 + threadID_in_group * 8")
def eight_bytes_in_a_row(given: Given) -> Array:
    return s8(given, a=lambda g, t, i: (g + 8 * (i // 4 % 2), t * 8 + i % 4 + 4 * (i // 8)))


@plant(E4M3, "the type of B was e5m2, not e4m3")
def the_other_fp8(given: Given) -> Array:
    return s8(given, instruction=E4M3, executed=E4M3_E5M2)


@plant(E4M3, "the 8 x 8 matrices of B were transposed, as by ldmatrix")
def bytes_transposed_by_pairs(given: Given) -> Array:
    """`ldmatrix` with .trans on bytes: pairs of k stay together, as 16-bit elements."""

    def b(g: int, t: int, i: int) -> tuple[int, int]:
        half, byte = i // 2 % 2, i % 2
        row, column = 2 * t + half, g  # of the 8 x 8 matrix of pairs: row is n, column is a pair of k
        return 16 * (i // 4) + 2 * column + byte, row

    return s8(given, instruction=E4M3, b=b)


@plant(E4M3, "registers 0 and 1 of B were swapped", shape=(16, 8, 32))
def fp8_k_halves(given: Given) -> Array:
    return s8(given, instruction=E4M3, b=lambda g, t, i: (t * 4 + i % 4 + 16 * (1 - i // 4), g))


# 4 bits and single bits


@plant(S4, "the two nibbles of each byte of A were swapped")
def nibbles_high_first(given: Given) -> Array:
    return run(S4, given, lambda g, t, i: a4(g, t, i ^ 1), b4, counts=(32, 16, 4), bits=4)


@plant(S4, "every group of lanes of B had what belongs to group 0")
def pointer_of_b_without_its_column(given: Given) -> Array:
    return run(S4, given, a4, lambda g, t, i: (b4(g, t, i)[0], 0), counts=(32, 16, 4), bits=4)


@plant(XOR, "the bits of each byte of A were in reverse order")
def most_significant_bit_first(given: Given) -> Array:
    return run(XOR, given, lambda g, t, i: a1(g, t, i ^ 7), b1, counts=(128, 64, 4), bits=1)


@plant(XOR, "the operation on bits was and, not xor")
def the_other_operation(given: Given) -> Array:
    return run(XOR, given, a1, b1, counts=(128, 64, 4), bits=1, executed=AND)


# f64


@plant(F64, "groupID and threadID_in_group of A were lane % 8 and lane / 8")
def f64_columns_first(given: Given) -> Array:
    def a(g: int, t: int, i: int) -> tuple[int, int]:
        lane = 4 * g + t
        return lane & 7, lane >> 3  # lane >> 2, lane & 3

    return run(F64, given, a, lambda g, t, i: (t, g), counts=(1, 1, 2), bits=64, store=lambda g, t, i: (g, 2 * t + i))


@plant(F64, "registers 0 and 1 of D were swapped")
def f64_results_swapped(given: Given) -> Array:
    return run(
        F64, given, lambda g, t, i: (g, t), lambda g, t, i: (t, g), counts=(1, 1, 2), bits=64,
        store=lambda g, t, i: (g, 2 * t + 1 - i),
    )  # fmt: skip


@plant(F64_K8, "register 3 of A held what belongs in register 2")
def f64_copied_line(given: Given) -> Array:
    return run(
        F64_K8, given, lambda g, t, i: (g + 8 * (i == 1), t + 4 * (i // 2)), lambda g, t, i: (t + 4 * i, g),
        counts=(4, 2, 4), bits=64,
    )  # fmt: skip
