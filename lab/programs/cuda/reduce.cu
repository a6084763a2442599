// Sums, extremes and positions over blocks: trees of shuffles and shared memory, the last block finishes.

#include <cfloat>
#include <cstdint>

namespace {

template <typename T>
__device__ T over_warp(T x) {
  for (int distance = 16; distance > 0; distance /= 2) x += __shfl_down_sync(0xFFFFFFFF, x, distance);
  return x;
}

__device__ unsigned arrived;

}  // namespace

// Sums of squares of rows: one block a row.
extern "C" __global__ void reduce_rows(const float* x, float* sums, int columns) {
  extern __shared__ float of_warp[];
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    const float value = x[blockIdx.x * columns + i];
    sum += value * value;
  }
  sum = over_warp(sum);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : 0;
    sum = over_warp(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sqrtf(sum);
  }
}

// A sum in f64 in a tree in shared memory; the block that comes last adds those of all blocks, in their order.
extern "C" __global__ void reduce_last_block(const double* x, double* of_block, double* sum, int number) {
  __shared__ double values[256];
  __shared__ bool last;
  const int thread = threadIdx.x;
  double own = 0;
  for (int i = blockIdx.x * 256 + thread; i < number; i += gridDim.x * 256) own += x[i];
  values[thread] = own;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (thread < half) values[thread] += values[thread + half];
    __syncthreads();
  }
  if (thread == 0) {
    of_block[blockIdx.x] = values[0];
    __threadfence();
    last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && thread == 0) {
    __threadfence();
    double all = 0;
    for (int i = 0; i < gridDim.x; i++) all += static_cast<volatile double*>(of_block)[i];
    *sum = all;
  }
}

// The place of the largest number, the first of equal ones: 64 bits of an order-preserving code and the place.
extern "C" __global__ void reduce_argmax(const float* x, unsigned long long* best, int number) {
  unsigned long long most = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < number; i += gridDim.x * blockDim.x) {
    const uint32_t bits = __float_as_uint(x[i]), code = bits & 0x80000000 ? ~bits : bits | 0x80000000;
    const unsigned long long word = (unsigned long long)code << 32 | (0xFFFFFFFF - i);
    most = word > most ? word : most;
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    const unsigned long long other = __shfl_xor_sync(0xFFFFFFFF, most, distance);
    most = other > most ? other : most;
  }
  if (threadIdx.x % 32 == 0) atomicMax(best, most);
}
