// Products through nvcuda::wmma: fragments from shared memory that cp.async filled, from global memory of either layout,
// with an epilogue on the fragment's elements; and the types beside f16.

#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

// D = relu(alpha A B + C) in f32; a block of four warps makes 32 x 32 of it, in steps of 32 along k.
// A and B are row-major; m and n are multiples of 32, k of 32.
extern "C" __global__ void __launch_bounds__(128)
    wmma_f16(const __half* a, const __half* b, const float* c, float* d, int m, int n, int k, float alpha) {
  constexpr int Tile = 32, Ld = Tile + 8;
  __shared__ alignas(16) __half of_a[2][Tile * Ld], of_b[2][Tile * Ld];
  const int thread = threadIdx.x, warp = thread / 32;
  const int row0 = blockIdx.y * Tile, column0 = blockIdx.x * Tile;

  auto copy = [&](int buffer, int k0) {
    const int row = thread / 4, column = thread % 4 * 8;
    const uint32_t to_a = __cvta_generic_to_shared(&of_a[buffer][row * Ld + column]);
    const uint32_t to_b = __cvta_generic_to_shared(&of_b[buffer][row * Ld + column]);
    const __half *from_a = a + (row0 + row) * k + k0 + column, *from_b = b + (k0 + row) * n + column0 + column;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to_a), "l"(from_a) : "memory");
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to_b), "l"(from_b) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  copy(0, 0);
  for (int k0 = 0, buffer = 0; k0 < k; k0 += Tile, buffer ^= 1) {
    if (k0 + Tile < k) {
      copy(buffer ^ 1, k0 + Tile);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_all;" ::: "memory");
    }
    __syncthreads();
    for (int kk = 0; kk < Tile; kk += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y;
      wmma::load_matrix_sync(x, &of_a[buffer][warp / 2 * 16 * Ld + kk], Ld);
      wmma::load_matrix_sync(y, &of_b[buffer][kk * Ld + warp % 2 * 16], Ld);
      wmma::mma_sync(sum, x, y, sum);
    }
    __syncthreads();
  }
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> addend;
  const int at = (row0 + warp / 2 * 16) * n + column0 + warp % 2 * 16;
  wmma::load_matrix_sync(addend, c + at, n, wmma::mem_row_major);
  for (int i = 0; i < sum.num_elements; i++) sum.x[i] = fmaxf(alpha * sum.x[i] + addend.x[i], 0.0f);
  wmma::store_matrix_sync(d + at, sum, n, wmma::mem_row_major);
}

namespace {

// One warp makes M x N of D; operands come from global memory, A column-major and B column-major.
template <int M, int N, int K, typename In, typename Element, typename Sum>
__device__ void simple(const Element* a, const Element* b, Sum* d, int m, int n, int k, wmma::layout_t layout) {
  const int row = blockIdx.y * M, column = blockIdx.x * N;
  wmma::fragment<wmma::matrix_a, M, N, K, In, wmma::col_major> x;
  wmma::fragment<wmma::matrix_b, M, N, K, In, wmma::col_major> y;
  wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;
  wmma::fill_fragment(sum, Sum(0));
  for (int k0 = 0; k0 < k; k0 += K) {
    wmma::load_matrix_sync(x, a + k0 * m + row, m);
    wmma::load_matrix_sync(y, b + column * k + k0, k);
    wmma::mma_sync(sum, x, y, sum);
  }
  if (layout == wmma::mem_row_major)
    wmma::store_matrix_sync(d + row * n + column, sum, n, wmma::mem_row_major);
  else
    wmma::store_matrix_sync(d + column * m + row, sum, m, wmma::mem_col_major);
}

}  // namespace

extern "C" __global__ void wmma_f16_to_f16(const __half* a, const __half* b, __half* d, int m, int n, int k) {
  simple<32, 8, 16, __half>(a, b, d, m, n, k, wmma::mem_col_major);
}

extern "C" __global__ void wmma_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* d, int m, int n, int k) {
  simple<8, 32, 16, __nv_bfloat16>(a, b, d, m, n, k, wmma::mem_row_major);
}

extern "C" __global__ void wmma_s8(const signed char* a, const signed char* b, int* d, int m, int n, int k) {
  simple<16, 16, 16, signed char>(a, b, d, m, n, k, wmma::mem_row_major);
}

extern "C" __global__ void wmma_u8(const unsigned char* a, const unsigned char* b, int* d, int m, int n, int k) {
  simple<32, 8, 16, unsigned char>(a, b, d, m, n, k, wmma::mem_col_major);
}

extern "C" __global__ void wmma_tf32(const float* a, const float* b, float* d, int m, int n, int k) {
  simple<16, 16, 8, wmma::precision::tf32>(a, b, d, m, n, k, wmma::mem_col_major);
}

extern "C" __global__ void wmma_f64(const double* a, const double* b, double* d, int m, int n, int k) {
  simple<8, 8, 4, double>(a, b, d, m, n, k, wmma::mem_row_major);
}
