// The twin of ../gemm_int8.py: the same tiles, buffers and order of instructions. D = A W^T, [m, k] and [n, k] in int8,
// scaled by row and by column, plus a bias, in bf16; k is a multiple of 16, n is even.

#include "warp.cuh"

namespace {

constexpr int Threads = 128, Piece = 16;
constexpr int TileM = 128, TileN = 128, TileK = 64, WarpM = 64, WarpN = 64;
constexpr int ABytes = TileM * TileK, WBytes = TileN * TileK, Buffer = ABytes + WBytes;

using RowSwizzle = Swizzle<2, 4, 3>;

}  // namespace

extern "C" __global__ void __launch_bounds__(Threads)
    gemm_int8(const int8_t* a, const int8_t* w, const float* of_rows, const float* of_columns, const float* bias,
              __nv_bfloat16* d, int m, int n, int k) {
  __shared__ alignas(1024) uint8_t memory[2 * Buffer];
  const uint32_t shared = shared_address(memory);
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int row0 = blockIdx.y * TileM, column0 = blockIdx.x * TileN;
  const int warp_m = (warp & 1) * WarpM, warp_n = (warp >> 1) * WarpN;

  auto copy_matrix = [&](uint32_t to, const int8_t* matrix, int first, int rows, int k0) {
#pragma unroll
    for (int piece = thread; piece < TileM * TileK / Piece; piece += Threads) {
      const int row = piece / (TileK / Piece), column = piece % (TileK / Piece) * Piece;
      const bool inside = first + row < rows && column < k - k0;
      copy_async(to + RowSwizzle::at(piece * Piece), matrix + (int64_t(first + row) * k + column + k0),
                 inside ? Piece : 0);
    }
  };
  auto copy = [&](int buffer, int k0) {
    copy_matrix(shared + buffer * Buffer, a, row0, m, k0);
    copy_matrix(shared + buffer * Buffer + ABytes, w, column0, n, k0);
    commit_group();
  };

  int sums[WarpM / 16][WarpN / 8][4] = {};
  copy(0, 0);
  for (int step = 0, k0 = 0; k0 < k; step++, k0 += TileK) {
    wait_group<0>();
    __syncthreads();  // this step's buffer is full for all, and nobody reads the other any more
    if (k0 + TileK < k) copy((step + 1) % 2, k0 + TileK);
    const uint32_t start = shared + step % 2 * Buffer;
#pragma unroll
    for (int kk = 0; kk < TileK; kk += 32) {
      uint32_t of_a[WarpM / 16][4], of_w[WarpN / 16][4];
#pragma unroll
      for (int i = 0; i < WarpM / 16; i++)
        load_matrices(of_a[i],
                      start + RowSwizzle::at((warp_m + i * 16 + lane % 16) * TileK + kk + lane / 16 * Piece));
#pragma unroll
      for (int j = 0; j < WarpN / 16; j++)
        load_matrices(of_w[j], start + ABytes +
                                   RowSwizzle::at((warp_n + j * 16 + lane / 16 * 8 + lane % 8) * TileK + kk +
                                                  lane / 8 % 2 * Piece));
#pragma unroll
      for (int i = 0; i < WarpM / 16; i++)
#pragma unroll
        for (int j = 0; j < WarpN / 8; j++) mma_s8(sums[i][j], of_a[i], of_w[j / 2] + j % 2 * 2);
    }
  }

#pragma unroll
  for (int i = 0; i < WarpM / 16; i++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = row0 + warp_m + i * 16 + half * 8 + lane / 4;
#pragma unroll
      for (int j = 0; j < WarpN / 8; j++) {
        const int column = column0 + warp_n + j * 8 + lane % 4 * 2;
        if (row < m && column < n) {
          const float of_row = of_rows[row];
          const float2 scales = *reinterpret_cast<const float2*>(of_columns + column);
          const float2 offsets = *reinterpret_cast<const float2*>(bias + column);
          // Intrinsics, so that nothing becomes a fused multiply-add.
          const float x = __fmul_rn(__fmul_rn(__int2float_rn(sums[i][j][2 * half]), scales.x), of_row);
          const float y = __fmul_rn(__fmul_rn(__int2float_rn(sums[i][j][2 * half + 1]), scales.y), of_row);
          *reinterpret_cast<__nv_bfloat162*>(d + (int64_t(row) * n + column)) =
              __floats2bfloat162_rn(__fadd_rn(x, offsets.x), __fadd_rn(y, offsets.y));  // cvt.rn.bf16x2.f32
        }
      }
    }
}
