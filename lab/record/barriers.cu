// What barriers and collectives do with threads that have exited, or never were: nvcc -arch=sm_90 -o record
// lab/record/barriers.cu && for i in 0 1 2 3 4 5 6 7 8; do ./record $i; done. Outputs are in
// tests/data/h200_barriers.json, the same kernels for the simulator in tests/machine/test_barriers_of_h200.py.
#include <cstdio>
#include <cstdint>
__global__ void exit_lanes(uint32_t* y) {            // lanes 7 exit, warp 1 exits, then bar.sync
    uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (lane == 7 || warp == 1) return;
    asm volatile("bar.sync 0;" ::: "memory");
    y[threadIdx.x] = threadIdx.x + 1;
}
__global__ void counted_with_exits(uint32_t* y) {    // bar.sync 1, 64 by two warps with half of one exited
    uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (warp == 0 && lane >= 16) return;
    __shared__ volatile uint32_t s[64];
    s[threadIdx.x] = threadIdx.x;
    asm volatile("bar.sync 1, 64;" ::: "memory");
    y[threadIdx.x] = s[warp == 0 ? threadIdx.x + 32 : lane & 15] + 1;
}
__global__ void last_counted(uint32_t* y) {          // block of 48: bar.sync 1, 64
    asm volatile("bar.sync 1, 64;" ::: "memory");
    y[threadIdx.x] = threadIdx.x + 1;
}
__global__ void two_lines(uint32_t* y) {
    __shared__ volatile uint32_t s[64];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 32) { asm volatile("bar.sync 0;" ::: "memory"); y[threadIdx.x] = s[threadIdx.x ^ 32] + 1; }
    else {
        for (int i = 0; i < 100; i++) asm volatile("nanosleep.u32 100;");
        asm volatile("bar.sync 0;" ::: "memory");
        y[threadIdx.x] = s[threadIdx.x ^ 32] + 1;
    }
}
__global__ void arrive_sync(uint32_t* y) {           // warps 0,1 produce; 2,3 consume; three rounds
    __shared__ volatile uint32_t s[64];
    uint32_t warp = threadIdx.x >> 5, i = threadIdx.x & 63, sum = 0;
    for (uint32_t x = 0; x < 3; x++) {
        if (warp < 2) {
            s[i] = x + i;
            asm volatile("bar.arrive 1, 128;" ::: "memory");
            asm volatile("bar.sync 2, 128;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            sum += s[i];
            asm volatile("bar.arrive 2, 128;" ::: "memory");
        }
    }
    y[threadIdx.x] = sum + 1;
}
__global__ void last_warp(uint32_t* y) {             // block of 48: full masks in a warp of 16
    uint32_t v = threadIdx.x;
    for (int d = 8; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
    uint32_t b = __ballot_sync(0xffffffffu, (threadIdx.x & 1) == 0);
    uint32_t any; asm volatile("match.all.sync.b32 %0, %1, 0xffffffff;" : "=r"(any) : "r"(5));
    uint32_t r; asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(1));
    __syncwarp();
    uint32_t* o = y + threadIdx.x * 4; o[0] = v; o[1] = b; o[2] = any; o[3] = r;
}
__global__ void shuffle_after_exit(uint32_t* y) {
    uint32_t lane = threadIdx.x & 31;
    if (lane >= 24) return;
    uint32_t v = __shfl_sync(0xffffffffu, threadIdx.x, 3);
    uint32_t b = __ballot_sync(0xffffffffu, 1);
    uint32_t any; asm volatile("match.all.sync.b32 %0, %1, 0xffffffff;" : "=r"(any) : "r"(5));
    y[threadIdx.x * 3] = v; y[threadIdx.x * 3 + 1] = b; y[threadIdx.x * 3 + 2] = any;
}
__global__ void halves(uint32_t* y) {                // each half of a warp comes at a line of its own, not aligned
    uint32_t lane = threadIdx.x & 31;
    if (lane < 16) { asm volatile("barrier.sync 0;" ::: "memory"); y[threadIdx.x] = 1; }
    else { asm volatile("barrier.sync 0;" ::: "memory"); y[threadIdx.x] = 2; }
}
__global__ void halves_counted(uint32_t* y) {        // one half of each of two warps comes, 64 are counted
    uint32_t lane = threadIdx.x & 31;
    if (lane < 16) { asm volatile("barrier.sync 3, 64;" ::: "memory"); y[threadIdx.x] = 1; }
    else y[threadIdx.x] = 2;
}
int main(int argc, char** argv) {
    uint32_t* y; int which = argv[1][0] - '0'; cudaMallocManaged(&y, 4096); for (int i = 0; i < 1024; i++) y[i] = 0;
    int n = 0;
    switch (which) {
        case 0: exit_lanes<<<1, 96>>>(y); n = 96; break;
        case 1: counted_with_exits<<<1, 64>>>(y); n = 64; break;
        case 2: last_counted<<<1, 48>>>(y); n = 48; break;
        case 3: two_lines<<<1, 64>>>(y); n = 64; break;
        case 4: arrive_sync<<<1, 128>>>(y); n = 128; break;
        case 5: last_warp<<<1, 48>>>(y); n = 192; break;
        case 6: shuffle_after_exit<<<1, 32>>>(y); n = 96; break;
        case 7: halves<<<1, 64>>>(y); n = 64; break;
        case 8: halves_counted<<<1, 64>>>(y); n = 64; break;
    }
    auto e = cudaDeviceSynchronize(); printf("case %d: %s:", which, cudaGetErrorString(e));
    for (int i = 0; i < n; i++) printf(" %x", y[i]); printf("\n");
}
