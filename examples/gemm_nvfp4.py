"""A block-scaled matrix product, D = A B with A and B in NVFP4: `python examples/gemm_nvfp4.py`.

A is [m, k] and B is [n, k], so that k runs along the rows of both: two e2m1 a byte, the first in the low nibble. Every
16 elements along k share a scale, a ue4m3 in [m, k / 16] and [n, k / 16]; k is a multiple of 64, whose four scales are
one word. Each matrix has one more scale, an f32. D is [m, n] in f32 or bf16.

A block of four warps makes 128x128 of D, in steps of 128 along k, as `gemm_f16.py` does; an element being half a byte,
`ldmatrix` takes 8x32 of them for an 8x8 matrix of 16 bits. Words of scales come from global memory straight into
registers. A lane's word serves one row of A, and the four lanes of a quad hold those of two tiles of 16 rows, or of
four tiles of 8 columns of B: the instruction's thread-ids say whose words count. The scales of the matrices multiply
the sums at the end.

The instruction is one of consumer Blackwell (sm_120a). `cuda/gemm_nvfp4.cu` is this kernel in CUDA C++; it compiles,
and has never run: the GPU of the other recordings, an H200, has no such instruction.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
from twins import Array, Call, Case, codes, copied, halves, report, simulate

from warpmma import matmul
from warpmma.machine import Swizzle
from warpmma.scaling import Quantized, quantize

TARGET = "sm_120a"
MMA = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
THREADS = 128
TILE_M, TILE_N, TILE_K = 128, 128, 128  # of a block
WARP_M, WARP_N = 64, 64  # of a warp
STEP = 64  # k of an instruction
PIECE = 16  # bytes that one thread copies at once: 32 elements
ROW = TILE_K // 2  # bytes of a row in shared memory
A_BYTES, B_BYTES = TILE_M * ROW, TILE_N * ROW
BUFFER = A_BYTES + B_BYTES
SWIZZLE = Swizzle(2, 4, 3)
LOAD = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"

CASES = (Case(128, 128, 256, "f32"), Case(200, 136, 192, "f32"), Case(77, 48, 64, "bf16"), Case(256, 128, 1024, "bf16"))


def gemm(
    t: Any, a: Any, b: Any, scales_a: Any, scales_b: Any, tensor_scales: Any, d: Any, *, m: int, n: int, k: int,
    wide: bool,
) -> None:  # fmt: skip
    """Multiply; D is f32 if it is `wide`, else bf16. Sizes and flags are the same for all threads: plain Python."""
    thread, lane = t.tid[0], t.laneid
    row0, column0 = t.ctaid[1] * TILE_M, t.ctaid[0] * TILE_N
    warp_m, warp_n = (t.warpid & 1) * WARP_M, (t.warpid >> 1) * WARP_N

    # What this thread copies: pieces of A and of B, where from, where to, and whether they are inside the matrices.
    pieces = []
    for matrix, first, last, start in ((a, row0, m, 0), (b, column0, n, A_BYTES)):
        for piece in range(0, TILE_M * ROW // PIECE, THREADS):
            row, byte = (piece + thread) // (ROW // PIECE), (piece + thread) % (ROW // PIECE) * PIECE
            source = matrix + (first + row) * (k // 2) + byte
            pieces.append((start + SWIZZLE((piece + thread) * PIECE), source, first + row < last, byte * 2))

    def copy(buffer: int, k0: int) -> None:
        for to, source, inside, column in pieces:
            size = copied(t, PIECE, inside & (column < k - k0))
            t("cp.async.cg.shared.global", to + buffer * BUFFER, source + k0 // 2, PIECE, size)
        t("cp.async.commit_group")

    # Where a lane's row of 8x8 matrices is. A: rows 0-7 and 8-15, then the next 32 of k. B: columns 0-7, then the next
    # 32 of k; columns 8-15 likewise.
    a_rows = [[SWIZZLE((warp_m + i + lane % 16) * ROW + kk // 2 + lane // 16 * PIECE)
               for i in range(0, WARP_M, 16)] for kk in range(0, TILE_K, STEP)]  # fmt: skip
    b_rows = [[SWIZZLE((warp_n + j + lane // 16 * 8 + lane % 8) * ROW + kk // 2 + lane // 8 % 2 * PIECE) + A_BYTES
               for j in range(0, WARP_N, 16)] for kk in range(0, TILE_K, STEP)]  # fmt: skip

    # Rows of A and columns of B whose scales a lane has. Of a row r of A: lanes 4 (r % 8) + r / 8, and 2 more for the
    # next tile of 16; of a column c of B: lanes 4 c, and 1, 2, 3 more for the next tiles of 8.
    rows = [row0 + warp_m + i + (lane >> 1 & 1) * 16 + (lane & 1) * 8 + lane // 4 for i in range(0, WARP_M, 32)]
    columns = [column0 + warp_n + j + lane % 4 * 8 + lane // 4 for j in range(0, WARP_N, 32)]

    def words(scales: Any, lines: list[Any], end: int, step: int) -> list[Any]:
        at = [scales + (line * (k // STEP) + step) * 4 for line in lines]
        return [_loaded(t, x, line < end) for line, x in zip(lines, at, strict=True)]

    zero = t.constant(0.0)
    sums = [[[zero] * 4 for _ in range(0, WARP_N, 8)] for _ in range(0, WARP_M, 16)]
    copy(0, 0)
    for number, k0 in enumerate(range(0, k, TILE_K)):
        t("cp.async.wait_group", 0)
        t("bar.sync")  # this step's buffer is full for all, and nobody reads the other any more
        if k0 + TILE_K < k:
            copy((number + 1) % 2, k0 + TILE_K)
        start = number % 2 * BUFFER
        for kk in range(min(TILE_K, k - k0) // STEP):
            of_a = [t(LOAD, at + start) for at in a_rows[kk]]
            of_b: list[Any] = []
            for at in b_rows[kk]:
                x = t(LOAD, at + start)
                of_b += [x[:2], x[2:]]
            words_a = words(scales_a, rows, m, k0 // STEP + kk)
            words_b = words(scales_b, columns, n, k0 // STEP + kk)
            for i, fragment in enumerate(of_a):
                for j, other in enumerate(of_b):
                    scale_a, scale_b = (words_a[i // 2], (0, i % 2)), (words_b[j // 4], (0, j % 4))
                    sums[i][j] = t(MMA, fragment, other, sums[i][j], *scale_a, *scale_b)

    scale = t("mul.rn.f32", t("ld.global.f32", tensor_scales), t("ld.global.f32", tensor_scales + 4))
    for i, of_row in enumerate(sums):
        for half in range(2):
            row = row0 + warp_m + i * 16 + half * 8 + lane // 4
            for j, x in enumerate(of_row):
                column = column0 + warp_n + j * 8 + lane % 4 * 2
                low, high = (t("mul.rn.f32", y, scale) for y in x[2 * half : 2 * half + 2])
                with t.where((row < m) & (column < n)):
                    if wide:
                        t("st.global.v2.f32", d + (row * n + column) * 4, low, high)
                    else:
                        t("st.global.b32", d + (row * n + column) * 2, t("cvt.rn.bf16x2.f32", high, low))


def _loaded(t: Any, address: Any, inside: Any) -> Any:
    """Load a word in lanes that are inside of a matrix; 0 in others."""
    with t.where(inside):
        return t.update(t.constant(0), t("ld.global.b32", address))


def operands(case: Case) -> tuple[Quantized, Quantized]:
    """Quantize the inputs of a case: A [m, k] and B [k, n]."""
    a, b = halves(2 * case.seed, case.m, case.k), halves(2 * case.seed + 1, case.k, case.n)
    return quantize(a, MMA, "A"), quantize(b, MMA, "B")


def packed(elements: Array) -> Array:
    """Put e2m1 elements, two a byte along the last axis."""
    nibbles = codes(elements)
    return np.ascontiguousarray(nibbles[..., 0::2] | nibbles[..., 1::2] << 4)


def product(a: Quantized, b: Quantized, out: str) -> Call:
    """Make the launch that multiplies two matrices."""
    (m, k), n = a.elements.shape, b.elements.shape[1]
    if k % STEP or n % 2:
        raise ValueError(f"k is {k} and n is {n}; expected multiples of {STEP} and of 2")
    tensor_scales = np.array([a.tensor_scale, b.tensor_scale], np.float32)
    scales_b = np.ascontiguousarray(b.scales.T)
    d = np.empty((m, n), {"f32": np.float32, "bf16": ml_dtypes.bfloat16}[out])
    return Call(
        kernel=partial(gemm, wide=out == "f32"), twin=f"gemm_nvfp4_to_{out}", grid=(-(-n // TILE_N), -(-m // TILE_M)),
        block=THREADS, shared=2 * BUFFER, sizes={"m": m, "n": n, "k": k}, target=TARGET,
        arrays=(packed(a.elements), packed(b.elements.T), a.scales, scales_b, tensor_scales, d),
    )  # fmt: skip


def main() -> None:
    """Run the cases, compare them with `matmul`, and print what the last cost."""
    for case in CASES:
        a, b = operands(case)
        of = product(a, b, case.out)
        result = simulate(of)
        expected = matmul(a, b, instruction=MMA, target=TARGET, epilogue="bf16" if case.out == "bf16" else None)
        assert np.array_equal(codes(of.output), codes(expected))
        print(f"{case.name}: the bits of matmul")
    print(report(result))


if __name__ == "__main__":
    main()
