// The twin of ../hopper_cluster.py: hopper_product.cu over clusters of two blocks, which are neighbours along m.
//
// Both need the same tiles of B. Each copies half of every tile and multicasts it to both, so B is read once from global
// memory. A stage may be filled again when the warps of both blocks have read it: they arrive at both `empty`.

#include "hopper.cuh"

namespace {

constexpr int M = 128, N = 128, K = 64, Stages = 4, Consumers = 2, Warpgroup = 128, Blocks = 2;
constexpr int Rows = M / Consumers, Panel = 64;  // of a consumer; columns of D that one copy stores
constexpr int Half = N / Blocks;                 // rows of B that a block copies

struct alignas(1024) Shared {
  __half a[Stages][M * K];
  __half b[Stages][N * K];
  __half d[Consumers][N / Panel][Rows * Panel];
  uint64_t full[Stages], empty[Stages];
};

}  // namespace

extern "C" __global__ void __cluster_dims__(Blocks, 1, 1) __launch_bounds__((1 + Consumers) * Warpgroup, 1)
    hopper_cluster(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                   const __grid_constant__ TensorMap d, int k) {
  extern __shared__ Shared memory[];
  Shared& shared = *memory;
  const int warpgroup = threadIdx.x / Warpgroup, thread = threadIdx.x % Warpgroup, lane = thread % 32;
  const int row = blockIdx.x * M, column = blockIdx.y * N, steps = (k + K - 1) / K, rank = cluster_rank();

  if (threadIdx.x == 0) {
    for (int s = 0; s < Stages; s++) {
      barrier_init(&shared.full[s], 1);
      barrier_init(&shared.empty[s], Blocks * Consumers * Warpgroup / 32);
    }
    barrier_init_fence();
  }
  cluster_sync();  // the other block's barriers are there, too

  if (warpgroup == 0) {
    fewer_registers<40>();
    if (thread == 0) {
      for (int step = 0; step < steps; step++) {
        const int s = step % Stages, turn = step / Stages;
        if (turn > 0) wait(&shared.empty[s], (turn - 1) % 2);
        arrive_expecting(&shared.full[s], sizeof(shared.a[s]) + sizeof(shared.b[s]));
        load_box(shared.a[s], a, step * K, row, &shared.full[s]);
        load_box_to_blocks(&shared.b[s][rank * Half * K], b, step * K, column + rank * Half, &shared.full[s],
                           (1 << Blocks) - 1);
      }
    }
    __syncwarp();
  } else {
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
      wgmma_wait<1>();
      if (step > 0 && lane < Blocks) arrive_at(&shared.empty[(step - 1) % Stages], lane);
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
      for (int p = 0; p < N / Panel; p++)
        store_box(d, column + p * Panel, row + consumer * Rows, shared.d[consumer][p]);
      store_wait();
    }
    __syncwarp();
  }
  cluster_sync();  // no block ends while the other one still copies to it or arrives at its barriers
}
