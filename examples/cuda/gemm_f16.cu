// The twin of ../gemm_f16.py: the same tiles, buffers and order of instructions. D = A B, all row-major; k and n are
// multiples of 8.

#include <type_traits>

#include "warp.cuh"

namespace {

constexpr int Threads = 128, Piece = 16;
constexpr int TileM = 128, TileN = 128, TileK = 32, WarpM = 64, WarpN = 64;
constexpr int ARow = TileK * 2, BRow = TileN * 2;
constexpr int ABytes = TileM * ARow, BBytes = TileK * BRow, Buffer = ABytes + BBytes;

template <typename Out, typename ASwizzle, typename BSwizzle>
__device__ void gemm(const __half* a, const __half* b, Out* d, int m, int n, int k) {
  __shared__ alignas(1024) uint8_t memory[2 * Buffer];
  const uint32_t shared = shared_address(memory);
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int row0 = blockIdx.y * TileM, column0 = blockIdx.x * TileN;
  const int warp_m = (warp & 1) * WarpM, warp_n = (warp >> 1) * WarpN;

  auto copy = [&](int buffer, int k0) {
    const uint32_t to = shared + buffer * Buffer;
#pragma unroll
    for (int piece = thread; piece < ABytes / Piece; piece += Threads) {
      const int row = piece / (ARow / Piece), column = piece % (ARow / Piece) * 8;
      const bool inside = row0 + row < m && column < k - k0;
      copy_async(to + ASwizzle::at(piece * Piece), a + (int64_t(row0 + row) * k + column + k0), inside ? Piece : 0);
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
  copy(0, 0);
  for (int step = 0, k0 = 0; k0 < k; step++, k0 += TileK) {
    wait_group<0>();
    __syncthreads();  // this step's buffer is full for all, and nobody reads the other any more
    if (k0 + TileK < k) copy((step + 1) % 2, k0 + TileK);
    const uint32_t start = shared + step % 2 * Buffer;
#pragma unroll
    for (int kk = 0; kk < TileK; kk += 16) {
      uint32_t of_a[WarpM / 16][4], of_b[WarpN / 16][4];
#pragma unroll
      for (int i = 0; i < WarpM / 16; i++)
        load_matrices(of_a[i],
                      start + ASwizzle::at((warp_m + i * 16 + lane % 16) * ARow + kk * 2 + lane / 16 * Piece));
#pragma unroll
      for (int j = 0; j < WarpN / 16; j++)
        load_matrices_transposed(
            of_b[j],
            start + ABytes + BSwizzle::at((kk + lane % 16) * BRow + (warp_n + j * 16) * 2 + lane / 16 * Piece));
#pragma unroll
      for (int i = 0; i < WarpM / 16; i++)
#pragma unroll
        for (int j = 0; j < WarpN / 8; j++) mma_f16(sums[i][j], of_a[i], of_b[j / 2] + j % 2 * 2);
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
          const float x = sums[i][j][2 * half], y = sums[i][j][2 * half + 1];
          Out* at = d + (int64_t(row) * n + column);
          if constexpr (std::is_same_v<Out, float>)
            *reinterpret_cast<float2*>(at) = make_float2(x, y);
          else
            *reinterpret_cast<__half2*>(at) = __floats2half2_rn(x, y);  // cvt.rn.f16x2.f32
        }
      }
    }
}

using SwizzleA = Swizzle<2, 4, 3>;
using SwizzleB = Swizzle<3, 4, 4>;

}  // namespace

extern "C" __global__ void __launch_bounds__(Threads)
    gemm_f16_to_f32(const __half* a, const __half* b, float* d, int m, int n, int k) {
  gemm<float, SwizzleA, SwizzleB>(a, b, d, m, n, k);
}

extern "C" __global__ void __launch_bounds__(Threads)
    gemm_f16_to_f16(const __half* a, const __half* b, __half* d, int m, int n, int k) {
  gemm<__half, SwizzleA, SwizzleB>(a, b, d, m, n, k);
}

extern "C" __global__ void __launch_bounds__(Threads)
    gemm_f16_to_f32_plain(const __half* a, const __half* b, float* d, int m, int n, int k) {
  gemm<float, NoSwizzle, NoSwizzle>(a, b, d, m, n, k);
}

extern "C" __global__ void __launch_bounds__(Threads)
    gemm_f16_to_f16_plain(const __half* a, const __half* b, __half* d, int m, int n, int k) {
  gemm<__half, NoSwizzle, NoSwizzle>(a, b, d, m, n, k);
}
