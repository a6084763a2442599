// Twin of cluster_pipeline.py: two blocks of a cluster load halves of each tile for both, and weigh the tiles.

#include <cooperative_groups.h>

struct alignas(64) TensorMap { unsigned long long words[16]; };  // CUtensorMap of cuda.h

constexpr int TILES = 11, ROWS = 16, COLUMNS = 32, STAGES = 4, THREADS = 128, CLUSTER = 2;
constexpr unsigned BYTES = ROWS * COLUMNS * 4;

__device__ unsigned in_shared(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ unsigned in_block(unsigned address, unsigned rank) {
    unsigned mapped;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}

__device__ void wait(unsigned barrier, unsigned parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }"
                 :: "r"(barrier), "r"(parity) : "memory");
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1)
cluster_pipeline(const __grid_constant__ TensorMap box, const float* weights, float* y) {
    __shared__ alignas(128) float tiles[STAGES][ROWS * COLUMNS];
    __shared__ alignas(8) unsigned long long full[STAGES], empty[STAGES];
    const auto cluster = cooperative_groups::this_cluster();
    const int i = threadIdx.x, rank = cluster.block_rank();
    if (i == 0) {
        for (int s = 0; s < STAGES; s++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(in_shared(&full[s])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                         :: "r"(in_shared(&empty[s])), "r"(CLUSTER * THREADS) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster.sync();
    float sums[ROWS * COLUMNS / THREADS] = {};
    for (int step = 0; step < TILES + STAGES - 1; step++) {
        if (step < TILES && i == 0) {
            const int s = step % STAGES, turn = step / STAGES;
            if (turn) wait(in_shared(&empty[s]), (turn + 1) & 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                         :: "r"(in_shared(&full[s])), "r"(BYTES) : "memory");
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                         ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                         :: "r"(in_shared(tiles[s]) + rank * (BYTES / CLUSTER)), "l"(&box), "r"(0),
                            "r"(step * ROWS + rank * (ROWS / CLUSTER)), "r"(in_shared(&full[s])),
                            "h"(static_cast<unsigned short>((1 << CLUSTER) - 1)) : "memory");
        }
        const int tile = step - STAGES + 1;
        if (tile >= 0) {
            const int s = tile % STAGES;
            wait(in_shared(&full[s]), (tile / STAGES) & 1);
            const float weight = weights[blockIdx.x * TILES + tile];
            for (int k = 0; k < ROWS * COLUMNS / THREADS; k++)
                sums[k] = fmaf(tiles[s][i + k * THREADS], weight, sums[k]);
            for (int other = 0; other < CLUSTER; other++)
                asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                             :: "r"(in_block(in_shared(&empty[s]), other)) : "memory");
        }
    }
    for (int k = 0; k < ROWS * COLUMNS / THREADS; k++) y[blockIdx.x * (BYTES / 4) + i + k * THREADS] = sums[k];
    cluster.sync();
}
