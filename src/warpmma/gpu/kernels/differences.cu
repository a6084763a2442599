// Counts the codes that differ in two matrices, of rows with a pitch, and finds the first of them.

typedef unsigned long long u64;

struct Differences {
  const Code *got, *expected;
  u64* found;  // how many, and the least place, row * columns + column
  u64 rows, columns, pitch_of_got, pitch_of_expected;  // in codes
};

extern "C" __global__ void differences(const __grid_constant__ Differences g) {
  const u64 step = u64(gridDim.x) * blockDim.x, all = g.rows * g.columns;
  u64 count = 0, first = ~0ull;
  for (u64 place = u64(blockIdx.x) * blockDim.x + threadIdx.x; place < all; place += step) {
    const u64 row = place / g.columns, column = place % g.columns;
    if (g.got[row * g.pitch_of_got + column] != g.expected[row * g.pitch_of_expected + column]) {
      count++;
      if (first == ~0ull) first = place;
    }
  }
  if (count) {
    atomicAdd(&g.found[0], count);
    atomicMin(&g.found[1], first);
  }
}
