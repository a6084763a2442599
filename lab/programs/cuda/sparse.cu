// A 2:4 sparse product in inline PTX: cp.async with three stages and edges filled with zeros, ldmatrix, mma.sp.

#include <cuda_fp16.h>

#include <cstdint>

namespace {

constexpr int Stages = 3, TileM = 32, TileN = 32, TileK = 64;  // a block of two warps, each 16 x 32
constexpr int RowA = TileK / 2 + 8, RowB = TileN + 8;

__device__ uint32_t address(const void* pointer) { return __cvta_generic_to_shared(pointer); }

__device__ void copy16(uint32_t to, const void* from, bool inside) {
  asm volatile(
      "{\n\t.reg .pred p;\n\t.reg .b32 size;\n\tsetp.ne.b32 p, %2, 0;\n\tselp.b32 size, 16, 0, p;\n\t"
      "cp.async.cg.shared.global [%0], [%1], 16, size;\n\t}" ::"r"(to),
      "l"(from), "r"(int(inside))
      : "memory");
}

}  // namespace

// D = A B. A [m, k/2] holds what is stored of [m, k]; metadata is [m/16, k/32, 32 lanes]; B [k, n], D [m, n] in f32.
// k is a multiple of 64, n of 8, m of 16.
extern "C" __global__ void __launch_bounds__(64) sparse_f16(const __half* a, const uint32_t* metadata, const __half* b,
                                                            float* d, int m, int n, int k) {
  __shared__ alignas(128) __half of_a[Stages][TileM * RowA];
  __shared__ alignas(128) __half of_b[Stages][TileK * RowB];
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int row0 = blockIdx.y * TileM, column0 = blockIdx.x * TileN, steps = k / TileK;

  auto copy = [&](int step) {
    if (step < steps) {
      const int stage = step % Stages, k0 = step * TileK;
      for (int i = thread; i < TileM * TileK / 16; i += 64) {
        const int row = i / 4, column = i % 4 * 8;
        const bool inside = row0 + row < m;
        const __half* from = inside ? a + (row0 + row) * (k / 2) + k0 / 2 + column : a;
        copy16(address(&of_a[stage][row * RowA + column]), from, inside);
      }
      for (int i = thread; i < TileK * TileN / 8; i += 64) {
        const int row = i / 4, column = i % 4 * 8;
        const bool inside = column0 + column < n;
        const __half* from = inside ? b + (k0 + row) * n + column0 + column : b;
        copy16(address(&of_b[stage][row * RowB + column]), from, inside);
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  float sums[4][4] = {};
  for (int step = 0; step < Stages - 1; step++) copy(step);
  for (int step = 0; step < steps; step++) {
    asm volatile("cp.async.wait_group %0;" ::"n"(Stages - 2) : "memory");
    __syncthreads();
    copy(step + Stages - 1);
    const int stage = step % Stages;
    for (int kk = 0; kk < TileK; kk += 32) {
      const int tile = min(row0 / 16 + warp, m / 16 - 1);
      const uint32_t indices = metadata[(tile * (k / 32) + step * (TileK / 32) + kk / 32) * 32 + lane];
      uint32_t x[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                   : "r"(address(&of_a[stage][(warp * 16 + lane % 16) * RowA + kk / 2 + lane / 16 * 8])));
      for (int j = 0; j < 4; j++) {
        uint32_t y[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3])
                     : "r"(address(&of_b[stage][(kk + lane) * RowB + j * 8])));
        asm volatile(
            "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x1;"
            : "+f"(sums[j][0]), "+f"(sums[j][1]), "+f"(sums[j][2]), "+f"(sums[j][3])
            : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(indices));
      }
    }
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (int j = 0; j < 4; j++)
    for (int half = 0; half < 2; half++) {
      const int row = row0 + warp * 16 + half * 8 + lane / 4, column = column0 + j * 8 + lane % 4 * 2;
      if (row < m && column < n)
        *reinterpret_cast<float2*>(d + row * n + column) = make_float2(sums[j][2 * half], sums[j][2 * half + 1]);
    }
}

// One warp: D = A B + D in s32, all of A's stored bytes of [16, 64] from global memory as fragments.
extern "C" __global__ void sparse_s8(const uint4* a, const uint32_t* metadata, const uint4* b, int4* d, int tiles) {
  const int lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (warp >= tiles) return;
  const uint4 x = a[warp * 32 + lane], y = b[warp * 32 + lane];
  int4 sum = d[warp * 32 + lane];
  asm volatile(
      "mma.sp.sync.aligned.m16n8k64.row.col.satfinite.s32.s8.u8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
      : "+r"(sum.x), "+r"(sum.y), "+r"(sum.z), "+r"(sum.w)
      : "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(y.x), "r"(y.y), "r"(y.z), "r"(y.w), "r"(metadata[warp * 32 + lane]));
  d[warp * 32 + lane] = sum;
}
