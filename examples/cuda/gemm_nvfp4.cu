// ../gemm_nvfp4.py in CUDA C++: the same tiles, buffers and order of instructions. D = A B^T; A is [m, k] and B [n, k] in
// e2m1, with a ue4m3 for every 16 of k; k is a multiple of 64.
//
// NEVER RUN. It compiles with `nvcc -cubin -arch=sm_120a -std=c++17`; nobody has compared it with the simulator, for
// there was no GPU at hand that has the instruction.

#include <type_traits>

#include "warp.cuh"

namespace {

constexpr int Threads = 128, Piece = 16;
constexpr int TileM = 128, TileN = 128, TileK = 128, WarpM = 64, WarpN = 64, Step = 64;
constexpr int Row = TileK / 2, ABytes = TileM * Row, BBytes = TileN * Row, Buffer = ABytes + BBytes;
using TileSwizzle = Swizzle<2, 4, 3>;

// d += (a scale_a) (b scale_b); in each quad, lanes 2 ThreadA and the next give scales of A, lane ThreadB those of B.
__device__ inline void mma_nvfp4(float (&d)[4], const uint32_t (&a)[4], const uint32_t* b, uint32_t scale_a,
                                 uint16_t thread_a, uint32_t scale_b, uint16_t thread_b) {
  asm volatile(
      "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, %10, {0, %11}, %12, {0, %13};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(scale_a), "h"(thread_a), "r"(scale_b),
        "h"(thread_b));
}

template <typename Out>
__device__ void gemm(const uint8_t* a, const uint8_t* b, const uint32_t* scales_a, const uint32_t* scales_b,
                     const float* tensor_scales, Out* d, int m, int n, int k) {
  __shared__ alignas(1024) uint8_t memory[2 * Buffer];
  const uint32_t shared = shared_address(memory);
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int row0 = blockIdx.y * TileM, column0 = blockIdx.x * TileN;
  const int warp_m = (warp & 1) * WarpM, warp_n = (warp >> 1) * WarpN;

  auto copy_matrix = [&](uint32_t to, const uint8_t* matrix, int first, int last, int k0) {
#pragma unroll
    for (int piece = thread; piece < TileM * Row / Piece; piece += Threads) {
      const int row = piece / (Row / Piece), byte = piece % (Row / Piece) * Piece;
      const bool inside = first + row < last && byte * 2 < k - k0;
      copy_async(to + TileSwizzle::at(piece * Piece), matrix + int64_t(first + row) * (k / 2) + byte + k0 / 2,
                 inside ? Piece : 0);
    }
  };
  auto copy = [&](int buffer, int k0) {
    copy_matrix(shared + buffer * Buffer, a, row0, m, k0);
    copy_matrix(shared + buffer * Buffer + ABytes, b, column0, n, k0);
    commit_group();
  };

  float sums[WarpM / 16][WarpN / 8][4] = {};
  copy(0, 0);
  for (int number = 0, k0 = 0; k0 < k; number++, k0 += TileK) {
    wait_group<0>();
    __syncthreads();  // this step's buffer is full for all, and nobody reads the other any more
    if (k0 + TileK < k) copy((number + 1) % 2, k0 + TileK);
    const uint32_t start = shared + number % 2 * Buffer;
#pragma unroll
    for (int kk = 0; kk < TileK / Step; kk++) {
      if (k0 + kk * Step >= k) break;
      uint32_t of_a[WarpM / 16][4], of_b[WarpN / 16][4], words_a[WarpM / 32], words_b[WarpN / 32];
#pragma unroll
      for (int i = 0; i < WarpM / 16; i++)
        load_matrices(of_a[i], start + TileSwizzle::at((warp_m + i * 16 + lane % 16) * Row + kk * (Step / 2) +
                                                       lane / 16 * Piece));
#pragma unroll
      for (int j = 0; j < WarpN / 16; j++)
        load_matrices(of_b[j], start + ABytes +
                                   TileSwizzle::at((warp_n + j * 16 + lane / 16 * 8 + lane % 8) * Row +
                                                   kk * (Step / 2) + lane / 8 % 2 * Piece));
      const int step = k0 / Step + kk;
#pragma unroll
      for (int i = 0; i < WarpM / 32; i++) {
        const int row = row0 + warp_m + i * 32 + (lane >> 1 & 1) * 16 + (lane & 1) * 8 + lane / 4;
        words_a[i] = row < m ? scales_a[int64_t(row) * (k / Step) + step] : 0;
      }
#pragma unroll
      for (int j = 0; j < WarpN / 32; j++) {
        const int column = column0 + warp_n + j * 32 + lane % 4 * 8 + lane / 4;
        words_b[j] = column < n ? scales_b[int64_t(column) * (k / Step) + step] : 0;
      }
#pragma unroll
      for (int i = 0; i < WarpM / 16; i++)
#pragma unroll
        for (int j = 0; j < WarpN / 8; j++)
          mma_nvfp4(sums[i][j], of_a[i], of_b[j / 2] + j % 2 * 2, words_a[i / 2], i % 2, words_b[j / 4], j % 4);
    }
  }

  const float scale = __fmul_rn(tensor_scales[0], tensor_scales[1]);
#pragma unroll
  for (int i = 0; i < WarpM / 16; i++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int row = row0 + warp_m + i * 16 + half * 8 + lane / 4;
#pragma unroll
      for (int j = 0; j < WarpN / 8; j++) {
        const int column = column0 + warp_n + j * 8 + lane % 4 * 2;
        const float x = __fmul_rn(sums[i][j][2 * half], scale), y = __fmul_rn(sums[i][j][2 * half + 1], scale);
        if (row < m && column < n) {
          Out* at = d + (int64_t(row) * n + column);
          if constexpr (std::is_same_v<Out, float>)
            *reinterpret_cast<float2*>(at) = make_float2(x, y);
          else
            *reinterpret_cast<__nv_bfloat162*>(at) = __floats2bfloat162_rn(x, y);  // cvt.rn.bf16x2.f32
        }
      }
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(Threads)
    gemm_nvfp4_to_f32(const uint8_t* a, const uint8_t* b, const uint32_t* scales_a, const uint32_t* scales_b,
                      const float* tensor_scales, float* d, int m, int n, int k) {
  gemm<float>(a, b, scales_a, scales_b, tensor_scales, d, m, n, k);
}

extern "C" __global__ void __launch_bounds__(Threads)
    gemm_nvfp4_to_bf16(const uint8_t* a, const uint8_t* b, const uint32_t* scales_a, const uint32_t* scales_b,
                       const float* tensor_scales, __nv_bfloat16* d, int m, int n, int k) {
  gemm<__nv_bfloat16>(a, b, scales_a, scales_b, tensor_scales, d, m, n, k);
}
