// Products whose blocks share sums: split along k, each block waits for the one before on a lock in global memory; and
// shares of equal size that cross tiles.

#include <cstdint>

namespace {

constexpr int Threads = 64, Tile = 16;

// A lock as CUTLASS has it: one thread looks, with acquire, and all wait at the barrier until it has seen the value.
__device__ void wait(const int* lock, int value) {
  int state = -1;
  while (__syncthreads_and(state != value))
    if (threadIdx.x == 0) asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(state) : "l"(lock) : "memory");
  __syncthreads();
}

__device__ void release(int* lock, int value) {
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("st.global.release.gpu.b32 [%0], %1;" ::"l"(lock), "r"(value) : "memory");
}

// Sums of this thread's four elements of a tile over a part of k.
__device__ void multiply(float (&sums)[4], const float* a, const float* b, int n, int k, int row0, int column0, int from,
                         int to) {
  __shared__ float of_a[Tile][Tile + 1], of_b[Tile][Tile + 1];
  const int row = threadIdx.x / Tile, column = threadIdx.x % Tile;
  for (int k0 = from; k0 < to; k0 += Tile) {
    __syncthreads();
    for (int i = 0; i < 4; i++) {
      of_a[row + 4 * i][column] = k0 + column < to ? a[(row0 + row + 4 * i) * k + k0 + column] : 0;
      of_b[row + 4 * i][column] = k0 + row + 4 * i < to ? b[(k0 + row + 4 * i) * n + column0 + column] : 0;
    }
    __syncthreads();
    for (int kk = 0; kk < Tile; kk++)
      for (int i = 0; i < 4; i++) sums[i] += of_a[row + 4 * i][kk] * of_b[kk][column];
  }
}

}  // namespace

// gridDim.z parts of k, added in their order: block z waits until z - 1 has stored. The last leaves the lock at 0.
extern "C" __global__ void __launch_bounds__(Threads)
    splitk_serial(const float* a, const float* b, float* d, int* locks, int n, int k) {
  const int row0 = blockIdx.y * Tile, column0 = blockIdx.x * Tile, part = (k + gridDim.z - 1) / gridDim.z;
  int* lock = locks + blockIdx.y * gridDim.x + blockIdx.x;
  float sums[4] = {};
  multiply(sums, a, b, n, k, row0, column0, blockIdx.z * part, min(k, int(blockIdx.z + 1) * part));
  wait(lock, blockIdx.z);
  for (int i = 0; i < 4; i++) {
    float* at = d + (row0 + threadIdx.x / Tile + 4 * i) * n + column0 + threadIdx.x % Tile;
    *at = (blockIdx.z ? *at : 0.0f) + sums[i];
  }
  release(lock, blockIdx.z + 1 == gridDim.z ? 0 : blockIdx.z + 1);
}

// Stream-k: all steps of all tiles in equal shares. Who has a tile's first step adds what the others put aside, later
// ones first to wait for; a counter with red and fence tells that a part lies there.
extern "C" __global__ void __launch_bounds__(Threads)
    splitk_stream(const float* a, const float* b, float* d, float* parts, unsigned* counters, int n, int k, int tiles_n,
                  int steps, int share) {
  const int total = steps * tiles_n * gridDim.y;
  int from = blockIdx.x * share;
  const int end = min(from + share, total);
  if (blockIdx.y != 0) return;
  while (from < end) {
    const int tile = from / steps, first = from % steps, last = min(steps, first + end - from);
    const int row0 = tile / tiles_n * Tile, column0 = tile % tiles_n * Tile;
    float sums[4] = {};
    multiply(sums, a, b, n, k, row0, column0, first * Tile, min(k, last * Tile));
    if (first > 0) {  // not mine: put aside
      for (int i = 0; i < 4; i++) parts[(blockIdx.x * 4 + i) * Threads + threadIdx.x] = sums[i];
      __syncthreads();
      if (threadIdx.x == 0) {
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" ::"l"(counters + tile), "r"(1) : "memory");
      }
    } else {
      if (last < steps) {
        const int others = (tile * steps + steps - 1) / share - blockIdx.x;
        if (threadIdx.x == 0) {
          int seen;
          do {
            asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(seen) : "l"(counters + tile) : "memory");
          } while (seen < others);
        }
        __syncthreads();
        for (int other = 1; other <= others; other++)
          for (int i = 0; i < 4; i++) sums[i] += parts[((blockIdx.x + other) * 4 + i) * Threads + threadIdx.x];
      }
      for (int i = 0; i < 4; i++)
        d[(row0 + threadIdx.x / Tile + 4 * i) * n + column0 + threadIdx.x % Tile] = sums[i];
    }
    from += last - first;
  }
}
