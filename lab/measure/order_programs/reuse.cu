// Experiment 2, and others like it: who reads asynchronously waits, signals, and somebody overwrites what was read.
// READER: PRODUCTS of a warpgroup over 32 KB, or a bulk store of them. One warp (in turn) waits for the products and
// gives the signal; the others wait later, by up to SKEW clocks. If not WAITED, it gives the signal before it waits.
// SIGNAL, OVERWRITE: names below. counts[0]: threads that found a new value; counts[1]: threads that could.

enum { B_OF_REGISTERS, B_OF_TILES, A_OF_TILES, BULK_STORE };  // READER: what is overwritten, and where A is
enum { SAME_WARP, NAMED_BARRIER, MBARRIER };                  // SIGNAL
enum { STORES, COPY };                                        // OVERWRITE
#define PRODUCTS (READER == B_OF_REGISTERS ? 32 : 64)  // ptxas gives A new registers for each, and has too few for 64
#define TWOS 0x40004000u

extern "C" __global__ void prepare(PARAMETERS) {
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < 8192; i += gridDim.x * blockDim.x) in[i] = TWOS;
}

extern "C" __global__ void __launch_bounds__(256) cell(PARAMETERS) {
  extern __shared__ __align__(1024) u32 memory[];
  __shared__ alignas(8) u64 freed, landed;
  const u32 t = threadIdx.x, lane = t & 31, warp = t / 32, tile = in_shared(memory), ones = tile + 32768;
  const u32 free = in_shared(&freed), landing = in_shared(&landed);
  u32 state = random_state(seed, blockIdx.x * 8 + warp), bad = 0, *mine = out + blockIdx.x * 8192;
  if (t == 0) init(free, 1), init(landing, 1);
  if (t < 128) store_words(ones + t * 16, ONES);
  for (int n = 0; n < trials; n++) {
    for (u32 i = t; i < 2048; i += 256) store_words(tile + i * 16, ONES);
    PROXY_FENCE("");
    __syncthreads();
    const u32 before = SKEW ? random_word(state) % (SKEW + 1) : 0, after = SKEW ? random_word(state) % (SKEW + 1) : 0;
    const bool first = warp == (READER == BULK_STORE ? 0 : n & 3);
    auto overwrite = [&](u32 number, u32 threads) {
      if (OVERWRITE == COPY) {
        if (number == 0) expect(landing, 32768), load_in_bulk(tile, in, 32768, landing);
      } else {
        for (u32 i = number; i < 2048; i += threads) store_words(tile + i * 16, TWOS);
      }
    };
    auto signal = [&] {
      if (SIGNAL == SAME_WARP) overwrite(lane, 32);
      if (SIGNAL == NAMED_BARRIER) bar_arrive(1, 160);
      if (SIGNAL == MBARRIER && lane == 0) arrive(free);
    };
    float d[32] = {};
    REGISTERS_OF_ONES(a);
    if (warp < 4) {
      if (READER == BULK_STORE) {
        if (t == 0) {
          store_in_bulk(mine, tile, 32768), commit_bulk();
          if (WAITED) wait_bulk_read();
        }
        if (warp == 0) __syncwarp(), signal();
        if (t == 0) wait_bulk();
      } else {
        spin(before);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < PRODUCTS; k++) {
          const u64 there = descriptor(tile + k % 16 * 2048);
          if (READER == B_OF_REGISTERS) product_of_registers(d, a, there, k);
          if (READER == B_OF_TILES) product_of_tiles(d, descriptor(ones), there, k);
          if (READER == A_OF_TILES) product_of_tiles(d, there, descriptor(ones), k);
        }
        wgmma_commit();
        if (!WAITED && first) signal();
        if (!first) spin(after);
        wgmma_wait(d);
        if (WAITED && first) signal();
        bad += differs(d, 16.0f * PRODUCTS);
      }
    } else if (SIGNAL != SAME_WARP) {
      if (SIGNAL == NAMED_BARRIER) bar_sync(1, 160);
      else wait(free, n & 1);
      overwrite(t - 128, 128);
    }
    __syncthreads();
    if (OVERWRITE == COPY) wait(landing, n & 1);
    if (READER == BULK_STORE) {
      u32 found = 0;
      for (u32 i = t * 4; i < 8192; i += 1024) {
        u32 x, y, z, w;
        asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(mine + i) : "memory");
        found |= x != ONES || y != ONES || z != ONES || w != ONES;
      }
      bad += found;
    }
    __syncthreads();
  }
  add(counts, bad);
  if (warp < 4 || READER == BULK_STORE) add(counts + 1, trials);
}
