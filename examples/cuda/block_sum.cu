// The sum of a vector, a block for each 256 elements, by halving in shared memory: a habit of old, with its race.
//
// The last steps are within one warp, and are written without a barrier. Since sm_70 lanes of a warp need not go on
// together: each step may read what the step before has not written yet. -DSYNCWARP puts the barrier there.
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifdef SYNCWARP
#define WARP_BARRIER() __syncwarp()
#else
#define WARP_BARRIER()
#endif

__global__ void block_sum(const float *x, float *sums, int n)
{
    __shared__ float tile[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    tile[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int step = 128; step >= 32; step /= 2) {
        if (t < step) tile[t] += tile[t + step];
        __syncthreads();
    }
    if (t < 32) {
        for (int step = 16; step > 0; step /= 2) {
            float other = tile[t + step];
            WARP_BARRIER();
            tile[t] += other;
            WARP_BARRIER();
        }
    }
    if (t == 0) sums[blockIdx.x] = tile[0];
}

int main()
{
    const int n = 1000, blocks = (n + 255) / 256;
    std::vector<float> host(n, 1.0f), sums(blocks);
    float *x, *out;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&out, blocks * sizeof(float));
    cudaMemcpy(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    block_sum<<<blocks, 256>>>(x, out, n);
    cudaMemcpy(sums.data(), out, blocks * sizeof(float), cudaMemcpyDeviceToHost);
    for (float sum : sums) printf("%g\n", sum);
    return EXIT_SUCCESS;
}
