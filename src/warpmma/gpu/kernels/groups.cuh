// Products of groups, whose ends lie in the GPU's memory: rows of A that follow each other, each group's with another
// B, and rows of no group, which are zeros; or parts of k, each of which makes a matrix of D. The launch has blocks for
// any ends. Ends that decrease, or lie outside of the matrix, end groups there.

struct Groups {
  Product product;  // of all rows, or of all of k
  const int* ends;
  int groups, along_k;
};

template <class Format>
__device__ __forceinline__ const void* moved(const void* at, s64 elements) {
  return static_cast<const char*>(at) + elements * Format::bytes;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) product(const __grid_constant__ Groups of) {
  Product g = of.product;
  const u32 columns = u32(g.n + TN - 1) / TN;
  u32 tile = blockIdx.x;
  if (of.along_k) {
    const u32 tiles = u32(g.m + TM - 1) / TM * columns;
    const int group = int(tile / tiles);
    int start = 0, stop = 0;
    for (int i = 0; i <= group; i++) start = stop, stop = min(max(of.ends[i], start), g.k);
    g.a = moved<A>(g.a, start * g.of_a.along);
    g.b = moved<B>(g.b, start * g.of_b.along);
    g.d = static_cast<char*>(g.d) + group * s64(g.m) * g.n * Result::bytes;
    g.k = stop - start;
    g.instructions = (g.k + INSTRUCTION - 1) / INSTRUCTION;
    tile %= tiles;
  } else {
    u32 row = tile / columns;
    int group = 0, start = 0, stop = 0;
    for (; group <= of.groups; group++) {
      start = stop;
      stop = group < of.groups ? min(max(of.ends[group], start), g.m) : g.m;
      const u32 rows = u32(stop - start + TM - 1) / TM;
      if (row < rows) break;
      row -= rows;
    }
    if (group > of.groups) return;
    g.a = moved<A>(g.a, start * g.of_a.outer);
    g.b = moved<B>(g.b, group * g.of_b.batch);
    g.d = static_cast<char*>(g.d) + start * s64(g.n) * Result::bytes;
    g.m = stop - start;
    if (group == of.groups) g.k = g.instructions = 0;
    tile = row * columns + tile % columns;
  }
  tile_of_product(g, tile);
}
