// The check of a sparse A: the first group that a product must not take. Every block writes the least key that it
// found, whose upper bits are the kind of the fault and whose lower ones the number of the group, counted through the
// batch.

struct Check {
  const u8* from;                              // A, or indices
  u64* found;                                  // a key for each block
  s64 of_batch, of_row, of_group, of_element;  // strides in bytes; elements of a group, or its two indices
  s64 first, of_first;                         // number of the first group, and more for each matrix
  s64 matrices, rows, groups;
  int bytes;           // of an element or index
  u32 defined, known;  // nibbles that PTX defines, and those of them whose effect on the target is known
};

constexpr int KIND = 60;  // from which bit on
constexpr u64 NONE = ~0ull, BROKEN = 0, UNDEFINED = 1, UNKNOWN = 2;

__device__ __forceinline__ u64 read(const u8* at, int bytes) {
  if (bytes == 1) return *at;
  if (bytes == 2) return *reinterpret_cast<const u16*>(at);
  if (bytes == 4) return *reinterpret_cast<const u32*>(at);
  return *reinterpret_cast<const u64*>(at);
}

// The kind of fault of a group, or NONE.
__device__ __forceinline__ u64 fault(const Check& g, const u8* group) {
#if OF_DENSE_A
  const u32 units = occupied([&](int k) { return read(group + k * g.of_element, g.bytes); });
  return __popc(units) > UNITS / 2 ? BROKEN : NONE;
#else
  const u64 i0 = read(group, g.bytes), i1 = read(group + g.of_element, g.bytes);
  if (i0 > 3 || i1 > 3) return BROKEN;  // negative ones are large
  const u32 nibble = u32(i0 | i1 << 2);
  if (!(g.defined >> nibble & 1)) return UNDEFINED;
  return g.known >> nibble & 1 ? NONE : UNKNOWN;
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS) check(const __grid_constant__ Check g) {
  __shared__ u64 least[THREADS];
  u64 mine = NONE;
  const s64 all = g.matrices * g.rows * g.groups;
  for (s64 at = blockIdx.x * s64(THREADS) + threadIdx.x; at < all; at += gridDim.x * s64(THREADS)) {
    const s64 group = at % g.groups, row = at / g.groups % g.rows, matrix = at / g.groups / g.rows;
    const u64 kind = fault(g, g.from + matrix * g.of_batch + row * g.of_row + group * g.of_group);
    const u64 number = u64(g.first + matrix * g.of_first + row * g.groups + group);
    if (kind != NONE) mine = min(mine, kind << KIND | number);
  }
  least[threadIdx.x] = mine;
  for (int half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) least[threadIdx.x] = min(least[threadIdx.x], least[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) g.found[blockIdx.x] = least[0];
}
