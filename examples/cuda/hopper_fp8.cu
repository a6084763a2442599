// The twin of ../hopper_fp8.py: D = A B^T of e4m3, with sums in f32. A is [m, k], B is [n, k], D is [m, n] in f32.
//
// The warpgroups and stages are those of hopper_product.cu. The tensor cores' own sums of fp8 keep 13 bits of fraction,
// so `wgmma` sums only one tile, 128 along k, and that is added to sums in f32.

#include "hopper.cuh"

namespace {

constexpr int M = 128, N = 128, K = 128, Stages = 4, Consumers = 2, Warpgroup = 128;
constexpr int Rows = M / Consumers, Panel = 32;  // of a consumer; columns of D that one copy stores

struct alignas(1024) Shared {
  uint8_t a[Stages][M * K];
  uint8_t b[Stages][N * K];
  float d[Consumers][N / Panel][Rows * Panel];
  uint64_t full[Stages], empty[Stages];
};

}  // namespace

extern "C" __global__ void __launch_bounds__((1 + Consumers) * Warpgroup, 1)
    hopper_fp8(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
               const __grid_constant__ TensorMap d, int k) {
  extern __shared__ Shared memory[];
  Shared& shared = *memory;
  const int warpgroup = threadIdx.x / Warpgroup, thread = threadIdx.x % Warpgroup, lane = thread % 32;
  const int row = blockIdx.x * M, column = blockIdx.y * N, steps = (k + K - 1) / K;

  if (threadIdx.x == 0) {
    for (int s = 0; s < Stages; s++) {
      barrier_init(&shared.full[s], 1);
      barrier_init(&shared.empty[s], Consumers * Warpgroup / 32);
    }
    barrier_init_fence();
  }
  __syncthreads();

  if (warpgroup == 0) {
    fewer_registers<40>();
    if (thread == 0) {
      for (int step = 0; step < steps; step++) {
        const int s = step % Stages, turn = step / Stages;
        if (turn > 0) wait(&shared.empty[s], (turn - 1) % 2);
        arrive_expecting(&shared.full[s], sizeof(shared.a[s]) + sizeof(shared.b[s]));
        load_box(shared.a[s], a, step * K, row, &shared.full[s]);
        load_box(shared.b[s], b, step * K, column, &shared.full[s]);
      }
    }
    return;
  }

  more_registers<232>();
  const int consumer = warpgroup - 1;
  float sums[64] = {};
  for (int step = 0; step < steps; step++) {
    const int s = step % Stages, turn = step / Stages;
    float products[64];
    wait(&shared.full[s], turn % 2);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < K; i += 32) {
      const uint64_t of_a = descriptor(&shared.a[s][consumer * Rows * K + i]), of_b = descriptor(&shared.b[s][i]);
      wgmma_e4m3(products, of_a, of_b, i > 0);
    }
    wgmma_commit();
    wgmma_wait<0>(products);
    if (lane == 0) arrive(&shared.empty[s]);
#pragma unroll
    for (int i = 0; i < 64; i++) sums[i] = __fadd_rn(sums[i], products[i]);
  }

  // Of its rows lane / 4 and 8 below, a lane has two neighbouring columns of every eight.
  const uint32_t at = (thread / 32 * 16 + lane / 4) * (Panel * 4) + lane % 4 * 8;
#pragma unroll
  for (int i = 0; i < 64; i += 2) {
    const int group = i / 4, below = i / 2 % 2 * 8;
    uint8_t* panel = reinterpret_cast<uint8_t*>(shared.d[consumer][group * 8 / Panel]);
    const uint32_t place = swizzled(at + below * (Panel * 4) + group % 4 * 32);
    *reinterpret_cast<float2*>(panel + place) = make_float2(sums[i], sums[i + 1]);
  }
  async_fence();
  warpgroup_sync(1 + consumer);
  if (thread == 0) {
    for (int p = 0; p < N / Panel; p++) store_box(d, column + p * Panel, row + consumer * Rows, shared.d[consumer][p]);
    store_wait();
  }
}
