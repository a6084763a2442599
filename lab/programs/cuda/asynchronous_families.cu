// Correct kernels for sm_90a with what `asynchronous_habits.cu` has not: copies of tensors that are stored and added,
// cp.async that arrives at mbarriers, stores that another block counts, tensor maps that a kernel changes, and a product
// of a specialised warpgroup. Loops are not unrolled, so that each statement is there once.

using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;

struct alignas(64) TensorMap { u64 words[16]; };  // CUtensorMap of cuda.h

#define BULK "mbarrier::complete_tx::bytes"
#define MEMORY : "memory"

__device__ u32 in_shared(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
__device__ void begin(u32 barrier, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) MEMORY);
}
__device__ void begun() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ void expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) MEMORY);
}
__device__ void arrive(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) MEMORY);
}
__device__ void wait(u32 barrier, u32 parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }"
                 :: "r"(barrier), "r"(parity) MEMORY);
}
__device__ void wait_for_cluster(u32 barrier, u32 parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;"
                 " @!p bra again; }" :: "r"(barrier), "r"(parity) MEMORY);
}
__device__ void load(const void* to, const void* map, int column, int row, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile." BULK " [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(in_shared(to)), "l"(map), "r"(column), "r"(row), "r"(barrier) MEMORY);
}
__device__ void store(const void* map, int column, int row, const void* from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 :: "l"(map), "r"(column), "r"(row), "r"(in_shared(from)) MEMORY);
}
__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ void fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ u32 in_block(u32 address, u32 rank) {
    u32 mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}

// Tiles of a tensor are loaded, made 3 * x + 1, stored in y, and added to one tile of sums: two stages, two buffers.
constexpr int ROWS = 8, COLUMNS = 16, TILE = ROWS * COLUMNS;

extern "C" __global__ void tensor_tiles(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap y,
                                        const __grid_constant__ TensorMap sums, int tiles) {
    __shared__ alignas(1024) u32 in[2][TILE], out[2][TILE];
    __shared__ alignas(8) u64 full[2];
    const int i = threadIdx.x;
    if (i == 0) begin(in_shared(full), 1), begin(in_shared(full + 1), 1), begun();
    __syncthreads();
    if (i == 0) expect(in_shared(full), 4 * TILE), load(in[0], &x, 0, blockIdx.x * ROWS, in_shared(full));
    #pragma unroll 1
    for (int tile = blockIdx.x, turn = 0; tile < tiles; tile += gridDim.x, turn++) {
        const int s = turn % 2, next = tile + gridDim.x;
        if (i == 0 && next < tiles) {
            fence();
            expect(in_shared(full + 1 - s), 4 * TILE);
            load(in[1 - s], &x, 0, next * ROWS, in_shared(full + 1 - s));
        }
        if (i == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        __syncthreads();
        wait(in_shared(full + s), turn / 2 & 1);
        out[s][i] = 3 * in[s][i] + 1;
        fence();
        __syncthreads();
        if (i == 0) {
            store(&y, 0, tile * ROWS, out[s]);
            asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];"
                         :: "l"(&sums), "r"(0), "r"(0), "r"(in_shared(out[s])) MEMORY);
            commit();
        }
    }
    if (i == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// A warp copies with cp.async, whose completion arrives at an mbarrier; another warp reads: three stages.
constexpr int STAGES = 3, LANES = 32;

extern "C" __global__ void counted_copies(const uint4* x, uint4* y, int tiles) {
    __shared__ alignas(16) uint4 buffer[STAGES][LANES];
    __shared__ alignas(8) u64 full[STAGES], empty[STAGES];
    const int i = threadIdx.x % LANES;
    if (threadIdx.x == 0)
        for (int s = 0; s < STAGES; s++) begin(in_shared(full + s), LANES), begin(in_shared(empty + s), LANES);
    __syncthreads();
    const int first = blockIdx.x * tiles;
    if (threadIdx.x < LANES)
        #pragma unroll 1
        for (int tile = 0; tile < tiles; tile++) {
            const int s = tile % STAGES;
            wait(in_shared(empty + s), (tile / STAGES & 1) ^ 1);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                         :: "r"(in_shared(buffer[s] + i)), "l"(x + (first + tile) * LANES + i) MEMORY);
            asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(in_shared(full + s)) MEMORY);
        }
    else
        #pragma unroll 1
        for (int tile = 0; tile < tiles; tile++) {
            const int s = tile % STAGES;
            wait(in_shared(full + s), tile / STAGES & 1);
            uint4 value = buffer[s][i ^ 1];
            arrive(in_shared(empty + s));
            y[(first + tile) * LANES + (i ^ 1)] = value;
        }
}

// Blocks of a cluster hand on words to the next one: its mbarrier counts their bytes, and it frees the buffer.
extern "C" __global__ void __cluster_dims__(2, 1, 1) counted_stores(const u32* x, u32* y, int rounds) {
    __shared__ alignas(16) u32 buffer[2][LANES];
    __shared__ alignas(8) u64 full[2], empty[2];
    const int i = threadIdx.x, rank = blockIdx.x % 2, other = rank ^ 1;
    if (i == 0) {
        for (int s = 0; s < 2; s++) begin(in_shared(full + s), 1), begin(in_shared(empty + s), LANES);
        begun();
    }
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    #pragma unroll 1
    for (int round = 0; round < rounds; round++) {
        const int s = round % 2, parity = round / 2 & 1, at = (blockIdx.x * rounds + round) * LANES + i;
        if (i == 0) expect(in_shared(full + s), 4 * LANES);
        wait_for_cluster(in_shared(empty + s), parity ^ 1);
        asm volatile("st.async.shared::cluster." BULK ".u32 [%0], %1, [%2];"
                     :: "r"(in_block(in_shared(&buffer[s][i]), other)), "r"(3 * x[at] + 1),
                        "r"(in_block(in_shared(full + s), other)) MEMORY);
        wait(in_shared(full + s), parity);
        y[at] = buffer[s][i ^ 1];
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                     :: "r"(in_block(in_shared(empty + s), other)) MEMORY);
    }
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// A grouped product's loads: a warp changes the address and the rows of a tensor map for each group, and publishes it.
extern "C" __global__ void changed_maps(const __grid_constant__ TensorMap first, TensorMap* maps, const u64* addresses,
                                        const u32* rows, u32* y, int groups) {
    __shared__ alignas(128) u32 tile[TILE];
    __shared__ alignas(128) TensorMap map;
    __shared__ alignas(8) u64 full;
    const int i = threadIdx.x;
    if (i == 0) begin(in_shared(&full), 1), begun();
    if (i < 16) map.words[i] = first.words[i];
    TensorMap* own = maps + blockIdx.x;
    #pragma unroll 1
    for (int group = blockIdx.x, turn = 0; group < groups; group += gridDim.x, turn++) {
        __syncwarp();
        if (i == 0) {
            asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;"
                         :: "r"(in_shared(&map)), "l"(addresses[group]) MEMORY);
            asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;"
                         :: "r"(in_shared(&map)), "r"(rows[group]) MEMORY);
        }
        __syncwarp();
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
                     " [%0], [%1], 128;" :: "l"(own), "r"(in_shared(&map)) MEMORY);
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(own) MEMORY);
        if (i == 0) {
            fence();
            expect(in_shared(&full), 4 * TILE);
            load(tile, own, 0, 0, in_shared(&full));
        }
        wait(in_shared(&full), turn & 1);
        for (int k = 0; k < TILE; k += LANES) y[group * TILE + k + i] = tile[k + i];
    }
}

// A product of 64 x 8, along k in steps of 64 through two stages: a warpgroup that loads, one that multiplies and stores.
constexpr int BYTES_A = 64 * 128, BYTES_B = 8 * 128, DEEP = 2;

__device__ u64 descriptor(u32 address) { return (u64(1) << 62) | (u64(64) << 32) | (u64(1) << 16) | (address >> 4 & 0x3FFF); }
__device__ void multiply(float (&d)[4], u64 a, u64 b, int more) {
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %6, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b), "r"(more));
}

extern "C" __global__ void __launch_bounds__(256, 1)
product(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const __grid_constant__ TensorMap d,
        int steps) {
    __shared__ alignas(1024) char of_a[DEEP][BYTES_A], of_b[DEEP][BYTES_B];
    __shared__ alignas(128) float out[64][8];
    __shared__ alignas(8) u64 full[DEEP], empty[DEEP];
    const int i = threadIdx.x % 128;
    if (threadIdx.x == 0) {
        for (int s = 0; s < DEEP; s++) begin(in_shared(full + s), 1), begin(in_shared(empty + s), 4);
        begun();
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        #pragma unroll 1
        for (int step = 0; i == 0 && step < steps; step++) {
            const int s = step % DEEP;
            wait(in_shared(empty + s), (step / DEEP & 1) ^ 1);
            expect(in_shared(full + s), BYTES_A + BYTES_B);
            load(of_a[s], &a, 64 * step, 0, in_shared(full + s));
            load(of_b[s], &b, 64 * step, 0, in_shared(full + s));
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float sums[4];
    #pragma unroll 1
    for (int step = 0; step < steps; step++) {
        const int s = step % DEEP;
        wait(in_shared(full + s), step / DEEP & 1);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int k = 0; k < 4; k++)
            multiply(sums, descriptor(in_shared(of_a[s]) + 32 * k), descriptor(in_shared(of_b[s]) + 32 * k), step + k);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (step && i % 32 == 0) arrive(in_shared(empty + (step - 1) % DEEP));
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]) :: "memory");
    for (int k = 0; k < 4; k++) out[i / 32 * 16 + i % 32 / 4 + k / 2 * 8][i % 4 * 2 + k % 2] = sums[k];
    fence();
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (i == 0) {
        store(&d, 0, 0, out);
        commit();
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
