// Experiment 6: loads whose values have not come yet, a signal, and a copy in bulk over what they read.
// READERS threads load LOADS words each of 8 KB (32 at most), signal, and then look at the values; a thread that waits
// for the signal copies the next turn over them. SIGNAL, CONFLICTS and OVERWRITE choose the case; DELAY is in clocks.
// counts[0]: threads that saw a word of a later turn; counts[1]: clocks of the issuer's fence, counts[2]: how many.

enum { ARRIVE, ARRIVE_RELAXED, ONE_ARRIVES, NAMED_BARRIER, FENCE_ARRIVE, PROXY_FENCE_ARRIVE, ISSUER_FENCE,  // SIGNAL
       ISSUER_FENCE_CTA, ISSUER_DELAY, USED_ARRIVE, PRODUCT_ARRIVE };
enum { COPY, STORES };  // OVERWRITE
// Words that are not adjacent, or ptxas makes one load of four. With conflicts all lanes read one bank.
#define PLACE(k) (CONFLICTS ? lane * 32 + ((k) & 15) * 2 + ((warp + (k) / 16) & 1) * 1024 : ((k) * READERS + t) & 2047)
#define ORDERED_BY_BARRIER (SIGNAL == NAMED_BARRIER)

extern "C" __global__ void prepare(PARAMETERS) {  // 16 turns of 8 KB
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < 16 * 2048; i += gridDim.x * blockDim.x)
    in[i] = (i / 2048) << 16 | i % 2048;
}

DEVICE u32 others(const u32* word, u32 turn, u32 lane, u32 warp, u32 t) {  // words of other turns
  u32 found = 0;
#pragma unroll
  for (int k = 0; k < LOADS; k++) found += word[k] != (turn | PLACE(k));
  return found;
}

extern "C" __global__ void __launch_bounds__(READERS + 32) cell(PARAMETERS) {
  __shared__ alignas(1024) u32 buffer[2048];
  __shared__ alignas(1024) u32 tile[SIGNAL == PRODUCT_ARRIVE ? 512 : 4];
  __shared__ u32 turns[16];
  __shared__ alignas(8) u64 full, empty;
  const u32 t = threadIdx.x, lane = t & 31, warp = t / 32;
  const u32 fulls = in_shared(&full), empties = in_shared(&empty);
  if (t < 16) turns[t] = t << 16;
  if (t == 0) init(fulls, 1), init(empties, SIGNAL == ONE_ARRIVES ? READERS / 32 : READERS);
  if (SIGNAL == PRODUCT_ARRIVE && t < 128) {
    store_words(in_shared(tile) + t * 16, ONES);
    PROXY_FENCE("");
  }
  __syncthreads();
  u32 bad = 0;
  if (t >= READERS) {
    u64 waited = 0;
    for (int n = 0; n < trials; n++) {
      if (n) {
        if (ORDERED_BY_BARRIER) bar_sync(1, READERS + 32);
        else wait(empties, (n - 1) & 1);
      }
      u32 start = clocks();
      if (SIGNAL == ISSUER_FENCE) PROXY_FENCE("");
      if (SIGNAL == ISSUER_FENCE_CTA) PROXY_FENCE(".shared::cta");
      if (SIGNAL == ISSUER_DELAY) spin(DELAY);
      waited += clocks() - start;
      const u32* source = in + (n & 15) * 2048;
      if (OVERWRITE == COPY) {
        if (lane == 0) expect(fulls, 8192), load_in_bulk(in_shared(buffer), source, 8192, fulls);
      } else {
        for (u32 i = lane; i < 2048; i += 32)
          asm volatile("st.shared.u32 [%0], %1;" ::"r"(in_shared(buffer) + i * 4), "r"((n & 15) << 16 | i) : "memory");
        __syncwarp();
        if (lane == 0) arrive(fulls);
      }
      __syncwarp();
    }
    if (lane == 0) add(counts + 1, waited), add(counts + 2, trials);
    if (ORDERED_BY_BARRIER) bar_sync(1, READERS + 32);
  } else {
    for (int n = 0; n < trials; n++) {
      u32 word[LOADS], found = 0, turn;
      wait(fulls, n & 1);
#pragma unroll
      for (int k = 0; k < LOADS; k++)
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word[k]) : "r"(in_shared(buffer) + PLACE(k) * 4) : "memory");
      if (SIGNAL == USED_ARRIVE) {
        found = others(word, (n & 15) << 16, lane, warp, t);
        asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 0x12345; @p trap; }" ::"r"(found) : "memory");
      }
      if (SIGNAL == PRODUCT_ARRIVE) {  // a product that is waited for
        REGISTERS_OF_ONES(a);
        float d[32];
        wgmma_fence();
        product_of_registers(d, a, descriptor(in_shared(tile)), 0);
        wgmma_commit();
        wgmma_wait(d);
        bad += d[0] != 16;
      }
      if (SIGNAL == FENCE_ARRIVE) asm volatile("fence.acq_rel.cta;" ::: "memory");
      if (SIGNAL == PROXY_FENCE_ARRIVE) PROXY_FENCE("");
      if (SIGNAL == ARRIVE_RELAXED) {
        asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(empties) : "memory");
      } else if (SIGNAL == ONE_ARRIVES) {
        __syncwarp();
        if (lane == 0) arrive(empties);
      } else if (ORDERED_BY_BARRIER) {
        bar_arrive(1, READERS + 32);
      } else {
        arrive(empties);
      }
      // Read behind the signal: otherwise ptxas moves the comparisons before it.
      asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(turn) : "r"(in_shared(turns + (n & 15))) : "memory");
      if (SIGNAL != USED_ARRIVE) found = others(word, turn, lane, warp, t);
      bad += found != 0;
    }
    add(counts, bad);
  }
}
