"""A tiled matrix product, D = A B in f16 with sums in f32: `python examples/gemm_f16.py`.

A is [m, k], B is [k, n], D is [m, n], all row-major. A block of four warps makes 128x128 of D, in steps of 32 along k:
`cp.async` fills one of two buffers in shared memory while the warps multiply what is in the other; `ldmatrix` takes
fragments out of it; each warp has 64x64 of D in 4x8 accumulators. Shared memory is swizzled, so that neither copies nor
`ldmatrix` meet bank conflicts. Edges: pieces of 16 bytes beyond the matrices are filled with zeros, so k and n are
multiples of 8.

Its twin, with the same instructions in the same order, is `cuda/gemm_f16.cu`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from twins import TARGET, Array, Call, Case, codes, copied, halves, report, simulate

from warpmma import matmul
from warpmma.machine import Swizzle

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
THREADS = 128
TILE_M, TILE_N, TILE_K = 128, 128, 32  # of a block
WARP_M, WARP_N = 64, 64  # of a warp
A_ROW, B_ROW = TILE_K * 2, TILE_N * 2  # bytes of a row in shared memory
A_BYTES, B_BYTES = TILE_M * A_ROW, TILE_K * B_ROW
BUFFER = A_BYTES + B_BYTES
PIECE = 16  # bytes that one thread copies at once

# Eight rows of an 8x8 matrix, 16 bytes each, must lie in different banks: rows of A are 64 bytes apart, of B 256.
A_SWIZZLE, B_SWIZZLE = Swizzle(2, 4, 3), Swizzle(3, 4, 4)

CASES = (
    Case(128, 128, 64, "f32"),
    Case(256, 128, 160, "f16"),
    Case(136, 72, 88, "f32"),
    Case(77, 200, 40, "f16"),
    Case(128, 128, 2048, "f32"),
    Case(1024, 1024, 1024, "f16"),
)


def gemm(t: Any, a: Any, b: Any, d: Any, *, m: int, n: int, k: int, wide: bool, swizzled: bool = True) -> None:
    """Multiply; D is f32 if it is `wide`, else f16. Sizes and flags are the same for all threads: plain Python."""
    thread, lane = t.tid[0], t.laneid
    row0, column0 = t.ctaid[1] * TILE_M, t.ctaid[0] * TILE_N
    warp_m, warp_n = (t.warpid & 1) * WARP_M, (t.warpid >> 1) * WARP_N
    a_swizzle, b_swizzle = (A_SWIZZLE, B_SWIZZLE) if swizzled else (_same, _same)

    # What this thread copies: pieces of A and of B, where from, where to, and whether they are inside the matrices.
    a_pieces, b_pieces = [], []
    for piece in range(0, A_BYTES // PIECE, THREADS):
        row, column = (piece + thread) // (A_ROW // PIECE), (piece + thread) % (A_ROW // PIECE) * 8
        source = a + ((row0 + row) * k + column) * 2
        a_pieces.append((a_swizzle((piece + thread) * PIECE), source, row0 + row < m, column))
    for piece in range(0, B_BYTES // PIECE, THREADS):
        row, column = (piece + thread) // (B_ROW // PIECE), (piece + thread) % (B_ROW // PIECE) * 8
        source = b + (row * n + column0 + column) * 2
        b_pieces.append((A_BYTES + b_swizzle((piece + thread) * PIECE), source, column0 + column < n, row))

    def copy(buffer: int, k0: int) -> None:
        for to, source, inside, column in a_pieces:
            size = copied(t, PIECE, inside & (column < k - k0))
            t("cp.async.cg.shared.global", to + buffer * BUFFER, source + k0 * 2, PIECE, size)
        for to, source, inside, row in b_pieces:
            size = copied(t, PIECE, inside & (row < k - k0))
            t("cp.async.cg.shared.global", to + buffer * BUFFER, source + k0 * n * 2, PIECE, size)
        t("cp.async.commit_group")

    # Where a lane's row of 8x8 matrices is. A: rows 0-7 and 8-15, then the next 8 of k; B: k 0-7 and 8-15, then n + 8.
    a_rows = [[a_swizzle((warp_m + i + lane % 16) * A_ROW + kk * 2 + lane // 16 * PIECE)
               for i in range(0, WARP_M, 16)] for kk in range(0, TILE_K, 16)]  # fmt: skip
    b_rows = [[b_swizzle((kk + lane % 16) * B_ROW + (warp_n + j) * 2 + lane // 16 * PIECE) + A_BYTES
               for j in range(0, WARP_N, 16)] for kk in range(0, TILE_K, 16)]  # fmt: skip

    zero = t.constant(0.0)
    sums = [[[zero] * 4 for _ in range(0, WARP_N, 8)] for _ in range(0, WARP_M, 16)]
    copy(0, 0)
    for step, k0 in enumerate(range(0, k, TILE_K)):
        t("cp.async.wait_group", 0)
        t("bar.sync")  # this step's buffer is full for all, and nobody reads the other any more
        if k0 + TILE_K < k:
            copy((step + 1) % 2, k0 + TILE_K)
        start = step % 2 * BUFFER
        for kk in range(TILE_K // 16):
            of_a = [t("ldmatrix.sync.aligned.m8n8.x4.shared.b16", at + start) for at in a_rows[kk]]
            of_b: list[Any] = []
            for at in b_rows[kk]:
                x = t("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", at + start)
                of_b += [x[:2], x[2:]]
            for i, fragment in enumerate(of_a):
                for j, other in enumerate(of_b):
                    sums[i][j] = t(MMA, fragment, other, sums[i][j])

    for i, of_row in enumerate(sums):
        for half in range(2):
            row = row0 + warp_m + i * 16 + half * 8 + lane // 4
            for j, x in enumerate(of_row):
                column = column0 + warp_n + j * 8 + lane % 4 * 2
                with t.where((row < m) & (column < n)):
                    if wide:
                        t("st.global.v2.f32", d + (row * n + column) * 4, *x[2 * half : 2 * half + 2])
                    else:
                        both = t("cvt.rn.f16x2.f32", x[2 * half + 1], x[2 * half])  # the upper half comes first
                        t("st.global.b32", d + (row * n + column) * 2, both)


def _same(address: Any) -> Any:
    return address


def operands(case: Case) -> tuple[Array, Array]:
    """Make A and B."""
    return halves(2 * case.seed, case.m, case.k), halves(2 * case.seed + 1, case.k, case.n)


def call(case: Case, *, swizzled: bool = True) -> Call:
    """Make the launch of a case."""
    if case.k % 8 or case.n % 8:
        raise ValueError(f"k is {case.k} and n is {case.n}; expected multiples of 8, which are 16 bytes")
    d = np.empty((case.m, case.n), np.float32 if case.out == "f32" else np.float16)
    return Call(
        kernel=partial(gemm, wide=case.out == "f32", swizzled=swizzled),
        twin=f"gemm_f16_to_{case.out}{'' if swizzled else '_plain'}",
        grid=(-(-case.n // TILE_N), -(-case.m // TILE_M)), block=THREADS, shared=2 * BUFFER,
        arrays=(*operands(case), d), sizes={"m": case.m, "n": case.n, "k": case.k},
    )  # fmt: skip


def expected(case: Case) -> Array:
    """Return what `matmul` says."""
    epilogue = None if case.out == "f32" else case.out
    return np.asarray(matmul(*operands(case), instruction=MMA, target=TARGET, epilogue=epilogue))


def main() -> None:
    """Run a small product, compare it, and print what it cost; then without a swizzle."""
    for swizzled in (True, False):
        of = call(CASES[1], swizzled=swizzled)
        result = simulate(of)
        assert np.array_equal(codes(of.output), codes(expected(CASES[1])))
        print(f"{CASES[1].name}, {'swizzled' if swizzled else 'not swizzled'}: the bits of matmul\n{report(result)}\n")


if __name__ == "__main__":
    main()
