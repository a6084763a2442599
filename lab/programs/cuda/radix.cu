// A radix sort of keys with values, 8 bits a pass: count, scan of all counts by one block, stable scatter.

#include <cstdint>

namespace {

constexpr int Threads = 128, Items = 4, Tile = Threads * Items, Digits = 256;

}  // namespace

extern "C" __global__ void __launch_bounds__(Threads)
    radix_count(const uint32_t* keys, uint32_t* counts, int number, int shift) {
  __shared__ uint32_t of_digit[Digits];
  for (int i = threadIdx.x; i < Digits; i += Threads) of_digit[i] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < Tile; i += Threads) {
    const int at = blockIdx.x * Tile + i;
    if (at < number) atomicAdd(&of_digit[keys[at] >> shift & 255], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < Digits; i += Threads) counts[i * gridDim.x + blockIdx.x] = of_digit[i];
}

// Exclusive sums of all counts, in place, by one block of 1,024 threads.
extern "C" __global__ void __launch_bounds__(1024) radix_scan(uint32_t* counts, int number) {
  __shared__ uint32_t of_warp[32];
  uint32_t before = 0;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int start = 0; start < number; start += 1024) {
    const int at = start + threadIdx.x;
    const uint32_t own = at < number ? counts[at] : 0;
    uint32_t sum = own;
    for (int distance = 1; distance < 32; distance *= 2) {
      const uint32_t other = __shfl_up_sync(0xFFFFFFFF, sum, distance);
      if (lane >= distance) sum += other;
    }
    if (lane == 31) of_warp[warp] = sum;
    __syncthreads();
    if (warp == 0) {
      uint32_t total = of_warp[lane];
      for (int distance = 1; distance < 32; distance *= 2) {
        const uint32_t other = __shfl_up_sync(0xFFFFFFFF, total, distance);
        if (lane >= distance) total += other;
      }
      of_warp[lane] = total;
    }
    __syncthreads();
    if (warp > 0) sum += of_warp[warp - 1];
    if (at < number) counts[at] = before + sum - own;
    before += of_warp[31];
    __syncthreads();
  }
}

// Each warp ranks its keys in their order by asking who has the same digit.
extern "C" __global__ void __launch_bounds__(Threads)
    radix_scatter(const uint32_t* keys, const uint32_t* values, uint32_t* sorted_keys, uint32_t* sorted_values,
                  const uint32_t* starts, int number, int shift) {
  __shared__ uint32_t next[Threads / 32][Digits];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = blockIdx.x * Tile + warp * 32 * Items;
  for (int i = lane; i < Digits; i += 32) next[warp][i] = 0;
  __syncwarp();
  uint32_t key[Items], rank[Items];
#pragma unroll
  for (int i = 0; i < Items; i++) {
    const int at = first + i * 32 + lane;
    key[i] = at < number ? keys[at] : 0xFFFFFFFF;
    const unsigned inside = __ballot_sync(0xFFFFFFFF, at < number), digit = key[i] >> shift & 255;
    const unsigned same = __match_any_sync(0xFFFFFFFF, digit) & inside;
    const unsigned below = __popc(same & ((1u << lane) - 1));
    rank[i] = next[warp][digit] + below;
    __syncwarp();
    if (at < number && below == 0) next[warp][digit] += __popc(same);
    __syncwarp();
  }
  __syncthreads();
  for (int digit = threadIdx.x; digit < Digits; digit += Threads) {
    uint32_t sum = starts[digit * gridDim.x + blockIdx.x];
    for (int i = 0; i < Threads / 32; i++) {
      const uint32_t own = next[i][digit];
      next[i][digit] = sum;
      sum += own;
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Items; i++) {
    const int at = first + i * 32 + lane;
    if (at >= number) continue;
    const uint32_t to = next[warp][key[i] >> shift & 255] + rank[i];
    sorted_keys[to] = key[i];
    sorted_values[to] = values[at];
  }
}
