"""A tiled product of int8 with a dequantising epilogue: `python examples/gemm_int8.py`.

A is [m, k] and W is [n, k], both row-major as activations and weights are; their product A W^T is summed in s32. Then,
in f32 and each rounded to nearest even: the sum, times the scale of its column, times the scale of its row, plus the
bias of its column; and that to bf16. `ldmatrix` moves pairs of int8 as f16; it needs no `.trans`, as W's rows run
along k.

A block of four warps makes 128x128 of D, in steps of 64 along k; else it is as `gemm_f16.py`. k is a multiple of 16, n
is even. Its twin is `cuda/gemm_int8.cu`.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from twins import TARGET, Array, Call, Case, codes, copied, integers, report, simulate, words

from warpmma import matmul
from warpmma.machine import Swizzle

MMA = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
THREADS = 128
TILE_M, TILE_N, TILE_K = 128, 128, 64  # of a block
WARP_M, WARP_N = 64, 64  # of a warp
A_BYTES, W_BYTES = TILE_M * TILE_K, TILE_N * TILE_K
BUFFER = A_BYTES + W_BYTES
PIECE = 16  # bytes that one thread copies at once
SWIZZLE = Swizzle(2, 4, 3)  # rows are 64 bytes apart

CASES = (
    Case(128, 128, 128, "bf16"),
    Case(72, 136, 208, "bf16"),
    Case(256, 384, 512, "bf16"),
    Case(512, 512, 1024, "bf16"),
)


def gemm(t: Any, a: Any, w: Any, of_rows: Any, of_columns: Any, bias: Any, d: Any, *, m: int, n: int, k: int) -> None:
    """Multiply; `of_rows` and `of_columns` are the scales, f32."""
    thread, lane = t.tid[0], t.laneid
    row0, column0 = t.ctaid[1] * TILE_M, t.ctaid[0] * TILE_N
    warp_m, warp_n = (t.warpid & 1) * WARP_M, (t.warpid >> 1) * WARP_N

    pieces = []
    for matrix, first, rows, start in ((a, row0, m, 0), (w, column0, n, A_BYTES)):
        for piece in range(0, TILE_M * TILE_K // PIECE, THREADS):
            row, column = (piece + thread) // (TILE_K // PIECE), (piece + thread) % (TILE_K // PIECE) * PIECE
            to = start + SWIZZLE((piece + thread) * PIECE)
            pieces.append((to, matrix + (first + row) * k + column, first + row < rows, column))

    def copy(buffer: int, k0: int) -> None:
        for to, source, inside, column in pieces:
            size = copied(t, PIECE, inside & (column < k - k0))
            t("cp.async.cg.shared.global", to + buffer * BUFFER, source + k0, PIECE, size)
        t("cp.async.commit_group")

    # A: rows 0-7 and 8-15, then the next 16 bytes of k. W: 0-15 and 16-31 of k, then the next 8 rows.
    a_rows = [[SWIZZLE((warp_m + i + lane % 16) * TILE_K + kk + lane // 16 * PIECE)
               for i in range(0, WARP_M, 16)] for kk in range(0, TILE_K, 32)]  # fmt: skip
    w_rows = [[SWIZZLE((warp_n + j + lane // 16 * 8 + lane % 8) * TILE_K + kk + lane // 8 % 2 * PIECE) + A_BYTES
               for j in range(0, WARP_N, 16)] for kk in range(0, TILE_K, 32)]  # fmt: skip

    zero = t.constant(0)
    sums = [[[zero] * 4 for _ in range(0, WARP_N, 8)] for _ in range(0, WARP_M, 16)]
    copy(0, 0)
    for step, k0 in enumerate(range(0, k, TILE_K)):
        t("cp.async.wait_group", 0)
        t("bar.sync")  # this step's buffer is full for all, and nobody reads the other any more
        if k0 + TILE_K < k:
            copy((step + 1) % 2, k0 + TILE_K)
        start = step % 2 * BUFFER
        for kk in range(TILE_K // 32):
            of_a = [t("ldmatrix.sync.aligned.m8n8.x4.shared.b16", at + start) for at in a_rows[kk]]
            of_w: list[Any] = []
            for at in w_rows[kk]:
                x = t("ldmatrix.sync.aligned.m8n8.x4.shared.b16", at + start)
                of_w += [x[:2], x[2:]]
            for i, fragment in enumerate(of_a):
                for j, other in enumerate(of_w):
                    sums[i][j] = t(MMA, fragment, other, sums[i][j])

    for i, of_row in enumerate(sums):
        for half in range(2):
            row = row0 + warp_m + i * 16 + half * 8 + lane // 4
            for j, x in enumerate(of_row):
                column = column0 + warp_n + j * 8 + lane % 4 * 2
                with t.where((row < m) & (column < n)):
                    scale_of_row = t("ld.global.f32", of_rows + row * 4)
                    scales = t("ld.global.v2.f32", of_columns + column * 4)
                    offsets = t("ld.global.v2.f32", bias + column * 4)
                    y = []
                    for number, scale, offset in zip(x[2 * half : 2 * half + 2], scales, offsets, strict=True):
                        scaled = t("mul.rn.f32", t("cvt.rn.f32.s32", number), scale)
                        y.append(t("add.rn.f32", t("mul.rn.f32", scaled, scale_of_row), offset))
                    both = t("cvt.rn.bf16x2.f32", y[1], y[0])  # the upper half comes first
                    t("st.global.b32", d + (row * n + column) * 2, both)


def _floats(seed: int, count: int, least: int) -> npt.NDArray[np.float32]:
    """Numbers of either sign with 24 random bits, magnitudes from 2^least to 2^(least + 2)."""
    word = words(seed, count)
    sign, fraction = (word & np.uint64(1)) << np.uint64(31), word >> np.uint64(1) & np.uint64(0x7FFFFF)
    exponent = np.uint64(127 + least) + (word >> np.uint64(32)) % np.uint64(2)
    made: npt.NDArray[np.float32] = (sign | exponent << np.uint64(23) | fraction).astype(np.uint32).view(np.float32)
    return made


def operands(case: Case) -> tuple[Array, ...]:
    """Make A, W, the scales of rows and of columns, and the bias."""
    a, w = integers(5 * case.seed, case.m, case.k), integers(5 * case.seed + 1, case.n, case.k)
    scales = (np.abs(_floats(5 * case.seed + 2 + i, size, -10)) for i, size in enumerate((case.m, case.n)))
    return a, w, *scales, _floats(5 * case.seed + 4, case.n, -1)


def call(case: Case) -> Call:
    """Make the launch of a case."""
    if case.k % 16 or case.n % 2:
        raise ValueError(f"k is {case.k} and n is {case.n}; expected multiples of 16 and of 2")
    return Call(
        kernel=gemm, twin="gemm_int8", grid=(-(-case.n // TILE_N), -(-case.m // TILE_M)), block=THREADS,
        shared=2 * BUFFER, arrays=(*operands(case), np.empty((case.m, case.n), ml_dtypes.bfloat16)),
        sizes={"m": case.m, "n": case.n, "k": case.k},
    )  # fmt: skip


def expected(case: Case) -> Array:
    """Return what `matmul` and NumPy say."""
    a, w, of_rows, of_columns, bias = operands(case)
    sums = matmul(a, np.ascontiguousarray(w.T), instruction=MMA, target=TARGET).astype(np.float32)
    return np.asarray((sums * of_columns * of_rows[:, None] + bias).astype(ml_dtypes.bfloat16))


def main() -> None:
    """Run a small product, compare it, and print what it cost."""
    of = call(CASES[1])
    result = simulate(of)
    assert np.array_equal(codes(of.output), codes(expected(CASES[1])))
    print(f"{CASES[1].name}: the bits of matmul and NumPy\n{report(result)}")


if __name__ == "__main__":
    main()
