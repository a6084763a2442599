// Twin of copy_pipeline.py: four stages of tensor copies, one thread that loads, and all threads that sum.

struct alignas(64) TensorMap { unsigned long long words[16]; };  // CUtensorMap of cuda.h

constexpr int TILES = 11, ROWS = 16, COLUMNS = 32, STAGES = 4, THREADS = 128;
constexpr unsigned BYTES = ROWS * COLUMNS * 4;

__device__ unsigned in_shared(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ void wait(unsigned barrier, unsigned parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }"
                 :: "r"(barrier), "r"(parity) : "memory");
}

extern "C" __global__ void copy_pipeline(const __grid_constant__ TensorMap box, float* y) {
    __shared__ alignas(128) float tiles[STAGES][ROWS * COLUMNS];
    __shared__ alignas(8) unsigned long long full[STAGES], empty[STAGES];
    const int i = threadIdx.x;
    if (i == 0) {
        for (int s = 0; s < STAGES; s++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(in_shared(&full[s])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(in_shared(&empty[s])), "r"(THREADS) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    float sums[ROWS * COLUMNS / THREADS] = {};
    for (int step = 0; step < TILES + STAGES - 1; step++) {
        if (step < TILES && i == 0) {
            const int s = step % STAGES, turn = step / STAGES;
            if (turn) wait(in_shared(&empty[s]), (turn + 1) & 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                         :: "r"(in_shared(&full[s])), "r"(BYTES) : "memory");
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                         "[%0], [%1, {%2, %3}], [%4];"
                         :: "r"(in_shared(tiles[s])), "l"(&box), "r"(0), "r"(step * ROWS), "r"(in_shared(&full[s]))
                         : "memory");
        }
        const int tile = step - STAGES + 1;
        if (tile >= 0) {
            const int s = tile % STAGES;
            wait(in_shared(&full[s]), (tile / STAGES) & 1);
            for (int k = 0; k < ROWS * COLUMNS / THREADS; k++) sums[k] += tiles[s][i + k * THREADS];
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(in_shared(&empty[s])) : "memory");
        }
    }
    for (int k = 0; k < ROWS * COLUMNS / THREADS; k++) y[i + k * THREADS] = sums[k];
}
