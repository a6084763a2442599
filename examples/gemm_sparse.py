"""A tiled product with a 2:4 sparse A, D = A B in f16 with sums in f32: `python examples/gemm_sparse.py`.

Of every four neighbours in a row of A two are stored, [m, k/2], and 4 bits of metadata say which; B is [k, n], D is
[m, n] in f32, all row-major. The host packs the metadata as the instruction wants them: a word for each lane, 16 rows
and 64 of k, in which lanes 0 and 1 of a quad hold what the first 32 of k need (selector 0) and lanes 2 and 3 what the
others need (selector 1). So a warp reads its words with one load, and needs no shared memory for them.

A block of four warps makes 128x64 of D, in steps of 64 along k; else it is as `gemm_f16.py`. k is a multiple of 16, n
of 8. Its twin is `cuda/gemm_sparse.cu`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from twins import TARGET, Array, Call, Case, codes, copied, halves, report, simulate

from warpmma import matmul
from warpmma.machine import Swizzle
from warpmma.sparsity import compress, pack_metadata, prune

MMA = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
THREADS = 128
TILE_M, TILE_N, TILE_K = 128, 64, 64  # of a block
WARP_M, WARP_N = 64, 32  # of a warp
A_ROW, B_ROW = TILE_K // 2 * 2, TILE_N * 2  # bytes of a row in shared memory
A_BYTES, B_BYTES = TILE_M * A_ROW, TILE_K * B_ROW
BUFFER = A_BYTES + B_BYTES
PIECE = 16  # bytes that one thread copies at once

A_SWIZZLE, B_SWIZZLE = Swizzle(2, 4, 3), Swizzle(3, 4, 3)  # rows of A are 64 bytes apart, those of B 128

CASES = (Case(128, 64, 128, "f32"), Case(100, 136, 208, "f32"), Case(128, 64, 2048, "f32"), Case(512, 512, 1024, "f32"))


def gemm(t: Any, a: Any, metadata: Any, b: Any, d: Any, *, m: int, n: int, k: int) -> None:
    """Multiply."""
    thread, lane = t.tid[0], t.laneid
    row0, column0 = t.ctaid[1] * TILE_M, t.ctaid[0] * TILE_N
    warp_m, warp_n = (t.warpid & 1) * WARP_M, (t.warpid >> 1) * WARP_N
    steps = -(-k // TILE_K)

    a_pieces, b_pieces = [], []
    for piece in range(0, A_BYTES // PIECE, THREADS):
        row, column = (piece + thread) // (A_ROW // PIECE), (piece + thread) % (A_ROW // PIECE) * 8
        source = a + ((row0 + row) * (k // 2) + column) * 2
        a_pieces.append((A_SWIZZLE((piece + thread) * PIECE), source, row0 + row < m, column))
    for piece in range(0, B_BYTES // PIECE, THREADS):
        row, column = (piece + thread) // (B_ROW // PIECE), (piece + thread) % (B_ROW // PIECE) * 8
        source = b + (row * n + column0 + column) * 2
        b_pieces.append((A_BYTES + B_SWIZZLE((piece + thread) * PIECE), source, column0 + column < n, row))

    def copy(step: int) -> None:
        buffer, k0 = step % 2 * BUFFER, step * TILE_K
        for to, source, inside, column in a_pieces:
            size = copied(t, PIECE, inside & (column < (k - k0) // 2))
            t("cp.async.cg.shared.global", to + buffer, source + k0, PIECE, size)
        for to, source, inside, row in b_pieces:
            size = copied(t, PIECE, inside & (row < k - k0))
            t("cp.async.cg.shared.global", to + buffer, source + k0 * n * 2, PIECE, size)
        t("cp.async.commit_group")

    # A's stored elements, 16 of them a step of 32: as a dense A. B: the rows of four matrices are 32 of k.
    a_rows = [[A_SWIZZLE((warp_m + i + lane % 16) * A_ROW + kk + lane // 16 * PIECE)
               for i in range(0, WARP_M, 16)] for kk in range(0, TILE_K, 32)]  # fmt: skip
    b_rows = [[B_SWIZZLE((kk + lane) * B_ROW + (warp_n + j) * 2) + A_BYTES
               for j in range(0, WARP_N, 8)] for kk in range(0, TILE_K, 32)]  # fmt: skip
    words = [metadata + ((row0 + warp_m + i) // 16 * (steps * 32) + lane) * 4 for i in range(0, WARP_M, 16)]

    zero = t.constant(0.0)
    sums = [[[zero] * 4 for _ in range(0, WARP_N, 8)] for _ in range(0, WARP_M, 16)]
    copy(0)
    for step in range(steps):
        t("cp.async.wait_group", 0)
        t("bar.sync")  # this step's buffer is full for all, and nobody reads the other any more
        if step + 1 < steps:
            copy(step + 1)
        of_step = [t("ld.global.b32", at + step * 128) for at in words]
        start = step % 2 * BUFFER
        for selector in range(TILE_K // 32):
            of_a = [t("ldmatrix.sync.aligned.m8n8.x4.shared.b16", at + start) for at in a_rows[selector]]
            of_b = [t("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", at + start) for at in b_rows[selector]]
            for i, fragment in enumerate(of_a):
                for j, other in enumerate(of_b):
                    sums[i][j] = t(MMA, fragment, other, sums[i][j], of_step[i], selector)

    for i, of_row in enumerate(sums):
        for half in range(2):
            row = row0 + warp_m + i * 16 + half * 8 + lane // 4
            for j, x in enumerate(of_row):
                column = column0 + warp_n + j * 8 + lane % 4 * 2
                with t.where((row < m) & (column < n)):
                    t("st.global.v2.f32", d + (row * n + column) * 4, *x[2 * half : 2 * half + 2])


def compressed(a: Array) -> tuple[Array, Array]:
    """Return stored elements of A, `[m, k/2]`, and metadata words, `[rows of 16, steps of 64, lane]`."""
    m, k = a.shape
    stored, indices = compress(np.pad(a, [(0, -m % TILE_M), (0, -k % TILE_K)]), MMA)  # zeros to the end of the tiles
    tiles = indices.reshape(len(indices) // 16, 16, -1, 32 // 4, 2).swapaxes(1, 2)  # of the instruction
    first = pack_metadata(tiles[:, 0::2], MMA, selector=0)
    metadata = pack_metadata(tiles[:, 1::2], MMA, selector=1, into=first)
    return np.ascontiguousarray(stored[:m, : k // 2]), metadata


def operands(case: Case) -> tuple[Array, Array]:
    """Make A, dense with its zeros, and B."""
    return prune(halves(2 * case.seed, case.m, case.k), MMA), halves(2 * case.seed + 1, case.k, case.n)


def call(case: Case) -> Call:
    """Make the launch of a case."""
    if case.k % 16 or case.n % 8:
        raise ValueError(f"k is {case.k} and n is {case.n}; expected multiples of 16 and of 8, which are 16 bytes")
    a, b = operands(case)
    stored, metadata = compressed(a)
    return Call(
        kernel=gemm, twin="gemm_sparse", grid=(-(-case.n // TILE_N), -(-case.m // TILE_M)), block=THREADS,
        shared=2 * BUFFER, arrays=(stored, metadata, b, np.empty((case.m, case.n), np.float32)),
        sizes={"m": case.m, "n": case.n, "k": case.k},
    )  # fmt: skip


def expected(case: Case) -> Array:
    """Return what `matmul` says of the dense A."""
    return np.asarray(matmul(*operands(case), instruction=MMA, target=TARGET))


def main() -> None:
    """Run a small product, compare it, and print what it cost."""
    of = call(CASES[1])
    result = simulate(of)
    assert np.array_equal(codes(of.output), codes(expected(CASES[1])))
    print(f"{CASES[1].name}: the bits of matmul\n{report(result)}")


if __name__ == "__main__":
    main()
