// The twin of ../gemm_sparse.py: the same tiles, buffers and order of instructions. D = A B with a 2:4 sparse A, its
// stored elements [m, k/2] and its metadata [rows of 16, steps of 64, lane]; B and D row-major; k is a multiple of 16, n
// of 8.

#include "warp.cuh"

namespace {

constexpr int Threads = 128, Piece = 16;
constexpr int TileM = 128, TileN = 64, TileK = 64, WarpM = 64, WarpN = 32;
constexpr int ARow = TileK / 2 * 2, BRow = TileN * 2;
constexpr int ABytes = TileM * ARow, BBytes = TileK * BRow, Buffer = ABytes + BBytes;

using ASwizzle = Swizzle<2, 4, 3>;
using BSwizzle = Swizzle<3, 4, 3>;

}  // namespace

extern "C" __global__ void __launch_bounds__(Threads)
    gemm_sparse(const __half* a, const uint32_t* metadata, const __half* b, float* d, int m, int n, int k) {
  __shared__ alignas(1024) uint8_t memory[2 * Buffer];
  const uint32_t shared = shared_address(memory);
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int row0 = blockIdx.y * TileM, column0 = blockIdx.x * TileN;
  const int warp_m = (warp & 1) * WarpM, warp_n = (warp >> 1) * WarpN;
  const int steps = (k + TileK - 1) / TileK;

  auto copy = [&](int step) {
    const uint32_t to = shared + step % 2 * Buffer;
    const int k0 = step * TileK;
#pragma unroll
    for (int piece = thread; piece < ABytes / Piece; piece += Threads) {
      const int row = piece / (ARow / Piece), column = piece % (ARow / Piece) * 8;
      const bool inside = row0 + row < m && column < (k - k0) / 2;
      copy_async(to + ASwizzle::at(piece * Piece), a + (int64_t(row0 + row) * (k / 2) + column + k0 / 2),
                 inside ? Piece : 0);
    }
#pragma unroll
    for (int piece = thread; piece < BBytes / Piece; piece += Threads) {
      const int row = piece / (BRow / Piece), column = piece % (BRow / Piece) * 8;
      const bool inside = column0 + column < n && row < k - k0;
      copy_async(to + ABytes + BSwizzle::at(piece * Piece), b + (int64_t(row + k0) * n + column0 + column),
                 inside ? Piece : 0);
    }
    commit_group();
  };

  float sums[WarpM / 16][WarpN / 8][4] = {};
  copy(0);
  for (int step = 0; step < steps; step++) {
    wait_group<0>();
    __syncthreads();  // this step's buffer is full for all, and nobody reads the other any more
    if (step + 1 < steps) copy(step + 1);
    uint32_t words[WarpM / 16];
#pragma unroll
    for (int i = 0; i < WarpM / 16; i++)
      words[i] = metadata[((row0 + warp_m + i * 16) / 16 * steps + step) * 32 + lane];
    const uint32_t start = shared + step % 2 * Buffer;
#pragma unroll
    for (int selector = 0; selector < 2; selector++) {
      uint32_t of_a[WarpM / 16][4], of_b[WarpN / 8][4];
#pragma unroll
      for (int i = 0; i < WarpM / 16; i++)
        load_matrices(of_a[i],
                      start + ASwizzle::at((warp_m + i * 16 + lane % 16) * ARow + selector * 32 + lane / 16 * Piece));
#pragma unroll
      for (int j = 0; j < WarpN / 8; j++)
        load_matrices_transposed(of_b[j],
                                 start + ABytes + BSwizzle::at((selector * 32 + lane) * BRow + (warp_n + j * 8) * 2));
#pragma unroll
      for (int i = 0; i < WarpM / 16; i++)
#pragma unroll
        for (int j = 0; j < WarpN / 8; j++) {
          if (selector == 0)
            mma_sparse_f16<0>(sums[i][j], of_a[i], of_b[j], words[i]);
          else
            mma_sparse_f16<1>(sums[i][j], of_a[i], of_b[j], words[i]);
        }
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
        if (row < m && column < n)
          *reinterpret_cast<float2*>(d + (int64_t(row) * n + column)) =
              make_float2(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
      }
    }
}
