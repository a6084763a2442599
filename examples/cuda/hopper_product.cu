// The twin of ../hopper_product.py: D = A B^T in f16, with sums in f32. A is [m, k], B is [n, k], D is [m, n].
//
// A block has three warpgroups and computes 128 x 128 elements of D. One thread of the first warpgroup copies tiles of A
// and B into a ring of four stages, and the two others multiply: each 64 rows. Of every stage, `full` says that its
// tiles have come, and `empty` that all warps have read them.

#include "hopper.cuh"

namespace {

constexpr int M = 128, N = 128, K = 64, Stages = 4, Consumers = 2, Warpgroup = 128;
constexpr int Rows = M / Consumers, Panel = 64;  // of a consumer; columns of D that one copy stores

struct alignas(1024) Shared {
  __half a[Stages][M * K];
  __half b[Stages][N * K];
  __half d[Consumers][N / Panel][Rows * Panel];
  uint64_t full[Stages], empty[Stages];
};

}  // namespace

extern "C" __global__ void __launch_bounds__((1 + Consumers) * Warpgroup, 1)
    hopper_product(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                   const __grid_constant__ TensorMap d, int k) {
  extern __shared__ Shared memory[];
  Shared& shared = *memory;
  const int warpgroup = threadIdx.x / Warpgroup, thread = threadIdx.x % Warpgroup, lane = thread % 32;
  const int row = blockIdx.x * M, column = blockIdx.y * N, steps = (k + K - 1) / K;

  if (threadIdx.x == 0) {
    for (int s = 0; s < Stages; s++) {
      barrier_init(&shared.full[s], 1);                           // the copying thread, and the bytes
      barrier_init(&shared.empty[s], Consumers * Warpgroup / 32);  // each warp that multiplies
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
  float sums[64];
  for (int step = 0; step < steps; step++) {
    const int s = step % Stages, turn = step / Stages;
    wait(&shared.full[s], turn % 2);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < K; i += 16) {
      const uint64_t of_a = descriptor(&shared.a[s][consumer * Rows * K + i]), of_b = descriptor(&shared.b[s][i]);
      wgmma_f16(sums, of_a, of_b, step + i > 0);
    }
    wgmma_commit();
    wgmma_wait<1>();  // the tiles of the step before have been read
    if (step > 0 && lane == 0) arrive(&shared.empty[(step - 1) % Stages]);
  }
  wgmma_wait<0>(sums);

  const uint32_t at = (thread / 32 * 16 + lane % 16) * (Panel * 2) + lane / 16 * 16;
#pragma unroll
  for (int j = 0; j < N / 16; j++) {
    const uint32_t panel = shared_address(shared.d[consumer][j * 16 / Panel]);
    const float* x = sums + 8 * j;
    store_matrices(panel + swizzled(at + j % 4 * 32), pack_f16(x[0], x[1]), pack_f16(x[2], x[3]),
                   pack_f16(x[4], x[5]), pack_f16(x[6], x[7]));
  }
  async_fence();
  warpgroup_sync(1 + consumer);
  if (thread == 0) {
    for (int p = 0; p < N / Panel; p++) store_box(d, column + p * Panel, row + consumer * Rows, shared.d[consumer][p]);
    store_wait();
  }
}
