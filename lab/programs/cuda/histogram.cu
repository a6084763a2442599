// Counts with atomics: in shared memory and then global, by warps that agree first, with compare-and-swap.

#include <cstdint>

extern "C" __global__ void histogram_bytes(const uint32_t* x, uint32_t* counts, int words) {
  __shared__ uint32_t own[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
    const uint32_t word = x[i];
    for (int byte = 0; byte < 4; byte++) atomicAdd(&own[word >> 8 * byte & 255], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (own[i]) atomicAdd(&counts[i], own[i]);
}

// Lanes with the same key elect one that adds for all; also the largest, smallest, and bits of the values.
extern "C" __global__ void histogram_agreed(const uint32_t* keys, const int* values, uint32_t* counts, int* largest,
                                            int* smallest, uint32_t* bits, unsigned long long* sums, int number) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= number) return;
  const unsigned key = keys[at] % 37, active = __activemask();
  const unsigned same = __match_any_sync(active, key);
  if (__ffs(same) - 1 == threadIdx.x % 32) atomicAdd(&counts[key], uint32_t(__popc(same)));
  const int value = values[at];
  atomicMax(&largest[key], value);
  atomicMin(&smallest[key], value);
  atomicXor(&bits[key], uint32_t(value));
  atomicAdd(&sums[key], static_cast<unsigned long long>(static_cast<long long>(value)));
}

// Maxima of f64 through compare-and-swap; sums of small integers in f32, which are exact in any order.
extern "C" __global__ void histogram_swapped(const double* x, const uint32_t* keys, unsigned long long* largest,
                                             float* sums, int number) {
  __shared__ float own[16];
  if (threadIdx.x < 16) own[threadIdx.x] = 0;
  __syncthreads();
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < number) {
    const int key = keys[at] & 15;
    unsigned long long old = largest[key];
    while (__longlong_as_double(old) < x[at]) {
      const unsigned long long seen = atomicCAS(&largest[key], old, __double_as_longlong(x[at]));
      if (seen == old) break;
      old = seen;
    }
    atomicAdd(&own[key], float(keys[at] >> 20));
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&sums[threadIdx.x], own[threadIdx.x]);
}
