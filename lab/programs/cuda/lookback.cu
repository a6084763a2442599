// Inclusive sums in one pass: each block takes a tile in the order of arrival, tells its sum, and looks back at what the
// blocks before have told. One kernel with volatile words and fences, one with acquire and release of packed words.

#include <cstdint>

namespace {

constexpr int Threads = 128;  // each with four items
enum : uint32_t { Nothing = 0, Own = 1, All = 2 };

__device__ uint32_t sum_before(uint32_t own, uint32_t* of_warp, uint32_t& total) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t sum = own;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint32_t other = __shfl_up_sync(0xFFFFFFFF, sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == 31) of_warp[warp] = sum;
  __syncthreads();
  uint32_t before = 0;
  total = 0;
#pragma unroll
  for (int i = 0; i < Threads / 32; i++) {
    if (i < warp) before += of_warp[i];
    total += of_warp[i];
  }
  return before + sum - own;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(Threads)
    lookback_volatile(const uint4* x, uint4* y, uint32_t* ticket, volatile uint32_t* status, volatile uint32_t* own,
                      volatile uint32_t* all) {
  __shared__ uint32_t of_warp[Threads / 32], tile, before;
  if (threadIdx.x == 0) tile = atomicAdd(ticket, 1u);
  __syncthreads();
  const int at = tile * Threads + threadIdx.x;
  uint4 items = x[at];
  items.y += items.x, items.z += items.y, items.w += items.z;
  uint32_t total;
  const uint32_t exclusive = sum_before(items.w, of_warp, total);
  if (threadIdx.x == 0) {
    uint32_t sum = 0;
    if (tile == 0) {
      all[0] = total;
      __threadfence();
      status[0] = All;
    } else {
      own[tile] = total;
      __threadfence();
      status[tile] = Own;
      for (int i = tile - 1; i >= 0; i--) {
        uint32_t state;
        while ((state = status[i]) == Nothing) {
        }
        __threadfence();
        if (state == All) {
          sum += all[i];
          break;
        }
        sum += own[i];
      }
      all[tile] = sum + total;
      __threadfence();
      status[tile] = All;
    }
    before = sum;
  }
  __syncthreads();
  const uint32_t start = before + exclusive;
  y[at] = make_uint4(start + items.x, start + items.y, start + items.z, start + items.w);
}

// A warp looks back at 32 tiles at once; status and value are one word of 64 bits.
extern "C" __global__ void __launch_bounds__(Threads)
    lookback_warp(const uint4* x, uint4* y, uint32_t* ticket, unsigned long long* states) {
  __shared__ uint32_t of_warp[Threads / 32], tile, before;
  if (threadIdx.x == 0) tile = atomicAdd(ticket, 1u);
  __syncthreads();
  const int at = tile * Threads + threadIdx.x;
  uint4 items = x[at];
  items.y += items.x, items.z += items.y, items.w += items.z;
  uint32_t total;
  const uint32_t exclusive = sum_before(items.w, of_warp, total);
  if (threadIdx.x < 32) {
    const int lane = threadIdx.x;
    const auto tell = [&](uint32_t status, uint32_t value) {
      const unsigned long long word = (unsigned long long)status << 32 | value;
      asm volatile("st.release.gpu.global.b64 [%0], %1;" ::"l"(states + tile), "l"(word) : "memory");
    };
    if (lane == 0) tell(tile == 0 ? All : Own, total);
    uint32_t sum = 0;
    for (int last = int(tile) - 1; last >= 0; last -= 32) {
      const int i = last - lane;
      unsigned long long word = (unsigned long long)All << 32;  // before the first tile: nothing more
      if (i >= 0) do {
          asm volatile("ld.acquire.gpu.global.b64 %0, [%1];" : "=l"(word) : "l"(states + i) : "memory");
        } while (word >> 32 == Nothing);
      const unsigned final = __ballot_sync(0xFFFFFFFF, word >> 32 == All);
      const int nearest = final ? __ffs(final) - 1 : 31;
      sum += __reduce_add_sync(0xFFFFFFFF, lane <= nearest ? uint32_t(word) : 0);
      if (final) break;
    }
    if (lane == 0) {
      if (tile != 0) tell(All, sum + total);
      before = sum;
    }
  }
  __syncthreads();
  const uint32_t start = before + exclusive;
  y[at] = make_uint4(start + items.x, start + items.y, start + items.z, start + items.w);
}
