// Correct kernels for sm_90 with the habits of CUTLASS, Triton and DeepGEMM: where they fence, arrive and wait.
//
// Each makes 3 * x + 1 of tiles of WORDS words; a block does the tiles that follow its number in steps of the grid.

constexpr int THREADS = 128, WORDS = 1024, EACH = WORDS / THREADS, STAGES = 3;
constexpr unsigned BYTES = WORDS * 4;

__device__ unsigned in_shared(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ void begin(unsigned barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}
__device__ void expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}
__device__ void arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}
__device__ void arrive_in_block(unsigned barrier, unsigned rank) {
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there]; }" :: "r"(barrier), "r"(rank) : "memory");
}
__device__ void wait(unsigned barrier, unsigned parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra done; bra again;"
                 " done: }" :: "r"(barrier), "r"(parity) : "memory");
}
__device__ void load(void* to, const unsigned* from, unsigned barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(in_shared(to)), "l"(from), "r"(BYTES), "r"(barrier) : "memory");
}
__device__ void store(unsigned* to, const void* from) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(to), "r"(in_shared(from)), "r"(BYTES) : "memory");
}
__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ void fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void named_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}
__device__ void named_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" :: "r"(id), "r"(threads) : "memory");
}
__device__ bool elected() {
    unsigned one;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(one));
    return one;
}

// An epilogue as in CUTLASS: a buffer is free once the store has read it, every writer fences, one thread stores.
extern "C" __global__ void epilogue(const unsigned* x, unsigned* y, int tiles) {
    __shared__ alignas(128) unsigned buffer[2][WORDS];
    const int i = threadIdx.x;
    for (int tile = blockIdx.x, turn = 0; tile < tiles; tile += gridDim.x, turn ^= 1) {
        if (i == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        named_sync(1, THREADS);
        for (int k = 0; k < EACH; k++) buffer[turn][i + k * THREADS] = 3 * x[tile * WORDS + i + k * THREADS] + 1;
        fence();
        named_sync(1, THREADS);
        if (i == 0) store(y + tile * WORDS, buffer[turn]), commit();
    }
    if (i == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// As Triton for sm_90: cp.async, its wait, a barrier, and only then the fence, by the thread that reads.
extern "C" __global__ void reader_fences(const unsigned* x, unsigned* y, int tiles) {
    __shared__ alignas(128) unsigned buffer[WORDS];
    const int i = threadIdx.x;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        for (int k = 0; k < EACH / 4; k++)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                         :: "r"(in_shared(buffer + 4 * (i + k * THREADS))),
                            "l"(x + tile * WORDS + 4 * (i + k * THREADS)) : "memory");
        asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        for (int k = 0; k < EACH; k++) buffer[i + k * THREADS] = 3 * buffer[i + k * THREADS] + 1;
        __syncthreads();
        if (i < 32) {
            fence();
            if (elected()) {
                store(y + tile * WORDS, buffer);
                commit();
                asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
            }
        }
        __syncthreads();
    }
}

// Mbarriers that only a barrier of the block publishes; their thread goes on to load, and all wait.
extern "C" __global__ void plain_barriers(const unsigned* x, unsigned* y, int tiles) {
    __shared__ alignas(128) unsigned buffer[WORDS];
    __shared__ alignas(8) unsigned long long full;
    const int i = threadIdx.x;
    if (i == 0) begin(in_shared(&full), 1);
    __syncthreads();
    for (int tile = blockIdx.x, parity = 0; tile < tiles; tile += gridDim.x, parity ^= 1) {
        if (i == 0) expect(in_shared(&full), BYTES), load(buffer, x + tile * WORDS, in_shared(&full));
        wait(in_shared(&full), parity);
        for (int k = 0; k < EACH; k++) y[tile * WORDS + i + k * THREADS] = 3 * buffer[i + k * THREADS] + 1;
        __syncthreads();
    }
    if (i == 0) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(in_shared(&full)) : "memory");
}

// One thread releases a stage for its warp, as in DeepGEMM; the copy overwrites what threads have read, unfenced.
extern "C" __global__ void __launch_bounds__(2 * THREADS, 1) one_releases(const unsigned* x, unsigned* y, int tiles) {
    __shared__ alignas(128) unsigned buffer[STAGES][WORDS];
    __shared__ alignas(8) unsigned long long full[STAGES], empty[STAGES];
    const int i = threadIdx.x, warp = i / 32;
    if (i == 0) {
        for (int s = 0; s < STAGES; s++) begin(in_shared(full + s), 1), begin(in_shared(empty + s), THREADS / 32);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (warp == THREADS / 32) {  // the producer: a warp of its own, which waits for the phase before the first
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (elected())
            for (int tile = blockIdx.x, turn = 0; tile < tiles; tile += gridDim.x, turn++) {
                const int s = turn % STAGES;
                wait(in_shared(empty + s), (turn / STAGES & 1) ^ 1);
                expect(in_shared(full + s), BYTES);
                load(buffer[s], x + tile * WORDS, in_shared(full + s));
            }
        return;
    }
    if (warp > THREADS / 32) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    for (int tile = blockIdx.x, turn = 0; tile < tiles; tile += gridDim.x, turn++) {
        const int s = turn % STAGES;
        unsigned some[EACH];
        wait(in_shared(full + s), turn / STAGES & 1);
        for (int k = 0; k < EACH; k++) some[k] = 3 * buffer[s][i + k * THREADS] + 1;
        // In front of the arrival: nvcc and ptxas move sums behind it, and then the loads are in flight there (rule A22).
        for (int k = 0; k < EACH; k++) y[tile * WORDS + i + k * THREADS] = some[k];
        __syncwarp();
        if (i % 32 == 0) arrive(in_shared(empty + s));
    }
}

// A cluster of two with the default scope at remote mbarriers, as in CUTLASS: lane r of each warp frees block r.
extern "C" __global__ void __cluster_dims__(2, 1, 1) remote_release(const unsigned* x, unsigned* y, int tiles) {
    __shared__ alignas(128) unsigned buffer[STAGES][WORDS];
    __shared__ alignas(8) unsigned long long full[STAGES], empty[STAGES];
    const int i = threadIdx.x, warp = i / 32, rank = blockIdx.x % 2;
    if (i == 0) {
        for (int s = 0; s < STAGES; s++) begin(in_shared(full + s), 1), begin(in_shared(empty + s), 2 * THREADS / 32);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    const int first = blockIdx.x / 2, step = gridDim.x / 2;  // both blocks have the same tiles, and write half of each
    if (warp == THREADS / 32) {
        if (elected())
            for (int tile = first, turn = 0; tile < tiles; tile += step, turn++) {
                const int s = turn % STAGES;
                wait(in_shared(empty + s), (turn / STAGES & 1) ^ 1);
                expect(in_shared(full + s), BYTES);
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                             " [%0], [%1], %2, [%3], %4;"
                             :: "r"(in_shared(buffer[s]) + rank * (BYTES / 2)),
                                "l"(x + tile * WORDS + rank * (WORDS / 2)), "r"(BYTES / 2), "r"(in_shared(full + s)),
                                "h"(static_cast<unsigned short>(3)) : "memory");
            }
    } else {
        for (int tile = first, turn = 0; tile < tiles; tile += step, turn++) {
            const int s = turn % STAGES;
            wait(in_shared(full + s), turn / STAGES & 1);
            unsigned some[EACH / 2];
            for (int k = 0; k < EACH / 2; k++) some[k] = 3 * buffer[s][rank * (WORDS / 2) + i + k * THREADS] + 1;
            for (int k = 0; k < EACH / 2; k++) y[tile * WORDS + rank * (WORDS / 2) + i + k * THREADS] = some[k];
            __syncwarp();
            if (i % 32 < 2) arrive_in_block(in_shared(empty + s), i % 32);
        }
    }
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

// A persistent kernel: one thread draws tiles and hands them over through shared memory; two groups take turns.
extern "C" __global__ void pingpong(const unsigned* x, unsigned* y, int tiles, int* next) {
    __shared__ alignas(128) unsigned buffer[2][WORDS];
    __shared__ alignas(8) unsigned long long full[2], empty[2];
    __shared__ int drawn[2];
    const int i = threadIdx.x % THREADS, group = threadIdx.x / THREADS;
    if (threadIdx.x == 0)
        for (int s = 0; s < 2; s++) begin(in_shared(full + s), 1), begin(in_shared(empty + s), 1);
    __syncthreads();
    if (group == 2) {
        for (int turn = 0, ended = 0; i == 0 && ended < 2; turn++) {
            const int s = turn % 2, tile = atomicAdd(next, 1);
            wait(in_shared(empty + s), (turn / 2 & 1) ^ 1);
            drawn[s] = tile < tiles ? tile : -++ended;
            if (tile < tiles) {
                expect(in_shared(full + s), BYTES);
                load(buffer[s], x + tile * WORDS, in_shared(full + s));
            } else {
                arrive(in_shared(full + s));
            }
        }
        return;
    }
    if (group == 1) named_arrive(2, 2 * THREADS);  // group 0 begins
    for (int turn = 0;; turn++) {
        wait(in_shared(full + group), turn & 1);
        const int tile = drawn[group];
        named_sync(2 + group, 2 * THREADS);
        if (tile < 0) {
            if (tile == -1) named_arrive(3 - group, 2 * THREADS);  // the other group is still there
            break;
        }
        for (int k = 0; k < EACH; k++) buffer[group][i + k * THREADS] = 3 * buffer[group][i + k * THREADS] + 1;
        named_arrive(3 - group, 2 * THREADS);  // the other group's turn
        fence();
        named_sync(4 + group, THREADS);
        if (i == 0) {
            store(y + tile * WORDS, buffer[group]);
            commit();
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            arrive(in_shared(empty + group));
        }
    }
}

// A split-K product's epilogue: both halves of the blocks add their part to the result.
extern "C" __global__ void reduction(const unsigned* x, unsigned* y, int tiles) {
    __shared__ alignas(128) unsigned buffer[WORDS];
    const int i = threadIdx.x, half = gridDim.x / 2, part = blockIdx.x / half;
    for (int tile = blockIdx.x % half; tile < tiles; tile += half) {
        for (int k = 0; k < EACH; k++)
            buffer[i + k * THREADS] = (1 + part) * x[tile * WORDS + i + k * THREADS] + 1 - part;
        fence();
        __syncthreads();
        if (i == 0) {
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;"
                         :: "l"(y + tile * WORDS), "r"(in_shared(buffer)), "r"(BYTES) : "memory");
            commit();
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        }
        __syncthreads();
    }
}
