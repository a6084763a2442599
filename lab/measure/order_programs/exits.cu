// Experiment 4: a block of 47 KB ends while its copies run. CASE is a name below.
// Stores: `check` compares what has come. Loads: the other blocks, which run on the same SM, look whether their own
// memory is right. counts[0]: wrong blocks; counts[1]: blocks looked at.
// Products cannot be in flight there: ptxas waits for them before EXIT (C7517).

enum { STORE_NOTHING, STORE_COMMIT, STORE_WAIT_READ, STORE_WAIT, LOAD };  // CASE
#define WORDS 12032
#define SMS 132

extern "C" __global__ void prepare(PARAMETERS) {
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < WORDS; i += gridDim.x * blockDim.x) in[i] = 0x4000FFFF;
}

extern "C" __global__ void __launch_bounds__(128) cell(PARAMETERS) {
  extern __shared__ __align__(1024) u32 memory[];
  __shared__ alignas(8) u64 full;
  const u32 t = threadIdx.x, tile = in_shared(memory), tag = seed * gridDim.x + blockIdx.x;
  const bool leaves = CASE != LOAD || (blockIdx.x / SMS & 1) == 0;
  const u32 fill = CASE != LOAD ? tag : ONES;
  for (u32 i = t; i < WORDS / 4; i += 128) store_words(tile + i * 16, fill);
  if (t == 0) init(in_shared(&full), 1);
  PROXY_FENCE("");
  __syncthreads();
  if (leaves && CASE != LOAD) {
    if (t == 0) {
      store_in_bulk(out + (u64)blockIdx.x * WORDS, tile, WORDS * 4);
      if (CASE >= STORE_COMMIT) commit_bulk();
      if (CASE == STORE_WAIT_READ) wait_bulk_read();
      if (CASE == STORE_WAIT) wait_bulk();
    }
    return;
  }
  if (leaves) {
    if (t == 0) expect(in_shared(&full), WORDS * 4), load_in_bulk(tile, in, WORDS * 4, in_shared(&full));
    return;
  }
  u32 bad = 0;
  for (int n = 0; n < 20; n++) {
    spin(1000);
    for (u32 i = t; i < WORDS; i += 128) bad |= ((volatile u32*)memory)[i] != ONES;
  }
  const u32 wrong = __syncthreads_or(bad);
  if (t == 0) add(counts, wrong != 0), add(counts + 1, 1);
}

extern "C" __global__ void check(PARAMETERS) {  // after the stores
  const u32 tag = seed * gridDim.x + blockIdx.x;
  u32 bad = 0;
  for (u32 i = threadIdx.x; i < WORDS; i += blockDim.x) bad |= out[(u64)blockIdx.x * WORDS + i] != tag;
  const u32 wrong = __syncthreads_or(bad);
  if (threadIdx.x == 0) add(counts, wrong != 0), add(counts + 1, 1);
}
