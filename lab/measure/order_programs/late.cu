// Experiment 1: a warp of a warpgroup that comes late, which stores its quarter of B before it issues.
// LATE is its number, DELAY its clocks (random below DELAY if RANDOM), PLACE where it is late, FENCE its proxy fence.
// counts[0]: threads with an old word in D; of threads of other warps: counts[1..4]: wgmma.fence, wgmma, commit_group
// and wait_group that were over before the late warp went on; counts[5]: threads of other warps in all.

enum { BEFORE_FENCE, AFTER_FENCE, AFTER_FENCE_STRAIGHT, AFTER_PRODUCT, AFTER_COMMIT };  // PLACE
enum { NO_FENCE, FULL, CTA };                                                           // FENCE

extern "C" __global__ void prepare(PARAMETERS) {}

extern "C" __global__ void __launch_bounds__(128) cell(PARAMETERS) {
  __shared__ alignas(1024) u32 tile[512];
  __shared__ volatile u32 went_on;
  const u32 t = threadIdx.x, warp = t / 32, place = in_shared(tile) + t * 16;
  const u64 b = descriptor(in_shared(tile));
  u32 state = random_state(seed, blockIdx.x), bad = 0, early[4] = {};
  store_words(place, 0);
  PROXY_FENCE("");
  for (int n = 0; n < trials; n++) {
    const u32 number = 1 + (n + seed) % 1000, word = halves(number), r = random_word(state);
    const u32 delay = RANDOM ? r % DELAY : DELAY;
    const bool late = warp == LATE;
    auto store = [&] {
      store_words(place, word);
      if (FENCE == FULL) PROXY_FENCE("");
      if (FENCE == CTA) PROXY_FENCE(".shared::cta");
    };
    auto go_on = [&] { went_on = clocks(); };
    u32 at[4];
    float d[32] = {};
    REGISTERS_OF_ONES(a);
    __syncthreads();
    if (late && PLACE == BEFORE_FENCE) spin(delay), store(), go_on();
    else if (!late || PLACE > AFTER_FENCE) store();
    wgmma_fence();
    at[0] = clocks();
    if (late && PLACE == AFTER_FENCE) spin(delay), store(), go_on();
    if (PLACE == AFTER_FENCE_STRAIGHT) {  // without a branch, so that ptxas adds no second WARPGROUP.ARRIVE
      asm volatile("{ .reg .pred p; .reg .b32 c; setp.ne.u32 p, %0, 0; @p nanosleep.u32 %1;\nmov.u32 c, %%clock;\n"
                   "@p st.volatile.shared.u32 [%2], c; }" ::"r"((u32)late), "r"(delay), "r"(in_shared((u32*)&went_on))
                   : "memory");
    }
    product_of_registers(d, a, b, 0);
    at[1] = clocks();
    if (late && PLACE == AFTER_PRODUCT) spin(delay), go_on();
    wgmma_commit();
    at[2] = clocks();
    if (late && PLACE == AFTER_COMMIT) spin(delay), go_on();
    wgmma_wait(d);
    at[3] = clocks();
    bad += differs(d, 16.0f * number);
    __syncthreads();
    const u32 went = went_on;
#pragma unroll
    for (int k = 0; k < 4; k++) early[k] += !late && (int)(at[k] - went) < 0;
    __syncthreads();
  }
  add(counts, bad);
  for (int k = 0; k < 4; k++) add(counts + 1 + k, early[k]);
  if (warp != LATE) add(counts + 5, trials);
}
